// The tokenizer by hand-made examples: the interface's promises, and inputs that broke others.
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "engine/text/utf8.h"
#include "tests/tokenizer_testing.h"

namespace attend {
namespace {

const Tokenizer& MiniLm() {
  static const Tokenizer tokenizer = MakeTokenizer(MiniLmSpec());
  return tokenizer;
}

Encoding Encode(const Tokenizer& tokenizer, std::string_view text,
                const EncodeOptions& options = {}) {
  Result<Encoding> encoding = tokenizer.Encode(text, options);
  EXPECT_TRUE(encoding.ok()) << encoding.status().ToString();
  return encoding.ok() ? *encoding : Encoding();
}

std::vector<std::string> PiecesOf(const Tokenizer& tokenizer, std::string_view text) {
  return Encode(tokenizer, text, {.add_special_tokens = false}).tokens;
}

using Strings = std::vector<std::string>;

// What holds for every text.
void CheckProperties(const Tokenizer& tokenizer, std::string_view text) {
  const Encoding one = Encode(tokenizer, text);
  ASSERT_EQ(one.ids.size(), one.offsets.size());
  ASSERT_EQ(one.ids.size(), one.type_ids.size());
  ASSERT_EQ(one.ids.size(), one.sequence_ids.size());
  ASSERT_EQ(one.ids.size(), one.tokens.size());
  uint32_t last_begin = 0, last_end = 0;
  for (size_t i = 0; i < one.ids.size(); ++i) {
    ASSERT_GE(one.ids[i], 0);
    ASSERT_LT(one.ids[i], tokenizer.vocab_size());
    if (one.sequence_ids[i] < 0) continue;
    const auto [begin, end] = one.offsets[i];
    ASSERT_LT(begin, end);
    ASSERT_LE(end, text.size());
    ASSERT_TRUE(IsUtf8Lead(text[begin]));
    ASSERT_TRUE(end == text.size() || IsUtf8Lead(text[end]));
    ASSERT_GE(begin, last_begin);
    ASSERT_GE(end, last_end);
    last_begin = begin;
    last_end = end;
  }
  // Reused memory that held something else changes nothing.
  Encoding again = Encode(tokenizer, "something else [MASK] entirely, and longer than it was");
  ASSERT_TRUE(tokenizer.EncodeInto(text, {}, &again).ok());
  ASSERT_EQ(again.ids, one.ids);
  ASSERT_EQ(again.offsets, one.offsets);
  ASSERT_EQ(again.type_ids, one.type_ids);
  ASSERT_EQ(again.sequence_ids, one.sequence_ids);
  ASSERT_TRUE(tokenizer.Decode(one.ids).ok());
  // The pair's first text is encoded as alone, and cutting keeps a prefix.
  const Result<Encoding> pair = tokenizer.EncodePair(text, text);
  ASSERT_TRUE(pair.ok());
  ASSERT_EQ(pair->ids.size(), 2 * one.ids.size() - 1);
  ASSERT_TRUE(std::equal(one.ids.begin(), one.ids.end(), pair->ids.begin()));
  const Encoding cut = Encode(tokenizer, text, {.max_tokens = 8});
  ASSERT_LE(cut.ids.size(), 8u);
  ASSERT_EQ(cut.truncated, one.ids.size() > 8);
  ASSERT_TRUE(std::equal(cut.ids.begin(), cut.ids.end() - 1, one.ids.begin()));
}

TEST(TokenizerTest, KnowsItself) {
  const Tokenizer& tokenizer = MiniLm();
  EXPECT_EQ(tokenizer.vocab_size(), 30522);
  EXPECT_EQ(tokenizer.kind(), "wordpiece");
  EXPECT_EQ(tokenizer.TokenId("[CLS]"), 101);
  EXPECT_EQ(tokenizer.TokenId("saw"), 2387);
  EXPECT_EQ(tokenizer.TokenId("no such entry"), -1);
  EXPECT_EQ(tokenizer.TokenId(""), -1);
  EXPECT_EQ(tokenizer.TokenText(2387), "saw");
  EXPECT_EQ(tokenizer.TokenText(-1), "");
  EXPECT_EQ(tokenizer.TokenText(30522), "");
  EXPECT_EQ(tokenizer.num_added_tokens(false), 2);
  EXPECT_EQ(tokenizer.num_added_tokens(true), 3);
  EXPECT_EQ(tokenizer.bos_id(), 101);
  EXPECT_EQ(tokenizer.eos_id(), 102);
  for (int32_t id = 0; id < tokenizer.vocab_size(); ++id) {
    ASSERT_EQ(tokenizer.TokenId(tokenizer.TokenText(id)), id);
  }
}

TEST(TokenizerTest, SpecialTokensInTheText) {
  EXPECT_EQ(PiecesOf(MiniLm(), "a[MASK]b"), (Strings{"a", "[MASK]", "b"}));
  EXPECT_EQ(PiecesOf(MiniLm(), "[MASK][MASK]"), (Strings{"[MASK]", "[MASK]"}));
  EXPECT_EQ(PiecesOf(MiniLm(), "[mask]"), (Strings{"[", "mask", "]"}));
  EXPECT_EQ(PiecesOf(MiniLm(), "[[MASK]"), (Strings{"[", "[MASK]"}));
  EXPECT_EQ(PiecesOf(MiniLm(), "[MASK"), (Strings{"[", "mask"}));
  const Encoding plain =
      Encode(MiniLm(), "a [MASK]", {.add_special_tokens = false, .parse_special_tokens = false});
  EXPECT_EQ(plain.tokens, (Strings{"a", "[", "mask", "]"}));
}

TEST(TokenizerTest, AddedTokensOfAllKinds) {
  TokenizerSpec spec = MiniLmSpec();
  const auto add = [&spec](AddedToken token) {
    token.id = static_cast<int32_t>(spec.vocabulary.size());
    token.in_model = false;
    spec.vocabulary.push_back(token.content);
    spec.added_tokens.push_back(token);
  };
  add({.content = "<l>", .lstrip = true});
  add({.content = "<r>", .rstrip = true});
  add({.content = "Word", .single_word = true});
  add({.content = "Café", .normalized = true});
  add({.content = "<lr>", .lstrip = true, .rstrip = true});
  const Tokenizer tokenizer = MakeTokenizer(spec);
  const auto ranges = [&](std::string_view text) {
    return Encode(tokenizer, text, {.add_special_tokens = false}).offsets;
  };
  using Ranges = std::vector<TextRange>;
  EXPECT_EQ(PiecesOf(tokenizer, "a  <l> b"), (Strings{"a", "<l>", "b"}));
  EXPECT_EQ(ranges("a  <l> b"), (Ranges{{0, 1}, {1, 6}, {7, 8}}));
  EXPECT_EQ(ranges("a  <r> b"), (Ranges{{0, 1}, {3, 7}, {7, 8}}));
  EXPECT_EQ(ranges("<r>  <l>"), (Ranges{{0, 5}, {5, 8}}));
  EXPECT_EQ(ranges("\u3000<lr>\u00A0"), (Ranges{{0, 9}}));
  EXPECT_EQ(PiecesOf(tokenizer, "Word,Word Words"), (Strings{"Word", ",", "Word", "words"}));
  EXPECT_EQ(PiecesOf(tokenizer, "CAFE\u0301 and cafe"), (Strings{"Café", "and", "Café"}));
  EXPECT_EQ(ranges("CAFE\u0301 x"), (Ranges{{0, 4}, {7, 8}}));
  // The model does not know what was only added.
  EXPECT_EQ(PiecesOf(tokenizer, "word"), (Strings{"word"}));
  for (const char* text : {"a  <l> b", "<r>  <l> Word", "CAFE\u0301 and"}) {
    CheckProperties(tokenizer, text);
  }
}

TEST(TokenizerTest, LongestAddedTokenWins) {
  TokenizerSpec spec = MiniLmSpec();
  for (const char* content : {"<a", "<a>", "<a>b"}) {
    spec.added_tokens.push_back({.content = content,
                                 .id = static_cast<int32_t>(spec.vocabulary.size()),
                                 .in_model = false});
    spec.vocabulary.push_back(content);
  }
  const Tokenizer tokenizer = MakeTokenizer(spec);
  EXPECT_EQ(PiecesOf(tokenizer, "<a>b<a><a"), (Strings{"<a>b", "<a>", "<a"}));
  EXPECT_EQ(PiecesOf(tokenizer, "<<a>c"), (Strings{"<", "<a>", "c"}));
}

TEST(TokenizerTest, OffsetUnits) {
  const std::string text = "😀 né中x";
  const auto ranges = [&](OffsetUnit unit) {
    return Encode(MiniLm(), text, {.add_special_tokens = false, .offset_unit = unit}).offsets;
  };
  using Ranges = std::vector<TextRange>;
  EXPECT_EQ(ranges(OffsetUnit::kBytes), (Ranges{{0, 4}, {5, 8}, {8, 11}, {11, 12}}));
  EXPECT_EQ(ranges(OffsetUnit::kCodePoints), (Ranges{{0, 1}, {2, 4}, {4, 5}, {5, 6}}));
  EXPECT_EQ(ranges(OffsetUnit::kUtf16), (Ranges{{0, 2}, {3, 5}, {5, 6}, {6, 7}}));
}

TEST(TokenizerTest, LongWordsAreUnknown) {
  for (const std::string letter : {"a", "é", "ß"}) {
    std::string word;
    for (int i = 0; i < 100; ++i) word += letter;
    EXPECT_GT(PiecesOf(MiniLm(), word).size(), 1u) << letter;
    EXPECT_EQ(PiecesOf(MiniLm(), word + letter), (Strings{"[UNK]"})) << letter;
    const Encoding encoding = Encode(MiniLm(), "x " + word + letter + ".");
    EXPECT_EQ(encoding.offsets[2],
              (TextRange{2, 2 + static_cast<uint32_t>(word.size() + letter.size())}));
  }
  // Characters are counted after normalisation: marks that are stripped do not count.
  std::string zalgo = "saw";
  for (int i = 0; i < 1000; ++i) zalgo += "\u0301";
  EXPECT_EQ(PiecesOf(MiniLm(), zalgo), (Strings{"saw"}));
}

TEST(TokenizerTest, Truncation) {
  const Encoding full = Encode(MiniLm(), "one two three");
  EXPECT_EQ(full.ids.size(), 5u);
  EXPECT_FALSE(Encode(MiniLm(), "one two three", {.max_tokens = 5}).truncated);
  const Encoding cut = Encode(MiniLm(), "one two three", {.max_tokens = 4});
  EXPECT_TRUE(cut.truncated);
  EXPECT_EQ(cut.tokens, (Strings{"[CLS]", "one", "two", "[SEP]"}));
  EXPECT_EQ(Encode(MiniLm(), "one", {.max_tokens = 2}).tokens, (Strings{"[CLS]", "[SEP]"}));
  for (int32_t max_tokens : {1, -1}) {
    const auto error = MiniLm().Encode("one", {.max_tokens = max_tokens});
    EXPECT_EQ(error.status().code(), ErrorCode::kInvalidArgument);
    EXPECT_EQ(error.status().where(), "max_tokens");
  }
  EXPECT_TRUE(MiniLm().Encode("one", {.add_special_tokens = false, .max_tokens = 1}).ok());
}

TEST(TokenizerTest, PairsAreCutLongestFirst) {
  struct Case {
    size_t a, b;
    int32_t max_tokens;  // without special tokens
    size_t kept_a, kept_b;
  };
  for (const Case& one : {Case{5, 5, 10, 5, 5}, Case{5, 5, 9, 4, 5}, Case{2, 9, 8, 2, 6},
                          Case{9, 2, 8, 6, 2}, Case{9, 7, 7, 4, 3}, Case{7, 9, 7, 3, 4},
                          Case{6, 6, 1, 0, 1}, Case{0, 9, 4, 0, 4}, Case{20, 20, 5, 2, 3}}) {
    std::string a, b;
    for (size_t i = 0; i < one.a; ++i) a += "a ";
    for (size_t i = 0; i < one.b; ++i) b += "b ";
    const auto pair =
        MiniLm().EncodePair(a, b, {.add_special_tokens = false, .max_tokens = one.max_tokens});
    ASSERT_TRUE(pair.ok());
    const auto count = [&](int32_t sequence, const char* token) {
      size_t found = 0;
      for (size_t i = 0; i < pair->ids.size(); ++i) {
        found += pair->sequence_ids[i] == sequence && pair->tokens[i] == token;
      }
      return found;
    };
    EXPECT_EQ(count(0, "a"), one.kept_a) << one.a << " " << one.b << " " << one.max_tokens;
    EXPECT_EQ(count(1, "b"), one.kept_b);
    EXPECT_EQ(pair->ids.size(), one.kept_a + one.kept_b);
  }
}

TEST(TokenizerTest, WordsAlone) {
  const auto word = [](std::string_view text) {
    std::vector<int32_t> ids = {7};
    EXPECT_TRUE(MiniLm().EncodeWord(text, &ids).ok());
    EXPECT_EQ(ids.front(), 7) << "what was there stays";
    Strings tokens;
    for (size_t i = 1; i < ids.size(); ++i) tokens.emplace_back(MiniLm().TokenText(ids[i]));
    return tokens;
  };
  EXPECT_EQ(word("Saw"), (Strings{"saw"}));
  EXPECT_EQ(word("n't"), (Strings{"n", "'", "t"}));
  EXPECT_EQ(word(""), (Strings{"[UNK]"}));
  EXPECT_EQ(word(" \u200B\u0301"), (Strings{"[UNK]"}));
  EXPECT_EQ(word("[MASK]"), (Strings{"[", "mask", "]"}));
  std::vector<int32_t> ids;
  EXPECT_EQ(MiniLm().EncodeWord("a\xFF", &ids).code(), ErrorCode::kInvalidArgument);
}

TEST(TokenizerTest, BadTextIsRefused) {
  const auto error = MiniLm().Encode("saw \xE2\x82");
  ASSERT_FALSE(error.ok());
  EXPECT_EQ(error.status().code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(error.status().where(), "text, byte 4");
  EXPECT_NE(error.status().what().find("0xE2"), std::string::npos);
  EXPECT_EQ(MiniLm().EncodePair("saw", "\xFF").status().where(), "pair, byte 0");
  const std::string large(kMaxTextBytes + 1, ' ');
  EXPECT_EQ(MiniLm().Encode(large).status().code(), ErrorCode::kCapacity);
}

TEST(TokenizerTest, Decode) {
  const auto decode = [](std::vector<int32_t> ids, bool skip = true) {
    return *MiniLm().Decode(ids, skip);
  };
  EXPECT_EQ(decode({}), "");
  EXPECT_EQ(decode({101, 1045, 2387, 102}), "i saw");
  EXPECT_EQ(decode({101, 1045, 2387, 102}, false), "[CLS] i saw [SEP]");
  EXPECT_EQ(decode(Encode(MiniLm(), "I don't, embeddings!").ids), "i don ' t, embeddings!");
  for (int32_t id : {-1, 30522, INT32_MAX, INT32_MIN}) {
    const int32_t ids[] = {101, id};
    const auto error = MiniLm().Decode(ids);
    EXPECT_EQ(error.status().code(), ErrorCode::kInvalidArgument);
    EXPECT_EQ(error.status().where(), "ids[1]");
  }
  EXPECT_EQ(decode(std::vector<int32_t>(1000000, 2387)).size(), 4000000u - 1);
}

TEST(TokenizerTest, EmptyAndBlank) {
  for (const std::string& text :
       Strings{"", " ", "\n\t\r", "\u3000\u2028", "\u200B", std::string(9, '\0'), "\u0301"}) {
    EXPECT_EQ(Encode(MiniLm(), text).ids, (std::vector<int32_t>{101, 102})) << text;
  }
  EXPECT_EQ(Encode(MiniLm(), {}).ids.size(), 2u) << "a null pointer and no length";
  EXPECT_EQ(PiecesOf(MiniLm(), std::string_view("a\0b", 3)), (Strings{"ab"}));
}

TEST(TokenizerTest, HardTexts) {
  const Strings texts = {
      "",
      " ",
      "\xEF\xBB\xBFsaw",                                // a byte order mark
      "\uFFFD \uFDD0 \uFFFE \U0010FFFF",                // replacement, not characters
      "\uE000 \U000F0000 \u0378",                       // private, unassigned
      "a\u0301\u0323\u0307b q\u0307\u0323",             // order of marks
      "\U0001D16D\U0001D165\U0001D16Dx",                // marks that are kept and change places
      "\u302F\u302E\u0301\u302Fx",                      //
      "\u0344 \u0958 \u1E9B\u0323 \uFDFA",              // decompositions
      "각각 \u1100\u1161\u11A8 가\u11A8",               // Hangul, in parts
      "ﾊﾞ ヿ ゟ か\u3099",                              // kana
      "İI ıi ß ẞ ǅ Σς Ꭰꭰ Აა 𐐀𐐨",  // cases
      "¯\u008F\u09AC",
      "１２３ ² ½ ﬁ",
      "العربية ﻻ ـ ١٢٣ \u202Ertl\u202C",
      "a\u200Bb\u200Cc\u200Dd\u2060e\u00ADf",
      "\u4DBF\u4DC0\u4E00\u9FFF\uF900\U0002B81F\U0002B820\U0002F800",
      "ไทยลาวខ្មែរབོད",
      "👨‍👩‍👧‍👦 🏳️‍🌈 🇩🇪🇫 1️⃣ 👍🏽",
      "𝐇𝐞𝐥𝐥𝐨 𐌰𐌱 𐀀",
      "$+<=>^`|~ ¡¿ «» …",
      "[CLS] [SEP][SEP] [PAD] </s> <|endoftext|>",
      "##ing ## # ##",
      "don't 'S ’ll",
  };
  for (const Tokenizer& tokenizer : {MiniLm(), MakeTokenizer(SmallSpec("wordpiece_uncased")),
                                     MakeTokenizer(SmallSpec("wordpiece_cased"))}) {
    for (const std::string& text : texts) {
      SCOPED_TRACE(::testing::PrintToString(text));
      ASSERT_NO_FATAL_FAILURE(CheckProperties(tokenizer, text));
    }
  }
}

TEST(TokenizerTest, EveryCodePoint) {
  const Tokenizer& tokenizer = MiniLm();
  Encoding alone, before_a;
  for (uint32_t c = 0; c < 0x110000; ++c) {
    if (c >= 0xD800 && c <= 0xDFFF) continue;
    char bytes[5];
    const uint32_t length = EncodeUtf8(c, bytes);
    bytes[length] = 'a';
    ASSERT_TRUE(tokenizer.EncodeInto({bytes, length}, {}, &alone).ok());
    ASSERT_TRUE(tokenizer.EncodeInto({bytes, length + 1}, {}, &before_a).ok());
    for (const Encoding* one : {&alone, &before_a}) {
      for (size_t i = 1; i + 1 < one->ids.size(); ++i) {
        ASSERT_LT(one->offsets[i].begin, one->offsets[i].end) << c;
        ASSERT_LE(one->offsets[i].end, length + 1);
      }
    }
  }
}

TEST(TokenizerTest, RandomTexts) {
  std::minstd_rand generator(20240607);
  const auto random = [&generator] { return static_cast<uint32_t>(generator()); };
  const Tokenizer tokenizers[] = {MiniLm(), MakeTokenizer(SmallSpec("wordpiece_cased"))};
  const uint32_t blocks[][2] = {{0, 0x7F},          {0x20, 0x7E},       {0x61, 0x7A},
                                {0x80, 0x24F},      {0x300, 0x36F},     {0x370, 0x52F},
                                {0x590, 0x6FF},     {0x900, 0xFFF},     {0x1100, 0x11FF},
                                {0x1E00, 0x206F},   {0x3000, 0x30FF},   {0x4E00, 0x9FFF},
                                {0xAC00, 0xD7A3},   {0xF900, 0xFFFF},   {0x1D160, 0x1D17F},
                                {0x1F300, 0x1FAFF}, {0x20000, 0x2FA1F}, {0, 0x10FFFF}};
  for (int round = 0; round < 4000; ++round) {
    std::string text;
    for (size_t i = random() % 40; i > 0; --i) {
      const auto& block = blocks[random() % std::size(blocks)];
      const uint32_t c = block[0] + random() % (block[1] - block[0] + 1);
      if (c >= 0xD800 && c <= 0xDFFF) continue;
      char bytes[4];
      text.append(bytes, EncodeUtf8(c, bytes));
      if (random() % 16 == 0) text += "[MASK]";
    }
    SCOPED_TRACE(::testing::PrintToString(text));
    for (const Tokenizer& tokenizer : tokenizers) {
      ASSERT_NO_FATAL_FAILURE(CheckProperties(tokenizer, text));
    }
  }
}

}  // namespace
}  // namespace attend
