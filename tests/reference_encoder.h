// The whole encoder of the family in double precision, out of the plain twins of reference.h: one
// sequence, one loop per index, the configuration read field by field as docs/family.md says it.
#ifndef ATTEND_TESTS_REFERENCE_ENCODER_H_
#define ATTEND_TESTS_REFERENCE_ENCODER_H_

#include <map>
#include <string>

#include "engine/config.h"
#include "engine/format.h"
#include "tests/family_batch.h"
#include "tests/reference.h"

namespace attend::reference {

// Tensors by name; vectors are [1, n].
using Weights = std::map<std::string, Matrix>;

// The F32 tensors of a file.
Weights ReadWeights(const FileView& file);

struct EncoderOutput {
  Matrix hidden;  // [L, D]
  Matrix pooled;  // [1, D], of task sequence
  Matrix logits;  // [L, C] or [1, C]
};

// How exact the twin is. A seed above 0 does what f32 may do: every element of a matrix is off, up
// or down as the seed has it, by 2^-22 of the largest of its row, and an activation by as much of
// its argument. How far a few of these get from the exact result says how much an f32 engine may
// differ for this model.
struct Noise {
  uint64_t seed = 0;
};

EncoderOutput RunEncoder(const ModelConfig& config, const Weights& weights,
                         const testing::FamilySequence& sequence, Noise noise = {});

}  // namespace attend::reference

#endif  // ATTEND_TESTS_REFERENCE_ENCODER_H_
