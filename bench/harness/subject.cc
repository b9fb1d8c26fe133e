#include "bench/harness/subject.h"

#include <algorithm>
#include <fstream>
#include <utility>

#include "attend/text.h"
#include "bench/harness/timing.h"
#include "engine/model.h"

namespace attend::bench {
namespace {

// The same noise everywhere, for ids and vectors.
uint32_t Noise(uint64_t i) {
  const uint64_t mixed = (i + 1) * 0x9E3779B97F4A7C15u;
  return static_cast<uint32_t>(mixed >> 32);
}

}  // namespace

Result<Texts> ReadTexts(const std::string& file, const std::string& model_path,
                        const ModelInfo& info) {
  if (info.tokenizer.empty()) {
    return Status(ErrorCode::kUnsupported, "the model has no tokenizer", "--text");
  }
  const Result<Tokenizer> tokenizer = Tokenizer::Load(model_path);
  if (!tokenizer.ok()) return tokenizer.status();
  std::ifstream in(file, std::ios::binary);
  if (!in) return Status(ErrorCode::kNotFound, "the file cannot be read", file);
  Texts texts{.file = file};
  const size_t longest = info.max_length > 0 ? static_cast<size_t>(info.max_length) : SIZE_MAX;
  Encoding encoding;
  for (std::string line; std::getline(in, line);) {
    ATTEND_RETURN_IF_ERROR(tokenizer->EncodeInto(line, {}, &encoding));
    if (encoding.ids.empty()) continue;  // nothing to run, in a model without special tokens
    if (encoding.ids.size() > longest) ++texts.cut;
    encoding.ids.resize(std::min(encoding.ids.size(), longest));
    texts.tokens += static_cast<int64_t>(encoding.ids.size());
    texts.ids.push_back(encoding.ids);
  }
  if (texts.ids.empty()) {
    return Status(ErrorCode::kInvalidArgument, "there is no text in the file", file);
  }
  return texts;
}

Result<Subject> Subject::Open(const Model& model, const SessionOptions& options) {
  if (model.data().config.edges) {
    return Status(ErrorCode::kUnsupported, "the model needs the edges of a graph", "model",
                  "time it with graphs of your own, in a program of your own");
  }
  Result<Session> session = Session::Create(model, options);
  if (!session.ok()) return session.status();
  return Subject(model, *std::move(session), options);
}

void Subject::AddSequence(std::span<const int32_t> ids, int64_t length, Batch* batch) const {
  const ModelInfo& info = model_.info();
  for (int64_t i = 0; i < length; ++i) {
    if (!ids.empty()) {
      batch->ids.push_back(ids[static_cast<size_t>(i)]);
      continue;
    }
    if (info.input_size == 0) {
      const uint32_t noise = Noise(batch->ids.size());
      batch->ids.push_back(static_cast<int32_t>(noise % static_cast<uint32_t>(info.vocab_size)));
      continue;
    }
    for (int32_t column = 0; column < info.input_size; ++column) {
      const uint32_t noise = Noise(batch->rows.size());
      batch->rows.push_back(static_cast<float>(noise) * 0x1p-31f - 1);
    }
  }
  batch->offsets.push_back(batch->offsets.back() + static_cast<int32_t>(length));
}

Batch Subject::MakeBatch(int64_t sequences, int64_t length) const {
  Batch batch{.input_size = model_.info().input_size,
              .writes = IsEncoderDecoder(model_.data().config)};
  for (int64_t b = 0; b < sequences; ++b) AddSequence({}, length, &batch);
  return batch;
}

Batch Subject::MakeBatch(std::span<const std::vector<int32_t>> sequences) const {
  Batch batch{.writes = IsEncoderDecoder(model_.data().config)};
  for (const std::vector<int32_t>& ids : sequences) {
    AddSequence(ids, static_cast<int64_t>(ids.size()), &batch);
  }
  return batch;
}

Result<Output> Subject::RunFor(const Batch& batch) {
  if (batch.input_size > 0) {
    return session_.Run(VectorBatch{.rows = batch.rows, .offsets = batch.offsets});
  }
  TokenBatch tokens{.ids = batch.ids, .offsets = batch.offsets};
  if (batch.writes) {
    tokens.decoder_ids = batch.ids;
    tokens.decoder_offsets = batch.offsets;
  }
  return session_.Run(tokens);
}

Result<double> Subject::Run(const Batch& batch) {
  const double start = Now();
  const Result<Output> output = RunFor(batch);
  const double taken = Now() - start;
  if (!output.ok()) return output.status();
  return taken;
}

Result<std::vector<double>> Subject::Times(const Batch& batch, double seconds, int least) {
  std::vector<double> times;
  const Result<double> first = Run(batch);
  if (!first.ok()) return first.status();
  const double end = Now() + seconds;
  while (static_cast<int>(times.size()) < least || Now() < end) {
    const Result<double> taken = Run(batch);
    if (!taken.ok()) return taken.status();
    times.push_back(*taken);
  }
  return times;
}

int64_t Subject::max_length() const {
  const int64_t longest = model_.info().max_length;
  return longest > 0 ? std::min<int64_t>(longest, options_.max_tokens) : options_.max_tokens;
}

Precision PrecisionOf(const Model& model, const SessionOptions& options) {
  return options.precision == Precision::kFile ? model.info().precision : options.precision;
}

const char* ShareName(Share share) {
  constexpr const char* kNames[] = {"auto", "sequences", "rows", "columns"};
  return kNames[static_cast<int>(share)];
}

}  // namespace attend::bench
