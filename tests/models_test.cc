// Whole models against reference outputs of another implementation (Hugging Face transformers in
// double precision): folders are converted, loaded and run, on every ISA, a process each.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "attend/attend.h"
#include "tests/isa_child.h"
#include "tests/testing.h"
#include "tools/convert.h"

namespace attend {
namespace {

// The yardsticks of the folders: what PyTorch in float32 differs from the goldens by.
struct Folder {
  const char* name;
  double hidden, hidden_largest;
  double other, other_largest;  // pooler output or logits; 0: there is none
};
constexpr Folder kFolders[] = {
    {"bert", 1.5e-6, 4.43, 7.6e-7, 0.995},
    {"bert_bf16", 1.3e-6, 4.75, 6.4e-7, 0.996},
    {"bert_cased_relu", 1.3e-6, 4.14, 6.8e-7, 0.998},
    {"bert_f16", 1.1e-6, 4.77, 7.7e-7, 0.996},
    {"bert_gamma_beta", 1.9e-6, 4.11, 7.8e-7, 0.991},
    {"bert_mlm", 2.2e-6, 5.01, 0, 0},
    {"bert_prefixed", 1.4e-6, 4.63, 5.4e-7, 0.994},
    {"bert_sequence_classification", 2.3e-6, 5.1, 7.5e-7, 1.34},
    {"bert_sharded", 1.6e-6, 4.39, 8.4e-7, 0.994},
    {"bert_token_classification", 1.5e-6, 4.57, 1.6e-6, 4.49},
    {"distilbert", 1.7e-6, 4.1, 0, 0},
    {"distilbert_token_classification", 2.0e-6, 4.66, 1.7e-6, 5.62},
    {"electra", 1.8e-6, 4.34, 0, 0},
};

// The tolerance that the goldens' README names: ten yardsticks, or 1e-4 of the largest value.
double Tolerance(double yardstick, double largest) {
  return std::max(10 * yardstick, 1e-4 * largest);
}

struct FolderDifference {
  double largest = 0;
  double cosine = 1;  // the least
  void Compare(std::span<const float> got, std::span<const float> want) {
    ASSERT_EQ(got.size(), want.size());
    double dot = 0, a = 0, b = 0;
    for (size_t i = 0; i < got.size(); ++i) {
      ASSERT_TRUE(std::isfinite(got[i]));
      largest = std::max(largest, std::abs(static_cast<double>(got[i]) - want[i]));
      dot += static_cast<double>(got[i]) * want[i];
      a += static_cast<double>(got[i]) * got[i];
      b += static_cast<double>(want[i]) * want[i];
    }
    if (a > 0 && b > 0) cosine = std::min(cosine, dot / std::sqrt(a * b));
  }
};

std::vector<int32_t> Ids(const testing::Golden& golden, const std::string& name) {
  const std::vector<int64_t>& wide = golden.tensors.at(name).i64;
  return {wide.begin(), wide.end()};
}

Result<Model> ConvertAndLoad(const std::string& folder) {
  const std::string file =
      ::testing::TempDir() + "/models_test_" + std::to_string(getpid()) + ".attend";
  ConvertReport report;
  ATTEND_RETURN_IF_ERROR(ConvertFolder({.folder = folder, .output = file}, &report));
  Result<Model> model = Model::Load(file);
  std::filesystem::remove(file);
  return model;
}

// All cases of a folder in one ragged batch on two threads, and one by one.
void CompareFolder(const Folder& folder, const char* isa) {
  const std::string path = std::string(ATTEND_TEST_DATA) + "/hf/" + folder.name;
  Result<Model> model = ConvertAndLoad(path);
  ASSERT_TRUE(model.ok()) << model.status().ToString();
  const testing::Golden golden = testing::ReadGolden(path + "/golden.safetensors");
  std::vector<int32_t> ids, types, offsets{0};
  int cases = 0;
  for (; golden.tensors.count(std::to_string(cases) + ".input_ids") != 0; ++cases) {
    const std::string prefix = std::to_string(cases) + ".";
    const std::vector<int32_t> one = Ids(golden, prefix + "input_ids");
    ids.insert(ids.end(), one.begin(), one.end());
    std::vector<int32_t> type(one.size(), 0);
    if (golden.tensors.count(prefix + "token_type_ids") != 0)
      type = Ids(golden, prefix + "token_type_ids");
    types.insert(types.end(), type.begin(), type.end());
    offsets.push_back(static_cast<int32_t>(ids.size()));
  }
  ASSERT_GT(cases, 4);
  Result<Session> session = Session::Create(*model, {.num_threads = 2});
  ASSERT_TRUE(session.ok()) << session.status().ToString();
  Result<Output> output = session->Run({.ids = ids, .offsets = offsets, .type_ids = types});
  ASSERT_TRUE(output.ok()) << output.status().ToString();
  FolderDifference hidden, other;
  const size_t width = static_cast<size_t>(model->info().hidden_size);
  for (int c = 0; c < cases; ++c) {
    const std::string prefix = std::to_string(c) + ".";
    const size_t begin = static_cast<size_t>(offsets[c]), end = static_cast<size_t>(offsets[c + 1]);
    hidden.Compare(output->hidden.subspan(begin * width, (end - begin) * width),
                   golden.tensors.at(prefix + "last_hidden_state").f32);
    const char* name = model->info().task == Task::kHidden ? "pooler_output" : "logits";
    const auto found = golden.tensors.find(prefix + name);
    if (folder.other == 0 || found == golden.tensors.end()) continue;
    const bool by_token = model->info().task == Task::kTokens;
    const std::span<const float> all =
        model->info().task == Task::kHidden ? output->pooled : output->logits;
    const size_t rows = by_token ? ids.size() : static_cast<size_t>(cases);
    const size_t columns = all.size() / rows;
    other.Compare(by_token ? all.subspan(begin * columns, (end - begin) * columns)
                           : all.subspan(static_cast<size_t>(c) * columns, columns),
                  found->second.f32);
  }
  EXPECT_LE(hidden.largest, Tolerance(folder.hidden, folder.hidden_largest)) << folder.name;
  EXPECT_GE(hidden.cosine, 0.999999) << folder.name;
  std::printf("%s %-32s hidden %.1e (float32 %.1e)", isa, folder.name, hidden.largest,
              folder.hidden);
  if (folder.other > 0) {
    EXPECT_GT(other.largest, 0) << folder.name << ": nothing was compared";
    EXPECT_LE(other.largest, Tolerance(folder.other, folder.other_largest)) << folder.name;
    std::printf(", other %.1e (float32 %.1e)", other.largest, folder.other);
  }
  std::printf("\n");
}

TEST(Models, OneIsa) {
  const char* isa = testing::ChildIsa();
  if (isa == nullptr) GTEST_SKIP() << "run by Models.EveryIsa, a process per ISA";
  for (const Folder& folder : kFolders) CompareFolder(folder, isa);
}

TEST(Models, EveryIsa) {
  for (const std::string& isa : AvailableIsas()) testing::ExpectChildPasses(isa, "Models.OneIsa");
}

TEST(Models, MiniLmOneIsa) {
  const char* isa = testing::ChildIsa();
  const char* folder = std::getenv("ATTEND_MINILM");
  if (isa == nullptr || folder == nullptr) GTEST_SKIP() << "run by Models.MiniLm";
  Result<Model> model = ConvertAndLoad(folder);
  ASSERT_TRUE(model.ok()) << model.status().ToString();
  const testing::Golden golden =
      testing::ReadGolden(std::string(ATTEND_TEST_DATA) + "/minilm/outputs.safetensors");
  Result<Session> session = Session::Create(*model, {.num_threads = 2});
  ASSERT_TRUE(session.ok()) << session.status().ToString();
  FolderDifference hidden, embedding;
  int cases = 0;
  for (int c = 0; c < 200; ++c) {
    const std::string prefix = std::to_string(c) + ".";
    if (golden.tensors.count(prefix + "input_ids") == 0) continue;
    const std::vector<int32_t> ids = Ids(golden, prefix + "input_ids");
    const int32_t offsets[] = {0, static_cast<int32_t>(ids.size())};
    Result<Output> output = session->Run({.ids = ids, .offsets = offsets});
    ASSERT_TRUE(output.ok()) << output.status().ToString();
    hidden.Compare(output->hidden, golden.tensors.at(prefix + "last_hidden_state").f32);
    embedding.Compare(output->pooled, golden.tensors.at(prefix + "embedding").f32);
    ++cases;
  }
  EXPECT_EQ(cases, 34);
  EXPECT_LE(hidden.largest, 4e-5);
  EXPECT_LE(embedding.largest, 1e-6);
  EXPECT_GE(embedding.cosine, 0.999999);
  std::printf("%s MiniLM: %d cases, hidden %.1e (float32 3.8e-06), embedding %.1e (1.5e-07)\n", isa,
              cases, hidden.largest, embedding.largest);
}

TEST(Models, MiniLm) {
  if (std::getenv("ATTEND_MINILM") == nullptr) {
    GTEST_SKIP() << "MiniLM is not at hand: set ATTEND_MINILM to its Hugging Face folder";
  }
  for (const std::string& isa : AvailableIsas()) {
    testing::ExpectChildPasses(isa, "Models.MiniLmOneIsa");
  }
}

}  // namespace
}  // namespace attend
