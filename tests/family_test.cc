// Every model of tests/data/family against its reference outputs (plain PyTorch in double
// precision): converted, loaded and run, each case alone and all in one batch, on every ISA, a
// process each.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "attend/attend.h"
#include "tests/family_batch.h"
#include "tests/isa_child.h"
#include "tests/testing.h"
#include "tools/convert.h"

namespace attend {
namespace {

using testing::FamilyBatch;
using testing::FamilySequence;
using testing::Golden;

std::vector<std::string> Folders() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(ATTEND_TEST_DATA "/family")) {
    if (entry.is_directory()) names.push_back(entry.path().filename());
  }
  std::sort(names.begin(), names.end());
  return names;
}

FamilySequence ReadCase(const Golden& golden, const std::string& prefix) {
  FamilySequence sequence;
  if (const auto ids = golden.tensors.find(prefix + "input_ids"); ids != golden.tensors.end()) {
    sequence.ids.assign(ids->second.i64.begin(), ids->second.i64.end());
    sequence.length = ids->second.shape[0];
  } else {
    const Golden::Tensor& input = golden.tensors.at(prefix + "input");
    sequence.rows = input.f32;
    sequence.length = input.shape[0];
  }
  if (const auto edges = golden.tensors.find(prefix + "edges"); edges != golden.tensors.end()) {
    const std::vector<int64_t>& pairs = edges->second.i64;
    for (size_t k = 0; k + 1 < pairs.size(); k += 2) {
      sequence.edges.push_back(
          {static_cast<int32_t>(pairs[k]), static_cast<int32_t>(pairs[k + 1])});
    }
  }
  return sequence;
}

// The largest difference, and how often something was compared.
struct Difference {
  double largest = 0;
  int64_t compared = 0;
  void Compare(std::span<const float> got, const std::vector<float>& want) {
    ASSERT_EQ(got.size(), want.size());
    for (size_t i = 0; i < got.size(); ++i) {
      ASSERT_TRUE(std::isfinite(got[i])) << "element " << i;
      largest = std::max(largest, std::abs(static_cast<double>(got[i]) - want[i]));
      ++compared;
    }
  }
};

class FolderCheck {
 public:
  FolderCheck(const std::string& name, const char* isa) : name_(name), isa_(isa) {
    const std::string folder = std::string(ATTEND_TEST_DATA "/family/") + name;
    const std::string file =
        ::testing::TempDir() + "/family_test_" + std::to_string(getpid()) + ".attend";
    ConvertReport report;
    const Status status = ConvertFolder({.folder = folder, .output = file}, &report);
    EXPECT_TRUE(status.ok()) << status.ToString();
    if (!status.ok()) return;
    EXPECT_TRUE(report.unused.empty());
    config_ = report.config;
    Result<Model> model = Model::Load(file);
    std::filesystem::remove(file);
    EXPECT_TRUE(model.ok()) << model.status().ToString();
    if (!model.ok()) return;
    golden_ = testing::ReadGolden(folder + "/golden.safetensors");
    cases_ = std::stoi(golden_.metadata.at("cases"));
    Result<Session> session = Session::Create(*model, {.num_threads = 2, .max_tokens = 512});
    EXPECT_TRUE(session.ok()) << session.status().ToString();
    if (!session.ok()) return;
    Run(&*session);
  }

 private:
  void Run(Session* session) {
    FamilyBatch together(config_);
    std::vector<int> all;
    for (int c = 0; c < cases_; ++c) {
      const FamilySequence sequence = ReadCase(golden_, std::to_string(c) + ".");
      FamilyBatch alone(config_);
      alone.Add(sequence);
      Compare(session, alone, {c});
      together.Add(sequence);
      all.push_back(c);
    }
    Compare(session, together, all);
    Report();
  }

  // The sequences of `batch` are these cases.
  void Compare(Session* session, const FamilyBatch& batch, const std::vector<int>& cases) {
    Result<Output> output = batch.Run(session);
    ASSERT_TRUE(output.ok()) << output.status().ToString();
    for (size_t s = 0; s < cases.size(); ++s) {
      const std::string prefix = std::to_string(cases[s]) + ".";
      SCOPED_TRACE("case " + std::to_string(cases[s]));
      const auto at = static_cast<int64_t>(s);
      hidden_.Compare(testing::RowsOf(output->hidden, batch, at, true),
                      golden_.tensors.at(prefix + "hidden").f32);
      if (config_.task == Task::kHidden) {
        EXPECT_TRUE(output->logits.empty());
        continue;
      }
      logits_.Compare(testing::RowsOf(output->logits, batch, at, config_.task == Task::kTokens),
                      golden_.tensors.at(prefix + "logits").f32);
    }
  }

  void Report() {
    const double hidden = std::stod(golden_.metadata.at("float32_max_abs_diff_hidden"));
    EXPECT_GT(hidden_.compared, 0);
    EXPECT_LE(hidden_.largest, std::max(2e-5, 10 * hidden));
    std::printf("%s %-38s hidden %.1e (float32 %.1e)", isa_, name_.c_str(), hidden_.largest,
                hidden);
    if (config_.task != Task::kHidden) {
      const double logits = std::stod(golden_.metadata.at("float32_max_abs_diff_logits"));
      EXPECT_GT(logits_.compared, 0);
      EXPECT_LE(logits_.largest, std::max(2e-5, 10 * logits));
      std::printf(", logits %.1e (%.1e)", logits_.largest, logits);
    }
    std::printf("\n");
  }

  std::string name_;
  const char* isa_;
  ModelConfig config_;
  Golden golden_;
  int cases_ = 0;
  Difference hidden_, logits_;
};

TEST(Family, OneIsa) {
  const char* isa = testing::ChildIsa();
  if (isa == nullptr) GTEST_SKIP() << "run by Family.EveryIsa, a process per ISA";
  const std::vector<std::string> folders = Folders();
  EXPECT_EQ(folders.size(), 47u);
  for (const std::string& folder : folders) {
    SCOPED_TRACE(folder);
    FolderCheck(folder, isa);
  }
}

TEST(Family, EveryIsa) {
  for (const std::string& isa : AvailableIsas()) testing::ExpectChildPasses(isa, "Family.OneIsa");
}

}  // namespace
}  // namespace attend
