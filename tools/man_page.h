// The manual page of the program, made from its parser.
#ifndef ATTEND_TOOLS_MAN_PAGE_H_
#define ATTEND_TOOLS_MAN_PAGE_H_

#include <string>
#include <vector>

#include "tools/program.h"

namespace attend::tools {

// In the language of man(7). `all` is what Program::Describe gives.
std::string ManPage(const std::vector<Program::Description>& all);

}  // namespace attend::tools

#endif  // ATTEND_TOOLS_MAN_PAGE_H_
