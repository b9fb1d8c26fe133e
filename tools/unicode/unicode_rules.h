// What every code point is to the tokenizers, said by utf8proc and a list of exceptions. Used by
// the generator of the tables and by the test that compares them; not by the library.
#ifndef ATTEND_TOOLS_UNICODE_UNICODE_RULES_H_
#define ATTEND_TOOLS_UNICODE_UNICODE_RULES_H_

#include <utf8proc.h>

#include <cstdint>
#include <iterator>
#include <span>
#include <string>

#include "engine/text/unicode.h"

namespace attend {

struct CodePointRange {
  uint32_t first;
  uint32_t last;
};

// The published tokenizers were made with an implementation whose categories are those of Unicode 8
// and whose normalisation is that of Unicode 9: what was assigned later is to it no mark, no
// punctuation and no format character, and its combining class is 0. Their vocabularies rest on
// that, so the exceptions are part of the format of those models.
inline constexpr CodePointRange kNoMark[] = {
    {0x7FD, 0x7FD},     {0x898, 0x89F},     {0x8CA, 0x8E1},     {0x9FE, 0x9FE},
    {0xAFA, 0xAFF},     {0xB55, 0xB55},     {0xC04, 0xC04},     {0xC3C, 0xC3C},
    {0xD00, 0xD00},     {0xD3B, 0xD3C},     {0xD81, 0xD81},     {0xEBA, 0xEBA},
    {0xECE, 0xECE},     {0x180F, 0x180F},   {0x1885, 0x1886},   {0x1ABF, 0x1ACE},
    {0x1DF6, 0x1DFB},   {0xA82C, 0xA82C},   {0xA8C5, 0xA8C5},   {0xA8FF, 0xA8FF},
    {0xA9BD, 0xA9BD},   {0x10D24, 0x10D27}, {0x10EAB, 0x10EAC}, {0x10EFD, 0x10EFF},
    {0x10F46, 0x10F50}, {0x10F82, 0x10F85}, {0x11070, 0x11070}, {0x11073, 0x11074},
    {0x110C2, 0x110C2}, {0x111C9, 0x111C9}, {0x111CF, 0x111CF}, {0x1123E, 0x1123E},
    {0x11241, 0x11241}, {0x1133B, 0x1133B}, {0x11438, 0x1143F}, {0x11442, 0x11444},
    {0x11446, 0x11446}, {0x1145E, 0x1145E}, {0x1182F, 0x11837}, {0x11839, 0x1183A},
    {0x1193B, 0x1193C}, {0x1193E, 0x1193E}, {0x11943, 0x11943}, {0x119D4, 0x119D7},
    {0x119DA, 0x119DB}, {0x119E0, 0x119E0}, {0x11A01, 0x11A0A}, {0x11A33, 0x11A38},
    {0x11A3B, 0x11A3E}, {0x11A47, 0x11A47}, {0x11A51, 0x11A56}, {0x11A59, 0x11A5B},
    {0x11A8A, 0x11A96}, {0x11A98, 0x11A99}, {0x11C30, 0x11C36}, {0x11C38, 0x11C3D},
    {0x11C3F, 0x11C3F}, {0x11C92, 0x11CA7}, {0x11CAA, 0x11CB0}, {0x11CB2, 0x11CB3},
    {0x11CB5, 0x11CB6}, {0x11D31, 0x11D36}, {0x11D3A, 0x11D3A}, {0x11D3C, 0x11D3D},
    {0x11D3F, 0x11D45}, {0x11D47, 0x11D47}, {0x11D90, 0x11D91}, {0x11D95, 0x11D95},
    {0x11D97, 0x11D97}, {0x11EF3, 0x11EF4}, {0x11F00, 0x11F01}, {0x11F36, 0x11F3A},
    {0x11F40, 0x11F40}, {0x11F42, 0x11F42}, {0x13440, 0x13440}, {0x13447, 0x13455},
    {0x16F4F, 0x16F4F}, {0x16FE4, 0x16FE4}, {0x1CF00, 0x1CF2D}, {0x1CF30, 0x1CF46},
    {0x1E000, 0x1E006}, {0x1E008, 0x1E018}, {0x1E01B, 0x1E021}, {0x1E023, 0x1E024},
    {0x1E026, 0x1E02A}, {0x1E08F, 0x1E08F}, {0x1E130, 0x1E136}, {0x1E2AE, 0x1E2AE},
    {0x1E2EC, 0x1E2EF}, {0x1E4EC, 0x1E4EF}, {0x1E944, 0x1E94A},
};
inline constexpr CodePointRange kNoPunctuation[] = {
    {0x61D, 0x61D},     {0x9FD, 0x9FD},     {0xA76, 0xA76},     {0xC77, 0xC77},
    {0xC84, 0xC84},     {0x1B7D, 0x1B7E},   {0x2E43, 0x2E4F},   {0x2E52, 0x2E5D},
    {0x10EAD, 0x10EAD}, {0x10F55, 0x10F59}, {0x10F86, 0x10F89}, {0x1144B, 0x1144F},
    {0x1145A, 0x1145B}, {0x1145D, 0x1145D}, {0x11660, 0x1166C}, {0x116B9, 0x116B9},
    {0x1183B, 0x1183B}, {0x11944, 0x11946}, {0x119E2, 0x119E2}, {0x11A3F, 0x11A46},
    {0x11A9A, 0x11A9C}, {0x11A9E, 0x11AA2}, {0x11B00, 0x11B09}, {0x11C41, 0x11C45},
    {0x11C70, 0x11C71}, {0x11EF7, 0x11EF8}, {0x11F43, 0x11F4F}, {0x11FFF, 0x11FFF},
    {0x12FF1, 0x12FF2}, {0x16E97, 0x16E9A}, {0x16FE2, 0x16FE2}, {0x1E95E, 0x1E95F},
};
inline constexpr CodePointRange kNoFormat[] = {
    {0x890, 0x891}, {0x8E2, 0x8E2}, {0x110CD, 0x110CD}, {0x13430, 0x1343F}};
inline constexpr CodePointRange kNoClass[] = {
    {0x7FD, 0x7FD},     {0x898, 0x89F},     {0x8CA, 0x8D3},     {0x9FE, 0x9FE},
    {0xC3C, 0xC3C},     {0xD3B, 0xD3C},     {0xEBA, 0xEBA},     {0x1715, 0x1715},
    {0x1ABF, 0x1ACE},   {0x1DF6, 0x1DFA},   {0xA82C, 0xA82C},   {0x10D24, 0x10D27},
    {0x10EAB, 0x10EAC}, {0x10EFD, 0x10EFF}, {0x10F46, 0x10F50}, {0x10F82, 0x10F85},
    {0x11070, 0x11070}, {0x1133B, 0x1133B}, {0x1145E, 0x1145E}, {0x11839, 0x1183A},
    {0x1193D, 0x1193E}, {0x11943, 0x11943}, {0x119E0, 0x119E0}, {0x11A34, 0x11A34},
    {0x11A47, 0x11A47}, {0x11A99, 0x11A99}, {0x11D42, 0x11D42}, {0x11D44, 0x11D45},
    {0x11D97, 0x11D97}, {0x11F41, 0x11F42}, {0x16FF0, 0x16FF1}, {0x1E08F, 0x1E08F},
    {0x1E130, 0x1E136}, {0x1E2AE, 0x1E2AE}, {0x1E2EC, 0x1E2EF}, {0x1E4EC, 0x1E4EF},
};
inline constexpr CodePointRange kNoDecomposition[] = {{0x11938, 0x11938}};

// Categories that changed after Unicode 8.
inline constexpr uint32_t kWasMark[] = {0x1734};
inline constexpr uint32_t kWasPunctuation[] = {0x166D, 0x111C9};

// Lower case, on the other hand, is that of Unicode 17: what utf8proc does not know yet, as ranges
// and the distance to the small letter.
struct LowerRange {
  uint32_t first;
  uint32_t last;
  int32_t distance;
};
inline constexpr LowerRange kNewLower[] = {
    {0x1C89, 0x1C89, 1},      {0xA7CB, 0xA7CB, 0x264 - 0xA7CB},
    {0xA7CC, 0xA7CC, 1},      {0xA7CE, 0xA7CE, 1},
    {0xA7D2, 0xA7D2, 1},      {0xA7D4, 0xA7D4, 1},
    {0xA7DA, 0xA7DA, 1},      {0xA7DC, 0xA7DC, 0x19B - 0xA7DC},
    {0x10D50, 0x10D65, 0x20}, {0x16EA0, 0x16EB8, 0x1B},
};

// Letters in circles and squares, alphabetic although they are symbols.
inline constexpr CodePointRange kAlphabeticSymbols[] = {
    {0x24B6, 0x24E9}, {0x1F130, 0x1F149}, {0x1F150, 0x1F169}, {0x1F170, 0x1F189}};

// Word characters of Unicode 16 that utf8proc does not know yet.
inline constexpr CodePointRange kNewWord[] = {
    {0x897, 0x897},     {0x1C89, 0x1C8A},   {0xA7CB, 0xA7CD},   {0xA7DA, 0xA7DC},
    {0x105C0, 0x105F3}, {0x10D40, 0x10D65}, {0x10D69, 0x10D6D}, {0x10D6F, 0x10D85},
    {0x10EC2, 0x10EC4}, {0x10EFC, 0x10EFC}, {0x11380, 0x11389}, {0x1138B, 0x1138B},
    {0x1138E, 0x1138E}, {0x11390, 0x113B5}, {0x113B7, 0x113C0}, {0x113C2, 0x113C2},
    {0x113C5, 0x113C5}, {0x113C7, 0x113CA}, {0x113CC, 0x113D3}, {0x113E1, 0x113E2},
    {0x116D0, 0x116E3}, {0x11BC0, 0x11BE0}, {0x11BF0, 0x11BF9}, {0x11F5A, 0x11F5A},
    {0x13460, 0x143FA}, {0x16100, 0x16139}, {0x16D40, 0x16D6C}, {0x16D70, 0x16D79},
    {0x18CFF, 0x18CFF}, {0x1CCF0, 0x1CCF9}, {0x1E5D0, 0x1E5FA}, {0x2EBF0, 0x2EE5D},
};

struct CodePointRules {
  uint32_t flags = 0;  // CodePointFlag
  uint32_t combining_class = 0;
  std::u32string lower;       // empty: itself
  std::u32string decomposed;  // canonically and fully; empty: itself (Hangul: by arithmetic)
};

inline bool IsIn(std::span<const CodePointRange> ranges, uint32_t c) {
  for (const CodePointRange& range : ranges) {
    if (c >= range.first && c <= range.last) return true;
  }
  return false;
}

inline std::u32string ExpectedLower(uint32_t c) {
  if (c == 0x130) return U"i\u0307";
  for (const LowerRange& range : kNewLower) {
    if (c >= range.first && c <= range.last) return {static_cast<char32_t>(c + range.distance)};
  }
  const auto lower = static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c)));
  return lower == c ? std::u32string() : std::u32string(1, lower);
}

