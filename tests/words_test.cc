#include "engine/text/words.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace attend {
namespace {

// The words of `text` with a bar before each but the first.
std::string Cut(std::string_view text) {
  std::vector<WordSpan> words;
  CutWords(text, &words);
  std::string result;
  for (const WordSpan& word : words) {
    if (!result.empty()) result += '|';
    result += text.substr(word.begin, word.end - word.begin);
  }
  return result;
}

// The bytes of `text` that are white space.
std::vector<bool> Spaces(std::string_view text) {
  constexpr std::string_view kSpaces[] = {"\t",           "\n",           "\v",
                                          "\f",           "\r",           " ",
                                          "\xC2\x85",     "\xC2\xA0",     "\xE1\x9A\x80",
                                          "\xE2\x80\x80", "\xE2\x80\x81", "\xE2\x80\x82",
                                          "\xE2\x80\x83", "\xE2\x80\x84", "\xE2\x80\x85",
                                          "\xE2\x80\x86", "\xE2\x80\x87", "\xE2\x80\x88",
                                          "\xE2\x80\x89", "\xE2\x80\x8A", "\xE2\x80\xA8",
                                          "\xE2\x80\xA9", "\xE2\x80\xAF", "\xE2\x81\x9F",
                                          "\xE3\x80\x80"};
  std::vector<bool> spaces(text.size(), false);
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] > ' ' && text[i] < '\x7F') continue;  // Most bytes; this is for speed.
    for (const std::string_view space : kSpaces) {
      if (text.substr(i, space.size()) != space) continue;
      for (std::size_t k = 0; k < space.size(); ++k) spaces[i + k] = true;
    }
  }
  return spaces;
}

// Checks the promises of CutWords that hold for any text: words are in order and not empty, and
// exactly the bytes that are not white space are in one.
void ExpectCovers(std::string_view text) {
  std::vector<WordSpan> words;
  CutWords(text, &words);
  std::vector<bool> covered(text.size(), false);
  std::size_t end = 0;
  for (const WordSpan& word : words) {
    ASSERT_LT(word.begin, word.end);
    ASSERT_GE(word.begin, end);
    ASSERT_LE(word.end, text.size());
    end = word.end;
    std::fill(covered.begin() + word.begin, covered.begin() + word.end, true);
  }
  const std::vector<bool> spaces = Spaces(text);
  for (std::size_t i = 0; i < text.size(); ++i) {
    ASSERT_NE(covered[i], spaces[i]) << "byte " << i << " of " << text.size();
  }
}

std::string Repeat(std::string_view part, std::size_t size) {
  std::string text;
  while (text.size() < size) text += part;
  return text;
}

TEST(WordsTest, NothingHasNoWords) {
  EXPECT_EQ(Cut(""), "");
  EXPECT_EQ(Cut(" \t\r\n\xC2\xA0\xE3\x80\x80"), "");
}

TEST(WordsTest, WhiteSpaceSeparates) {
  EXPECT_EQ(Cut("  two  words\n"), "two|words");
  EXPECT_EQ(Cut("a\xC2\xA0"
                "b\xE2\x80\x83"
                "c\xE3\x80\x80"
                "d"),
            "a|b|c|d");
}

TEST(WordsTest, AppendsAndGivesBytes) {
  std::vector<WordSpan> words = {{7, 8}};
  CutWords("\xC3\xA9t\xC3\xA9 is", &words);
  ASSERT_EQ(words.size(), 3u);
  EXPECT_EQ(words[0].begin, 7u);
  EXPECT_EQ(words[1].begin, 0u);
  EXPECT_EQ(words[1].end, 5u);
  EXPECT_EQ(words[2].begin, 6u);
  EXPECT_EQ(words[2].end, 8u);
}

TEST(WordsTest, Contractions) {
  EXPECT_EQ(Cut("I don't, DON'T; can't"), "I|do|n't|,|DO|N'T|;|ca|n't");
  EXPECT_EQ(Cut("it's I'm we've you'll they're he'd"), "it|'s|I|'m|we|'ve|you|'ll|they|'re|he|'d");
  EXPECT_EQ(Cut("Bob's \"Bob\"'s"), "Bob|'s|\"|Bob|\"|'s");
  EXPECT_EQ(Cut("don\xE2\x80\x99t it\xE2\x80\x99s it`s"),
            "do|n\xE2\x80\x99t|it|\xE2\x80\x99s|it|`s");
  EXPECT_EQ(Cut("O'Connell Shi'ite d'etat"), "O'Connell|Shi'ite|d'etat");
}

