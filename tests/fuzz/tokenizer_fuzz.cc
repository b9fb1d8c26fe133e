// The tokenizer on any bytes: as a serialised form, and as a text for a small tokenizer.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string_view>

#include "attend/text.h"
#include "engine/text/tokenizer_data.h"
#include "engine/text/utf8.h"

namespace attend {
namespace {

// A failure that the fuzzer sees.
void Require(bool condition) {
  if (!condition) std::abort();
}

const Tokenizer& Small() {
  static const Tokenizer tokenizer = [] {
    TokenizerSpec spec;
    spec.vocabulary = {"[UNK]", "[CLS]", "[SEP]", "a", "##a", "b", "##bc", "中", "<x>", "é"};
    spec.added_tokens = {
        {.content = "[CLS]", .id = 1, .special = true},
        {.content = "<x>", .id = 8, .lstrip = true, .rstrip = true, .in_model = false},
        {.content = "é", .id = 9, .normalized = true, .single_word = true}};
    spec.single = {
        {PartKind::kToken, 1, 0}, {PartKind::kSequenceA, 0, 0}, {PartKind::kToken, 2, 0}};
    return *Tokenizer::FromBytes(SerializeTokenizer(spec));
  }();
  return tokenizer;
}

void CheckText(const Tokenizer& tokenizer, std::string_view text) {
  const Result<Encoding> encoding = tokenizer.Encode(text);
  Require(encoding.ok() == (FindInvalidUtf8(text) == kValidUtf8));
  if (!encoding.ok()) return;
  for (size_t i = 0; i < encoding->ids.size(); ++i) {
    Require(encoding->ids[i] >= 0 && encoding->ids[i] < tokenizer.vocab_size());
    const auto [begin, end] = encoding->offsets[i];
    Require(begin <= end && end <= text.size());
    Require(begin == text.size() || IsUtf8Lead(text[begin]));
  }
  Require(tokenizer.Decode(encoding->ids).ok());
  const Result<Encoding> pair =
      tokenizer.EncodePair(text, text, {.offset_unit = OffsetUnit::kUtf16, .max_tokens = 130});
  Require(!pair.ok() || pair->ids.size() <= 130);
}

}  // namespace
}  // namespace attend

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::span bytes(reinterpret_cast<const std::byte*>(data), size);
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  attend::CheckText(attend::Small(), text);
  const auto tokenizer = attend::ParseTokenizer(bytes);
  if (!tokenizer.ok()) return 0;
  // What was read is all that the bytes say.
  const auto again = attend::SerializeTokenizer((*tokenizer)->spec);
  attend::Require(std::equal(again.begin(), again.end(), bytes.begin(), bytes.end()));
  attend::CheckText(attend::Tokenizer(*tokenizer), "ab <x> É [CLS]中\u0301 a");
  return 0;
}
