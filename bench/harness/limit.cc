#include "bench/harness/limit.h"

#include <algorithm>

#include "engine/model.h"
#include "engine/session.h"

namespace attend::bench {
namespace {

// Keys that query i of `length` sees.
int64_t KeysSeen(const ModelConfig& config, int64_t i, int64_t length) {
  const bool causal = config.causal || IsDecoder(config);
  int64_t first = 0, end = causal ? i + 1 : length;
  if (!config.windowed || i < config.global_tokens) return end;
  first = std::max<int64_t>(0, i - config.window_left);
  end = std::min(end, i + config.window_right + 1);
  // Global tokens are seen by everybody, whether or not they are within the window.
  const int64_t global = std::min(config.global_tokens, causal ? i + 1 : length);
  return std::max(end, global) - std::max(first, global) + global;
}

}  // namespace

double PairsSeen(const Model& model, const Batch& batch) {
  const ModelConfig& config = model.data().config;
  double pairs = 0;
  for (size_t b = 0; b + 1 < batch.offsets.size(); ++b) {
    const int64_t length = batch.offsets[b + 1] - batch.offsets[b];
    for (int64_t i = 0; i < length; ++i) {
      pairs += static_cast<double>(KeysSeen(config, i, length));
    }
  }
  return pairs;
}

std::optional<BatchWork> WorkOf(Subject& subject, const Batch& batch) {
  if (IsEncoderDecoder(subject.model().data().config)) return std::nullopt;
  const Plan& plan = subject.session().data().runner.plan();
  const double pairs = PairsSeen(subject.model(), batch);
  BatchWork work;
  for (const Segment& segment : plan.segments) {
    const double rows =
        static_cast<double>(segment.domain == Domain::kTokens ? batch.tokens() : batch.sequences());
    for (const int step : segment.steps) {
      const StepCost cost = plan.steps[static_cast<size_t>(step)]->cost();
      work.gemm_flops += cost.flops_per_row * rows;
      work.attention_flops += cost.flops_per_pair * pairs;
      work.weight_bytes += cost.weight_bytes;
    }
  }
  return work;
}

std::optional<Limit> LimitOf(Subject& subject, const Batch& batch, const Rates& rates) {
  const GemmRate* gemm = rates.Gemm(PrecisionOf(subject.model(), subject.options()));
  const std::optional<BatchWork> work = WorkOf(subject, batch);
  if (gemm == nullptr || !work) return std::nullopt;
  const ReadRate& home = rates.HomeOf(work->weight_bytes);
  Limit limit{.work = *work, .gemm_rate = gemm->all, .read_rate = home.all, .home = home.level};
  limit.gemm_s = work->gemm_flops / gemm->all;
  limit.weights_s = work->weight_bytes / home.all;
  limit.attention_s = work->attention_flops / gemm->all;
  return limit;
}

Json Limit::ToJson() const {
  return {{"gemm_flops", work.gemm_flops},
          {"gemm_flops_per_s", gemm_rate},
          {"gemm_s", gemm_s},
          {"weight_bytes", work.weight_bytes},
          {"weights_in", home},
          {"read_bytes_per_s", read_rate},
          {"weights_s", weights_s},
          {"attention_flops", work.attention_flops},
          {"attention_s", attention_s},
          {"limit_s", seconds()}};
}

}  // namespace attend::bench
