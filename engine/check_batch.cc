// The caller's batch is checked before anything runs; an error says which entry is wrong and why.
#include <algorithm>
#include <cmath>
#include <string>

#include "engine/check.h"
#include "engine/session.h"
#include "kernels/attention.h"

namespace attend {
namespace {

// What a batch of tokens and one of vectors have in common.
struct Sequences {
  std::span<const int32_t> offsets;
  std::span<const Edge> edges;
  std::span<const int32_t> edge_offsets;
  size_t tokens = 0;         // rows of the batch
  const char* array = "";    // the name of the caller's array of rows
  const char* element = "";  // what a row is
  const char* offset_array = "offsets";
};

Sequences SequencesOf(const TokenBatch& batch) {
  return {batch.offsets, batch.edges, batch.edge_offsets, batch.ids.size(),
          "ids",         "token",     "offsets"};
}

Sequences SequencesOf(const VectorBatch& batch, size_t width) {
  return {batch.offsets, batch.edges, batch.edge_offsets, batch.rows.size() / width,
          "rows",        "vector",    "offsets"};
}

BatchRules RulesOf(const SessionData& data) { return {data.model->config, data.options}; }

// [0, ..., end], never decreasing.
Status CheckOffsetArray(std::span<const int32_t> offsets, size_t end, const char* array,
                        const char* counted) {
  if (offsets.front() != 0) {
    return Invalid("the first offset is " + std::to_string(offsets.front()) + ", expected 0",
                   At(array, 0));
  }
  for (size_t b = 1; b < offsets.size(); ++b) {
    if (offsets[b] >= offsets[b - 1]) continue;
    return Invalid("the offset is " + std::to_string(offsets[b]) + ", before the previous " +
                       std::to_string(offsets[b - 1]) + "; expected an increase",
                   At(array, b));
  }
  if (static_cast<size_t>(offsets.back()) != end) {
    return Invalid("the last offset is " + std::to_string(offsets.back()) + ", expected " +
                       std::to_string(end) + ", the number of " + counted,
                   At(array, offsets.size() - 1));
  }
  return Status();
}

Status CheckSequences(const Sequences& batch, const BatchRules& rules) {
  const std::span<const int32_t> offsets = batch.offsets;
  if (offsets.size() < 2) {
    return Invalid("the batch is empty: offsets has " + std::to_string(offsets.size()) +
                       " entries, expected one more than there are sequences, at least 2",
                   "offsets");
  }
  const size_t sequences = offsets.size() - 1;
  if (sequences > static_cast<size_t>(rules.options.max_sequences)) {
    return Status(ErrorCode::kCapacity,
                  "the batch has " + std::to_string(sequences) + " sequences, the session takes " +
                      std::to_string(rules.options.max_sequences),
                  "offsets", "raise SessionOptions::max_sequences or split the batch");
  }
  if (batch.tokens > static_cast<size_t>(rules.options.max_tokens)) {
    return Status(ErrorCode::kCapacity,
                  "the batch has " + std::to_string(batch.tokens) + " " + batch.element +
                      "s, the session takes " + std::to_string(rules.options.max_tokens),
                  batch.array, "raise SessionOptions::max_tokens or split the batch");
  }
  ATTEND_RETURN_IF_ERROR(CheckOffsetArray(offsets, batch.tokens, batch.offset_array, "rows"));
  const int64_t max_length = rules.config.max_length;
  for (size_t b = 0; b < sequences; ++b) {
    const int64_t length = static_cast<int64_t>(offsets[b + 1]) - offsets[b];
    if (length == 0) {
      return Invalid(std::string("the sequence is empty, expected at least one ") + batch.element,
                     "sequence " + std::to_string(b));
    }
    if (max_length > 0 && length > max_length) {
      return Status(ErrorCode::kCapacity,
                    "the sequence has " + std::to_string(length) + " " + batch.element +
                        "s, the model takes " + std::to_string(max_length),
                    "sequence " + std::to_string(b), "cut it, or read it in windows");
    }
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

Status CheckEdges(const Sequences& batch, const BatchRules& rules) {
  const bool given = !batch.edges.empty() || !batch.edge_offsets.empty();
  if (!rules.config.edges) {
    return given ? Invalid("edges were given, and the model takes none", "edges",
                           "leave edges and edge_offsets empty")
                 : Status();
  }
  if (batch.edge_offsets.size() != batch.offsets.size()) {
    return Invalid(given ? "edge_offsets has " + std::to_string(batch.edge_offsets.size()) +
                               " entries, expected " + std::to_string(batch.offsets.size()) +
                               ", as many as offsets"
                         : "the model needs the edges of every sequence, and none were given",
                   "edge_offsets",
                   given ? "" : "give edge_offsets, all 0 if no position sees another");
  }
  if (batch.edges.size() > static_cast<size_t>(rules.options.max_edges)) {
    return Status(ErrorCode::kCapacity,
                  "the batch has " + std::to_string(batch.edges.size()) +
                      " edges, the session takes " + std::to_string(rules.options.max_edges),
                  "edges", "raise SessionOptions::max_edges or split the batch");
  }
  ATTEND_RETURN_IF_ERROR(
      CheckOffsetArray(batch.edge_offsets, batch.edges.size(), "edge_offsets", "edges"));
  for (size_t b = 0; b + 1 < batch.offsets.size(); ++b) {
    const int32_t length = batch.offsets[b + 1] - batch.offsets[b];
    const auto outside = [length](int32_t index) { return index < 0 || index >= length; };
    for (int32_t k = batch.edge_offsets[b]; k < batch.edge_offsets[b + 1]; ++k) {
      const Edge& edge = batch.edges[static_cast<size_t>(k)];
      if (!outside(edge.i) && !outside(edge.j)) continue;
      return Invalid("the edge is (" + std::to_string(edge.i) + ", " + std::to_string(edge.j) +
                         "), allowed are 0 to " + std::to_string(length - 1) + ", positions of " +
                         "sequence " + std::to_string(b),
                     At("edges", static_cast<size_t>(k)),
                     "edges count from the start of their own sequence");
    }
  }
  return Status();
}

// The caller's pairs by row, sorted, each once: two passes that count and place, then each row for
// itself.
void FillEdges(const Sequences& batch, SessionData* data) {
  if (!data->model->config.edges) return;
  int32_t* const ends = data->edge_offsets.data() + 1;  // [T]; first counts, then starts, then ends
  int32_t* const keys = data->edge_keys.data();
  const size_t rows = batch.tokens;
  std::fill_n(data->edge_offsets.data(), rows + 1, 0);
  const auto for_each = [&](const auto& visit) {
    for (size_t b = 0; b + 1 < batch.offsets.size(); ++b) {
      for (int32_t k = batch.edge_offsets[b]; k < batch.edge_offsets[b + 1]; ++k) {
        const Edge& edge = batch.edges[static_cast<size_t>(k)];
        visit(static_cast<size_t>(batch.offsets[b] + edge.i), edge.j);
      }
    }
  };
  for_each([&](size_t row, int32_t) { ++ends[row]; });
  int32_t start = 0;
  for (size_t row = 0; row < rows; ++row) {
    const int32_t count = ends[row];
    ends[row] = start;
    start += count;
  }
  for_each([&](size_t row, int32_t key) { keys[ends[row]++] = key; });
  int32_t begin = 0, kept = 0;
  for (size_t row = 0; row < rows; ++row) {
    const int32_t end = ends[row];
    std::sort(keys + begin, keys + end);
    int32_t* const last = std::unique(keys + begin, keys + end);
    kept = static_cast<int32_t>(std::copy(keys + begin, last, keys + kept) - keys);
    ends[row] = kept;
    begin = end;
  }
  data->batch.edge_offsets = data->edge_offsets.data();
  data->batch.edge_keys = keys;
}

void FillView(const Sequences& batch, SessionData* data) {
  data->arrays.Fill(batch.offsets, &data->batch);
  FillEdges(batch, data);
}

// The sequence that has `row`, for messages.
std::string PlaceOfRow(std::span<const int32_t> offsets, size_t row) {
  const auto next = std::upper_bound(offsets.begin(), offsets.end(), static_cast<int32_t>(row)) - 1;
  return "position " + std::to_string(static_cast<int32_t>(row) - *next) + " of sequence " +
         std::to_string(next - offsets.begin());
}

Status CheckFiniteRows(std::span<const float> rows, size_t width,
                       std::span<const int32_t> offsets) {
  const std::optional<size_t> bad = FindBadWeight(DType::kF32, std::as_bytes(rows));
  if (!bad) return Status();
  const float value = rows[*bad];
  const char* name = std::isnan(value) ? "NaN" : value > 0 ? "infinity" : "-infinity";
  const size_t row = *bad / width;
  return Invalid("the row has " + std::string(name) + " in column " + std::to_string(*bad % width) +
                     " (" + PlaceOfRow(offsets, row) + "), expected finite numbers",
                 At("rows", row));
}

// The decoder's tokens, of models that have one behind an encoder.
Status CheckDecoder(const TokenBatch& batch, const BatchRules& rules) {
  const bool given = !batch.decoder_ids.empty() || !batch.decoder_offsets.empty();
  if (!IsEncoderDecoder(rules.config)) {
    return given ? Invalid("decoder ids were given, and the model has no decoder behind an encoder",
                           "decoder_ids", "leave decoder_ids and decoder_offsets empty")
                 : Status();
  }
  if (batch.decoder_offsets.size() != batch.offsets.size()) {
    return Invalid("decoder_offsets has " + std::to_string(batch.decoder_offsets.size()) +
                       " entries, expected " + std::to_string(batch.offsets.size()) +
                       ", as many as offsets",
                   "decoder_offsets", "give the decoder's start token, if nothing else");
  }
  Sequences sequences{};
  sequences.offsets = batch.decoder_offsets;
  sequences.tokens = batch.decoder_ids.size();
  sequences.array = "decoder_ids";
  sequences.element = "decoder token";
  sequences.offset_array = "decoder_offsets";
  ATTEND_RETURN_IF_ERROR(CheckSequences(sequences, rules));
  return CheckRange(batch.decoder_ids, rules.config.vocab_size, "decoder_ids");
}

// The decoder's view; what it reads of the encoder has the places of the encoder's own keys.
void FillDecoder(const TokenBatch& batch, SessionData* data) {
  SessionDecoder& decoder = *data->decoder;
  const int source = static_cast<int>(Memory::kSource);
  decoder.batch = BatchView{.ids = batch.decoder_ids.data()};
  decoder.arrays.Fill(batch.decoder_offsets, &decoder.batch);
  decoder.batch.keys[source] = data->arrays.keys.data();
  data->batch.keys[source] = data->arrays.keys.data();
}

}  // namespace

void BatchArrays::Size(int64_t tokens, int64_t sequences, MemoryTally* tally) {
  tally->Size(tokens, &positions);
  tally->Size(tokens, &sequence_of);
  tally->Size(sequences, &keys);
}

void BatchArrays::Fill(std::span<const int32_t> offsets, BatchView* view) {
  view->offsets = offsets.data();
  view->tokens = offsets.back();
  view->sequences = static_cast<int64_t>(offsets.size()) - 1;
  int64_t key_row = 0;
  for (int64_t b = 0; b < view->sequences; ++b) {
    const int32_t begin = offsets[b], end = offsets[b + 1];
    keys[b] = {.first_row = key_row, .count = end - begin};
    for (int32_t row = begin; row < end; ++row) {
      positions[row] = row - begin;
      sequence_of[row] = static_cast<int32_t>(b);
    }
    key_row += RoundUp<int64_t>(end - begin, kKeyBlock);
  }
  view->positions = positions.data();
  view->sequence_of = sequence_of.data();
  view->keys[static_cast<int>(Memory::kBatch)] = keys.data();
}

Status CheckBatch(const TokenBatch& batch, const BatchRules& rules) {
  const ModelConfig& config = rules.config;
  if (config.vocab_size == 0) {
    return Invalid("the model takes vectors of " + std::to_string(config.input_size) +
                       " numbers, not token ids",
                   "TokenBatch");
  }
  const Sequences sequences = SequencesOf(batch);
  ATTEND_RETURN_IF_ERROR(CheckSequences(sequences, rules));
  ATTEND_RETURN_IF_ERROR(CheckEdges(sequences, rules));
  ATTEND_RETURN_IF_ERROR(CheckRange(batch.ids, config.vocab_size, "ids"));
  ATTEND_RETURN_IF_ERROR(CheckDecoder(batch, rules));
  if (batch.type_ids.empty()) return Status();
  if (batch.type_ids.size() != batch.ids.size()) {
    return Invalid("type_ids has " + std::to_string(batch.type_ids.size()) + " entries, expected " +
                       std::to_string(batch.ids.size()) + " or none",
                   "type_ids");
  }
  // A model without type embeddings has one type, 0.
  const int64_t types = config.type_vocab_size == 0 ? 1 : config.type_vocab_size;
  return CheckRange(batch.type_ids, types, "type_ids");
}

Status CheckBatch(const VectorBatch& batch, const BatchRules& rules) {
  const ModelConfig& config = rules.config;
  if (config.vocab_size > 0) {
    return Invalid(
        "the model takes token ids below " + std::to_string(config.vocab_size) + ", not vectors",
        "VectorBatch");
  }
  const size_t width = static_cast<size_t>(config.input_size);
  if (batch.rows.size() % width != 0) {
    return Invalid("rows has " + std::to_string(batch.rows.size()) +
                       " numbers, expected a multiple of input_size, " + std::to_string(width),
                   "rows", "every vector must be as wide as the model's input");
  }
  const Sequences sequences = SequencesOf(batch, width);
  ATTEND_RETURN_IF_ERROR(CheckSequences(sequences, rules));
  ATTEND_RETURN_IF_ERROR(CheckEdges(sequences, rules));
  return CheckFiniteRows(batch.rows, width, batch.offsets);
}

Status CheckBatch(const TokenBatch& batch, SessionData* data) {
  ATTEND_RETURN_IF_ERROR(CheckBatch(batch, RulesOf(*data)));
  data->batch = BatchView{};
  data->batch.ids = batch.ids.data();
  data->batch.type_ids = batch.type_ids.empty() ? nullptr : batch.type_ids.data();
  FillView(SequencesOf(batch), data);
  if (data->decoder != nullptr) FillDecoder(batch, data);
  return Status();
}

Status CheckBatch(const VectorBatch& batch, SessionData* data) {
  ATTEND_RETURN_IF_ERROR(CheckBatch(batch, RulesOf(*data)));
  data->batch = BatchView{};
  data->batch.vectors = batch.rows.data();
  FillView(SequencesOf(batch, static_cast<size_t>(data->model->config.input_size)), data);
  return Status();
}

}  // namespace attend
