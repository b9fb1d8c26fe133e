// Runs one kernel of the AVX2 path a number of times and nothing else: bench/instructions/run
// counts the instructions.
//
//   kernel_runs gemm|gemm_bf16|gemm_int8|attention|layer_norm|gelu REPEATS
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>

#include "kernels/activation.h"
#include "kernels/aligned.h"
#include "kernels/attention.h"
#include "kernels/gemm_highway.h"
#include "kernels/isa.h"
#include "kernels/layer_norm.h"

// What is counted: this function and all below it, by name. What comes before a first call (the
// loader, the libraries' own beginnings) is not the same every time.
extern "C" __attribute__((noinline)) void CountedCalls(const std::function<void()>& call,
                                                       int repeats) {
  for (int i = 0; i < repeats; ++i) call();
}

namespace attend {
namespace {

// Between -1 and 1.
AlignedFloats Values(int64_t count) {
  AlignedFloats values(static_cast<size_t>(count));
  for (size_t i = 0; i < values.size(); ++i) {
    values.data()[i] = static_cast<float>(i * 37 % 101) / 50.5f - 1;
  }
  return values;
}

// 64 rows of a panel of MiniLM's feed-forward block.
void RunGemm(GemmType type, int repeats) {
  constexpr int64_t kRows = 64, kColumns = 192, kDepth = 384;
  const AlignedFloats w = Values(kColumns * kDepth), bias = Values(kColumns);
  const AlignedFloats a = Values(kRows * kDepth), c = Values(kRows * kColumns);
  const AlignedFloats packed = Values(PackedPanelBytes(type, kColumns, kDepth) / 4);
  const AlignedFloats prepared = Values(kRows * PreparedRowFloats(type, kDepth));
  const GemmKernels gemm = BindGemm(type);
  gemm.pack({.w = w.data(), .packed = packed.data(), .columns = kColumns, .k = kDepth});
  const GemmPanelArgs args{.a = gemm.prepare == nullptr ? a.data() : prepared.data(),
                           .packed = packed.data(),
                           .bias = bias.data(),
                           .c = c.data(),
                           .rows = kRows,
                           .columns = kColumns,
                           .k = kDepth};
  const auto call = [&] {
    if (gemm.prepare != nullptr) {
      gemm.prepare({.x = a.data(), .out = prepared.data(), .rows = kRows, .k = kDepth});
    }
    gemm.run(args);
  };
  CountedCalls(call, repeats);
}

// Two of MiniLM's heads over 128 keys.
void RunAttention(int repeats) {
  constexpr int64_t kHeads = 2, kDim = 32, kKeys = 128, kWidth = kHeads * kDim;
  const AlignedFloats q = Values(kKeys * kWidth), k = Values(kKeys * kWidth);
  const AlignedFloats v = Values(kKeys * kWidth), out = Values(kKeys * kWidth);
  const AlignedFloats scratch = Values(AttentionScratchFloats(kKeys));
  AttentionSpec spec;
  spec.heads = spec.kv_heads = kHeads;
  spec.key_dim = spec.value_dim = kDim;
  spec.scale = 1 / std::sqrt(static_cast<float>(kDim));
  AttentionArgs args;
  args.spec = &spec;
  args.q = q.data();
  args.packed_k = k.data();
  args.packed_v = v.data();
  args.out = out.data();
  args.query_count = args.num_keys = kKeys;
  args.ldq = args.ld_out = kWidth;
  args.head_end = kHeads;
  args.scratch = scratch.data();
  const AttentionFn attention = BindAttention();
  CountedCalls([&] { attention(args); }, repeats);
}

void RunLayerNorm(int repeats) {
  constexpr int64_t kRows = 64, kWidth = 384;
  const AlignedFloats x = Values(kRows * kWidth), residual = Values(kRows * kWidth);
  const AlignedFloats weight = Values(kWidth), bias = Values(kWidth), out = Values(kRows * kWidth);
  const NormArgs args{x.data(), residual.data(), weight.data(), bias.data(), out.data(), kRows,
                      kWidth,   kWidth,          kWidth,        kWidth,      1e-12f};
  const NormFn norm = BindLayerNorm();
  CountedCalls([&] { norm(args); }, repeats);
}

void RunGelu(int repeats) {
  constexpr int64_t kRows = 64, kWidth = 192;
  const AlignedFloats x = Values(kRows * kWidth);
  const ActivationFn gelu = BindGelu();
  const ActivationArgs args{.x = x.data(),
                            .out = x.data(),
                            .rows = kRows,
                            .width = kWidth,
                            .ldx = kWidth,
                            .ld_out = kWidth};
  CountedCalls([&] { gelu(args); }, repeats);
}

}  // namespace
}  // namespace attend

int main(int argc, char** argv) {
  const std::string kernel = argc == 3 ? argv[1] : "";
  const int repeats = argc == 3 ? std::atoi(argv[2]) : 0;
  const attend::Status limited = attend::LimitIsa(attend::Isa::kAvx2);
  if (!limited.ok()) {
    std::fprintf(stderr, "%s\n", limited.ToString().c_str());
    return 7;
  }
  if (kernel == "gemm") {
    attend::RunGemm(attend::GemmType::kF32, repeats);
  } else if (kernel == "gemm_bf16") {
    attend::RunGemm(attend::GemmType::kBf16, repeats);
  } else if (kernel == "gemm_int8") {
    attend::RunGemm(attend::GemmType::kInt8, repeats);
  } else if (kernel == "attention") {
    attend::RunAttention(repeats);
  } else if (kernel == "layer_norm") {
    attend::RunLayerNorm(repeats);
  } else if (kernel == "gelu") {
    attend::RunGelu(repeats);
  } else {
    std::fprintf(stderr, "usage: %s gemm|gemm_bf16|gemm_int8|attention|layer_norm|gelu REPEATS\n",
                 argv[0]);
    return 2;
  }
  return 0;
}
