#include "engine/share.h"

#include <algorithm>
#include <cmath>

#include "engine/plan.h"
#include "kernels/attention.h"
#include "kernels/gemm.h"

namespace attend {
namespace {

// The boundary nearest to row `target`, at or after `least`: a sequence's start for whole
// sequences, else also a block of keys within one.
int64_t NearestCut(std::span<const int32_t> offsets, int64_t target, int64_t least, bool whole) {
  const auto after = std::upper_bound(offsets.begin(), offsets.end(), target);
  if (after == offsets.end()) return offsets.back();
  const int64_t end = *after, begin = after == offsets.begin() ? end : *(after - 1);
  int64_t cut;
  if (whole) {
    cut = target - begin <= end - target ? begin : end;
  } else {
    cut = std::min(end, begin + (target - begin + kKeyBlock / 2) / kKeyBlock * kKeyBlock);
  }
  return std::max(cut, least);
}

// Where the share of `part`, which begins at `begin`, ends; the last part takes what is left.
int64_t EndOfPart(Share share, std::span<const int32_t> offsets, int part, int parts,
                  int64_t begin) {
  const int64_t tokens = offsets.back();
  if (part + 1 == parts) return tokens;
  return NearestCut(offsets, tokens * (part + 1) / parts, begin, share == Share::kSequences);
}

int64_t SequenceAt(std::span<const int32_t> offsets, int64_t row) {
  return std::lower_bound(offsets.begin(), offsets.end(), row) - offsets.begin();
}

// Pairs of query and key of the sequences that begin in rows [begin, end).
double Pairs(std::span<const int32_t> offsets, std::span<const int64_t> keys, int64_t begin,
             int64_t end) {
  double pairs = 0;
  for (int64_t b = SequenceAt(offsets, begin); offsets[b] < end; ++b) {
    const double length = offsets[b + 1] - offsets[b];
    pairs += length * (keys.empty() ? length : static_cast<double>(keys[b]));
  }
  return pairs;
}

// Whether every thread has two units of rows or more.
bool ManyRows(std::span<const int32_t> offsets, int parts, int64_t unit_rows) {
  return parts > 1 && offsets.back() >= 2 * parts * unit_rows;
}

// What a row costs: of a token, or of a sequence behind pooling.
struct RowCost {
  double flops, weight_bytes;
};

// Seconds of `rows` rows in tiles: the arithmetic, or the reading of the weights for every tile.
double TileSeconds(const RowCost& cost, const MachineRates& rates, int64_t rows, int64_t tile_rows,
                   int parts) {
  double seconds = 0;
  for (int64_t left = rows; left > 0; left -= tile_rows) {
    const int64_t tile = std::min(left, tile_rows);
    const double arithmetic =
        static_cast<double>(PaddedRows(tile)) * cost.flops / parts / rates.gemm_flops;
    const double reading = cost.weight_bytes / parts / rates.weight_bytes;
    // They overlap, but not wholly.
    seconds += std::max(arithmetic, reading) + 0.2 * std::min(arithmetic, reading);
  }
  return seconds;
}

}  // namespace

MachineRates RatesOf(Isa isa) {
  // Measured on one core of an Intel Xeon (Emerald Rapids, 2 MiB L2); see docs/performance.md.
  switch (isa) {
    case Isa::kSse4:
      return {2.2e10, 1.4e10, 2.0e10, 0.5e-6, 0.2e-6};
    case Isa::kAvx2:
      return {8.0e10, 4.0e10, 2.4e10, 0.5e-6, 0.1e-6};
    default:
      return {1.7e11, 8.0e10, 2.8e10, 0.5e-6, 0.05e-6};
  }
}

void CutShares(Share share, std::span<const int32_t> offsets, int parts,
               std::span<ThreadShare> shares) {
  const int64_t tokens = offsets.back();
  int64_t begin = 0;
  for (int part = 0; part < parts; ++part) {
    const int64_t end = EndOfPart(share, offsets, part, parts, begin);
    ThreadShare& mine = shares[part];
    mine.row_begin = begin;
    mine.row_end = end;
    // A sequence belongs to the thread that has its first row.
    mine.sequence_begin = SequenceAt(offsets.first(offsets.size() - 1), begin);
    mine.sequence_end = SequenceAt(offsets.first(offsets.size() - 1), end);
    if (share == Share::kColumns) {
      mine.row_begin = 0;
      mine.row_end = tokens;
    }
    begin = end;
  }
}

// Units are of two thirds of `unit_rows` at least, but for a cut that falls short of it.
size_t MostUnits(int64_t tokens, int64_t unit_rows) {
  return static_cast<size_t>(tokens / (unit_rows * 2 / 3 - kKeyBlock + 1)) + 1;
}

size_t CutUnits(std::span<const int32_t> offsets, int parts, int64_t unit_rows,
                std::span<int64_t> ends) {
  const int64_t tokens = offsets.back();
  if (!ManyRows(offsets, parts, unit_rows)) return 0;
  // As many for every thread, and all alike: a last one alone would be waited for.
  const int64_t rounds = (tokens + parts * unit_rows - 1) / (parts * unit_rows);
  size_t count = 0;
  auto border = offsets.begin();  // the first one behind the unit's begin
  for (int64_t begin = 0; begin < tokens; ++count) {
    const int64_t left = tokens - begin;
    const int64_t planned = std::max<int64_t>(rounds * parts - static_cast<int64_t>(count), 1);
    const int64_t units = std::max(planned, (left + unit_rows - 1) / unit_rows);
    const int64_t target = begin + (left + units - 1) / units;
    int64_t end = tokens;
    if (target < tokens) {
      border = std::upper_bound(border, offsets.end(), begin);
      const auto after = std::upper_bound(border, offsets.end(), target);
      const int64_t start = *(after - 1);
      end = start + (target - start) / kKeyBlock * kKeyBlock;
      const int64_t next = std::min<int64_t>(end + kKeyBlock, *after);
      if (end <= begin || (next - target < target - end && next - begin <= unit_rows)) end = next;
    }
    ends[count] = end;
    begin = end;
  }
  return count;
}

double PredictSeconds(Share share, const PlanCosts& costs, const MachineRates& rates,
                      std::span<const int32_t> offsets, int parts, std::span<const int64_t> keys) {
  const int64_t tokens = offsets.back(), sequences = static_cast<int64_t>(offsets.size()) - 1;
  const RowCost row = {costs.flops_per_row, costs.weight_bytes};
  const RowCost sequence = {costs.sequence_flops, costs.sequence_weight_bytes};
  const double pairs = Pairs(offsets, keys, 0, tokens);
  const double per_pair = costs.flops_per_pair / rates.attention_flops;
  if (share == Share::kColumns) {
    const double repeated = costs.row_values * rates.step_seconds * static_cast<double>(tokens);
    return TileSeconds(row, rates, tokens, kColumnTileRows, parts) +
           TileSeconds(sequence, rates, sequences, kColumnTileRows, parts) + repeated +
           pairs * per_pair / parts +
           static_cast<double>(costs.column_barriers) * rates.barrier_seconds * (parts > 1);
  }
  // The slowest thread decides.
  double longest = 0;
  int64_t begin = 0;
  for (int part = 0; part < parts; ++part) {
    const int64_t end = EndOfPart(share, offsets, part, parts, begin);
    const double own_pairs = share == Share::kSequences ? Pairs(offsets, keys, begin, end)
                                                        : pairs * static_cast<double>(end - begin) /
                                                              static_cast<double>(tokens);
    const double rows = static_cast<double>(end - begin);
    longest =
        std::max(longest, TileSeconds(row, rates, end - begin, kTileRows, 1) +
                              own_pairs * per_pair + rows * costs.row_values * rates.step_seconds);
    begin = end;
  }
  // The thread with the most sequences has at least its part of them.
  longest += TileSeconds(sequence, rates, (sequences + parts - 1) / parts, kTileRows, 1);
  if (share == Share::kRows && parts > 1) {
    longest += static_cast<double>(costs.attentions) * rates.barrier_seconds;
  }
  return longest;
}

Share ChooseShare(const PlanCosts& costs, const MachineRates& rates,
                  std::span<const int32_t> offsets, int parts, std::span<const int64_t> keys) {
  if (parts == 1) return Share::kSequences;
  Share best = Share::kSequences;
  double least = PredictSeconds(best, costs, rates, offsets, parts, keys);
  for (const Share share : {Share::kRows, Share::kColumns}) {
    const double seconds = PredictSeconds(share, costs, rates, offsets, parts, keys);
    if (seconds < (1 - kShareTie) * least) {
      least = seconds;
      best = share;
    }
  }
  if (best == Share::kSequences && ManyRows(offsets, parts, kTileRows) &&
      PredictSeconds(Share::kRows, costs, rates, offsets, parts, keys) <= (1 + kShareTie) * least) {
    return Share::kRows;
  }
  return best;
}

}  // namespace attend
