// attend convert and run for models that generate: ids and decoder ids in, hidden states and logits
// out, as reference outputs have them; and what is refused.
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/child.h"
#include "tests/testing.h"

namespace attend {
namespace {

using nlohmann::json;
using testing::Attend;
using testing::Golden;
using testing::Outcome;
using testing::TemporaryFolder;

std::string Folder(const std::string& name) { return ATTEND_TEST_DATA "/hf/" + name; }

std::string Convert(const TemporaryFolder& folder, const std::string& name, std::string* said) {
  const std::string file = folder / (name + ".attend");
  const Outcome outcome = Attend({"convert", Folder(name), "-o", file});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  *said = outcome.out + outcome.err;
  return file;
}

// The largest difference between rows of JSON and a tensor.
double Difference(const json& rows, const Golden::Tensor& want) {
  const auto width = static_cast<size_t>(want.shape[1]);
  EXPECT_EQ(rows.size() * width, want.f32.size());
  double largest = 0;
  for (size_t r = 0; r < rows.size(); ++r) {
    EXPECT_EQ(rows[r].size(), width);
    for (size_t c = 0; c < rows[r].size(); ++c) {
      largest = std::max(largest, std::abs(rows[r][c].get<double>() - want.f32[r * width + c]));
    }
  }
  return largest;
}

TEST(RunDecoder, AnEncoderDecoder) {
  const TemporaryFolder folder;
  std::string said;
  const std::string file = Convert(folder, "bart", &said);
  EXPECT_NE(said.find("2 layers, 4 heads of 12, feed-forward 72"), std::string::npos) << said;
  const Golden golden = testing::ReadGolden(Folder("bart") + "/golden.safetensors");
  std::string input;
  for (const char* k : {"0.", "1.", "3."}) {
    input += "{\"ids\": " + json(golden.tensors.at(std::string(k) + "input_ids").i64).dump() +
             ", \"decoder_ids\": " +
             json(golden.tensors.at(std::string(k) + "decoder_input_ids").i64).dump() + "}\n";
  }
  const Outcome outcome = Attend({"run", file, "--want", "encoder_hidden,hidden,logits"}, input);
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const std::vector<json> objects = outcome.objects();
  ASSERT_EQ(objects.size(), 3u);
  size_t at = 0;
  for (const std::string k : {"0.", "1.", "3."}) {
    const json& object = objects[at++];
    EXPECT_LE(
        Difference(object["encoder_hidden"], golden.tensors.at(k + "encoder_last_hidden_state")),
        3e-4);
    EXPECT_LE(Difference(object["hidden"], golden.tensors.at(k + "decoder_last_hidden_state")),
              5e-4);
    EXPECT_LE(Difference(object["logits"], golden.tensors.at(k + "logits")), 1e-3);
  }
  const Outcome inspected = Attend({"inspect", file});
  EXPECT_EQ(inspected.code, 0);
  EXPECT_NE(inspected.out.find("2 layers, 4 heads of 12"), std::string::npos) << inspected.out;
  EXPECT_NE(inspected.out.find("by the embeddings"), std::string::npos) << inspected.out;
  // What is wrong is said with its line.
  const auto refused = [&](const std::string& line, const std::string& what) {
    const Outcome wrong = Attend({"run", file, "--want", "logits"}, line + "\n");
    EXPECT_EQ(wrong.code, 3) << line;
    EXPECT_NE(wrong.err.find(what), std::string::npos) << wrong.err;
    EXPECT_NE(wrong.err.find("line 1"), std::string::npos) << wrong.err;
  };
  refused("{\"ids\": [5, 6]}", "at least one decoder token");
  refused("{\"ids\": [5, 6], \"decoder_ids\": [280]}", "the value is 280, allowed are 0 to 279");
  refused("{\"ids\": [5, 6], \"decoder_ids\": [2.5]}", "32-bit integer");
}

TEST(RunDecoder, InspectNamesTheScalingOfPositions) {
  const TemporaryFolder folder;
  std::string said;
  const std::string file = Convert(folder, "llama_rope_scaled", &said);
  const std::string scaling = "llama3 scaling by 4 from 32 positions, bands 1 to 4";
  EXPECT_NE(said.find(scaling), std::string::npos) << said;
  const Outcome inspected = Attend({"inspect", file});
  EXPECT_NE(inspected.out.find(scaling), std::string::npos) << inspected.out;
}

TEST(RunDecoder, ADecoderAlone) {
  const TemporaryFolder folder;
  std::string said;
  const std::string file = Convert(folder, "gpt2", &said);
  const Golden golden = testing::ReadGolden(Folder("gpt2") + "/golden.safetensors");
  std::string input;
  for (const char* k : {"0.", "2."}) {
    input +=
        "{\"ids\": " + json(golden.tensors.at(std::string(k) + "input_ids").i64).dump() + "}\n";
  }
  // Logits are what it is for.
  const Outcome outcome = Attend({"run", file}, input);
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const std::vector<json> objects = outcome.objects();
  ASSERT_EQ(objects.size(), 2u);
  EXPECT_LE(Difference(objects[0]["logits"], golden.tensors.at("0.logits")), 7e-4);
  EXPECT_LE(Difference(objects[1]["logits"], golden.tensors.at("2.logits")), 7e-4);
  const Outcome wrong = Attend({"run", file}, "{\"ids\": [5], \"decoder_ids\": [1]}\n");
  EXPECT_EQ(wrong.code, 3);
  EXPECT_NE(wrong.err.find("no decoder behind an encoder"), std::string::npos) << wrong.err;
  const Outcome none = Attend({"run", file, "--want", "encoder_hidden"}, "{\"ids\": [5]}\n");
  EXPECT_EQ(none.code, 3);
  EXPECT_NE(none.err.find("no encoder_hidden"), std::string::npos) << none.err;
  const Outcome tag = Attend({"classify", "-m", file, "a text"});
  EXPECT_EQ(tag.code, 3);
  EXPECT_NE(tag.err.find("attend generate"), std::string::npos) << tag.err;
}

}  // namespace
}  // namespace attend
