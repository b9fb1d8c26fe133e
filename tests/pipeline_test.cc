// The pipelines over the engine: words and labels, windows, shapes, batches, errors.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "attend/text.h"
#include "engine/config.h"
#include "engine/format.h"
#include "engine/text/letter_case.h"
#include "tests/random_model.h"
#include "tools/tokenizer_json.h"

namespace attend::testing {
namespace {

// A random model that takes the vocabulary of the tiny tokenizer.
Model TextModel(Task task, int64_t labels, bool shapes = false, int64_t max_length = 64) {
  ModelConfig config = EncoderConfig(32, 2, 2, 64);
  config.task = task;
  config.vocab_size = 300;
  config.max_positions = config.max_length = max_length;
  config.num_labels = labels;
  for (int64_t i = 0; i < labels; ++i) config.labels.push_back("L" + std::to_string(i));
  if (task == Task::kSequence || task == Task::kEmbedding) config.pooling = Pooling::kMean;
  config.normalize = task == Task::kEmbedding;
  if (shapes) {
    config.word_shape_types = true;
    config.type_vocab_size = 4;
  }
  Result<TokenizerSpec> tokenizer =
      ReadTokenizerJson(ATTEND_TEST_DATA "/hf/bert_token_classification/tokenizer.json");
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.status().ToString();
  Result<Model> model = RandomModel(config, 7, SerializeTokenizer(*tokenizer));
  EXPECT_TRUE(model.ok()) << model.status().ToString();
  return *model;
}

TEST(WordShape, FollowsTheCategories) {
  const std::pair<const char*, int> cases[] = {
      {"", 0},
      {"saw", 0},
      {"123", 0},
      {"...", 0},
      {"I", 1},
      {"Saw", 1},
      {"'Tis", 1},
      {"3D", 1},
      {"X-ray", 1},
      {"USA", 2},
      {"U.S.", 2},
      {"A1B", 2},
      {"McDonald", 3},
      {"iPhone", 3},
      {"USAs", 3},
      {"\xc3\x89t\xc3\xa9", 1},                 // Été
      {"\xce\x91\xce\x92", 2},                  // ΑΒ
      {"\xc7\x85", 0},                          // a title-case letter: neither upper nor lower
      {"\xe2\x92\xb6", 0},                      // Ⓐ: a symbol
      {"\xf0\x9d\x90\x80\xf0\x9d\x90\x81", 2},  // mathematical bold AB
      {"\xe4\xb8\xad", 0},
      {"\xc4\x80\xc4\x81", 1},  // Āā: letters in turn
  };
  for (const auto& [word, shape] : cases) EXPECT_EQ(WordShape(word), shape) << word;
}

TEST(Tagger, EveryWordHasOneLabelWhateverTheBatch) {
  Result<Tagger> tagger = Tagger::Create(TextModel(Task::kTokens, 5));
  ASSERT_TRUE(tagger.ok()) << tagger.status().ToString();
  const std::vector<std::string_view> texts = {
      "I saw a saw", "", "Don't stop me now, e-mail: x@y.org", "   ", "unbelievably"};
  Result<std::vector<Tags>> batch = tagger->TagBatch(texts);
  ASSERT_TRUE(batch.ok()) << batch.status().ToString();
  ASSERT_EQ(batch->size(), texts.size());
  for (size_t i = 0; i < texts.size(); ++i) {
    Result<Tags> one = tagger->Tag(texts[i]);
    ASSERT_TRUE(one.ok());
    ASSERT_EQ(one->words.size(), (*batch)[i].words.size());
    for (size_t j = 0; j < one->words.size(); ++j) {
      const TaggedWord& word = one->words[j];
      EXPECT_EQ(word.label, (*batch)[i].words[j].label);
      EXPECT_EQ(word.score, (*batch)[i].words[j].score) << "the same text must give the same bits";
      EXPECT_EQ(texts[i].substr(word.range.begin, word.range.end - word.range.begin), word.text);
      EXPECT_GE(word.score, 0.2f);
    }
  }
  EXPECT_EQ((*batch)[0].words.size(), 4u);
  EXPECT_EQ((*batch)[1].words.size(), 0u);
  EXPECT_EQ((*batch)[3].words.size(), 0u);
}

// The label at a word's first piece, computed from the logits of a Session.
TEST(Tagger, TakesTheFirstPieceOfAWord) {
  const Model model = TextModel(Task::kTokens, 5, /*shapes=*/true);
  Result<Tagger> tagger = Tagger::Create(model);
  Result<Tokenizer> tokenizer = Tokenizer::FromModel(model);
  Result<Session> session = Session::Create(model);
  ASSERT_TRUE(tagger.ok() && tokenizer.ok() && session.ok());
  const std::vector<std::string_view> words = {"Unbelievably", "USA", "saw", "iPhone", "x"};
  std::vector<int32_t> ids = {tokenizer->bos_id()}, types = {0};
  std::vector<size_t> first;
  for (std::string_view word : words) {
    first.push_back(ids.size());
    ASSERT_TRUE(tokenizer->EncodeWord(word, &ids).ok());
    types.resize(ids.size(), WordShape(word));
  }
  EXPECT_GT(ids.size(), words.size() + 1) << "at least one word has to have several pieces";
  ids.push_back(tokenizer->eos_id());
  types.push_back(0);
  const std::vector<int32_t> offsets = {0, static_cast<int32_t>(ids.size())};
  TokenBatch batch;
  batch.ids = ids, batch.type_ids = types, batch.offsets = offsets;
  Result<Output> output = session->Run(batch);
  ASSERT_TRUE(output.ok()) << output.status().ToString();
  Result<Tags> tags = tagger->TagWords(words);
  ASSERT_TRUE(tags.ok()) << tags.status().ToString();
  ASSERT_EQ(tags->words.size(), words.size());
  for (size_t i = 0; i < words.size(); ++i) {
    const std::span<const float> logits = output->logits.subspan(first[i] * 5, 5);
    const size_t best =
        static_cast<size_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());
    double sum = 0;
    for (float logit : logits) sum += std::exp(static_cast<double>(logit) - logits[best]);
    EXPECT_EQ(tags->words[i].label, "L" + std::to_string(best));
    EXPECT_NEAR(tags->words[i].score, 1 / sum, 1e-6);
  }
  // The shapes matter: the same words in other letters are other input.
  Result<Tags> lower =
      tagger->TagWords(std::vector<std::string_view>{"unbelievably", "usa", "saw", "iphone", "x"});
  ASSERT_TRUE(lower.ok());
  EXPECT_NE(lower->words[2].score, tags->words[2].score);
}

TEST(Tagger, WindowsLoseNoWordAndKeepContext) {
  const Model model = TextModel(Task::kTokens, 5);
  Result<Tagger> tagger = Tagger::Create(model);
  ASSERT_TRUE(tagger.ok());
  for (const size_t count : {61u, 62u, 63u, 200u, 1000u}) {
    std::vector<std::string> strings;
    for (size_t i = 0; i < count; ++i)
      strings.push_back(std::string(1, static_cast<char>('a' + i % 26)));
    const std::vector<std::string_view> words(strings.begin(), strings.end());
    Result<Tags> tags = tagger->TagWords(words);
    ASSERT_TRUE(tags.ok()) << tags.status().ToString();
    EXPECT_EQ(tags->windowed, count > 62) << count;  // 64 less [CLS] and [SEP]
    ASSERT_EQ(tags->words.size(), count);
    for (size_t i = 0; i < count; ++i) {
      ASSERT_EQ(tags->words[i].text, strings[i]);
      ASSERT_NE(tags->words[i].label, "") << i;
    }
    if (count < 200) continue;
    // The first 54 words are nearer to the middle of the first window than of any other.
    Result<Tags> head = tagger->TagWords(std::span(words).first(62));
    ASSERT_TRUE(head.ok());
    for (size_t i = 0; i < 54; ++i) EXPECT_EQ(tags->words[i].score, head->words[i].score) << i;
    bool differs = false;
    for (size_t i = 54; i < 62; ++i) differs |= tags->words[i].score != head->words[i].score;
    EXPECT_TRUE(differs) << "words near the border are read again with more context";
  }
}

TEST(Tagger, WordLongerThanAWindow) {
  Result<Tagger> tagger = Tagger::Create(TextModel(Task::kTokens, 5));
  ASSERT_TRUE(tagger.ok());
  std::string giant;
  for (int i = 0; i < 95; ++i) giant += static_cast<char>('a' + i % 3);
  const std::vector<std::string_view> words = {"x", giant, "y", giant, giant, "z"};
  Result<Tags> tags = tagger->TagWords(words);
  ASSERT_TRUE(tags.ok()) << tags.status().ToString();
  ASSERT_EQ(tags->words.size(), words.size());
  for (size_t i = 0; i < words.size(); ++i) {
    EXPECT_EQ(tags->words[i].text, words[i]);
    EXPECT_NE(tags->words[i].label, "");
  }
}

TEST(Tagger, SmallMaxLength) {
  PipelineOptions options;
  const Model model = TextModel(Task::kTokens, 5);
  options.max_length = 3;
  Result<Tagger> tagger = Tagger::Create(model, options);
  ASSERT_TRUE(tagger.ok()) << tagger.status().ToString();
  Result<Tags> tags = tagger->Tag("I saw a saw, unbelievably");
  ASSERT_TRUE(tags.ok());
  EXPECT_EQ(tags->words.size(), 6u);
  for (const TaggedWord& word : tags->words) EXPECT_NE(word.label, "");
  for (const int32_t bad : {-1, 1, 2, 65}) {
    options.max_length = bad;
    Result<Tagger> refused = Tagger::Create(model, options);
    ASSERT_FALSE(refused.ok()) << bad;
    EXPECT_EQ(refused.status().code(), ErrorCode::kInvalidArgument);
    EXPECT_NE(refused.status().what().find("3 to 64"), std::string::npos)
        << refused.status().what();
  }
}

TEST(Tagger, BadTexts) {
  Result<Tagger> tagger = Tagger::Create(TextModel(Task::kTokens, 5));
  ASSERT_TRUE(tagger.ok());
  const std::vector<std::string_view> texts = {"good", "bad \xc0\x80"};
  Result<std::vector<Tags>> tags = tagger->TagBatch(texts);
  ASSERT_FALSE(tags.ok());
  EXPECT_EQ(tags.status().code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(tags.status().where(), "texts[1], byte 4");
  EXPECT_TRUE(tagger->Tag("good").ok()) << "an error must not spoil the pipeline";
  EXPECT_FALSE(tagger->TagWords(std::vector<std::string_view>{"a", "\xff"}).ok());
  EXPECT_EQ(tagger->TagBatch({})->size(), 0u);
}

TEST(Classifier, BatchesPairsAndTruncation) {
  const Model model = TextModel(Task::kSequence, 3);
  Result<Classifier> classifier = Classifier::Create(model);
  ASSERT_TRUE(classifier.ok()) << classifier.status().ToString();
  const std::vector<std::string_view> texts = {"one", "", "three words here"};
  Result<std::vector<Classification>> batch = classifier->ClassifyBatch(texts);
  ASSERT_TRUE(batch.ok());
  for (size_t i = 0; i < texts.size(); ++i) {
    Result<Classification> one = classifier->Classify(texts[i]);
    ASSERT_TRUE(one.ok());
    EXPECT_EQ(one->scores, (*batch)[i].scores);
    EXPECT_NEAR(one->scores[0] + one->scores[1] + one->scores[2], 1, 1e-6);
    const size_t best = static_cast<size_t>(
        std::max_element(one->scores.begin(), one->scores.end()) - one->scores.begin());
    EXPECT_EQ(one->label, "L" + std::to_string(best));
  }
  Result<Classification> pair = classifier->ClassifyPair("one", "two");
  ASSERT_TRUE(pair.ok());
  EXPECT_NE(pair->scores, (*batch)[0].scores);
  const std::vector<std::string_view> one_pair = {"two"};
  EXPECT_FALSE(classifier->ClassifyPairBatch(texts, one_pair).ok());

  std::string text;
  for (int i = 0; i < 100; ++i) text += "a ";
  Result<Classification> too_long = classifier->Classify(text);
  ASSERT_FALSE(too_long.ok());
  EXPECT_EQ(too_long.status().code(), ErrorCode::kCapacity);
  PipelineOptions options;
  options.truncate = true;
  Result<Classifier> cutting = Classifier::Create(model, options);
  ASSERT_TRUE(cutting.ok());
  Result<Classification> cut = cutting->Classify(text);
  ASSERT_TRUE(cut.ok()) << cut.status().ToString();
  EXPECT_TRUE(cut->truncated);
  EXPECT_FALSE(cutting->Classify("short")->truncated);
  EXPECT_TRUE(cutting->ClassifyPair(text, text)->truncated);
}

TEST(Embedder, ManyTextsInSmallRuns) {
  const Model model = TextModel(Task::kEmbedding, 0);
  PipelineOptions small;
  small.session.max_tokens = 64;
  small.session.max_sequences = 3;
  Result<Embedder> a = Embedder::Create(model, small);
  Result<Embedder> b = Embedder::Create(model);
  ASSERT_TRUE(a.ok() && b.ok()) << a.status().ToString();
  EXPECT_EQ(a->dimensions(), 32);
  std::vector<std::string> strings;
  for (int i = 0; i < 50; ++i)
    strings.push_back(std::string(static_cast<size_t>(i % 20), 'x') + " y");
  const std::vector<std::string_view> texts(strings.begin(), strings.end());
  Result<std::vector<Embedding>> in_small = a->EmbedBatch(texts);
  Result<std::vector<Embedding>> in_one = b->EmbedBatch(texts);
  ASSERT_TRUE(in_small.ok() && in_one.ok()) << in_small.status().ToString();
  for (size_t i = 0; i < texts.size(); ++i) {
    ASSERT_EQ((*in_small)[i].values.size(), 32u);
    EXPECT_EQ((*in_small)[i].values, (*in_one)[i].values) << i;
  }
}

TEST(Reranker, CrossEncoderAndCosine) {
  const std::vector<std::string_view> texts = {"b c", "the query", "b c", ""};
  for (const Task task : {Task::kSequence, Task::kEmbedding}) {
    Result<Reranker> reranker = Reranker::Create(TextModel(task, task == Task::kSequence ? 1 : 0));
    ASSERT_TRUE(reranker.ok()) << reranker.status().ToString();
    Result<std::vector<Ranked>> ranked = reranker->Rank("the query", texts);
    ASSERT_TRUE(ranked.ok()) << ranked.status().ToString();
    ASSERT_EQ(ranked->size(), texts.size());
    std::vector<size_t> place(texts.size());
    for (size_t i = 0; i < ranked->size(); ++i) {
      place[(*ranked)[i].index] = i;
      if (i > 0) {
        EXPECT_GE((*ranked)[i - 1].score, (*ranked)[i].score);
      }
    }
    EXPECT_EQ(place[0] + 1, place[2]) << "equal scores keep the order of the texts";
    if (task == Task::kEmbedding) {
      EXPECT_EQ(place[1], 0u);
      EXPECT_NEAR(ranked->front().score, 1, 1e-6);
    }
    EXPECT_EQ(reranker->Rank("x", {})->size(), 0u);
  }
  EXPECT_FALSE(Reranker::Create(TextModel(Task::kSequence, 3)).ok());
}

TEST(Pipelines, RefuseModelsOfAnotherTask) {
  Result<Tagger> tagger = Tagger::Create(TextModel(Task::kEmbedding, 0));
  ASSERT_FALSE(tagger.ok());
  EXPECT_EQ(tagger.status().code(), ErrorCode::kUnsupported);
  EXPECT_NE(tagger.status().what().find("Embedder"), std::string::npos) << tagger.status().what();
  EXPECT_FALSE(Embedder::Create(TextModel(Task::kTokens, 2)).ok());
  EXPECT_FALSE(Classifier::Create(TextModel(Task::kTokens, 2)).ok());
  ModelConfig config = EncoderConfig(32, 1, 2, 64);
  config.task = Task::kEmbedding;
  config.pooling = Pooling::kMean;
  Result<Model> no_tokenizer = RandomModel(config, 1);
  ASSERT_TRUE(no_tokenizer.ok());
  Result<Embedder> embedder = Embedder::Create(*no_tokenizer);
  ASSERT_FALSE(embedder.ok());
  EXPECT_NE(embedder.status().what().find("no tokenizer"), std::string::npos);
  EXPECT_EQ(Tagger::Load("/nowhere.attend").status().code(), ErrorCode::kNotFound);
}

// A session that has no room for one piece between the special tokens would label those.
TEST(Options, ASessionHasRoomForATokenOfText) {
  const Model tokens = TextModel(Task::kTokens, 3), embeds = TextModel(Task::kEmbedding, 0);
  for (const int32_t max_tokens : {1, 2}) {
    for (const bool truncate : {false, true}) {
      const PipelineOptions options{.session = {.max_tokens = max_tokens}, .truncate = truncate};
      for (const Status& status :
           {Tagger::Create(tokens, options).status(), Embedder::Create(embeds, options).status()}) {
        EXPECT_EQ(status.code(), ErrorCode::kInvalidArgument);
        EXPECT_EQ(status.where(), "max_tokens");
      }
    }
  }
  Result<Tagger> tagger = Tagger::Create(tokens, {.session = {.max_tokens = 3}});
  ASSERT_TRUE(tagger.ok()) << tagger.status().ToString();
  Result<Tags> tags = tagger->Tag("I saw unbelievably many saws");
  ASSERT_TRUE(tags.ok()) << tags.status().ToString();
  EXPECT_EQ(tags->words.size(), 5u);
}

TEST(Options, MemoryIsPredicted) {
  for (const SessionOptions& options :
       {SessionOptions{.max_tokens = 100}, SessionOptions{.num_threads = 2, .max_sequences = 7}}) {
    const Model model = TextModel(Task::kTokens, 3);
    Result<size_t> first = Session::PredictMemoryBytes(model, options);
    Result<size_t> second = Session::PredictMemoryBytes(model, options);
    Result<Session> session = Session::Create(model, options);
    ASSERT_TRUE(first.ok() && second.ok() && session.ok());
    EXPECT_EQ(*second, session->memory_bytes());
    EXPECT_EQ(*first, session->memory_bytes() + session->weight_bytes());
  }
  // More than there is: predicting takes none of it.
  Result<size_t> huge = Session::PredictMemoryBytes(
      TextModel(Task::kTokens, 3), {.max_tokens = 1 << 22, .max_sequences = 1 << 20});
  ASSERT_TRUE(huge.ok()) << huge.status().ToString();
  EXPECT_GT(*huge, size_t{1} << 30);
}

}  // namespace
}  // namespace attend::testing