TEST(WordsTest, WordsRunTogether) {
  EXPECT_EQ(Cut("cannot gonna Wanna dunno"), "can|not|gon|na|Wan|na|du|n|no");
  EXPECT_EQ(Cut("dont wont Im youre"), "do|nt|wo|nt|I|m|you|re");
  EXPECT_EQ(Cut("its a pity; its tail"), "it|s|a|pity|;|its|tail");
  EXPECT_EQ(Cut("does its, a"), "does|its|,|a");
}

TEST(WordsTest, Apostrophes) {
  EXPECT_EQ(Cut("'quoted words'"), "'|quoted|words|'");
  EXPECT_EQ(Cut("the parents' car"), "the|parents|'|car");
  EXPECT_EQ(Cut("get 'em in '72 or the '60s"), "get|'em|in|'72|or|the|'60s");
  EXPECT_EQ(Cut("cookin' in the 60's"), "cookin'|in|the|60's");
  EXPECT_EQ(Cut("5'9"), "5|'|9");
}

TEST(WordsTest, Hyphens) {
  EXPECT_EQ(Cut("well-known state-of-the-art"), "well|-|known|state|-|of|-|the|-|art");
  EXPECT_EQ(Cut("e-mail non-stop mid-1980s"), "e-mail|non-stop|mid-1980s");
  EXPECT_EQ(Cut("Hizb-e-Islami pre- and"), "Hizb|-|e|-|Islami|pre|-|and");
  EXPECT_EQ(Cut("this--or\xE2\x80\x94that"), "this|--|or|\xE2\x80\x94|that");
}

TEST(WordsTest, Numbers) {
  EXPECT_EQ(Cut("1,000.50 at 7:30"), "1,000.50|at|7:30");
  EXPECT_EQ(Cut("9/11 11/28/2000 1/2"), "9/11|11/28/2000|1|/|2");
  EXPECT_EQ(Cut("713-853-3989 345-9945 1-800-991-9019"), "713-853-3989|345-9945|1-800-991-9019");
  EXPECT_EQ(Cut("5-10 1969-1970 15-year"), "5|-|10|1969|-|1970|15|-|year");
  EXPECT_EQ(Cut(".5 +44 50%"), ".5|+44|50|%");
  EXPECT_EQ(Cut("1-1-1-1-1-1-1-1"), "1|-|1|-|1|-|1|-|1|-|1|-|1|-|1");
}

TEST(WordsTest, Units) {
  EXPECT_EQ(Cut("11am 5kg 65k 20minutes"), "11|am|5|kg|65|k|20|minutes");
  EXPECT_EQ(Cut("$3.5M, US$5"), "$|3.5|M|,|US$|5");
  EXPECT_EQ(Cut("5th 1970s 86M 4x4"), "5th|1970s|86M|4x4");
}

TEST(WordsTest, Abbreviations) {
  EXPECT_EQ(Cut("Mr. Smith of St. Louis vs. W. Bush."), "Mr.|Smith|of|St.|Louis|vs.|W.|Bush|.");
  EXPECT_EQ(Cut("the U.S. and D.C. here, e.g., a.k.a Bo"),
            "the|U.S.|and|D.C.|here|,|e.g.|,|a.k.a|Bo");
  EXPECT_EQ(Cut("No. 5 said no. Then"), "No.|5|said|no|.|Then");
  EXPECT_EQ(Cut("Sun. in the sun. There"), "Sun.|in|the|sun|.|There");
}

TEST(WordsTest, PeriodAtTheEndIsTheSentences) {
  EXPECT_EQ(Cut("cats, dogs etc."), "cats|,|dogs|etc|.");
  EXPECT_EQ(Cut("at 5 p.m."), "at|5|p.m|.");
  EXPECT_EQ(Cut("at 5p.m."), "at|5|p.m|.");
  EXPECT_EQ(Cut("\"the U.S.\"\n\nSo"), "\"|the|U.S|.|\"|So");
  EXPECT_EQ(Cut("dogs etc. are; dogs etc. They; etc..."),
            "dogs|etc.|are|;|dogs|etc|.|They|;|etc|...");
}

