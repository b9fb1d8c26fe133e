// A model's place in the attention family, in words.
#ifndef ATTEND_TOOLS_DESCRIBE_FAMILY_H_
#define ATTEND_TOOLS_DESCRIBE_FAMILY_H_

#include <string>
#include <utility>
#include <vector>

#include "engine/config.h"

namespace attend {

// Names and values of what differs from the most usual encoder (learned positions, scaled dot
// products, softmax over everything, layer norm behind each block), for people.
std::vector<std::pair<std::string, std::string>> DescribeFamily(const ModelConfig& config);

}  // namespace attend

#endif  // ATTEND_TOOLS_DESCRIBE_FAMILY_H_
