// A request is checked and copied on its caller's thread, so that what is wrong with it is told
// there and harms no other.
#include <string>

#include "engine/batcher_core.h"
#include "engine/check.h"
#include "engine/pipeline.h"

namespace attend {
namespace {

constexpr const char* kWhere = "BatchRequest";

template <typename T>
size_t BytesOf(const std::vector<T>& values) {
  return values.capacity() * sizeof(T);
}

// What a request holds: itself, its arrays, and about what the queue and the caller's function add.
int64_t Bytes(const BatcherRequest& request) {
  constexpr size_t kBooks = 512;
  return static_cast<int64_t>(
      sizeof(BatcherRequest) + kBooks + BytesOf(request.encoding.ids) +
      BytesOf(request.encoding.type_ids) + BytesOf(request.encoding.offsets) +
      BytesOf(request.encoding.sequence_ids) + BytesOf(request.decoder_ids) +
      BytesOf(request.rows) + BytesOf(request.edges));
}

}  // namespace

Status BatcherCore::FillText(const BatchRequest& request, BatcherRequest* made) const {
  if (!tokenizer) {
    return Status(ErrorCode::kUnsupported, "text was given, and the model has no tokenizer", kWhere,
                  model.info().vocab_size > 0 ? "give token ids" : "give vectors");
  }
  if (!request.type_ids.empty()) {
    return Invalid("type ids were given beside text", kWhere, "give them with ids");
  }
  const std::string_view* const pair = request.pair ? &*request.pair : nullptr;
  const EncodeScope scope(options.session.trace,
                          options.session.telemetry ? &made->encode_ns : nullptr);
  ATTEND_RETURN_IF_ERROR(
      EncodeText(*tokenizer, *request.text, pair, options.truncate, max_length, &made->encoding));
  made->encoding.tokens.clear();
  made->is_text = true;
  return Status();
}

Status BatcherCore::Check(const BatchRequest& request, const BatcherRequest& made) const {
  const SessionData& data = workers.front()->session.data();
  const BatchRules rules = {model.data().config, data.options};
  const int32_t offsets[] = {0, static_cast<int32_t>(made.length(model.info().input_size))};
  const int32_t edge_offsets[] = {0, static_cast<int32_t>(made.edges.size())};
  const std::span<const int32_t> edges_at =
      request.edges ? std::span<const int32_t>(edge_offsets) : std::span<const int32_t>();
  if (!made.rows.empty()) {
    return CheckBatch(
        VectorBatch{
            .rows = made.rows, .offsets = offsets, .edges = made.edges, .edge_offsets = edges_at},
        rules);
  }
  const int32_t decoder_offsets[] = {0, static_cast<int32_t>(made.decoder_ids.size())};
  const bool decodes = IsEncoderDecoder(rules.config);
  return CheckBatch(
      TokenBatch{.ids = made.encoding.ids,
                 .offsets = offsets,
                 .type_ids = made.is_text && model.info().type_vocab_size == 0
                                 ? std::span<const int32_t>()
                                 : std::span<const int32_t>(made.encoding.type_ids),
                 .decoder_ids = made.decoder_ids,
                 .decoder_offsets = decodes ? std::span<const int32_t>(decoder_offsets)
                                            : std::span<const int32_t>(),
                 .edges = made.edges,
                 .edge_offsets = edges_at},
      rules);
}

Status BatcherCore::Fill(const BatchRequest& request, BatcherRequest* made) const {
  const int inputs =
      int{request.text.has_value()} + int{!request.ids.empty()} + int{!request.rows.empty()};
  if (inputs != 1) {
    return Invalid(std::to_string(inputs) + " of text, ids and rows were given, expected one",
                   kWhere, inputs == 0 ? "a sequence has at least one token or vector" : "");
  }
  if (request.pair && !request.text) return Invalid("a pair was given without a text", kWhere);
  // What could not be counted by an offset cannot be held against a limit by one.
  const size_t most = static_cast<size_t>(options.session.max_tokens);
  const size_t rows = model.info().input_size > 0
                          ? request.rows.size() / static_cast<size_t>(model.info().input_size)
                          : 0;
  for (const size_t count : {request.ids.size(), rows, request.decoder_ids.size()}) {
    if (count <= most) continue;
    return Status(ErrorCode::kCapacity,
                  "the sequence has " + std::to_string(count) + " tokens, the Batcher takes " +
                      std::to_string(most),
                  kWhere, "raise BatcherOptions::session.max_tokens or cut the sequence");
  }
  if (request.edges && request.edges->size() > static_cast<size_t>(INT32_MAX)) {
    return Status(ErrorCode::kCapacity, "there are more than 2147483647 edges", kWhere);
  }
  made->want_hidden = request.want_hidden;
  made->want_pooled = request.want_pooled;
  made->want_logits = request.want_logits;
  made->want_encoder_hidden = request.want_encoder_hidden;
  if (request.text) {
    ATTEND_RETURN_IF_ERROR(FillText(request, made));
  } else {
    made->encoding.ids.assign(request.ids.begin(), request.ids.end());
    made->encoding.type_ids.assign(request.type_ids.begin(), request.type_ids.end());
    made->rows.assign(request.rows.begin(), request.rows.end());
  }
  made->decoder_ids.assign(request.decoder_ids.begin(), request.decoder_ids.end());
  if (request.edges) made->edges.assign(request.edges->begin(), request.edges->end());
  ATTEND_RETURN_IF_ERROR(Check(request, *made));
  made->tokens = std::max(made->length(model.info().input_size),
                          static_cast<int64_t>(made->decoder_ids.size()));
  made->num_edges = static_cast<int64_t>(made->edges.size());
  made->bytes = Bytes(*made);
  if (made->bytes <= max_bytes_) return Status();
  return Status(ErrorCode::kCapacity,
                "the request takes " + std::to_string(made->bytes) +
                    " bytes, the Batcher holds at most " + std::to_string(max_bytes_),
                kWhere, "raise BatcherOptions::max_bytes");
}

}  // namespace attend
