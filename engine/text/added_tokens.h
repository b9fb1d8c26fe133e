// Cuts added tokens ("[MASK]") out of a text before anything else is done to it.
#ifndef ATTEND_ENGINE_TEXT_ADDED_TOKENS_H_
#define ATTEND_ENGINE_TEXT_ADDED_TOKENS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "attend/status.h"
#include "engine/text/trie.h"

namespace attend {

struct AddedToken;

// Finds the leftmost of a set of tokens, and of those that begin there the longest.
class AddedTokenMatcher {
 public:
  struct Pattern {
    std::string text;         // as it is to be found; patterns with an empty one are left out
    const AddedToken* token;  // of two patterns with the same text the first counts
  };
  struct Match {
    size_t begin = 0, end = 0;
    const AddedToken* token = nullptr;
  };

  AddedTokenMatcher() = default;
  // Errors: as Trie::Build.
  static Result<AddedTokenMatcher> Build(std::vector<Pattern> patterns);

  bool empty() const { return tokens_.empty(); }
  // The first match that begins at `from` or behind it; false: none.
  // Cost: linear in the text up to the match, times the length of the longest token at worst.
  bool Find(std::string_view text, size_t from, Match* match) const;

 private:
  // The next byte with which a token may begin, or the text's size.
  size_t SkipToStart(std::string_view text, size_t from) const;

  Trie trie_;
  std::vector<const AddedToken*> tokens_;
  std::array<bool, 256> starts_{};
  int only_start_ = -1;  // the byte, if all tokens begin with the same
};

// Walks over a text, piece by piece: plain text and added tokens.
class AddedTokenCutter {
 public:
  struct Cut {
    size_t begin = 0, end = 0;
    const AddedToken* token = nullptr;  // nullptr: plain text
  };

  // `parse_special` false: special tokens are plain text. All arguments must outlive the cutter.
  AddedTokenCutter(const AddedTokenMatcher& matcher, std::string_view text, bool parse_special)
      : matcher_(matcher), text_(text), parse_special_(parse_special) {}

  // The next piece; false: there is none. Plain pieces are never empty.
  bool Next(Cut* cut);

 private:
  bool Accept(const AddedTokenMatcher::Match& match) const;

  const AddedTokenMatcher& matcher_;
  std::string_view text_;
  bool parse_special_;
  size_t done_ = 0;    // all before it has been handed out
  size_t search_ = 0;  // where to look on
  Cut waiting_;        // a token behind the plain text that was handed out
};

}  // namespace attend

#endif  // ATTEND_ENGINE_TEXT_ADDED_TOKENS_H_
