// Decoders and encoder-decoders against reference outputs of another implementation (Hugging Face
// transformers in double precision), all tokens given, and token by token: on every ISA, a process
// each.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "attend/attend.h"
#include "engine/decoder.h"
#include "tests/decoder_testing.h"
#include "tests/isa_child.h"
#include "tests/testing.h"
#include "tools/convert.h"

namespace attend {
namespace {

// What PyTorch in float32 differs from the goldens by, and the largest value.
struct Yardstick {
  double difference = 0, largest = 0;
  // The tolerance that the goldens' README names.
  double Tolerance() const { return std::max(10 * difference, 1e-4 * largest); }
};

struct DecoderFolder {
  const char* name;
  Yardstick encoder, hidden, logits;
};
constexpr DecoderFolder kDecoderFolders[] = {
    {"t5", {7.0e-7, 2.37}, {1.8e-6, 6.84}, {2.1e-6, 6.32}},
    {"t5_v1_1", {1.4e-6, 3.58}, {1.1e-6, 5.46}, {2.3e-6, 7.03}},
    {"bart", {8.9e-7, 2.97}, {1.6e-6, 4.78}, {3.8e-6, 9.52}},
    {"marian", {8.5e-7, 2.07}, {3.3e-6, 5.07}, {4.8e-6, 6.44}},
    {"gpt2", {}, {1.9e-6, 3.75}, {3.9e-6, 7.02}},
    {"llama", {}, {4.3e-6, 5.49}, {6.9e-6, 7.62}},
    {"llama_rope_scaled", {}, {5.8e-6, 4.19}, {9.9e-6, 6.7}},
    {"qwen3", {}, {3.1e-6, 4.26}, {6.4e-6, 6.49}},
};

struct DecoderCase {
  std::vector<int32_t> source, ids;
};

// The cases of a folder, and what they must give.
struct Cases {
  explicit Cases(const std::string& path)
      : golden(testing::ReadGolden(path + "/golden.safetensors")) {
    for (int c = 0;; ++c) {
      const std::string prefix = std::to_string(c) + ".";
      if (golden.tensors.count(prefix + "input_ids") == 0) break;
      DecoderCase& one = all.emplace_back();
      one.ids = Ids(prefix + "input_ids");
      if (golden.tensors.count(prefix + "decoder_input_ids") == 0) continue;
      one.source = std::move(one.ids);
      one.ids = Ids(prefix + "decoder_input_ids");
    }
  }
  std::vector<int32_t> Ids(const std::string& name) const {
    const std::vector<int64_t>& wide = golden.tensors.at(name).i64;
    return {wide.begin(), wide.end()};
  }

