// Attention over packed keys and values, and the packing. ATTEND_ISA=NAME chooses the ISA.
#include <cmath>
#include <string>

#include "bench/bench.h"
#include "kernels/attention.h"
#include "tests/cases.h"

namespace attend {
namespace {

using bench::Floats;
using cases::AttentionCase;

int64_t PackedFloats(const AttentionCase& c) {
  return (c.keys + kKeyBlock - 1) / kKeyBlock * kKeyBlock * c.kv_heads * c.head_dim;
}

// 4 Lq Lk E FLOPs a head: two products. The softmax counts as time, not as work.
void BM_Attention(benchmark::State& state, const AttentionCase& c) {
  if (!bench::BindIsa(state)) return;
  const int64_t width = c.heads * c.head_dim;
  Floats q(c.queries * width), out(c.queries * width), k(PackedFloats(c)), v(PackedFloats(c));
  Floats scratch(AttentionScratchFloats(c.keys));
  AttentionSpec spec;
  spec.heads = c.heads;
  spec.kv_heads = c.kv_heads;
  spec.key_dim = spec.value_dim = c.head_dim;
  spec.scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(c.head_dim)));
  AttentionArgs args;
  args.spec = &spec;
  args.q = q.data();
  args.packed_k = k.data();
  args.packed_v = v.data();
  args.out = out.data();
  args.query_count = c.queries;
  args.num_keys = c.keys;
  args.ldq = args.ld_out = width;
  args.head_end = c.heads;
  args.scratch = scratch.data();
  const AttentionFn attention = BindAttention();
  for (auto _ : state) {
    attention(args);
    benchmark::ClobberMemory();
  }
  bench::CountFlops(state, 4.0 * static_cast<double>(c.queries * c.keys * width));
}

void BM_PackKv(benchmark::State& state, const AttentionCase& c) {
  if (!bench::BindIsa(state)) return;
  const int64_t width = c.kv_heads * c.head_dim;
  Floats k(c.keys * width), v(c.keys * width), packed_k(PackedFloats(c)), packed_v(PackedFloats(c));
  const PackKvArgs args{.k = k.data(),
                        .v = v.data(),
                        .packed_k = packed_k.data(),
                        .packed_v = packed_v.data(),
                        .rows = c.keys,
                        .ldk = width,
                        .ldv = width,
                        .kv_heads = c.kv_heads,
                        .key_dim = c.head_dim,
                        .value_dim = c.head_dim,
                        .head_end = c.kv_heads};
  const PackKvFn pack = BindPackKv();
  for (auto _ : state) {
    pack(args);
    benchmark::ClobberMemory();
  }
  bench::CountBytes(state, 4.0 * 4.0 * static_cast<double>(c.keys * width));  // 2 read, 2 written
}

const int kRegistered = [] {
  for (const AttentionCase& c : cases::kAttentionBench) {
    const std::string name = "/L:" + std::to_string(c.keys) + "/H:" + std::to_string(c.heads) +
                             "/E:" + std::to_string(c.head_dim);
    benchmark::RegisterBenchmark(("attention" + name).c_str(), BM_Attention, c);
    benchmark::RegisterBenchmark(("pack_kv" + name).c_str(), BM_PackKv, c);
  }
  return 0;
}();

}  // namespace
}  // namespace attend
