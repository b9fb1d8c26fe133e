// Texts on which the loss of a lower precision is measured.
#ifndef ATTEND_TOOLS_CALIBRATION_H_
#define ATTEND_TOOLS_CALIBRATION_H_

#include <cstdint>
#include <vector>

#include "attend/attend.h"

namespace attend {

// A few English sentences as the model's token ids; none if it has no tokenizer.
std::vector<std::vector<int32_t>> CalibrationIds(const Model& model);

}  // namespace attend

#endif  // ATTEND_TOOLS_CALIBRATION_H_
