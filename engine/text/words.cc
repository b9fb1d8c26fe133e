// Cutting text into words by rules. A text is first split at white space into chunks. A chunk is
// folded to one byte a character, so that the rules, which only ever look at ASCII, need neither
// decode UTF-8 nor know the many kinds of quotes and dashes. The rules then eat it from the left.
//
// Every rule that looks ahead either eats what it has looked at, looks at no more than a fixed
// number of characters, or remembers how far it has looked in vain: that keeps the time linear.
#include "engine/text/words.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <string>

#include "engine/text/words_tables.h"

namespace attend {
namespace {

using std::size_t;
using std::string_view;

template <typename Table>
constexpr bool IsSorted(const Table& table) {
  return std::is_sorted(std::begin(table), std::end(table));
}
static_assert(IsSorted(kAbbreviations) && IsSorted(kCapitalAbbreviations) && IsSorted(kPrefixes));
static_assert(IsSorted(kAfterIts) && IsSorted(kUnits) && IsSorted(kClitics) && IsSorted(kElided));
static_assert(IsSorted(kNameEnds) && IsSorted(kNewsgroups));
static_assert(std::is_sorted(std::begin(kSplits), std::end(kSplits),
                             [](const Split& a, const Split& b) { return a.word < b.word; }));
static_assert(std::is_sorted(std::begin(kFoldRanges), std::end(kFoldRanges),
                             [](const FoldRange& a, const FoldRange& b) {
                               return a.last < b.first;
                             }));

template <size_t kCount>
bool Contains(const string_view (&table)[kCount], string_view word) {
  return std::binary_search(std::begin(table), std::end(table), word);
}

bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsUpper(char c) { return c >= 'A' && c <= 'Z'; }
bool IsLetter(char c) { return IsUpper(c) || (c >= 'a' && c <= 'z') || c == kLetter; }
bool IsAlnum(char c) { return IsDigit(c) || IsLetter(c); }
bool IsStop(char c) { return c == '.' || c == '!' || c == '?' || c == kDots; }
bool IsOneOf(char c, string_view set) { return set.find(c) != string_view::npos; }

char FoldAscii(char c) {
  if (c == ' ' || (c >= '\t' && c <= '\r')) return kSpace;
  if (c == '`') return '\'';
  return c;
}

char FoldWide(uint32_t code) {
  const auto range = std::upper_bound(std::begin(kFoldRanges), std::end(kFoldRanges), code,
                                      [](uint32_t c, const FoldRange& r) { return c < r.first; });
  if (range == std::begin(kFoldRanges)) return kLetter;
  return code <= std::prev(range)->last ? std::prev(range)->c : kLetter;
}

// The character at text[i]: what it is folded to, and its bytes.
struct Folded {
  char c;
  uint32_t length;
};

Folded FoldAt(string_view text, size_t i) {
  const auto byte = [&](size_t k) { return static_cast<uint32_t>(static_cast<uint8_t>(text[k])); };
  const uint32_t lead = byte(i);
  if (lead < 0x80) return {FoldAscii(text[i]), 1};
  const uint32_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || text.size() - i < length) return {kLetter, 1};
  uint32_t code = lead & (0x7Fu >> length);
  for (uint32_t k = 1; k < length; ++k) {
    if ((byte(i + k) & 0xC0) != 0x80) return {kLetter, 1};
    code = code << 6 | (byte(i + k) & 0x3F);
  }
  const bool overlong = (length == 3 && code < 0x800) || (length == 4 && code < 0x10000);
  const bool surrogate = code >= 0xD800 && code <= 0xDFFF;
  if (overlong || surrogate || code > 0x10FFFF) return {kLetter, 1};
  return {FoldWide(code), length};
}

// Whether "first/second" is a day rather than a fraction.
bool IsDate(string_view first, string_view second) {
  if (first.size() > 2 || second.size() > 2) return false;
  const auto value = [](string_view digits) {
    int number = 0;
    for (const char c : digits) number = 10 * number + (c - '0');
    return number;
  };
  const int month = value(first);
  const int day = value(second);
  const bool fraction = month < day && day <= 5;
  return month >= 1 && month <= 12 && day >= 1 && day <= 31 && !fraction;
}

// Cuts one chunk after another.
class Cutter {
 public:
  // Room for a chunk of `longest` characters is set aside at once: a long chunk then need not be
  // moved while it grows, and room that is not used costs next to nothing.
  Cutter(size_t longest, std::vector<WordSpan>* words) : words_(words) {
    chunk_.reserve(longest);
    lower_.reserve(longest);
    at_.reserve(longest + 1);
  }