TEST(WordsTest, Marks) {
  EXPECT_EQ(Cut("(Yes, \"no\")."), "(|Yes|,|\"|no|\"|)|.");
  EXPECT_EQ(Cut("What?! No!!! Well... yes"), "What|?!|No|!!!|Well|...|yes");
  EXPECT_EQ(Cut("account(s) [x]"), "account|(|s|)|[|x|]");
  EXPECT_EQ(Cut("<<note>> ''so''"), "<<|note|>>|''|so|''");
  EXPECT_EQ(Cut("and/or he/she w/o l/c f/2.7"), "and|/|or|he|/|she|w/o|l/c|f|/|2.7");
  EXPECT_EQ(Cut("AT&T PG&E salt&pepper"), "AT&T|PG&E|salt|&|pepper");
  EXPECT_EQ(Cut("sh*t *bold* file_name"), "sh*t|*|bold|*|file_name");
  EXPECT_EQ(Cut("----> *~*~* < >"), "---->|*~*~*|<|>");
}

TEST(WordsTest, Smileys) {
  EXPECT_EQ(Cut("hi :) :-( ;-) :D ^_^ :)))"), "hi|:)|:-(|;-)|:D|^_^|:)))");
  EXPECT_EQ(Cut("great:) (2) note: (a)"), "great|:)|(|2|)|note|:|(|a|)");
}

TEST(WordsTest, UrlsAndNames) {
  EXPECT_EQ(Cut("see http://www.un.org/ha/a.b?c=1&d=2."), "see|http://www.un.org/ha/a.b?c=1&d=2|.");
  EXPECT_EQ(Cut("(www.juancole.com), <http://x.org/>"), "(|www.juancole.com|)|,|<|http://x.org/|>");
  EXPECT_EQ(Cut("carol.st.clair@enron.com, Mail:bob_1@x.co.uk."),
            "carol.st.clair@enron.com|,|Mail|:|bob_1@x.co.uk|.");
  EXPECT_EQ(Cut("Compaq.com foo.net/bar?x=1 02-05-02.doc ENRON.XLS."),
            "Compaq.com|foo.net/bar?x=1|02-05-02.doc|ENRON.XLS|.");
  EXPECT_EQ(Cut("comp.sources.unix, end.Start"), "comp.sources.unix|,|end|.|Start");
  EXPECT_EQ(Cut("@Ryan www. http://"), "@Ryan|www|.|http|:|//");
}

TEST(WordsTest, UnicodeMarks) {
  EXPECT_EQ(Cut("\xE2\x80\x9CHi\xE2\x80\x9D\xE2\x80\xA6"),
            "\xE2\x80\x9C|Hi|\xE2\x80\x9D|\xE2\x80\xA6");
  EXPECT_EQ(Cut("\xE2\x82\xAC"
                "5 \xC2\xA3"
                "3bn"),
            "\xE2\x82\xAC|5|\xC2\xA3|3|bn");
  EXPECT_EQ(Cut("na\xC3\xAFve caf\xC3\xA9s"), "na\xC3\xAFve|caf\xC3\xA9s");
  // An emoji keeps its skin tone and its variation selector.
  EXPECT_EQ(Cut("ok\xF0\x9F\x91\x8D\xF0\x9F\x8F\xBD\xE2\x9D\xA4\xEF\xB8\x8F!"),
            "ok|\xF0\x9F\x91\x8D\xF0\x9F\x8F\xBD|\xE2\x9D\xA4\xEF\xB8\x8F|!");
}

TEST(WordsTest, BytesThatAreNotUtf8AreLetters) {
  EXPECT_EQ(Cut("a\xFF\xFE"
                "b, \xC3("),
            "a\xFF\xFE"
            "b|,|\xC3|(");
  EXPECT_EQ(Cut("\xE2\x80"), "\xE2\x80");
  EXPECT_EQ(Cut("\xC0\xA0 \xED\xA0\x80 \xF5\x80"), "\xC0\xA0|\xED\xA0\x80|\xF5\x80");
  EXPECT_EQ(Cut(std::string_view("a\0b", 3)), std::string("a|\0|b", 5));
}

