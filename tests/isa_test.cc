#include "kernels/isa.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "kernels/residual.h"
#include "kernels/softmax.h"

namespace attend {
namespace {

TEST(Isa, NamesGoThereAndBack) {
  const Isa all[] = {Isa::kSse4,       Isa::kAvx2,       Isa::kAvx512,
                     Isa::kAvx512Vnni, Isa::kAvx512Bf16, Isa::kAmx};
  const std::string names[] = {"sse4", "avx2", "avx512", "avx512_vnni", "avx512_bf16", "amx"};
  for (size_t i = 0; i < std::size(all); ++i) {
    EXPECT_EQ(IsaName(all[i]), names[i]);
    const Result<Isa> parsed = ParseIsa(names[i]);
    ASSERT_TRUE(parsed.ok());
    EXPECT_EQ(*parsed, all[i]);
  }
}

TEST(Isa, UnknownNameSaysWhichThereAre) {
  for (const std::string name : {"", "AVX2", "avx1024", "avx2 "}) {
    const Result<Isa> parsed = ParseIsa(name);
    ASSERT_FALSE(parsed.ok()) << name;
    EXPECT_EQ(parsed.status().code(), ErrorCode::kInvalidArgument);
    EXPECT_NE(parsed.status().ToString().find("avx512_bf16"), std::string::npos);
  }
}

TEST(Isa, SupportedIsAscendingFromTheFloorWithoutGaps) {
  const std::vector<Isa> isas = SupportedIsas();
  ASSERT_FALSE(isas.empty());
  for (size_t i = 0; i < isas.size(); ++i) EXPECT_EQ(static_cast<size_t>(isas[i]), i);
  EXPECT_EQ(__builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0,
            isas.size() >= 2);
  EXPECT_EQ(__builtin_cpu_supports("avx512bw") != 0 && __builtin_cpu_supports("avx512vl") != 0,
            isas.size() >= 3);
}

// One process binds once, so the whole life of the choice is one test.
TEST(Isa, LimitThenBindThenBusy) {
  const std::vector<Isa> isas = SupportedIsas();
  EXPECT_EQ(ChosenIsa(), isas.back());
  if (isas.back() != Isa::kAmx) {
    const Status status = LimitIsa(Isa::kAmx);
    EXPECT_EQ(status.code(), ErrorCode::kUnsupported);
    EXPECT_NE(status.ToString().find("sse4"), std::string::npos) << status.ToString();
  }
  EXPECT_EQ(ChosenIsa(), isas.back());

  ASSERT_TRUE(LimitIsa(Isa::kSse4).ok());
  EXPECT_EQ(ChosenIsa(), Isa::kSse4);
  EXPECT_EQ(BoundIsa(), Isa::kSse4);
  EXPECT_TRUE(LimitIsa(Isa::kSse4).ok()) << "the same one again";
  for (Isa isa : isas) {
    if (isa == Isa::kSse4) continue;
    const Status status = LimitIsa(isa);
    EXPECT_EQ(status.code(), ErrorCode::kBusy) << IsaName(isa);
    EXPECT_NE(status.ToString().find("sse4"), std::string::npos) << status.ToString();
  }
  EXPECT_EQ(BoundIsa(), Isa::kSse4);

  // The functions differ between the Highway levels, and only between those.
  const ResidualFn sse4 = BindResidual();
  ASSERT_NE(sse4, nullptr);
  ResidualFn before = sse4;
  for (Isa isa : isas) {
    SetIsaForTest(isa);
    EXPECT_EQ(BoundIsa(), isa);
    const ResidualFn fn = BindResidual();
    EXPECT_EQ(fn != before, isa == Isa::kAvx2 || isa == Isa::kAvx512) << IsaName(isa);
    before = fn;
  }
}

}  // namespace
}  // namespace attend
