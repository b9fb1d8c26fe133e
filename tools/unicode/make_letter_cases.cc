// Writes engine/text/letter_case.inc to standard output, from the general categories of utf8proc:
//   g++ -std=c++20 tools/unicode/make_letter_cases.cc -lutf8proc -o make_letter_cases
//   ./make_letter_cases > engine/text/letter_case.inc
// It is run by hand when Unicode changes; the library and its build do not need utf8proc.
#include <utf8proc.h>

#include <cstdio>

namespace {

constexpr int kEnd = 0x110000;

// 'U', 'L', or 0.
char CaseOf(int c) {
  if (c >= kEnd) return 0;
  const utf8proc_category_t category = utf8proc_category(c);
  return category == UTF8PROC_CATEGORY_LU ? 'U' : category == UTF8PROC_CATEGORY_LL ? 'L' : 0;
}

}  // namespace

// The letters with a case as runs: all upper, all lower, or in turn. A run in turn is worth it from
// four letters on.
int main() {
  std::printf("// Made by tools/unicode/make_letter_cases.cc from utf8proc; do not edit.\n");
  std::printf("// clang-format off\n");
  int column = 1000;
  int c = 0;
  while (c < kEnd) {
    const char kind = CaseOf(c);
    if (kind == 0) {
      ++c;
      continue;
    }
    int same = c;
    while (CaseOf(same + 1) == kind) ++same;
    int turn = c;
    while (CaseOf(turn + 1) != 0 && CaseOf(turn + 1) != CaseOf(turn)) ++turn;
    const bool in_turn = turn - c >= 3;
    const int last = in_turn ? turn : same;
    const char* name =
        in_turn ? (kind == 'U' ? "kTurnUpper" : "kTurnLower") : (kind == 'U' ? "kUpper" : "kLower");
    char text[64];
    const int length = std::snprintf(text, sizeof text, "{0x%X, 0x%X, %s},", c, last, name);
    if (column + length + 1 > 100) {
      std::printf("\n   ");
      column = 3;
    }
    column += std::printf(" %s", text);
    c = last + 1;
  }
  std::printf("\n");
}
