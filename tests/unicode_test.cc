// The Unicode tables against utf8proc, for every code point, and the few rules on top by hand.
#include "engine/text/unicode.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "engine/text/utf8.h"
#include "tools/unicode/unicode_rules.h"

namespace attend {
namespace {

std::u32string Text(std::span<const uint32_t> parts) { return {parts.begin(), parts.end()}; }

TEST(UnicodeTest, EveryCodePointIsWhatUtf8procSays) {
  size_t num_different = 0;
  for (uint32_t c = 0; c < 0x110000; ++c) {
    const CodePointRules rules = RulesOf(c);
    uint32_t hangul[3];
    bool same = FlagsOf(c) == rules.flags && CombiningClassOf(c) == rules.combining_class;
    same = same && Text(LowerOf(c)) == rules.lower;
    if (c < 0xAC00 || c > 0xD7A3)
      same = same && Text(DecompositionOf(c, hangul)) == rules.decomposed;
    if (!same && num_different++ < 10) ADD_FAILURE() << std::hex << c;
  }
  EXPECT_EQ(num_different, 0u);
}

TEST(UnicodeTest, HangulDecomposesAsUtf8procDoesIt) {
  for (uint32_t c = 0xAC00; c <= 0xD7A3; ++c) {
    utf8proc_int32_t parts[4];
    const auto count = utf8proc_decompose_char(
        static_cast<utf8proc_int32_t>(c), parts, 4,
        static_cast<utf8proc_option_t>(UTF8PROC_DECOMPOSE | UTF8PROC_STABLE), nullptr);
    uint32_t hangul[3];
    ASSERT_EQ(Text(DecompositionOf(c, hangul)), std::u32string(parts, parts + count)) << c;
  }
}

TEST(UnicodeTest, CategoriesAreThoseOfTheOldUnicodeOnly) {
  // How many code points differ from utf8proc's own data, so that an exception cannot slip in.
  size_t marks = 0, punctuation = 0, classes = 0;
  for (uint32_t c = 0; c < 0x110000; ++c) {
    const auto category = utf8proc_category(static_cast<utf8proc_int32_t>(c));
    const bool is_punctuation =
        category >= UTF8PROC_CATEGORY_PC && category <= UTF8PROC_CATEGORY_PO;
    marks += ((FlagsOf(c) & kMarkFlag) != 0) != (category == UTF8PROC_CATEGORY_MN);
    if (c >= 128) {
      punctuation += ((FlagsOf(c) & kPunctuationFlag) != 0) != is_punctuation;
    }
    classes += CombiningClassOf(c) !=
               utf8proc_get_property(static_cast<utf8proc_int32_t>(c))->combining_class;
  }
  EXPECT_EQ(marks, 420u);
  EXPECT_EQ(punctuation, 129u);
  EXPECT_EQ(classes, 108u);
}

TEST(UnicodeTest, Examples) {
  EXPECT_EQ(Text(LowerOf(0x130)), U"i\u0307");
  EXPECT_EQ(Text(LowerOf(U'Σ')), U"σ");
  EXPECT_EQ(Text(LowerOf(U'ẞ')), U"ß");
  uint32_t hangul[3];
  EXPECT_EQ(Text(DecompositionOf(U'é', hangul)), U"e\u0301");
  EXPECT_EQ(Text(DecompositionOf(0x1E69, hangul)), U"s\u0323\u0307");
  EXPECT_EQ(Text(DecompositionOf(U'각', hangul)), U"\u1100\u1161\u11A8");
  EXPECT_EQ(Text(DecompositionOf(U'가', hangul)), U"\u1100\u1161");
  EXPECT_TRUE(DecompositionOf(0xFB01, hangul).empty()) << "compatibility only";
  EXPECT_EQ(FlagsOf(U'$') & kPunctuationFlag, kPunctuationFlag);
  EXPECT_EQ(FlagsOf(U'€') & kPunctuationFlag, 0);
  EXPECT_EQ(FlagsOf(0x3000) & kSpaceFlag, kSpaceFlag);
  EXPECT_EQ(FlagsOf(0x200B) & kSpaceFlag, 0);
  EXPECT_EQ(FlagsOf(0x200B) & kRemovedFlag, kRemovedFlag);
  EXPECT_EQ(FlagsOf(0x378) & kRemovedFlag, 0) << "unassigned stays";
  EXPECT_EQ(CombiningClassOf(0x323), 220);
  EXPECT_EQ(CombiningClassOf(U'a'), 0);
}

TEST(UnicodeTest, ChineseAreBertsRanges) {
  for (char32_t c : {0x3400, 0x4DBF, 0x4E00, 0x9FFF, 0xF900, 0xFAFF, 0x20000, 0x2A6DF, 0x2A700,
                     0x2B740, 0x2B81F, 0x2B920, 0x2CEAF, 0x2F800, 0x2FA1F}) {
    EXPECT_TRUE(IsChinese(c)) << std::hex << uint32_t{c};
  }
  for (char32_t c : {0x33FF, 0x4DC0, 0xA000, 0xFB00, 0x2A6E0, 0x2B820, 0x2B91F, 0x2CEB0, 0x2FA20,
                     0x3042, 0x30AB, 0xAC00}) {
    EXPECT_FALSE(IsChinese(c)) << std::hex << uint32_t{c};
  }
}

TEST(Utf8Test, EveryCodePointGoesThrough) {
  for (uint32_t c = 0; c < 0x110000; ++c) {
    if (c >= 0xD800 && c <= 0xDFFF) continue;
    char bytes[4];
    const uint32_t length = EncodeUtf8(c, bytes);
    uint32_t read = 0;
    ASSERT_EQ(FindInvalidUtf8({bytes, length}), kValidUtf8) << c;
    ASSERT_EQ(DecodeUtf8(bytes, &read), c);
    ASSERT_EQ(read, length);
    if (length == 1) continue;
    ASSERT_EQ(FindInvalidUtf8({bytes, length - 1}), 0u) << c;
  }
}

TEST(Utf8Test, NamesTheBadByte) {
  const std::vector<std::string> bad = {"\x80",
                                        "\xBF",
                                        "\xC0\x80",
                                        "\xC1\xBF",
                                        "\xF5\x80\x80\x80",
                                        "\xFF",
                                        "\xE0\x80\x80",
                                        "\xF0\x80\x80\x80",
                                        "\xF0\x8F\xBF\xBF",
                                        "\xC3",
                                        "\xE2\x82",
                                        "\xF0\x9F\x98",
                                        "\xC3(",
                                        "\xE2\x82(",
                                        "\xF0\x9F\x98(",
                                        "\xED\xA0\x80",
                                        "\xED\xBF\xBF",
                                        "\xF4\x90\x80\x80",
                                        "\xE2(\xA1",
                                        "\xF0(\x8C\xBC"};
  for (const std::string& sequence : bad) {
    for (const std::string before : {"", "a", "seven77", "eight888", "é", "nine 9 é"}) {
      EXPECT_EQ(FindInvalidUtf8(before + sequence), before.size())
          << ::testing::PrintToString(sequence);
      EXPECT_EQ(FindInvalidUtf8(before + sequence + "abcdefghij"), before.size());
    }
  }
}

TEST(Utf8Test, ConvertsOffsets) {
  const std::string text = "aé中😀b";  // bytes 1 2 3 4 1
  const auto convert = [&](OffsetUnit unit, std::vector<TextRange> ranges) {
    ConvertOffsets(text, unit, ranges.data(), ranges.size());
    return ranges;
  };
  const std::vector<TextRange> bytes = {{0, 1}, {1, 3}, {3, 6}, {6, 10}, {10, 11}, {0, 11}};
  EXPECT_EQ(convert(OffsetUnit::kBytes, bytes), bytes);
  EXPECT_EQ(convert(OffsetUnit::kCodePoints, bytes),
            (std::vector<TextRange>{{0, 1}, {1, 2}, {2, 3}, {3, 4}, {4, 5}, {0, 5}}));
  EXPECT_EQ(convert(OffsetUnit::kUtf16, bytes),
            (std::vector<TextRange>{{0, 1}, {1, 2}, {2, 3}, {3, 5}, {5, 6}, {0, 6}}));
  // A part of a character is all of it.
  EXPECT_EQ(convert(OffsetUnit::kCodePoints, {{7, 8}}), (std::vector<TextRange>{{3, 4}}));
}

}  // namespace
}  // namespace attend
