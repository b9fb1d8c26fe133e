#include "engine/text/added_tokens.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "engine/text/tokenizer_data.h"
#include "engine/text/unicode.h"
#include "engine/text/utf8.h"

namespace attend {
namespace {

// The flags of the character before `at`, 0 at the front of the text.
uint8_t FlagsBefore(std::string_view text, size_t at, size_t* begin) {
  if (at == 0) return 0;
  size_t i = at - 1;
  while (!IsUtf8Lead(text[i])) --i;
  *begin = i;
  uint32_t length = 0;
  return FlagsOf(DecodeUtf8(text.data() + i, &length));
}

// The flags of the character at `at`, 0 at the end of the text.
uint8_t FlagsBehind(std::string_view text, size_t at, size_t* end) {
  if (at == text.size()) return 0;
  uint32_t length = 0;
  const uint8_t flags = FlagsOf(DecodeUtf8(text.data() + at, &length));
  *end = at + length;
  return flags;
}

}  // namespace

Result<AddedTokenMatcher> AddedTokenMatcher::Build(std::vector<Pattern> patterns) {
  AddedTokenMatcher matcher;
  std::erase_if(patterns, [](const Pattern& pattern) { return pattern.text.empty(); });
  if (patterns.empty()) return matcher;
  std::stable_sort(patterns.begin(), patterns.end(),
                   [](const Pattern& a, const Pattern& b) { return a.text < b.text; });
  const auto same = [](const Pattern& a, const Pattern& b) { return a.text == b.text; };
  patterns.erase(std::unique(patterns.begin(), patterns.end(), same), patterns.end());
  std::vector<Trie::Entry> entries;
  for (const Pattern& pattern : patterns) {
    entries.push_back({pattern.text, static_cast<int32_t>(matcher.tokens_.size())});
    matcher.tokens_.push_back(pattern.token);
    matcher.starts_[static_cast<uint8_t>(pattern.text[0])] = true;
  }
  if (patterns.front().text[0] == patterns.back().text[0]) {
    matcher.only_start_ = static_cast<uint8_t>(patterns.front().text[0]);
  }
  Result<Trie> trie = Trie::Build(entries);
  if (!trie.ok()) return trie.status();
  matcher.trie_ = *std::move(trie);
  return matcher;
}

size_t AddedTokenMatcher::SkipToStart(std::string_view text, size_t from) const {
  if (only_start_ >= 0) {
    const void* found = from < text.size()
                            ? std::memchr(text.data() + from, only_start_, text.size() - from)
                            : nullptr;
    if (found == nullptr) return text.size();
    return static_cast<size_t>(static_cast<const char*>(found) - text.data());
  }
  while (from < text.size() && !starts_[static_cast<uint8_t>(text[from])]) ++from;
  return from;
}

bool AddedTokenMatcher::Find(std::string_view text, size_t from, Match* match) const {
  if (empty()) return false;
  for (size_t i = from; (i = SkipToStart(text, i)) < text.size(); ++i) {
    uint32_t node = Trie::kRoot;
    int32_t found = -1;
    size_t end = i;
    for (size_t k = i; k < text.size(); ++k) {
      node = trie_.Child(node, static_cast<uint8_t>(text[k]));
      if (node == Trie::kNone) break;
      if (trie_.id(node) >= 0) {
        found = trie_.id(node);
        end = k + 1;
      }
    }
    if (found >= 0) {
      *match = {i, end, tokens_[static_cast<size_t>(found)]};
      return true;
    }
  }
  return false;
}

bool AddedTokenCutter::Accept(const AddedTokenMatcher::Match& match) const {
  if (!parse_special_ && match.token->special) return false;
  if (!match.token->single_word) return true;
  size_t unused = 0;
  return (FlagsBefore(text_, match.begin, &unused) & kWordFlag) == 0 &&
         (FlagsBehind(text_, match.end, &unused) & kWordFlag) == 0;
}

bool AddedTokenCutter::Next(Cut* cut) {
  if (waiting_.token != nullptr) {
    *cut = std::exchange(waiting_, {});
    return true;
  }
  AddedTokenMatcher::Match match;
  while (matcher_.Find(text_, search_, &match)) {
    search_ = match.end;
    if (!Accept(match)) continue;
    size_t begin = match.begin;
    size_t end = match.end;
    if (match.token->lstrip) {
      // Not into what the token before has taken already.
      for (size_t next = begin;
           begin > done_ && (FlagsBefore(text_, begin, &next) & kSpaceFlag) != 0; begin = next) {
      }
    }
    if (match.token->rstrip) {
      for (size_t next = end; (FlagsBehind(text_, end, &next) & kSpaceFlag) != 0; end = next) {
      }
    }
    const size_t plain = std::exchange(done_, end);
    if (plain < begin) {
      waiting_ = {begin, end, match.token};
      *cut = {plain, begin, nullptr};
    } else {
      *cut = {begin, end, match.token};
    }
    return true;
  }
  search_ = text_.size();
  if (done_ >= text_.size()) return false;
  *cut = {std::exchange(done_, text_.size()), text_.size(), nullptr};
  return true;
}

}  // namespace attend