  // Appends a character of the chunk; it is at byte `at` of the text.
  void Add(char c, uint32_t at) {
    // A joiner is not a character of its own: it lengthens the one before it.
    if (c == kJoiner && !chunk_.empty()) return;
    chunk_.push_back(c);
    lower_.push_back(IsUpper(c) ? static_cast<char>(c - 'A' + 'a') : c);
    at_.push_back(at);
  }

  bool empty() const { return chunk_.empty(); }

  // Cuts the chunk, which ends before byte `end` of the text, and forgets it. `rest` is what comes
  // after it and the white space behind it, `last` whether the paragraph ends here.
  void Cut(uint32_t end, string_view rest, bool last);

 private:
  char At(size_t i) const { return i < chunk_.size() ? chunk_[i] : kSpace; }
  string_view Lower(size_t begin, size_t end) const {
    return string_view(lower_).substr(begin, end - begin);
  }
  // The end of the characters from i on that satisfy `is`.
  template <typename Is>
  size_t SpanEnd(size_t i, Is is) const {
    while (i < chunk_.size() && is(chunk_[i])) ++i;
    return i;
  }
  size_t AlnumEnd(size_t i) const { return SpanEnd(i, IsAlnum); }

  // Each of these emits the words of a stretch of the chunk from i on and gives its end.
  size_t Emit(size_t begin, size_t end);
  size_t CutMarks(size_t i);
  size_t CutAlnum(size_t i);
  size_t CutWord(size_t begin, size_t end);
  size_t CutNumber(size_t begin, size_t end);

  // Each of these gives the end of what it looks for at i, or i if it is not there.
  size_t UrlEnd(size_t i) const;
  size_t NameEnd(size_t i);
  size_t DottedEnd(size_t i) const;
  size_t NumberEnd(size_t i) const;
  size_t SmileyEnd(size_t i) const;
  size_t ElidedEnd(size_t i) const;

  size_t WordEnd(size_t i) const;
  size_t LongerWordEnd(size_t begin, size_t end) const;
  size_t ApostropheEnd(size_t begin, size_t end, size_t next) const;

  bool IsDrawing() const;
  bool ClosesText(size_t i) const;
  bool KeepsPeriod(size_t begin, size_t end) const;
  std::string NextWord() const;

