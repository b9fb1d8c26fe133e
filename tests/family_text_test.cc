// A model of the family with a tokenizer in its folder reads text: as a classifier, as a tagger,
// and with modules.json as sentence embeddings.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "attend/attend.h"
#include "attend/text.h"
#include "tests/hf_folder.h"
#include "tests/testing.h"
#include "tools/convert.h"

namespace attend {
namespace {

constexpr int kWidth = 24;

// The tokenizer of tests/data/hf/bert under a causal model with rotary positions.
class TextFolder : public TestFolder {
 public:
  explicit TextFolder(const char* task) : TestFolder("bert") {
    config = {{"model_type", "attend_encoder"},
              {"vocab_size", config["vocab_size"]},
              {"hidden_size", kWidth},
              {"num_hidden_layers", 1},
              {"num_attention_heads", 2},
              {"position", "rotary"},
              {"normalizer", "sigmoid"},
              {"normalizer_scale", "length"},
              {"norm", "pre"},
              {"task", task},
              {"description", "a test"}};
    const uint64_t vocab = config["vocab_size"];
    tensors.clear();
    tensors["embeddings.tokens.weight"] = RandomTensor(vocab, kWidth, 1);
    for (const char* name : {"q", "k", "v", "o"}) {
      tensors[std::string("layers.0.attention.") + name + ".weight"] =
          RandomTensor(kWidth, kWidth, static_cast<uint32_t>(name[0]));
    }
    tensors["layers.0.attention_norm.weight"] = RandomTensor(kWidth, 0, 6);
    tensors["final_norm.weight"] = RandomTensor(kWidth, 0, 7);
    if (std::string(task) != "none") tensors["head.weight"] = RandomTensor(3, kWidth, 8);
    Save();
  }

  Model Convert() const {
    ConvertReport report;
    const Status status = ConvertFolder({.folder = path(), .output = Path("m")}, &report);
    EXPECT_TRUE(status.ok()) << status.ToString();
    Result<Model> model = Model::Load(Path("m"));
    EXPECT_TRUE(model.ok()) << model.status().ToString();
    return *model;
  }
};

// The outputs for the ids of `text`.
struct Raw {
  std::vector<float> hidden, logits;
};

Raw RunIds(const Model& model, const std::string& text) {
  Result<Tokenizer> tokenizer = Tokenizer::FromModel(model);
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.status().ToString();
  Result<Encoding> encoding = tokenizer->Encode(text);
  EXPECT_TRUE(encoding.ok());
  Result<Session> session = Session::Create(model);
  EXPECT_TRUE(session.ok()) << session.status().ToString();
  const int32_t offsets[] = {0, static_cast<int32_t>(encoding->ids.size())};
  Result<Output> output = session->Run(TokenBatch{.ids = encoding->ids, .offsets = offsets});
  EXPECT_TRUE(output.ok()) << output.status().ToString();
  return {{output->hidden.begin(), output->hidden.end()},
          {output->logits.begin(), output->logits.end()}};
}

TEST(FamilyText, Classifier) {
  const TextFolder folder("sequence");
  const Model model = folder.Convert();
  EXPECT_EQ(model.info().description, "a test");
  EXPECT_EQ(model.info().tokenizer, "wordpiece");
  EXPECT_EQ(model.info().labels, (std::vector<std::string>{"LABEL_0", "LABEL_1", "LABEL_2"}));
  Result<Classifier> classifier = Classifier::Create(model);
  ASSERT_TRUE(classifier.ok()) << classifier.status().ToString();
  // There is no longest text.
  std::string text;
  for (int i = 0; i < 700; ++i) text += "saw ";
  for (const std::string& one : {std::string("I saw a saw"), text}) {
    Result<Classification> answer = classifier->Classify(one);
    ASSERT_TRUE(answer.ok()) << answer.status().ToString();
    const std::vector<float> logits = RunIds(model, one).logits;
    ASSERT_EQ(logits.size(), 3u);
    double sum = 0;
    for (const float logit : logits) sum += std::exp(static_cast<double>(logit));
    ASSERT_EQ(answer->scores.size(), 3u);
    for (size_t c = 0; c < 3; ++c) {
      EXPECT_NEAR(answer->scores[c], std::exp(static_cast<double>(logits[c])) / sum, 1e-6);
    }
  }
}

TEST(FamilyText, Tagger) {
  const TextFolder folder("tokens");
  Result<Tagger> tagger = Tagger::Create(folder.Convert());
  ASSERT_TRUE(tagger.ok()) << tagger.status().ToString();
  Result<Tags> tags = tagger->Tag("I saw a saw");
  ASSERT_TRUE(tags.ok()) << tags.status().ToString();
  EXPECT_EQ(tags->words.size(), 4u);
}

TEST(FamilyText, SentenceEmbedding) {
  TextFolder folder("none");
  folder.Write("modules.json", R"([
    {"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"},
    {"idx": 1, "name": "1", "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"}])");
  folder.Write("1_Pooling/config.json", R"({"word_embedding_dimension": 24,
    "pooling_mode_cls_token": false, "pooling_mode_mean_tokens": true,
    "pooling_mode_max_tokens": false, "pooling_mode_mean_sqrt_len_tokens": false})");
  folder.Write("sentence_bert_config.json", R"({"max_seq_length": 50, "do_lower_case": false})");
  const Model model = folder.Convert();
  EXPECT_EQ(model.info().max_length, 50);
  Result<Embedder> embedder = Embedder::Create(model);
  ASSERT_TRUE(embedder.ok()) << embedder.status().ToString();
  Result<Embedding> embedding = embedder->Embed("I saw a saw");
  ASSERT_TRUE(embedding.ok()) << embedding.status().ToString();
  const std::vector<float> hidden = RunIds(model, "I saw a saw").hidden;
  std::vector<double> mean(kWidth);
  for (size_t i = 0; i < hidden.size(); ++i) {
    mean[i % kWidth] += hidden[i] / static_cast<double>(hidden.size() / kWidth);
  }
  testing::ExpectNear({embedding->values.begin(), embedding->values.end()}, mean, 1e-5, 0, "mean");

  folder.config["task"] = "tokens";
  folder.tensors["head.weight"] = RandomTensor(3, kWidth, 8);
  folder.Save();
  ConvertReport report;
  const Status status =
      ConvertFolder({.folder = folder.path(), .output = folder.Path("n")}, &report);
  EXPECT_EQ(status.code(), ErrorCode::kUnsupported);
  EXPECT_NE(status.ToString().find("\"task\" is \"tokens\", and modules.json"), std::string::npos)
      << status.ToString();
}

}  // namespace
}  // namespace attend
