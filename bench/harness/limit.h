// The limit that nobody can bend, and its terms:
//   max(GEMM FLOPs / GEMM rate, weight bytes / read rate of where they live)
//     + FLOPs of Q K^T and P V / GEMM rate
// with rates measured in the same run (rates.h). No term for softmax, norms or activations.
#ifndef ATTEND_BENCH_HARNESS_LIMIT_H_
#define ATTEND_BENCH_HARNESS_LIMIT_H_

#include <optional>
#include <string>

#include "bench/harness/json.h"
#include "bench/harness/rates.h"
#include "bench/harness/subject.h"

namespace attend::bench {

// What a batch asks for.
struct BatchWork {
  double gemm_flops = 0;
  double attention_flops = 0;
  double weight_bytes = 0;
};

struct Limit {
  BatchWork work;
  double gemm_rate = 0, read_rate = 0;
  std::string home;  // where the weights live
  double gemm_s = 0, weights_s = 0, attention_s = 0;
  double seconds() const { return (gemm_s > weights_s ? gemm_s : weights_s) + attention_s; }
  Json ToJson() const;
};

// Pairs of a query and a key that the model looks at, over all sequences of `batch`.
double PairsSeen(const Model& model, const Batch& batch);

// Nothing for encoder-decoders, whose two plans look at different pairs.
std::optional<BatchWork> WorkOf(Subject& subject, const Batch& batch);

// Nothing also where the precision's rate was not measured.
std::optional<Limit> LimitOf(Subject& subject, const Batch& batch, const Rates& rates);

}  // namespace attend::bench

#endif  // ATTEND_BENCH_HARNESS_LIMIT_H_
