// The bits of a row are its own: whatever part of the sequence a call is for, in whatever blocks
// the keys lie, and whether the sequence is whole or grows row by row.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "tests/attention_problem.h"

namespace attend {
namespace {

using testing::AttentionProblem;
using testing::AttentionShape;
using testing::GuardedFloats;

using testing::kNan;

// A few members of the family with all parts among them.
constexpr int kParts = 14;
constexpr int kKinds = 2 * kParts;  // the second half in pairs
void SetKind(int kind, AttentionProblem& p) {
  using N = AttentionNormalizer;
  if (kind >= kParts) p.SetPairs();
  switch (kind % kParts) {
    case 0:
      return;
    case 1:
      return p.SetNormalizer(N::kSoftmax1);
    case 2:
      return p.SetNormalizer(N::kSigmoid);
    case 3:
      return p.SetNormalizer(N::kNone, true);
    case 4:
      return p.SetCausal();
    case 5:
      return p.SetCausal(), p.SetAlibi();
    case 6:
      return p.SetCausal(), p.SetDistanceBias(30), p.SetNormalizer(N::kSoftmax1);
    case 7:
      return p.SetCausal(), p.SetNormalizer(N::kRelu2, true);
    case 8:
      return p.SetCausal(), p.SetWindow(20, 0, 0);
    case 9:
      p.SetCausal();
      if (!p.spec.pairs) p.SetAdditive();
      return;
    case 10:
      return p.SetWindow(37, 5, 9), p.SetNormalizer(N::kRelu);
    case 11:
      p.SetWindow(3, 700, 2);
      if (!p.spec.pairs) p.SetAdditive();
      return;
    case 12:
      return p.SetEdges(0.05);
    default:
      return p.SetDenseBias(0.4), p.SetAlibi();
  }
}
bool Grows(int kind) { return kind % kParts >= 4 && kind % kParts <= 9; }

// Any split of the queries and heads over calls gives the same bits.
TEST(AttentionBits, AnySplitOfRowsAndHeads) {
  for (const AttentionShape& shape :
       {AttentionShape{29, 61, 4, 2, 32, 32}, AttentionShape{27, 130, 2, 2, 20, 12},
        AttentionShape{26, 16, 2, 1, 64, 64}, AttentionShape{40, 1100, 2, 1, 9, 33, 500},
        AttentionShape{15, 530, 1, 1, 96, 112, 500}}) {
    for (int kind = 0; kind < kKinds; ++kind) {
      AttentionProblem problem(shape, 30);
      SetKind(kind, problem);
      problem.ForEachIsa([&](Isa) {
        const std::vector<float> all = problem.Run();
        testing::Random random(7);
        for (int round = 0; round < 6; ++round) {
          problem.out.Fill(std::vector<float>(all.size(), kNan));
          for (int64_t h = 0; h < shape.heads;) {
            const int64_t heads = 1 + random.Below(shape.heads - h);
            for (int64_t i = 0; i < shape.queries;) {
              const int64_t left = shape.queries - i;
              const int64_t count = 1 + random.Below(std::min<int64_t>(left, 3 + 4 * round));
              AttentionArgs args = problem.Args(i, count);
              args.head_begin = h;
              args.head_end = h + heads;
              BindAttention()(args);
              i += count;
            }
            h += heads;
          }
          testing::ExpectSameBits(problem.out.Values(), all, problem.Describe());
          problem.out.CheckGuards();
        }
      });
    }
  }
}

// Row t of a causal pass over all keys has the same bits as when there are no keys behind t yet:
// decoding with a cache equals the pass over the whole text.
TEST(AttentionBits, DecodingEqualsTheWholePass) {
  for (const int64_t length : {1, 15, 16, 17, 70, 530, 1100}) {
    for (int kind = 0; kind < kKinds; ++kind) {
      if (!Grows(kind) || (kind >= kParts && length > 530)) continue;
      // In pairs what fills tiles.
      const int64_t key_dim = kind < kParts ? 20 : 32, value_dim = kind < kParts ? 24 : 48;
      AttentionProblem problem({length, length, 2, 1, key_dim, value_dim}, 31);
      SetKind(kind, problem);
      problem.ForEachIsa([&](Isa) {
        const std::vector<float> whole = problem.Run();
        std::fill_n(problem.packed_k.data(), problem.Padded() * key_dim, kNan);
        std::fill_n(problem.packed_v.data(), problem.Padded() * value_dim, kNan);
        problem.out.Fill(std::vector<float>(whole.size(), kNan));
        for (int64_t t = 0; t < length; ++t) {
          PackKvArgs pack = problem.PackArgs();
          pack.k = problem.k.row(t);
          pack.v = problem.v.row(t);
          pack.rows = 1;
          pack.position = t;
          BindPackKv()(pack);
          AttentionArgs args = problem.Args(t, 1);
          args.num_keys = t + 1;
          BindAttention()(args);
        }
        testing::ExpectSameBits(problem.out.Values(), whole, problem.Describe());
      });
    }
  }
}

// Blocks of keys anywhere in memory, as a cache has them, give the bits of blocks in order.
TEST(AttentionBits, BlocksMayLieAnywhere) {
  for (const int64_t keys : {5, 48, 200, 1200}) {
    for (int kind = 0; kind < kKinds; ++kind) {
      // In pairs what fills tiles.
      const int64_t key_dim = kind < kParts ? 12 : 32, value_dim = kind < kParts ? 20 : 48;
      AttentionProblem problem({17, keys, 4, 2, key_dim, value_dim}, 32);
      SetKind(kind, problem);
      const int64_t count = problem.Padded() / kKeyBlock, room = count + 3;
      std::vector<int32_t> blocks(static_cast<size_t>(room));
      std::iota(blocks.begin(), blocks.end(), 0);
      testing::Random random(33);
      for (int64_t i = room - 1; i > 0; --i) {
        std::swap(blocks[static_cast<size_t>(i)], blocks[static_cast<size_t>(random.Below(i + 1))]);
      }
      problem.ForEachIsa([&](Isa) {
        const std::vector<float> want = problem.Run();
        GuardedFloats k(room * kKeyBlock * 2 * key_dim, kNan);
        GuardedFloats v(room * kKeyBlock * 2 * value_dim, kNan);
        PackKvArgs pack = problem.PackArgs();
        pack.packed_k = k.data();
        pack.packed_v = v.data();
        pack.blocks = blocks.data();
        BindPackKv()(pack);
        AttentionArgs args = problem.Args();
        args.packed_k = k.data();
        args.packed_v = v.data();
        args.blocks = blocks.data();
        problem.out.Fill(std::vector<float>(want.size(), kNan));
        BindAttention()(args);
        testing::ExpectSameBits(problem.out.Values(), want, problem.Describe());
      });
    }
  }
}

// A graph in which everybody sees everybody is no graph.
TEST(AttentionBits, AllEdgesEqualNone) {
  for (const int64_t keys : {1, 40, 513, 1100}) {
    for (const int how : {0, 1, 2}) {  // floats, pairs, pairs that fill tiles
      AttentionProblem problem({9, keys, 2, 2, how < 2 ? 12 : 64, how < 2 ? 20 : 112}, 34);
      if (how > 0) problem.SetPairs();
      problem.ForEachIsa([&](Isa) {
        problem.edge_offsets.clear();
        const std::vector<float> want = problem.Run();
        problem.SetEdges(2.0);
        for (int64_t i = 0; i < 9; ++i) {  // SetEdges leaves some rows without any
          problem.edge_offsets[static_cast<size_t>(i)] = static_cast<int32_t>(i * keys);
        }
        problem.edge_offsets[9] = static_cast<int32_t>(9 * keys);
        problem.edge_keys.resize(static_cast<size_t>(9 * keys));
        for (size_t n = 0; n < problem.edge_keys.size(); ++n) {
          problem.edge_keys[n] = static_cast<int32_t>(static_cast<int64_t>(n) % keys);
        }
        testing::ExpectSameBits(problem.Run(), want, problem.Describe());
      });
    }
  }
}

}  // namespace
}  // namespace attend
