// What somebody may have meant.
#ifndef ATTEND_TOOLS_SUGGEST_H_
#define ATTEND_TOOLS_SUGGEST_H_

#include <string>
#include <string_view>
#include <vector>

namespace attend::tools {

// The known word with the fewest edits (insert, delete, replace, swap neighbours) from `word`, or
// "" if none is near.
std::string Nearest(std::string_view word, const std::vector<std::string>& known);

}  // namespace attend::tools

#endif  // ATTEND_TOOLS_SUGGEST_H_
