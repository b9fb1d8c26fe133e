// Settings of generation: laid over each other, checked, and kept in a file.
#include "engine/generate_settings.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>

namespace attend {
namespace {

using Ids = std::vector<int32_t>;

GenerationSettings Everything() {
  GenerationSettings s = DefaultSettings();
  s.num_beams = 4;
  s.max_new_tokens = 30;
  s.max_length = 50;
  s.early_stopping = EarlyStopping::kNever;
  s.length_penalty = -0.75;
  s.do_sample = true;
  s.seed = std::numeric_limits<uint64_t>::max();
  s.eos_token_id = Ids{3, 7};
  s.decoder_start_token_id = 2;
  s.suppress_tokens = Ids{9};
  s.bad_words_ids = std::vector<Ids>{{1}, {2, 3}, {4, 5, 6}};
  return s;
}

Result<GenerationSettings> ThroughAFile(const FileWriter& writer) {
  const Result<std::vector<std::byte>> bytes = writer.WriteToBytes();
  EXPECT_TRUE(bytes.ok()) << bytes.status().ToString();
  const FileBytes copy = FileBytes::Copy(*bytes);
  const Result<FileView> view = FileView::Open(copy.bytes(), VerifyLevel::kStructure, "test");
  EXPECT_TRUE(view.ok()) << view.status().ToString();
  return ReadGenerationKeys(*view);
}

void ExpectSame(const GenerationSettings& a, const GenerationSettings& b) {
  VisitSettings(
      [](std::string_view name, const auto& x, const auto& y) { EXPECT_TRUE(x == y) << name; }, a,
      b);
}

TEST(GenerateSettings, AFileKeepsThem) {
  for (const GenerationSettings& settings :
       {GenerationSettings(), DefaultSettings(), Everything()}) {
    FileWriter writer;
    WriteGenerationKeys(settings, &writer);
    const Result<GenerationSettings> read = ThroughAFile(writer);
    ASSERT_TRUE(read.ok()) << read.status().ToString();
    ExpectSame(*read, settings);
  }
}

TEST(GenerateSettings, WrongKeysOfAFileAreRefused) {
  const auto expect = [](auto set, ErrorCode code, const char* where) {
    FileWriter writer;
    set(&writer);
    const Result<GenerationSettings> read = ThroughAFile(writer);
    ASSERT_FALSE(read.ok()) << where;
    EXPECT_EQ(read.status().code(), code);
    EXPECT_EQ(read.status().where(), where);
  };
  using W = FileWriter*;
  expect([](W w) { w->SetInt("generation.typical_p", 1); }, ErrorCode::kUnsupported,
         "generation.typical_p");
  expect([](W w) { w->SetFloat("generation.num_beams", 4); }, ErrorCode::kCorrupt,
         "generation.num_beams");
  expect([](W w) { w->SetInt("generation.num_beams", int64_t{1} << 40); }, ErrorCode::kCorrupt,
         "generation.num_beams");
  expect([](W w) { w->SetString("generation.early_stopping", "maybe"); }, ErrorCode::kCorrupt,
         "generation.early_stopping");
  for (const std::vector<int64_t>& list :
       {std::vector<int64_t>{2, 5}, {-1}, {1, int64_t{1} << 40}, {0, 7}}) {
    expect([&](W w) { w->SetInts("generation.bad_words_ids", list); }, ErrorCode::kCorrupt,
           "generation.bad_words_ids");
  }
}

TEST(GenerateSettings, OverlayTakesWhatIsSet) {
  GenerationSettings over;
  over.num_beams = 2;
  over.eos_token_id = Ids{};
  const GenerationSettings both = Overlay(over, Everything());
  EXPECT_EQ(both.num_beams, 2);
  EXPECT_EQ(both.eos_token_id, Ids{});
  EXPECT_EQ(both.length_penalty, -0.75);
}

struct BadSetting {
  const char* name;
  const char* where;
  const char* message;
  void (*change)(GenerationSettings* s);
};

class BadSettings : public ::testing::TestWithParam<BadSetting> {};

TEST_P(BadSettings, AreNamed) {
  GenerationSettings settings = DefaultSettings();
  EXPECT_TRUE(CheckSettings(settings, 100).ok());
  GetParam().change(&settings);
  const Status status = CheckSettings(settings, 100);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(status.where(), GetParam().where);
  EXPECT_NE(status.what().find(GetParam().message), std::string::npos) << status.what();
}

using S = GenerationSettings*;
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
INSTANTIATE_TEST_SUITE_P(
    All, BadSettings,
    ::testing::Values(
        BadSetting{"NoBeam", "num_beams", "found 0; expected 1 to 256",
                   [](S s) { s->num_beams = 0; }},
        BadSetting{"TooManyBeams", "num_beams", "found 257", [](S s) { s->num_beams = 257; }},
        BadSetting{"MoreOutputsThanBeams", "num_return_sequences", "at most num_beams, 3",
                   [](S s) { s->num_beams = 3, s->num_return_sequences = 4; }},
        BadSetting{"SeveralGreedyOutputs", "num_return_sequences", "greedy",
                   [](S s) { s->num_return_sequences = 2; }},
        BadSetting{"NothingNew", "max_new_tokens", "found 0", [](S s) { s->max_new_tokens = 0; }},
        BadSetting{"NegativeLength", "max_length", "found -5", [](S s) { s->max_length = -5; }},
        BadSetting{"NegativeMinimum", "min_length", "found -1", [](S s) { s->min_length = -1; }},
        BadSetting{"PenaltyNan", "length_penalty", "found nan",
                   [](S s) { s->length_penalty = kNan; }},
        BadSetting{"NoTemperature", "temperature", "found 0", [](S s) { s->temperature = 0; }},
        BadSetting{"TopK", "top_k", "found -1", [](S s) { s->top_k = -1; }},
        BadSetting{"TopP", "top_p", "found 1.5", [](S s) { s->top_p = 1.5; }},
        BadSetting{"MinP", "min_p", "found -0.5", [](S s) { s->min_p = -0.5; }},
        BadSetting{"Repetition", "repetition_penalty", "found -2",
                   [](S s) { s->repetition_penalty = -2; }},
        BadSetting{"Ngram", "no_repeat_ngram_size", "found -1",
                   [](S s) { s->no_repeat_ngram_size = -1; }},
        BadSetting{"EndOutside", "eos_token_id[1]", "found 100; expected 0 to 99",
                   [](S s) {
                     s->eos_token_id = Ids{5, 100};
                   }},
        BadSetting{"StartOutside", "decoder_start_token_id", "found 200",
                   [](S s) { s->decoder_start_token_id = 200; }},
        BadSetting{"ForcedOutside", "forced_bos_token_id", "found -2",
                   [](S s) { s->forced_bos_token_id = -2; }},
        BadSetting{"BadWordOutside", "bad_words_ids[1][1]", "found -3",
                   [](S s) {
                     s->bad_words_ids = std::vector<Ids>{{1}, {2, -3}};
                   }},
        BadSetting{"EmptyBadWord", "bad_words_ids[0]", "no ids",
                   [](S s) { s->bad_words_ids = std::vector<Ids>{{}}; }},
        BadSetting{"ForcedAndSuppressed", "forced_bos_token_id", "suppress_tokens",
                   [](S s) { s->forced_bos_token_id = 7, s->suppress_tokens = Ids{7}; }},
        BadSetting{"EndForcedAndSuppressed", "forced_eos_token_id", "suppress_tokens",
                   [](S s) {
                     s->forced_eos_token_id = Ids{7, 8}, s->suppress_tokens = Ids{8, 7};
                   }}),
    [](const auto& test) { return test.param.name; });

TEST(GenerateSettings, PlainOnes) {
  GenerationSettings settings;
  settings.eos_token_id = Ids{3};
  settings.bos_token_id = 5;
  settings.bad_words_ids = std::vector<Ids>{{3}, {4}, {3, 4}};
  const SearchSettings plain = PlainSettings(settings);
  EXPECT_EQ(plain.bad_words, (std::vector<Ids>{{4}, {3, 4}}));  // the end is never bad
  EXPECT_EQ(plain.decoder_start_token_id, 5);
  EXPECT_EQ(plain.top_k, 50);
  EXPECT_EQ(plain.LongestOutput(3, 0), 23);
  EXPECT_EQ(plain.LongestOutput(3, 10), 10);  // not beyond the model's positions
  settings.max_length = 7;
  EXPECT_EQ(PlainSettings(settings).LongestOutput(3, 5), 7);
  settings.max_new_tokens = 9;
  EXPECT_EQ(PlainSettings(settings).LongestOutput(3, 5), 12);
}

}  // namespace
}  // namespace attend
