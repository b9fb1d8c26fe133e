#include <string>
#include <utility>

#include "attend/attention.h"
#include "engine/attention_recorder.h"
#include "engine/session.h"
#include "engine/text/guard.h"

namespace attend {
namespace {

Status CheckSize(const ModelConfig& config, int64_t tokens) {
  if (tokens < 1) {
    return Status(ErrorCode::kInvalidArgument,
                  "max_tokens is " + std::to_string(tokens) + ", allowed are 1 or more",
                  "AttentionMapOptions");
  }
  // In doubles: the sizes of a file may be anything.
  const double heads = static_cast<double>(config.num_layers * config.num_heads) +
                       static_cast<double>(2 * config.decoder_layers * config.decoder_heads);
  const double positions = static_cast<double>(tokens);
  const double bytes = heads * positions * positions * sizeof(float);
  if (bytes <= static_cast<double>(AttentionMap::kMaxBytes)) return Status();
  return Status(ErrorCode::kCapacity,
                "the weights of " + std::to_string(tokens) + " x " + std::to_string(tokens) +
                    " positions in " + std::to_string(static_cast<int64_t>(heads)) +
                    " heads, all layers together, take " +
                    std::to_string(static_cast<int64_t>(bytes / 1048576.0)) + " MiB; at most " +
                    std::to_string(AttentionMap::kMaxBytes >> 20) + " MiB are kept",
                "AttentionMapOptions", "lower max_tokens, or give a shorter text");
}

AttentionWeights View(WeightMap& map) {
  if (map.layers() == 0) return {};
  const int64_t size = map.layers() * map.heads() * map.queries() * map.keys();
  return {.layers = static_cast<int32_t>(map.layers()),
          .heads = static_cast<int32_t>(map.heads()),
          .queries = static_cast<int32_t>(map.queries()),
          .keys = static_cast<int32_t>(map.keys()),
          .values = {map.Layer(0), static_cast<size_t>(size)}};
}

}  // namespace

Result<AttentionMap> AttentionMap::Create(const Model& model, const AttentionMapOptions& options) {
  return WithoutExceptions("AttentionMap", [&]() -> Result<AttentionMap> {
    const ModelConfig& config = model.data().config;
    const int64_t tokens = LongestSequence(config, options.max_tokens);
    ATTEND_RETURN_IF_ERROR(CheckSize(config, tokens));
    SessionOptions session_options;
    session_options.max_tokens = options.max_tokens;
    session_options.max_sequences = 1;
    session_options.max_edges = options.max_edges;
    session_options.precision = options.precision;
    session_options.trace = options.trace;
    session_options.logger = options.logger;
    // The recorder serves one thread.
    session_options.backend = ThreadBackend::kSerial;
    session_options.share = Share::kSequences;
    auto recorder = std::make_unique<AttentionRecorder>();
    recorder->max_tokens = tokens;
    Result<Session> session = Session::Create(model, session_options, std::move(recorder));
    if (!session.ok()) return session.status();
    return AttentionMap(*std::move(session));
  });
}

AttentionMap::AttentionMap(Session session) : session_(std::move(session)) {}
AttentionMap::AttentionMap(AttentionMap&&) noexcept = default;
AttentionMap& AttentionMap::operator=(AttentionMap&&) noexcept = default;
AttentionMap::~AttentionMap() = default;

AttentionRun AttentionMap::Finish(const Output& output) {
  AttentionRecorder& recorder = *session_.data().recorder;
  return {.self = View(recorder.self),
          .decoder = View(recorder.decoder),
          .cross = View(recorder.cross),
          .output = output};
}

Result<AttentionRun> AttentionMap::Run(const TokenBatch& batch) {
  const Result<Output> output = session_.Run(batch);
  if (!output.ok()) return output.status();
  return Finish(*output);
}

Result<AttentionRun> AttentionMap::Run(const VectorBatch& batch) {
  const Result<Output> output = session_.Run(batch);
  if (!output.ok()) return output.status();
  return Finish(*output);
}

size_t AttentionMap::memory_bytes() const { return session_.memory_bytes(); }

}  // namespace attend
