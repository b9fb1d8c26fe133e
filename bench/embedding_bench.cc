// Rows gathered from three tables. ATTEND_ISA=NAME chooses the ISA.
#include <string>
#include <vector>

#include "bench/bench.h"
#include "kernels/embedding.h"
#include "tests/cases.h"

namespace attend {
namespace {

constexpr int64_t kVocabulary = 4096;  // rows: more than L2, as real tables are

void BM_Embedding(benchmark::State& state, TableType type, int64_t bytes, const cases::RowCase& c) {
  if (!bench::BindIsa(state)) return;
  bench::Floats tokens(kVocabulary * c.width), positions(c.rows * c.width), types(c.width);
  bench::Floats scale(kVocabulary), out(c.rows * c.width);
  std::vector<int32_t> ids, at;
  for (int64_t i = 0; i < c.rows; ++i) {
    ids.push_back(static_cast<int32_t>(i * 2654435761 % kVocabulary));
    at.push_back(static_cast<int32_t>(i));
  }
  EmbeddingArgs args;
  args.tables[0] = {tokens.data(), scale.data(), type};
  args.tables[1] = {positions.data(), nullptr, TableType::kF32};
  args.tables[2] = {types.data(), nullptr, TableType::kF32};
  args.index[0] = ids.data();
  args.index[1] = at.data();
  args.out = out.data();
  args.rows = c.rows;
  args.width = c.width;
  args.ld_out = c.width;
  const EmbeddingFn embedding = BindEmbedding();
  for (auto _ : state) {
    embedding(args);
    benchmark::ClobberMemory();
  }
  bench::CountBytes(state, static_cast<double>((bytes + 8) * c.rows * c.width));
}

const int kRegistered = [] {
  for (const cases::RowCase& c : cases::kRowBench) {
    const std::string name = "/R:" + std::to_string(c.rows) + "/D:" + std::to_string(c.width);
    benchmark::RegisterBenchmark(("embedding_f32" + name).c_str(), BM_Embedding, TableType::kF32, 4,
                                 c);
    benchmark::RegisterBenchmark(("embedding_f16" + name).c_str(), BM_Embedding, TableType::kF16, 2,
                                 c);
    benchmark::RegisterBenchmark(("embedding_i8" + name).c_str(), BM_Embedding, TableType::kI8, 1,
                                 c);
  }
  return 0;
}();

}  // namespace
}  // namespace attend
