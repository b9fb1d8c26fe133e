// The serialised tokenizer: what is written is read back, and nothing else is believed.
#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "tests/tokenizer_testing.h"

namespace attend {
namespace {

using Bytes = std::vector<std::byte>;

// Small, but with everything that the form can hold.
TokenizerSpec TinySpec() {
  TokenizerSpec spec;
  spec.vocabulary = {"[UNK]", "[CLS]", "[SEP]", "a", "b", "##a", "##b", "é", std::string("n\0l", 3),
                     "<x>",   ""};
  spec.added_tokens = {
      {.content = "[UNK]", .id = 0, .special = true},
      {.content = "[CLS]", .id = 1, .special = true},
      {.content = "[SEP]", .id = 2, .special = true},
      {.content = "<x>", .id = 9, .normalized = true, .lstrip = true, .in_model = false}};
  spec.single = {{PartKind::kToken, 1, 0}, {PartKind::kSequenceA, 0, 0}, {PartKind::kToken, 2, 0}};
  spec.pair = spec.single;
  spec.pair.push_back({PartKind::kSequenceB, 0, 1});
  spec.truncation = 128;
  return spec;
}

constexpr size_t kFields = 8, kHeaderBytes = 80;

void Put(size_t at, uint32_t value, Bytes* bytes) {
  for (size_t i = 0; i < 4; ++i) (*bytes)[at + i] = static_cast<std::byte>(value >> 8 * i & 255);
}

TEST(TokenizerBlobTest, RoundTrip) {
  const TokenizerSpec spec = TinySpec();
  const Bytes bytes = SerializeTokenizer(spec);
  EXPECT_EQ(bytes, SerializeTokenizer(spec));
  const auto data = ParseTokenizer(bytes);
  ASSERT_TRUE(data.ok()) << data.status().ToString();
  EXPECT_EQ(SerializeTokenizer((*data)->spec), bytes);
  EXPECT_EQ((*data)->spec.vocabulary, spec.vocabulary);
  EXPECT_EQ((*data)->spec.truncation, 128);
  EXPECT_TRUE((*data)->spec.added_tokens[3].lstrip);
  EXPECT_EQ((*data)->spec.added_tokens[3].content, "<x>");
}

TEST(TokenizerBlobTest, EveryTruncationIsAnError) {
  Bytes bytes = SerializeTokenizer(TinySpec());
  for (size_t size = 0; size < bytes.size(); ++size) {
    // A copy of its own, so that a sanitizer sees a byte too far.
    const Bytes part(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size));
    EXPECT_EQ(ParseTokenizer(part).status().code(), ErrorCode::kCorrupt) << size;
  }
  bytes.push_back(std::byte{0});
  EXPECT_EQ(ParseTokenizer(bytes).status().code(), ErrorCode::kCorrupt);
}

TEST(TokenizerBlobTest, EveryBitFlipIsAnErrorOrAnotherTokenizer) {
  const Bytes bytes = SerializeTokenizer(TinySpec());
  for (size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    Bytes flipped = bytes;
    flipped[bit / 8] ^= static_cast<std::byte>(1 << bit % 8);
    const auto data = ParseTokenizer(flipped);
    if (!data.ok()) continue;
    // One that is taken means what its bytes say, and works.
    EXPECT_EQ(SerializeTokenizer((*data)->spec), flipped) << bit;
    const Tokenizer tokenizer(*data);
    EXPECT_TRUE(tokenizer.EncodePair("ab <x> É[CLS]", "a\u0301").ok());
  }
}

TEST(TokenizerBlobTest, RandomDamage) {
  const Bytes bytes = SerializeTokenizer(TinySpec());
  std::minstd_rand random(7);
  for (int round = 0; round < 20000; ++round) {
    Bytes damaged = bytes;
    for (size_t i = random() % 4 + 1; i > 0; --i) {
      const size_t at = random() % (damaged.size() / 4) * 4;
      const uint32_t values[] = {
          0, 1, 2, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, static_cast<uint32_t>(random())};
      if (at + 4 <= damaged.size()) Put(at, values[random() % std::size(values)], &damaged);
    }
    const auto data = ParseTokenizer(damaged);
    if (!data.ok()) continue;
    EXPECT_TRUE(Tokenizer(*data).Encode("ab <x> É[CLS]").ok());
  }
}

struct BadField {
  const char* name;
  size_t field;
  uint32_t value;
  ErrorCode code;
};

class BadFieldTest : public ::testing::TestWithParam<BadField> {};

TEST_P(BadFieldTest, IsRefused) {
  Bytes bytes = SerializeTokenizer(TinySpec());
  Put(kFields + 4 * GetParam().field, GetParam().value, &bytes);
  const auto data = ParseTokenizer(bytes);
  ASSERT_FALSE(data.ok());
  EXPECT_EQ(data.status().code(), GetParam().code) << data.status().ToString();
  EXPECT_EQ(data.status().where().rfind("tokenizer", 0), 0u);
}

INSTANTIATE_TEST_SUITE_P(
    All, BadFieldTest,
    ::testing::Values(BadField{"version", 0, 2, ErrorCode::kUnsupported},
                      BadField{"kind", 1, 9, ErrorCode::kUnsupported},
                      BadField{"normaliser", 2, 2, ErrorCode::kUnsupported},
                      BadField{"normaliser_flags", 3, 16, ErrorCode::kCorrupt},
                      BadField{"pre_tokeniser", 4, 0, ErrorCode::kUnsupported},
                      BadField{"decoder", 5, 2, ErrorCode::kUnsupported},
                      BadField{"decoder_flags", 6, 2, ErrorCode::kCorrupt},
                      BadField{"unk_id", 7, 11, ErrorCode::kCorrupt},
                      BadField{"max_chars_0", 8, 0, ErrorCode::kCorrupt},
                      BadField{"max_chars_large", 8, 0x80000000, ErrorCode::kCorrupt},
                      BadField{"truncation", 9, 0xFFFFFFFF, ErrorCode::kCorrupt},
                      BadField{"entries_large", 10, 0xFFFFFFFF, ErrorCode::kCorrupt},
                      BadField{"entries_more", 10, 12, ErrorCode::kCorrupt},
                      BadField{"entries_none", 10, 0, ErrorCode::kCorrupt},
                      BadField{"added", 11, 65537, ErrorCode::kCorrupt},
                      BadField{"single", 12, 65, ErrorCode::kCorrupt},
                      BadField{"pair", 13, 65, ErrorCode::kCorrupt},
                      BadField{"prefix", 14, 4097, ErrorCode::kCorrupt},
                      BadField{"decoder_prefix", 15, 4097, ErrorCode::kCorrupt},
                      BadField{"entry_bytes", 16, 0x4000001, ErrorCode::kCorrupt},
                      BadField{"reserved", 17, 1, ErrorCode::kCorrupt}),
    [](const auto& test) { return std::string(test.param.name); });

// Specs that are written as they are and must not be taken.
void ExpectBad(const char* name, ErrorCode code, void (*change)(TokenizerSpec*)) {
  TokenizerSpec spec = TinySpec();
  change(&spec);
  const auto data = ParseTokenizer(SerializeTokenizer(spec));
  ASSERT_FALSE(data.ok()) << name;
  EXPECT_EQ(data.status().code(), code) << name << ": " << data.status().ToString();
}

TEST(TokenizerBlobTest, BadSpecsAreRefused) {
  ExpectBad("an entry twice", ErrorCode::kCorrupt, [](auto* s) { s->vocabulary[4] = "a"; });
  ExpectBad("not UTF-8", ErrorCode::kCorrupt, [](auto* s) { s->vocabulary[4] = "\xFF"; });
  ExpectBad("a long entry", ErrorCode::kCapacity,
            [](auto* s) { s->vocabulary[4] = std::string(kMaxEntryBytes + 1, 'x'); });
  ExpectBad("a prefix not UTF-8", ErrorCode::kCorrupt,
            [](auto* s) { s->continuing_prefix = "\xC3"; });
  ExpectBad("an added id too large", ErrorCode::kCorrupt,
            [](auto* s) { s->added_tokens[0].id = 11; });
  ExpectBad("an added id twice", ErrorCode::kCorrupt, [](auto* s) { s->added_tokens[1].id = 0; });
  ExpectBad("an empty added token", ErrorCode::kCorrupt,
            [](auto* s) { s->added_tokens[0].id = 10; });
  ExpectBad("a template's id too large", ErrorCode::kCorrupt,
            [](auto* s) { s->single[0].id = 11; });
  ExpectBad("a type id too large", ErrorCode::kCorrupt,
            [](auto* s) { s->single[0].type_id = 65536; });
  ExpectBad("a template without a text", ErrorCode::kUnsupported,
            [](auto* s) { s->single.erase(s->single.begin() + 1); });
  ExpectBad("a template with two", ErrorCode::kUnsupported, [](auto* s) {
    s->single.push_back({PartKind::kSequenceA, 0, 0});
  });
  ExpectBad("a pair in the other order", ErrorCode::kUnsupported,
            [](auto* s) { std::swap(s->pair[1], s->pair[3]); });
}

TEST(TokenizerBlobTest, OrderProvesThatNothingIsTwice) {
  Bytes bytes = SerializeTokenizer(TinySpec());
  const size_t order = kHeaderBytes + 4 * TinySpec().vocabulary.size();
  Bytes swapped = bytes;
  std::swap_ranges(swapped.begin() + static_cast<std::ptrdiff_t>(order),
                   swapped.begin() + static_cast<std::ptrdiff_t>(order) + 4,
                   swapped.begin() + static_cast<std::ptrdiff_t>(order) + 4);
  EXPECT_EQ(ParseTokenizer(swapped).status().code(), ErrorCode::kCorrupt);
  Put(order, 11, &bytes);
  EXPECT_EQ(ParseTokenizer(bytes).status().where(), "tokenizer: order");
}

TEST(TokenizerBlobTest, OtherFilesAreNotTokenizers) {
  for (const std::string text : {"", "{", "version https://git-lfs.github.com/spec/v1"}) {
    Bytes bytes(200);
    std::memcpy(bytes.data(), text.data(), text.size());
    EXPECT_EQ(ParseTokenizer(bytes).status().code(), ErrorCode::kCorrupt);
  }
}

TEST(TokenizerBlobTest, LargeVocabulary) {
  TokenizerSpec spec = TinySpec();
  for (int i = 0; i < 200000; ++i) spec.vocabulary.push_back("entry" + std::to_string(i * 7919));
  const auto data = ParseTokenizer(SerializeTokenizer(spec));
  ASSERT_TRUE(data.ok()) << data.status().ToString();
  for (size_t id = 11; id < spec.vocabulary.size(); id += 97) {
    ASSERT_EQ((*data)->model.Find(spec.vocabulary[id]), static_cast<int32_t>(id));
  }
  EXPECT_EQ((*data)->model.Find("entry"), -1);
}

}  // namespace
}  // namespace attend
