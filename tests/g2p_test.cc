// The model from spelling to sounds that ships, through the engine: the logits of the framework
// that trained it (models/export_g2p.py).
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include "attend/attend.h"
#include "tests/testing.h"

namespace attend {
namespace {

const std::string kModel = std::string(ATTEND_SOURCE_DIR) + "/models/g2p-en.attend";
const std::string kData = std::string(ATTEND_TEST_DATA);

TEST(ShippedG2p, LogitsAreThoseOfTraining) {
  Result<Model> model = Model::Load(kModel);
  ASSERT_TRUE(model.ok()) << model.status().ToString();
  Result<Session> session = Session::Create(*model);
  ASSERT_TRUE(session.ok()) << session.status().ToString();
  const testing::Golden golden = testing::ReadGolden(kData + "/g2p/logits.safetensors");
  double largest = 0;
  int words = 0;
  for (; golden.tensors.count(std::to_string(words) + ".logits") != 0; ++words) {
    const auto read = [&](const char* name) {
      const auto& wide = golden.tensors.at(std::to_string(words) + "." + name).i64;
      return std::vector<int32_t>(wide.begin(), wide.end());
    };
    const std::vector<int32_t> ids = read("input_ids"), begun = read("decoder_input_ids");
    const int32_t offsets[] = {0, static_cast<int32_t>(ids.size())};
    const int32_t decoder_offsets[] = {0, static_cast<int32_t>(begun.size())};
    Result<Output> output = session->Run(
        {.ids = ids, .offsets = offsets, .decoder_ids = begun, .decoder_offsets = decoder_offsets});
    ASSERT_TRUE(output.ok()) << output.status().ToString();
    const std::vector<float>& want = golden.tensors.at(std::to_string(words) + ".logits").f32;
    ASSERT_EQ(output->logits.size(), want.size());
    for (size_t i = 0; i < want.size(); ++i) {
      largest = std::max(largest, std::abs(static_cast<double>(output->logits[i]) - want[i]));
    }
  }
  EXPECT_EQ(words, 20);
  std::printf("logits of %d words: largest difference %.1e\n", words, largest);
  EXPECT_LE(largest, 1e-4);
}

}  // namespace
}  // namespace attend
