// How the rows of a batch are shared among threads, and the rule that picks a share.
#ifndef ATTEND_ENGINE_SHARE_H_
#define ATTEND_ENGINE_SHARE_H_

#include <cstdint>
#include <span>

#include "attend/attend.h"
#include "kernels/isa.h"

namespace attend {

// What the plan does to a row, summed over its token segments.
struct PlanCosts {
  double flops_per_row = 0;   // linear layers, in such as take the time of one in f32
  double flops_per_pair = 0;  // attention, per query and key
  double weight_bytes = 0;    // packed
  double row_values = 0;      // steps that every thread repeats under the share by columns
  // Of what stands behind pooling, for every sequence.
  double sequence_flops = 0;
  double sequence_weight_bytes = 0;
  int64_t attentions = 0;  // barriers under the share by rows
  int64_t column_barriers = 0;
};

// What the machine does in a second, roughly. Only the order of the three predictions matters.
struct MachineRates {
  double gemm_flops = 0;       // one core, many rows, weights in L2
  double attention_flops = 0;  // one core
  double weight_bytes = 0;     // one core, weights from beyond L2
  double barrier_seconds = 0;
  double step_seconds = 0;  // a row of a step that is no GEMM
};
MachineRates RatesOf(Isa isa);

// Rows [begin, end) and sequences [first, last) of one thread.
struct ThreadShare {
  int64_t row_begin = 0, row_end = 0;
  int64_t sequence_begin = 0, sequence_end = 0;
};

// Cuts the batch for `parts` threads, part by part, in order. `offsets` [B+1].
// kSequences: whole sequences, at the boundaries nearest to equal work.
// kRows: equal rows; a cut inside a sequence falls on a block of keys, counted from its start.
// kColumns: every thread gets all rows; the sequences are dealt as for kRows.
void CutShares(Share share, std::span<const int32_t> offsets, int parts,
               std::span<ThreadShare> shares);

// Share::kRows of many rows: units of about equal size, at most `unit_rows` (a multiple of a block
// of keys), that the threads take one by one, so that a thread whose core is taken away or slower
// takes fewer. Fills `ends` with where each unit ends and returns how many there are: enough for
// every thread to have two or more, else 0 (equal parts are fairer then).
size_t CutUnits(std::span<const int32_t> offsets, int parts, int64_t unit_rows,
                std::span<int64_t> ends);

// The room that CutUnits needs for `tokens` rows.
size_t MostUnits(int64_t tokens, int64_t unit_rows);

// The time that the batch would take on `parts` threads under `share`, in seconds. `keys` [B]: how
// many a query of each sequence sees; empty: those of its sequence.
double PredictSeconds(Share share, const PlanCosts& costs, const MachineRates& rates,
                      std::span<const int32_t> offsets, int parts,
                      std::span<const int64_t> keys = {});

// A prediction is rough: one that is better by less than this part of the time is a tie.
inline constexpr double kShareTie = 0.05;

// The share with the least predicted time; ties go to the one with fewer barriers: by sequences,
// then by rows, then by columns. But of many rows, those by rows are taken in units (CutUnits), and
// no prediction knows which core will be slower: by rows then wins a tie with by sequences. One
// thread always takes whole sequences.
Share ChooseShare(const PlanCosts& costs, const MachineRates& rates,
                  std::span<const int32_t> offsets, int parts, std::span<const int64_t> keys = {});

}  // namespace attend

#endif  // ATTEND_ENGINE_SHARE_H_