inline std::u32string ExpectedDecomposition(uint32_t c) {
  if (IsIn(kNoDecomposition, c) || (c >= 0xAC00 && c <= 0xD7A3)) return {};
  utf8proc_int32_t parts[32];
  const auto count = utf8proc_decompose_char(
      static_cast<utf8proc_int32_t>(c), parts, 32,
      static_cast<utf8proc_option_t>(UTF8PROC_DECOMPOSE | UTF8PROC_STABLE), nullptr);
  if (count <= 0 || (count == 1 && parts[0] == static_cast<int32_t>(c))) return {};
  return std::u32string(parts, parts + count);
}

inline CodePointRules RulesOf(uint32_t c) {
  CodePointRules rules;
  if (c >= 0xD800 && c <= 0xDFFF) return rules;  // never in valid UTF-8
  const auto category = utf8proc_category(static_cast<utf8proc_int32_t>(c));
  const auto is = [&](auto first, auto last) { return category >= first && category <= last; };
  const auto was = [&](std::span<const uint32_t> list) {
    for (uint32_t one : list) {
      if (one == c) return true;
    }
    return false;
  };
  const bool ascii_symbol = (c > 0x20 && c < 0x30) || (c > 0x39 && c < 0x41) ||
                            (c > 0x5A && c < 0x61) || (c > 0x7A && c < 0x7F);
  const bool blank =
      (c >= 9 && c <= 13) || c == 0x85 || is(UTF8PROC_CATEGORY_ZS, UTF8PROC_CATEGORY_ZP);
  const bool other = is(UTF8PROC_CATEGORY_CC, UTF8PROC_CATEGORY_CC) ||
                     is(UTF8PROC_CATEGORY_CO, UTF8PROC_CATEGORY_CO) ||
                     (is(UTF8PROC_CATEGORY_CF, UTF8PROC_CATEGORY_CF) && !IsIn(kNoFormat, c));
  const bool word = is(UTF8PROC_CATEGORY_LU, UTF8PROC_CATEGORY_NL) ||
                    is(UTF8PROC_CATEGORY_PC, UTF8PROC_CATEGORY_PC) || c == 0x200C || c == 0x200D ||
                    IsIn(kAlphabeticSymbols, c) || IsIn(kNewWord, c);
  rules.lower = ExpectedLower(c);
  rules.decomposed = ExpectedDecomposition(c);
  rules.combining_class =
      IsIn(kNoClass, c)
          ? 0
          : static_cast<uint32_t>(
                utf8proc_get_property(static_cast<utf8proc_int32_t>(c))->combining_class);
  const auto set = [&](bool condition, uint32_t flag) { rules.flags |= condition ? flag : 0; };
  set((is(UTF8PROC_CATEGORY_MN, UTF8PROC_CATEGORY_MN) && !IsIn(kNoMark, c)) || was(kWasMark),
      kMarkFlag);
  set(ascii_symbol ||
          (is(UTF8PROC_CATEGORY_PC, UTF8PROC_CATEGORY_PO) && !IsIn(kNoPunctuation, c)) ||
          was(kWasPunctuation),
      kPunctuationFlag);
  set(c == 0 || c == 0xFFFD || (other && c != '\t' && c != '\n' && c != '\r'), kRemovedFlag);
  set(blank, kSpaceFlag);
  set(word, kWordFlag);
  set(!rules.lower.empty(), kUpperFlag);
  set(!rules.decomposed.empty() || (c >= 0xAC00 && c <= 0xD7A3), kDecomposableFlag);
  set(rules.combining_class != 0, kCombiningFlag);
  return rules;
}

}  // namespace attend

#endif  // ATTEND_TOOLS_UNICODE_UNICODE_RULES_H_