TEST(WordsTest, HostileTextsFinishAndAreCovered) {
  constexpr std::string_view kParts[] = {"a",
                                         "A",
                                         "1",
                                         ".",
                                         "'",
                                         "\"",
                                         "-",
                                         "_",
                                         "@",
                                         ":",
                                         "(",
                                         "/",
                                         "a-",
                                         "e-",
                                         "non-",
                                         "1-",
                                         "1/",
                                         "1.",
                                         "1,",
                                         "a.",
                                         "a'",
                                         "a's",
                                         "n't",
                                         "'s",
                                         "a@",
                                         "a:",
                                         "a:b@",
                                         "a...@",
                                         "a:..@",
                                         ":(",
                                         "((:",
                                         "www.",
                                         "www.<",
                                         "http://",
                                         "1a",
                                         "a1-",
                                         "$a",
                                         "1$",
                                         "a/b/",
                                         "a&",
                                         "w/",
                                         "U.S.",
                                         "its ",
                                         "etc.",
                                         "a*",
                                         "1'",
                                         ".com",
                                         "a.com",
                                         "&a-",
                                         "\xE2\x80\x99",
                                         "\xF0\x9F\x91\x8D",
                                         "\xE2\x80\x8D",
                                         "\xFF",
                                         "\xE3\x80\x80",
                                         "\x80",
                                         " ",
                                         "\xE2\x80\x94"
                                         "a"};
  for (const std::string_view part : kParts) {
    SCOPED_TRACE(part);
    ExpectCovers(Repeat(part, std::size_t{1} << 20));
  }
}

TEST(WordsTest, RandomTextsAreCovered) {
  constexpr std::string_view kParts[] = {
      "a",           "B",    "7",       ".",        ",",        "'",
      "\"",          "-",    " ",       "@",        ":",        "/",
      "(",           ")",    "$",       "&",        "n't",      "'s",
      "com",         "www.", "http://", "e",        "its",      "\n\n",
      "etc.",        "\xFF", "\x80",    "\xE2\x80", "\xC2\xA0", "\xE2\x80\x99",
      "\xE2\x80\x8D"};
  std::mt19937 random(1);
  std::uniform_int_distribution<std::size_t> pick(0, std::size(kParts) - 1);
  std::uniform_int_distribution<int> byte(0, 255);
  for (int round = 0; round < 20000; ++round) {
    std::string text;
    for (int i = round % 24; i >= 0; --i) text += kParts[pick(random)];
    if (round % 4 == 0) text += static_cast<char>(byte(random));
    ASSERT_NO_FATAL_FAILURE(ExpectCovers(text)) << ::testing::PrintToString(text);
  }
}

#ifdef ATTEND_TEST_DATA

using Spans = std::vector<std::pair<uint32_t, uint32_t>>;

// Parses "0-4 5-8 ...".
Spans ParseSpans(const char* text) {
  Spans spans;
  while (*text != '\0') {
    char* end = nullptr;
    const auto first = static_cast<uint32_t>(std::strtoul(text, &end, 10));
    if (end == text || *end != '-') break;
    const auto last = static_cast<uint32_t>(std::strtoul(end + 1, &end, 10));
    spans.emplace_back(first, last);
    text = *end == ' ' ? end + 1 : end;
  }
  return spans;
}

// How many of the words of a treebank are found, and how many of those found are in it. Where the
// words of a contraction are not its parts they all have its span: one of them can be found.
struct WordScore {
  std::size_t gold = 0;
  std::size_t cut = 0;
  std::size_t hits = 0;

  double Precision() const { return static_cast<double>(hits) / static_cast<double>(cut); }
  double Recall() const { return static_cast<double>(hits) / static_cast<double>(gold); }
  double F1() const { return 2.0 * static_cast<double>(hits) / static_cast<double>(gold + cut); }
};

WordScore Evaluate(std::istream& lines) {
  WordScore score;
  std::string line;
  std::vector<WordSpan> words;
  while (std::getline(lines, line)) {
    const std::size_t tab = line.find('\t');
    if (tab == std::string::npos) continue;
    const Spans gold = ParseSpans(line.c_str() + tab + 1);
    words.clear();
    CutWords(std::string_view(line).substr(0, tab), &words);
    const std::set<std::pair<uint32_t, uint32_t>> wanted(gold.begin(), gold.end());
    score.gold += gold.size();
    score.cut += words.size();
    for (const WordSpan& word : words) score.hits += wanted.count({word.begin, word.end});
  }
  return score;
}

TEST(WordsTest, CutsAsTheTreebank) {
  std::ifstream file(ATTEND_TEST_DATA "/ud_english_ewt/en_ewt.dev.text.tsv");
  ASSERT_TRUE(file.is_open());
  const WordScore score = Evaluate(file);
  ASSERT_GT(score.gold, 0u);
  std::printf("words of en_ewt.dev: precision %.2f %%, recall %.2f %%, F1 %.2f %%\n",
              100 * score.Precision(), 100 * score.Recall(), 100 * score.F1());
  EXPECT_GE(score.F1(), 0.994);
}

#endif  // ATTEND_TEST_DATA

}  // namespace
}  // namespace attend
