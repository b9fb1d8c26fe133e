// The caller's batch is checked before anything runs; an error says which entry is wrong and why.
#include <string>

#include "engine/session.h"
#include "kernels/attention.h"

namespace attend {
namespace {

Status Invalid(std::string what, std::string where) {
  return Status(ErrorCode::kInvalidArgument, std::move(what), std::move(where));
}

std::string At(const char* array, size_t index) {
  return std::string(array) + "[" + std::to_string(index) + "]";
}

Status CheckOffsets(std::span<const int32_t> offsets, size_t tokens, const SessionData& data) {
  if (offsets.size() < 2) {
    return Invalid("the batch is empty: offsets has " + std::to_string(offsets.size()) +
                       " entries, expected one more than there are sequences, at least 2",
                   "offsets");
  }
  const size_t sequences = offsets.size() - 1;
  if (sequences > static_cast<size_t>(data.options.max_sequences)) {
    return Status(ErrorCode::kCapacity,
                  "the batch has " + std::to_string(sequences) + " sequences, the session takes " +
                      std::to_string(data.options.max_sequences),
                  "offsets", "raise SessionOptions::max_sequences or split the batch");
  }
  if (tokens > static_cast<size_t>(data.options.max_tokens)) {
    return Status(ErrorCode::kCapacity,
                  "the batch has " + std::to_string(tokens) + " tokens, the session takes " +
                      std::to_string(data.options.max_tokens),
                  "ids", "raise SessionOptions::max_tokens or split the batch");
  }
  if (offsets.front() != 0) {
    return Invalid("the first offset is " + std::to_string(offsets.front()) + ", expected 0",
                   At("offsets", 0));
  }
  const int64_t max_length = data.model->config.max_length;
  for (size_t b = 0; b < sequences; ++b) {
    const int64_t length = static_cast<int64_t>(offsets[b + 1]) - offsets[b];
    if (length < 0) {
      return Invalid("the offset is " + std::to_string(offsets[b + 1]) + ", before the previous " +
                         std::to_string(offsets[b]) + "; expected an increase",
                     At("offsets", b + 1));
    }
    if (length == 0) {
      return Invalid("the sequence is empty, expected at least one token",
                     "sequence " + std::to_string(b));
    }
    if (max_length > 0 && length > max_length) {
      return Status(ErrorCode::kCapacity,
                    "the sequence has " + std::to_string(length) + " tokens, the model takes " +
                        std::to_string(max_length),
                    "sequence " + std::to_string(b), "cut it, or read it in windows");
    }
  }
  if (static_cast<size_t>(offsets.back()) != tokens) {
    return Invalid("the last offset is " + std::to_string(offsets.back()) + ", expected " +
                       std::to_string(tokens) + ", the number of rows",
                   At("offsets", sequences));
  }
  return Status();
}

Status CheckRange(std::span<const int32_t> values, int64_t limit, const char* array) {
  for (size_t i = 0; i < values.size(); ++i) {
    if (values[i] < 0 || values[i] >= limit) {
      return Invalid("the value is " + std::to_string(values[i]) + ", allowed are 0 to " +
                         std::to_string(limit - 1),
                     At(array, i));
    }
  }
  return Status();
}

void FillView(std::span<const int32_t> offsets, SessionData* data) {
  BatchView& view = data->batch;
  view.offsets = offsets.data();
  view.tokens = offsets.back();
  view.sequences = static_cast<int64_t>(offsets.size()) - 1;
  int64_t key_row = 0;
  for (int64_t b = 0; b < view.sequences; ++b) {
    data->key_rows[b] = key_row;
    const int32_t begin = offsets[b], end = offsets[b + 1];
    for (int32_t row = begin; row < end; ++row) {
      data->positions[row] = row - begin;
      data->sequence_of[row] = static_cast<int32_t>(b);
    }
    key_row += RoundUp<int64_t>(end - begin, kKeyBlock);
  }
  view.positions = data->positions.data();
  view.sequence_of = data->sequence_of.data();
  view.key_rows = data->key_rows.data();
}

}  // namespace

Status CheckBatch(const TokenBatch& batch, SessionData* data) {
  const ModelConfig& config = data->model->config;
  if (config.vocab_size == 0) {
    return Invalid("the model takes vectors of " + std::to_string(config.input_size) +
                       " numbers, not token ids",
                   "TokenBatch");
  }
  if (!batch.edges.empty() || !batch.edge_offsets.empty()) {
    return Invalid("edges were given, and the model has none", "edges");
  }
  ATTEND_RETURN_IF_ERROR(CheckOffsets(batch.offsets, batch.ids.size(), *data));
  ATTEND_RETURN_IF_ERROR(CheckRange(batch.ids, config.vocab_size, "ids"));
  if (!batch.type_ids.empty()) {
    if (batch.type_ids.size() != batch.ids.size()) {
      return Invalid("type_ids has " + std::to_string(batch.type_ids.size()) +
                         " entries, expected " + std::to_string(batch.ids.size()) + " or none",
                     "type_ids");
    }
    // A model without type embeddings has one type, 0.
    const int64_t types = config.type_vocab_size == 0 ? 1 : config.type_vocab_size;
    ATTEND_RETURN_IF_ERROR(CheckRange(batch.type_ids, types, "type_ids"));
  }
  data->batch = BatchView{};
  data->batch.ids = batch.ids.data();
  data->batch.type_ids = batch.type_ids.empty() ? nullptr : batch.type_ids.data();
  FillView(batch.offsets, data);
  return Status();
}

Status CheckBatch(const VectorBatch&, SessionData* data) {
  if (data->model->config.vocab_size > 0) {
    return Invalid("the model takes token ids below " +
                       std::to_string(data->model->config.vocab_size) + ", not vectors",
                   "VectorBatch");
  }
  return Status(ErrorCode::kUnsupported, "input vectors are not run by this build", "VectorBatch");
}

}  // namespace attend
