// What a Session computes in: the file's word, the caller's, and that of single layers; how near
// bf16 and int8 come to f32; and that weights are packed once for each precision.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "attend/attend.h"
#include "attend/text.h"
#include "tests/hf_folder.h"
#include "tests/isa_child.h"
#include "tests/random_model.h"
#include "tools/convert.h"

namespace attend {
namespace {

ModelConfig SmallConfig(Precision precision) {
  ModelConfig config = testing::EncoderConfig(96, 2, 4, 192);
  config.precision = precision;
  return config;
}

Model MakeModel(const ModelConfig& config) {
  Result<Model> model = testing::RandomModel(config, 7);
  EXPECT_TRUE(model.ok()) << model.status().ToString();
  return *model;
}

Session MakeSession(const Model& model, Precision precision = Precision::kFile) {
  Result<Session> session = Session::Create(model, {.precision = precision});
  EXPECT_TRUE(session.ok()) << session.status().ToString();
  return *std::move(session);
}

std::vector<float> Hidden(Session& session) {
  std::vector<int32_t> ids;
  for (int32_t i = 0; i < 60; ++i) ids.push_back(i * 37 % 1000);
  const int32_t offsets[] = {0, 20, 60};
  Result<Output> output = session.Run(TokenBatch{.ids = ids, .offsets = offsets});
  EXPECT_TRUE(output.ok()) << output.status().ToString();
  return {output->hidden.begin(), output->hidden.end()};
}

// sqrt(sum (a - b)^2 / sum b^2).
double RelativeError(const std::vector<float>& a, const std::vector<float>& b) {
  double difference = 0, size = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    difference += (double{a[i]} - b[i]) * (double{a[i]} - b[i]);
    size += double{b[i]} * b[i];
  }
  return std::sqrt(difference / size);
}

int64_t Count(const std::string& text, std::string_view part) {
  int64_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

// Steps of a description that compute in each precision.
std::vector<int64_t> Steps(const Session& session) {
  const std::string text = session.Describe();
  return {Count(text, ", f32 "), Count(text, ", bf16 "), Count(text, ", int8 ")};
}

TEST(Precision, OfTheFileUnlessTheCallerSaysOtherwise) {
  for (const Precision of_file : {Precision::kF32, Precision::kBf16, Precision::kInt8}) {
    const Model model = MakeModel(SmallConfig(of_file));
    EXPECT_EQ(model.info().precision, of_file);
    for (const Precision asked :
         {Precision::kFile, Precision::kF32, Precision::kBf16, Precision::kInt8}) {
      const Session session = MakeSession(model, asked);
      const Precision wanted = asked == Precision::kFile ? of_file : asked;
      std::vector<int64_t> expected(3, 0);  // f32, bf16, int8
      expected[static_cast<size_t>(wanted) - 1] = 8;
      EXPECT_EQ(Steps(session), expected) << session.Describe();
      EXPECT_NE(session.Describe().find(std::string("precision ") + Name(wanted)),
                std::string::npos)
          << session.Describe();
    }
  }
}

TEST(Precision, WithoutABf16UnitTheDescriptionSaysSo) {
  const Model model = MakeModel(SmallConfig(Precision::kBf16));
  const std::string text = MakeSession(model).Describe();
  const bool has_unit = CurrentIsa() == "avx512_bf16" || CurrentIsa() == "amx";
  EXPECT_EQ(Count(text, "the CPU has no bf16 unit"), has_unit ? 0 : 8) << text;
}

TEST(Precision, LayersThatTheFileNamesAreMoreExact) {
  ModelConfig config = SmallConfig(Precision::kInt8);
  config.f32_layers = {"layers.0.ffn.down", "layers.1.attention.k"};
  config.bf16_layers = {"layers.0.attention.o", "layers.1.attention.q"};
  const Model model = MakeModel(config);
  // Queries, keys and values are one step: the most exact of the three decides.
  EXPECT_EQ(Steps(MakeSession(model)), (std::vector<int64_t>{2, 1, 5}));
  EXPECT_EQ(Steps(MakeSession(model, Precision::kBf16)), (std::vector<int64_t>{2, 6, 0}));
  EXPECT_EQ(Steps(MakeSession(model, Precision::kF32)), (std::vector<int64_t>{8, 0, 0}));
}

TEST(Precision, WeightsArePackedOnceForEach) {
  const Model model = MakeModel(SmallConfig(Precision::kF32));
  const Session f32 = MakeSession(model);
  const size_t f32_bytes = f32.weight_bytes();
  const Session bf16 = MakeSession(model, Precision::kBf16);
  const size_t bf16_bytes = bf16.weight_bytes() - f32_bytes;
  const Session int8 = MakeSession(model, Precision::kInt8);
  const size_t int8_bytes = int8.weight_bytes() - f32_bytes - bf16_bytes;
  // Half and a quarter, but for biases, scales and vectors.
  EXPECT_LT(bf16_bytes, f32_bytes * 55 / 100);
  EXPECT_LT(int8_bytes, f32_bytes * 32 / 100);
  const size_t all = int8.weight_bytes();
  for (const Precision again : {Precision::kF32, Precision::kBf16, Precision::kInt8}) {
    EXPECT_EQ(MakeSession(model, again).weight_bytes(), all);
  }
}

TEST(Precision, OneIsa) {
  const char* isa = testing::ChildIsa();
  if (isa == nullptr) GTEST_SKIP() << "run by Precision.EveryIsaIsNearF32, a process per ISA";
  const Model model = MakeModel(SmallConfig(Precision::kF32));
  Session f32 = MakeSession(model), bf16 = MakeSession(model, Precision::kBf16);
  Session int8 = MakeSession(model, Precision::kInt8);
  const std::vector<float> exact = Hidden(f32);
  const double bf16_error = RelativeError(Hidden(bf16), exact);
  const double int8_error = RelativeError(Hidden(int8), exact);
  std::printf("%s: relative error of a random model's output: bf16 %.1e, int8 %.1e\n", isa,
              bf16_error, int8_error);
  EXPECT_GT(bf16_error, 1e-5) << "it is not computed in bf16";
  EXPECT_LT(bf16_error, 1e-2);
  EXPECT_GT(int8_error, 1e-4) << "it is not computed in int8";
  EXPECT_LT(int8_error, 6e-2);
}

TEST(Precision, EveryIsaIsNearF32) {
  for (const std::string& isa : AvailableIsas()) {
    testing::ExpectChildPasses(isa, "Precision.OneIsa");
  }
  const std::string emulated = testing::Emulated();
  if (!emulated.empty()) testing::ExpectChildPasses(emulated, "Precision.OneIsa");
}

// The first texts of the treebank's dev part.
std::vector<std::string> DevTexts(size_t count) {
  std::ifstream file(std::string(ATTEND_TEST_DATA) + "/ud_english_ewt/en_ewt.dev.text.tsv");
  std::vector<std::string> texts;
  for (std::string line; texts.size() < count && std::getline(file, line);) {
    texts.push_back(line.substr(0, line.find('\t')));
  }
  return texts;
}

std::vector<std::vector<float>> Embed(const std::string& path, Precision precision,
                                      const std::vector<std::string>& texts) {
  Result<Embedder> embedder =
      Embedder::Load(path, {.session = {.num_threads = 2, .precision = precision}});
  EXPECT_TRUE(embedder.ok()) << embedder.status().ToString();
  const std::vector<std::string_view> views(texts.begin(), texts.end());
  Result<std::vector<Embedding>> embedded = embedder->EmbedBatch(views);
  EXPECT_TRUE(embedded.ok()) << embedded.status().ToString();
  std::vector<std::vector<float>> vectors;
  for (Embedding& embedding : *embedded) vectors.push_back(std::move(embedding.values));
  return vectors;
}

struct Cosines {
  double least = 1, mean = 0;
};

Cosines CosinesOf(const std::vector<std::vector<float>>& a,
                  const std::vector<std::vector<float>>& b) {
  Cosines cosines;
  for (size_t t = 0; t < a.size(); ++t) {
    double dot = 0, aa = 0, bb = 0;
    for (size_t i = 0; i < a[t].size(); ++i) {
      dot += double{a[t][i]} * b[t][i];
      aa += double{a[t][i]} * a[t][i];
      bb += double{b[t][i]} * b[t][i];
    }
    const double cosine = dot / std::sqrt(aa * bb);
    cosines.least = std::min(cosines.least, cosine);
    cosines.mean += cosine / static_cast<double>(a.size());
  }
  return cosines;
}

// A real model, where it is at hand: files in each precision, and a file in f32 that the caller
// runs in each.
TEST(Precision, MiniLmEmbeddingsStayWhereTheyWere) {
  testing::ChildIsa();  // ATTEND_TEST_ISA may say another than the best
  const char* folder = std::getenv("ATTEND_MINILM");
  if (folder == nullptr) {
    GTEST_SKIP() << "MiniLM is not at hand: set ATTEND_MINILM to its Hugging Face folder";
  }
  TestFolder out;
  const auto convert = [&](const char* name, Precision precision) {
    ConvertReport report;
    const Status status = ConvertFolder(
        {.folder = folder, .output = out.Path(name), .precision = precision}, &report);
    EXPECT_TRUE(status.ok()) << status.ToString();
    for (const auto& [key, value] : report.understood) {
      if (key == "loss" || key.starts_with("in ")) {
        std::printf("%s: %s %s\n", name, key.c_str(), value.c_str());
      }
    }
    return out.Path(name);
  };
  const std::string f32 = convert("f32", Precision::kF32);
  // Emulated, a few take minutes.
  const std::vector<std::string> texts = DevTexts(CurrentIsa() == testing::Emulated() ? 50 : 1000);
  ASSERT_GE(texts.size(), 50u);
  const auto exact = Embed(f32, Precision::kF32, texts);
  struct Case {
    const char* name;
    std::string path;
    Precision precision;
    double least, mean;
  };
  const Case cases[] = {
      {"bf16 file", convert("bf16", Precision::kBf16), Precision::kFile, 0.999, 0.999},
      {"int8 file", convert("int8", Precision::kInt8), Precision::kFile, 0.99, 0.997},
      {"bf16 by the caller", f32, Precision::kBf16, 0.999, 0.999},
      {"int8 by the caller", f32, Precision::kInt8, 0.99, 0.997}};
  for (const Case& c : cases) {
    const Cosines cosines = CosinesOf(Embed(c.path, c.precision, texts), exact);
    std::printf("%s: cosine to f32 %.5f at least, %.5f in the mean\n", c.name, cosines.least,
                cosines.mean);
    EXPECT_GE(cosines.least, c.least) << c.name;
    EXPECT_GE(cosines.mean, c.mean) << c.name;
  }
  const auto size = [](const std::string& path) {
    return static_cast<double>(std::filesystem::file_size(path));
  };
  EXPECT_LT(size(cases[0].path), 0.51 * size(f32));
  EXPECT_LT(size(cases[1].path), 0.30 * size(f32));
}

}  // namespace
}  // namespace attend