  std::vector<WordSpan>* words_;
  std::string chunk_;         // Folded.
  std::string lower_;         // The same in lower case.
  std::vector<uint32_t> at_;  // The first byte of each character, then the end of the chunk.
  string_view rest_;
  bool last_ = false;
  size_t no_name_before_ = 0;  // NameEnd has looked this far in vain.
};

// Cutting chunks.

void Cutter::Cut(uint32_t end, string_view rest, bool last) {
  at_.push_back(end);
  rest_ = rest;
  last_ = last;
  no_name_before_ = 0;
  size_t i = IsDrawing() ? Emit(0, chunk_.size()) : 0;
  while (i < chunk_.size()) i = IsAlnum(chunk_[i]) ? CutAlnum(i) : CutMarks(i);
  chunk_.clear();
  lower_.clear();
  at_.clear();
}

size_t Cutter::Emit(size_t begin, size_t end) {
  if (begin < end) words_->push_back({at_[begin], at_[end]});
  return end;
}

// Whether the whole chunk is a rule or an arrow drawn with marks, as "---->" or "*~*~*".
bool Cutter::IsDrawing() const {
  if (chunk_.size() < 2 || chunk_ == "<>") return false;
  return SpanEnd(0, [](char c) { return IsOneOf(c, "-=|+*~<>{}_#"); }) == chunk_.size();
}

// Whether from i on there is nothing in the text but quotes being closed.
bool Cutter::ClosesText(size_t i) const {
  if (!last_) return false;
  size_t k = i;
  while (k < chunk_.size() && k < i + 4 && IsOneOf(chunk_[k], "\"'")) ++k;
  return k == chunk_.size();
}

size_t Cutter::CutMarks(size_t i) {
  const char c = chunk_[i];
  if (const size_t end = SmileyEnd(i); end > i) return Emit(i, end);
  if (c == '\'') {
    if (const size_t end = ElidedEnd(i); end > i) return Emit(i, end);
  }
  const bool starts = i == 0 || !IsAlnum(chunk_[i - 1]);
  if (starts && (c == '.' || (c == '+' && i == 0)) && IsDigit(At(i + 1))) {
    return Emit(i, NumberEnd(i + 1));
  }
  // ".doc" and "@name".
  if (starts && c == '.' && Contains(kNameEnds, Lower(i + 1, AlnumEnd(i + 1)))) {
    return Emit(i, AlnumEnd(i + 1));
  }
  if (c == '@' && i == 0 && IsLetter(At(1))) return Emit(i, WordEnd(1));
  if (IsStop(c)) return Emit(i, SpanEnd(i, IsStop));
  if (c == kMark || IsOneOf(c, "()[]%")) return Emit(i, i + 1);
  return Emit(i, SpanEnd(i, [c](char d) { return c == d; }));
}

size_t Cutter::CutAlnum(size_t i) {
  if (const size_t end = UrlEnd(i); end > i) return Emit(i, end);
  if (const size_t end = NameEnd(i); end > i) return Emit(i, end);
  if (const size_t end = DottedEnd(i); end > i) return Emit(i, end);
  if (const size_t end = SmileyEnd(i); end > i) return Emit(i, end);
  if (IsDigit(chunk_[i])) return CutNumber(i, NumberEnd(i));
  return CutWord(i, WordEnd(i));
}

size_t Cutter::CutNumber(size_t begin, size_t end) {
  if (At(end) == '\'' && At(end + 1) == 's' && !IsAlnum(At(end + 2))) return Emit(begin, end + 2);
  const size_t letters = AlnumEnd(end);
  const string_view unit = Lower(end, letters);
  const bool money = begin > 0 && chunk_[begin - 1] == '$';
  // Three letters are more than an ending, as that of "5th", is long: "20minutes" is two words.
  const bool word = unit.size() > 2 && std::all_of(unit.begin(), unit.end(), IsLetter);
  if (unit.empty() || word || Contains(kUnits, unit) ||
      (unit.size() == 1 && (At(end) == 'm' || (money && IsOneOf(unit[0], "bmt")))) ||
      DottedEnd(end) > end) {
    return Emit(begin, end);
  }
  return Emit(begin, WordEnd(end));
}

size_t Cutter::CutWord(size_t begin, size_t end) {
  const string_view word = Lower(begin, end);
  if (word.size() > 3 && word.ends_with("n't")) {
    Emit(begin, end - 3);
    return Emit(end - 3, end);
  }
  if (word == "its" && end == chunk_.size() && Contains(kAfterIts, NextWord())) {
    Emit(begin, begin + 2);
    return Emit(begin + 2, end);
  }
  const auto split = std::lower_bound(std::begin(kSplits), std::end(kSplits), word,
                                      [](const Split& s, string_view w) { return s.word < w; });
  if (split == std::end(kSplits) || split->word != word) return Emit(begin, end);
  size_t from = begin;
  for (const size_t at : split->at) {
    if (at > 0) from = Emit(from, begin + at);
  }
  return Emit(from, end);
}

// Looking ahead.

// The end of the word at i, a letter or the letters after a number.
size_t Cutter::WordEnd(size_t i) const {
  size_t end = AlnumEnd(i);
  while (end < chunk_.size()) {
    const size_t longer = LongerWordEnd(i, end);
    if (longer <= end) return end;
    end = longer;
    if (!IsAlnum(chunk_[end - 1])) return end;
  }
  return end;
}

// How far a mark at `end` continues the word before it; `end` if it does not.
size_t Cutter::LongerWordEnd(size_t begin, size_t end) const {
  const string_view word = Lower(begin, end);
  const size_t next = AlnumEnd(end + 1);
  const size_t added = next - end - 1;
  switch (chunk_[end]) {
    case '_':
      return added > 0 ? next : end;
    case '*':
      return IsLetter(At(end + 1)) ? next : end;
    case '$':
      if (IsLetter(At(end + 1))) return next;
      return IsDigit(At(end + 1)) && IsUpper(chunk_[end - 1]) ? end + 1 : end;
    case '&':
      return end - begin <= 3 && added > 0 && added <= 3 ? next : end;
    case '-':
      if (added == 0 || (begin > 0 && chunk_[begin - 1] == '-')) return end;
      return Contains(kPrefixes, word) && (word != "e" || !IsUpper(chunk_[end + 1])) ? next : end;
    case '/':
      if (word == "w") {  // "w/o", "w/out", "w/"
        return (Lower(end + 1, next) == "o" || Lower(end + 1, next) == "out") ? next : end + 1;
      }
      if (At(next) == '/' || (begin > 0 && chunk_[begin - 1] == '/')) return end;
      return end - begin == 1 && added == 1 && IsLetter(chunk_[end + 1]) ? next : end;
    case '!':
      return word == "yahoo" ? end + 1 : end;
    case '\'':
      return ApostropheEnd(begin, end, next);
    case '.':
      return KeepsPeriod(begin, end) ? end + 1 : end;
    default:
      return end;
  }
}

// How far the apostrophe at `end` and the letters up to `next` continue the word before them.
size_t Cutter::ApostropheEnd(size_t begin, size_t end, size_t next) const {
  const string_view after = Lower(end + 1, next);
  if (after.empty()) {
    // "goin'", but not where a quote ends.
    return begin == 0 && end - begin > 3 && Lower(end - 2, end) == "in" ? end + 1 : end;
  }
  if (after == "t" && lower_[end - 1] == 'n') return next;    // "don't": CutWord knows what to do.
  if (after == "s" && IsDigit(chunk_[end - 1])) return next;  // "AK47's"
  return Contains(kClitics, after) || IsDigit(chunk_[end + 1]) ? end : next;
}

// Whether the period at `end` belongs to the word before it.
bool Cutter::KeepsPeriod(size_t begin, size_t end) const {
  const string_view word = Lower(begin, end);
  const bool capital = IsUpper(chunk_[begin]);
  // "etc..." ends in dots, but "etc.." ends a sentence.
  if (IsStop(At(end + 1)) && (IsStop(At(end + 2)) || word.size() == 1)) return false;
  if (ClosesText(end + 1)) return false;
  if (word == "etc" && !rest_.empty() && IsUpper(rest_[0])) return false;
  if (word.size() == 1 && capital) return word != "i" || IsUpper(At(end + 1));
  if (word == "no") return !rest_.empty() && (IsDigit(rest_[0]) || rest_[0] == '#');
  return Contains(kAbbreviations, word) || (capital && Contains(kCapitalAbbreviations, word));
}

// The word after the chunk in lower case, if it is a short one in ASCII.
std::string Cutter::NextWord() const {
  constexpr size_t kLongest = 10;
  std::string word;
  for (size_t i = 0; i < rest_.size() && i < kLongest && IsLetter(rest_[i]); ++i) {
    word.push_back(IsUpper(rest_[i]) ? static_cast<char>(rest_[i] - 'A' + 'a') : rest_[i]);
  }
  return word;
}

size_t Cutter::UrlEnd(size_t i) const {
  if (!IsOneOf(lower_[i], "fhmw")) return i;
  const string_view rest = string_view(lower_).substr(i);
  for (const string_view scheme : kSchemes) {
    if (!rest.starts_with(scheme)) continue;
    size_t end = SpanEnd(i, [](char c) { return !IsOneOf(c, "<>\"|") && c != kDash; });
    // The marks at its end are those of the sentence.
    while (end > i && !IsAlnum(chunk_[end - 1]) && !IsOneOf(chunk_[end - 1], "/#=&-_~%")) --end;
    if (end > i + scheme.size()) return end;
  }
  return i;
}

// The end of an e-mail address, or the name of a host, file or newsgroup.
size_t Cutter::NameEnd(size_t i) {
  constexpr size_t kLongest = 256;
  if (i < no_name_before_) return i;
  const auto in_name = [](char c) { return IsAlnum(c) || IsOneOf(c, ".-_@+%&#~/:?=!$"); };
  size_t end = i;
  size_t at = 0;     // The first "@".
  size_t slash = 0;  // The first of "/:?".
  size_t part = i;   // Behind the last of "/:?" so far.
  for (; end < chunk_.size() && end - i < kLongest && in_name(chunk_[end]); ++end) {
    const char c = chunk_[end];
    if (c == '@' && at == 0 && IsAlnum(At(end + 1))) {
      at = end;
      if (slash > 0) {  // "Mail:bob@x.com": the address is behind the colon.
        no_name_before_ = part;
        return i;
      }
    }
    if (!IsOneOf(c, "/:?")) continue;
    if (slash == 0) slash = end;
    part = end + 1;
  }
  no_name_before_ = end;
  while (!IsAlnum(chunk_[end - 1])) --end;
  if (at > 0) return slash > 0 ? slash : end;
  const size_t host = slash > 0 ? slash : end;
  const string_view name = Lower(i, host);
  const size_t dot = name.rfind('.');
  if (dot == string_view::npos || dot == 0) return i;
  if (Contains(kNewsgroups, name.substr(0, name.find('.')))) return host;
  if (!Contains(kNameEnds, name.substr(dot + 1)) || name[dot - 1] == '.') return i;
  return At(host) == '/' || At(host) == '?' ? end : host;
}

// The end of "U.S.", "a.k.a" and the like.
size_t Cutter::DottedEnd(size_t i) const {
  size_t end = i;
  while (IsLetter(At(end)) && At(end + 1) == '.') end += 2;
  const size_t letters = (end - i) / 2;
  if (letters > 0 && IsLetter(At(end)) && !IsAlnum(At(end + 1))) return end + 1;
  if (letters < 2) return i;
  return ClosesText(end) ? end - 1 : end;
}

// The end of the number at i, a digit, with what joins its digits: "7:30", "1,000.50", "9/11/2001",
// "713-853-3989"; but "5-10" and "1/2" are cut.
size_t Cutter::NumberEnd(size_t i) const {
  constexpr size_t kMostGroups = 6;
  size_t ends[kMostGroups + 1];
  size_t sizes[kMostGroups + 1];
  size_t groups = 0;
  size_t slashes = 0;
  size_t from = i;
  while (groups <= kMostGroups) {
    size_t end = SpanEnd(from, IsDigit);
    while (IsOneOf(At(end), ".,:") && IsDigit(At(end + 1))) end = SpanEnd(end + 1, IsDigit);
    ends[groups] = end;
    sizes[groups++] = end - from;
    if (!IsOneOf(At(end), "-/") || !IsDigit(At(end + 1))) break;
    slashes += At(end) == '/' ? 1 : 0;
    from = end + 1;
  }
  const size_t last = groups - 1;
  // What was cut before stays cut: "1-7-0-1" must not end in "7-0-1".
  if (i > 1 && IsOneOf(chunk_[i - 1], "-/") && IsDigit(chunk_[i - 2])) return ends[0];
  bool joined = false;
  if (groups == 2 && slashes == 1) {
    joined = IsDate(Lower(i, ends[0]), Lower(ends[0] + 1, ends[1]));
  } else if (groups == 2) {
    joined = sizes[1] == 4 && sizes[0] != 4;
  } else if (groups == 3) {
    joined = true;
  } else if (groups <= kMostGroups) {
    joined = sizes[last] >= 4;
  }
  return joined ? ends[last] : ends[0];
}

size_t Cutter::SmileyEnd(size_t i) const {
  if (!IsOneOf(chunk_[i], "(/8:;<=>DX^x")) return i;
  size_t end = i;
  const string_view rest = string_view(chunk_).substr(i);
  for (const string_view smiley : kSmileys) {
    if (smiley[0] != chunk_[i] || !rest.starts_with(smiley)) continue;
    end = std::max(end, i + smiley.size());
  }
  if (end == i) return i;
  const char mouth = chunk_[end - 1];
  if (IsOneOf(mouth, "()")) end = SpanEnd(end, [mouth](char c) { return c == mouth; });
  const bool clear = end == chunk_.size() || IsStop(chunk_[end]) || chunk_[end] == ',';
  // In the middle of a chunk only those that are hardly ever anything else.
  const bool sure = i == 0 || (IsOneOf(chunk_[i], ":;=") && IsOneOf(mouth, "()"));
  return clear && sure ? end : i;
}

// The end of the word that begins with the apostrophe at i: "'s" after a word, "'em", "'72".
size_t Cutter::ElidedEnd(size_t i) const {
  const size_t end = AlnumEnd(i + 1);
  const string_view word = Lower(i + 1, end);
  if (i > 0 && Contains(kClitics, word)) return end;
  if (At(end) == '\'' || (i > 0 && IsAlnum(chunk_[i - 1]))) return i;
  const bool years = word.size() >= 2 && IsDigit(word[0]) && IsDigit(word[1]) &&
                     (word.size() == 2 || (word.size() == 3 && word[2] == 's'));
  return years || Contains(kElided, word) ? end : i;
}

}  // namespace

void CutWords(string_view text, std::vector<WordSpan>* words) {
  Cutter cutter(std::min(text.size(), size_t{1} << 24), words);
  size_t i = 0;
  while (i < text.size()) {
    const Folded folded = FoldAt(text, i);
    if (folded.c != kSpace) {
      cutter.Add(folded.c, static_cast<uint32_t>(i));
      i += folded.length;
      continue;
    }
    const size_t end = i;
    size_t lines = 0;
    while (i < text.size()) {
      const Folded space = FoldAt(text, i);
      if (space.c != kSpace) break;
      lines += text[i] == '\n' ? 1 : 0;
      i += space.length;
    }
    if (cutter.empty()) continue;
    cutter.Cut(static_cast<uint32_t>(end), text.substr(i), i == text.size() || lines > 1);
  }
  if (!cutter.empty()) cutter.Cut(static_cast<uint32_t>(text.size()), {}, true);
}

}  // namespace attend
