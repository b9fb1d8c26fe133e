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

// What is measured: the attention alone, the packing of keys and values before it alone, or both.
enum class Work { kAttend, kPack, kBoth };

struct Buffers {
  Floats q, k, v, packed_k, packed_v, out, scratch;
  explicit Buffers(const AttentionCase& c)
      : q(c.queries * c.heads * c.head_dim),
        k(c.keys * c.kv_heads * c.head_dim),
        v(c.keys * c.kv_heads * c.head_dim),
        packed_k(PackedFloats(c)),
        packed_v(PackedFloats(c)),
        out(c.queries * c.heads * c.head_dim),
        scratch(AttentionScratchFloats(c.keys)) {}
};

// 4 Lq Lk E FLOPs a head: two products. The softmax and the packing count as time, not as work; of
// packing alone, bytes: two tensors read and written.
void BM_Attention(benchmark::State& state, const AttentionCase& c, Work work, bool pairs) {
  if (!bench::BindIsa(state)) return;
  if (pairs && !CanAttendInPairs()) return state.SkipWithError("no bf16 unit");
  const int64_t width = c.heads * c.head_dim, kv_width = c.kv_heads * c.head_dim;
  Buffers buffers(c);
  AttentionSpec spec;
  spec.heads = c.heads;
  spec.kv_heads = c.kv_heads;
  spec.key_dim = spec.value_dim = c.head_dim;
  spec.scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(c.head_dim)));
  spec.pairs = pairs;
  AttentionArgs args;
  args.spec = &spec;
  args.q = buffers.q.data();
  args.packed_k = buffers.packed_k.data();
  args.packed_v = buffers.packed_v.data();
  args.out = buffers.out.data();
  args.query_count = c.queries;
  args.num_keys = c.keys;
  args.ldq = args.ld_out = width;
  args.head_end = c.heads;
  args.scratch = buffers.scratch.data();
  const PackKvArgs pack_args{.k = buffers.k.data(),
                             .v = buffers.v.data(),
                             .packed_k = buffers.packed_k.data(),
                             .packed_v = buffers.packed_v.data(),
                             .rows = c.keys,
                             .ldk = kv_width,
                             .ldv = kv_width,
                             .kv_heads = c.kv_heads,
                             .key_dim = c.head_dim,
                             .value_dim = c.head_dim,
                             .head_end = c.kv_heads,
                             .pairs = pairs};
  const PackKvFn pack = BindPackKv();
  const AttentionFn attention = BindAttention();
  pack(pack_args);
  for (auto _ : state) {
    if (work != Work::kAttend) pack(pack_args);
    if (work != Work::kPack) attention(args);
    benchmark::ClobberMemory();
  }
  if (work == Work::kPack) {
    bench::CountBytes(state, (pairs ? 3.0 : 4.0) * 4.0 * static_cast<double>(c.keys * kv_width));
  } else {
    bench::CountFlops(state, 4.0 * static_cast<double>(c.queries * c.keys * width));
  }
}

const int kRegistered = [] {
  for (const AttentionCase& c : cases::kAttentionBench) {
    const std::string name = "/L:" + std::to_string(c.keys) + "/H:" + std::to_string(c.heads) +
                             "/E:" + std::to_string(c.head_dim);
    for (const bool pairs : {false, true}) {
      const std::string type = pairs ? "/bf16" : "/f32";
      const auto add = [&](const char* what, Work work) {
        benchmark::RegisterBenchmark((what + type + name).c_str(), BM_Attention, c, work, pairs);
      };
      add("attention", Work::kAttend);
      add("pack_kv", Work::kPack);
      add("packing_and_attention", Work::kBoth);
    }
  }
  return 0;
}();

}  // namespace
}  // namespace attend
