// A host that uses OpenMP itself: its settings may leave a Session fewer threads than it has, which
// must not make it wait for those that never come.
#include <gtest/gtest.h>
#include <omp.h>

#include <optional>
#include <utility>
#include <vector>

#include "attend/attend.h"
#include "tests/random_model.h"

namespace attend {
namespace {

class OpenMpHost : public ::testing::Test {
 protected:
  void SetUp() override {
    Result<Model> model = testing::RandomModel(testing::EncoderConfig(64, 2, 4, 128), 1);
    ASSERT_TRUE(model.ok()) << model.status().ToString();
    // By columns, threads wait for each other most often.
    Result<Session> session =
        Session::Create(*model, {.num_threads = 2, .max_tokens = 64, .share = Share::kColumns});
    ASSERT_TRUE(session.ok()) << session.status().ToString();
    session_.emplace(std::move(*session));
    for (int32_t i = 0; i < 40; ++i) ids_.push_back(i + 1);
    expected_ = Hidden();
  }

  std::vector<float> Hidden() {
    const std::vector<int32_t> offsets = {0, 7, 40};
    const Result<Output> output = session_->Run(TokenBatch{.ids = ids_, .offsets = offsets});
    if (!output.ok()) return {};
    return {output->hidden.begin(), output->hidden.end()};
  }

  std::optional<Session> session_;
  std::vector<int32_t> ids_;
  std::vector<float> expected_;
};

TEST_F(OpenMpHost, InsideAParallelRegion) {
  ASSERT_EQ(expected_.size(), 40u * 64);
  const int levels = omp_get_max_active_levels();
  omp_set_max_active_levels(0);  // as inside a region: no further threads
  const std::vector<float> hidden = Hidden();
  omp_set_max_active_levels(levels);
  EXPECT_EQ(hidden, expected_);
  EXPECT_EQ(Hidden(), expected_);
}

TEST_F(OpenMpHost, DynamicTeamsAreLeftAsTheyWere) {
  omp_set_dynamic(1);
  EXPECT_EQ(Hidden(), expected_);
  EXPECT_NE(omp_get_dynamic(), 0);
  omp_set_dynamic(0);
}

}  // namespace
}  // namespace attend
