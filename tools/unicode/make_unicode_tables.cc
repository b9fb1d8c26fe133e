// Writes engine/text/unicode_tables.inc to standard output, from utf8proc and the exceptions below:
//   g++ -std=c++20 -I. tools/unicode/make_unicode_tables.cc -lutf8proc -o make_unicode_tables
//   ./make_unicode_tables > engine/text/unicode_tables.inc
// It is run by hand when the rules change; the library and its build do not need utf8proc.
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <map>
#include <vector>

#include "tools/unicode/unicode_rules.h"

namespace {

using attend::CodePointRules;
using attend::RulesOf;

constexpr uint32_t kEnd = 0x110000;
constexpr uint32_t kBlock = 256;

template <typename T>
void Print(const char* type, const char* name, const std::vector<T>& values) {
  std::printf("inline constexpr %s %s[] = {", type, name);
  int column = 1000;
  for (T value : values) {
    char text[16];
    const int length = std::snprintf(text, sizeof text, "%" PRIu32 ",", uint32_t{value});
    if (column + length > 100) {
      std::printf("\n    ");
      column = 4;
    }
    std::printf("%s", text);
    column += length;
  }
  std::printf("\n};\n\n");
}

// Flags of every code point, in blocks that are stored once.
void PrintFlags() {
  std::vector<uint32_t> index;
  std::vector<uint32_t> flags;
  std::map<std::vector<uint32_t>, uint32_t> known;
  for (uint32_t first = 0; first < kEnd; first += kBlock) {
    std::vector<uint32_t> block;
    for (uint32_t c = first; c < first + kBlock; ++c) block.push_back(RulesOf(c).flags);
    const auto [it, is_new] = known.emplace(block, static_cast<uint32_t>(known.size()));
    index.push_back(it->second);
    if (is_new) flags.insert(flags.end(), block.begin(), block.end());
  }
  Print("uint8_t", "kFlagBlock", index);
  Print("uint8_t", "kFlags", flags);
}

// Mappings as a sorted list of code points, where their text begins, and the texts.
void PrintMappings(const char* prefix, std::u32string CodePointRules::*mapping) {
  std::vector<uint32_t> from, begin, to;
  for (uint32_t c = 0; c < kEnd; ++c) {
    const std::u32string text = RulesOf(c).*mapping;
    if (text.empty()) continue;
    from.push_back(c);
    begin.push_back(static_cast<uint32_t>(to.size()));
    to.insert(to.end(), text.begin(), text.end());
  }
  begin.push_back(static_cast<uint32_t>(to.size()));
  char name[64];
  std::snprintf(name, sizeof name, "k%sFrom", prefix);
  Print("uint32_t", name, from);
  std::snprintf(name, sizeof name, "k%sBegin", prefix);
  Print("uint16_t", name, begin);
  std::snprintf(name, sizeof name, "k%sTo", prefix);
  Print("uint32_t", name, to);
}

// Combining classes as ranges.
void PrintClasses() {
  std::vector<uint32_t> first, last, value;
  for (uint32_t c = 0; c < kEnd; ++c) {
    const uint32_t combining = RulesOf(c).combining_class;
    if (combining == 0) continue;
    if (!last.empty() && last.back() == c - 1 && value.back() == combining) {
      last.back() = c;
    } else {
      first.push_back(c);
      last.push_back(c);
      value.push_back(combining);
    }
  }
  Print("uint32_t", "kClassFirst", first);
  Print("uint32_t", "kClassLast", last);
  Print("uint8_t", "kClass", value);
}

}  // namespace

int main() {
  std::printf(
      "// Made by tools/unicode/make_unicode_tables.cc from utf8proc; do not edit.\n"
      "// clang-format off\n\n");
  PrintFlags();
  PrintMappings("Lower", &CodePointRules::lower);
  PrintMappings("Decomposed", &CodePointRules::decomposed);
  PrintClasses();
  std::printf("// clang-format on\n");
  return 0;
}