  testing::Golden golden;
  std::vector<DecoderCase> all;
};

// Sequences end to end.
struct Ragged {
  std::vector<int32_t> ids, offsets{0};
  void Add(std::span<const int32_t> more) {
    ids.insert(ids.end(), more.begin(), more.end());
    offsets.push_back(static_cast<int32_t>(ids.size()));
  }
};

Result<Model> LoadDecoder(const std::string& folder) {
  const std::string file =
      ::testing::TempDir() + "/decoder_models_" + std::to_string(getpid()) + ".attend";
  ConvertReport report;
  ATTEND_RETURN_IF_ERROR(ConvertFolder({.folder = folder, .output = file}, &report));
  Result<Model> model = Model::Load(file);
  std::filesystem::remove(file);
  return model;
}

// Compares the rows of every case with the golden `name`, where it has one. `offsets` cut `values`.
void CompareCases(const Cases& cases, const std::string& name, std::span<const float> values,
                  std::span<const int32_t> offsets, const Yardstick& yardstick) {
  const size_t width = values.size() / static_cast<size_t>(offsets.back());
  double largest = 0;
  int compared = 0;
  for (size_t c = 0; c < cases.all.size(); ++c) {
    const auto found = cases.golden.tensors.find(std::to_string(c) + "." + name);
    if (found == cases.golden.tensors.end()) continue;
    const auto begin = static_cast<size_t>(offsets[c]), end = static_cast<size_t>(offsets[c + 1]);
    const std::span<const float> got = values.subspan(begin * width, (end - begin) * width);
    const std::vector<float>& want = found->second.f32;
    ASSERT_EQ(got.size(), want.size()) << name;
    for (size_t i = 0; i < got.size(); ++i) {
      ASSERT_TRUE(std::isfinite(got[i])) << name;
      largest = std::max(largest, std::abs(static_cast<double>(got[i]) - want[i]));
    }
    ++compared;
  }
  EXPECT_GT(compared, 3) << name;
  EXPECT_LE(largest, yardstick.Tolerance()) << name;
  std::printf(", %s %.1e (float32 %.1e)", name.c_str(), largest, yardstick.difference);
}

// Every case token by token, all at once, must give the bits of `logits`, which all tokens at once
// gave: [T, V], cut by `offsets`. The first `first` tokens of a case come together.
void CompareSteps(const Model& model, const Cases& cases, std::span<const float> logits,
                  std::span<const int32_t> offsets, size_t first) {
  const auto count = static_cast<int32_t>(cases.all.size());
  Result<DecodeSession> session =
      DecodeSession::Create(model, {.num_threads = 2, .max_rows = count});
  ASSERT_TRUE(session.ok()) << session.status().ToString();
  const auto vocab = static_cast<size_t>(session->vocab_size());
  Ragged sources, starts;
  std::vector<int32_t> rows;
  for (int32_t c = 0; c < count; ++c) {
    rows.push_back(c);
    const DecoderCase& one = cases.all[static_cast<size_t>(c)];
    sources.Add(one.source);
    starts.Add(std::span(one.ids).first(std::min(first, one.ids.size())));
  }
  DecodeStart start{.rows = rows, .ids = starts.ids, .offsets = starts.offsets};
  if (session->has_encoder()) {
    start.source_ids = sources.ids;
    start.source_offsets = sources.offsets;
  }
  Result<std::span<const float>> got = session->Start(start);
  ASSERT_TRUE(got.ok()) << got.status().ToString();
  while (!rows.empty()) {
    std::vector<int32_t> left, next;
    for (size_t i = 0; i < rows.size(); ++i) {
      const int32_t row = rows[i];
      const auto length = static_cast<size_t>(session->length(row));
      const size_t at = static_cast<size_t>(offsets[static_cast<size_t>(row)]) + length - 1;
      ASSERT_TRUE(
          testing::SameFloats(got->subspan(i * vocab, vocab), logits.subspan(at * vocab, vocab)))
          << "case " << row << ", token " << length;
      const std::vector<int32_t>& ids = cases.all[static_cast<size_t>(row)].ids;
      if (length == ids.size()) continue;
      left.push_back(row);
      next.push_back(ids[length]);
    }
    rows = left;
    got = session->Step(rows, rows, next);
    ASSERT_TRUE(got.ok()) << got.status().ToString();
  }
}

void CompareDecoder(const DecoderFolder& folder, const char* isa) {
  SCOPED_TRACE(folder.name);
  const std::string path = std::string(ATTEND_TEST_DATA) + "/hf/" + folder.name;
  Result<Model> model = LoadDecoder(path);
  ASSERT_TRUE(model.ok()) << model.status().ToString();
  const Cases cases(path);
  ASSERT_GT(cases.all.size(), 4u);
  const bool pair = model->info().architecture == "encoder_decoder";
  Ragged sources, targets;
  for (const DecoderCase& one : cases.all) {
    sources.Add(one.source);
    targets.Add(one.ids);
  }
  TokenBatch batch{.ids = targets.ids, .offsets = targets.offsets};
  if (pair) {
    batch = {.ids = sources.ids,
             .offsets = sources.offsets,
             .decoder_ids = targets.ids,
             .decoder_offsets = targets.offsets};
  }
  Result<Session> session = Session::Create(*model, {.num_threads = 2, .max_tokens = 512});
  ASSERT_TRUE(session.ok()) << session.status().ToString();
  Result<Output> output = session->Run(batch);
  ASSERT_TRUE(output.ok()) << output.status().ToString();
  std::printf("%s %-18s", isa, folder.name);
  if (pair) {
    CompareCases(cases, "encoder_last_hidden_state", output->encoder_hidden, sources.offsets,
                 folder.encoder);
  }
  CompareCases(cases, pair ? "decoder_last_hidden_state" : "last_hidden_state", output->hidden,
               targets.offsets, folder.hidden);
  CompareCases(cases, "logits", output->logits, targets.offsets, folder.logits);
  std::printf("\n");
  for (const size_t first : {1u, 5u, 1000u}) {
    CompareSteps(*model, cases, output->logits, targets.offsets, first);
  }
}

TEST(DecoderModels, OneIsa) {
  const char* isa = testing::ChildIsa();
  if (isa == nullptr) GTEST_SKIP() << "run by DecoderModels.EveryIsa, a process per ISA";
  for (const DecoderFolder& folder : kDecoderFolders) CompareDecoder(folder, isa);
}

TEST(DecoderModels, EveryIsa) {
  for (const std::string& isa : AvailableIsas()) {
    testing::ExpectChildPasses(isa, "DecoderModels.OneIsa");
  }
}

}  // namespace
}  // namespace attend
