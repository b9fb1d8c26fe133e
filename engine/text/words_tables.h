// The words that the rules of words.cc must know: those met in the training part of the treebank,
// and others of their kind that are common in English. Lower case, and sorted for binary search,
// unless the table says otherwise.
#ifndef ATTEND_ENGINE_TEXT_WORDS_TABLES_H_
#define ATTEND_ENGINE_TEXT_WORDS_TABLES_H_

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace attend {

// What characters outside ASCII are folded to: any letter, digit, combining mark or byte that is
// not UTF-8; a symbol with no ASCII cousin; an en or em dash, which unlike a hyphen is never inside
// a word; an ellipsis; a character that clings to the one before it, as emoji are built with.
inline constexpr char kLetter = '\x80';
inline constexpr char kMark = '\x81';
inline constexpr char kDash = '\x82';
inline constexpr char kDots = '\x83';
inline constexpr char kJoiner = '\x84';
inline constexpr char kSpace = ' ';

// What the code points first ... last are folded to; those in no range are letters.
struct FoldRange {
  uint32_t first;
  uint32_t last;
  char c;
};

inline constexpr FoldRange kFoldRanges[] = {
    {0x85, 0x85, kSpace},        {0xA0, 0xA0, kSpace},      {0xA1, 0xA2, kMark},
    {0xA3, 0xA3, '$'},           {0xA4, 0xA4, kMark},       {0xA5, 0xA5, '$'},
    {0xA6, 0xA9, kMark},         {0xAB, 0xAB, '"'},         {0xAC, 0xAC, kMark},
    {0xAE, 0xB3, kMark},         {0xB4, 0xB4, '\''},        {0xB6, 0xB9, kMark},
    {0xBB, 0xBB, '"'},           {0xBC, 0xBF, kMark},       {0xD7, 0xD7, kMark},
    {0xF7, 0xF7, kMark},         {0x1680, 0x1680, kSpace},  {0x2000, 0x200A, kSpace},
    {0x200B, 0x200F, kJoiner},   {0x2010, 0x2011, '-'},     {0x2012, 0x2015, kDash},
    {0x2016, 0x2017, kMark},     {0x2018, 0x201B, '\''},    {0x201C, 0x201F, '"'},
    {0x2020, 0x2025, kMark},     {0x2026, 0x2026, kDots},   {0x2027, 0x2027, kMark},
    {0x2028, 0x2029, kSpace},    {0x202A, 0x202E, kMark},   {0x202F, 0x202F, kSpace},
    {0x2030, 0x2031, kMark},     {0x2032, 0x2032, '\''},    {0x2033, 0x2033, '"'},
    {0x2034, 0x205E, kMark},     {0x205F, 0x205F, kSpace},  {0x2060, 0x2060, kJoiner},
    {0x2061, 0x206F, kMark},     {0x20A0, 0x20CF, '$'},     {0x20E3, 0x20E3, kJoiner},
    {0x2190, 0x2211, kMark},     {0x2212, 0x2212, '-'},     {0x2213, 0x2BFF, kMark},
    {0x3000, 0x3000, kSpace},    {0x3001, 0x3003, kMark},   {0x3008, 0x3020, kMark},
    {0xFE00, 0xFE0F, kJoiner},   {0xFEFF, 0xFEFF, kJoiner}, {0x1F000, 0x1F3FA, kMark},
    {0x1F3FB, 0x1F3FF, kJoiner}, {0x1F400, 0x1FAFF, kMark},
};

// Words that keep their period, however they are written ...
inline constexpr std::string_view kAbbreviations[] = {
    "approx", "apr",  "arrv", "asst", "attn", "aug", "ave", "blvd", "bros", "capt", "cf",   "co",
    "col",    "corp", "dec",  "dept", "dr",   "eg",  "esp", "etc",  "ext",  "feb",  "fri",  "ft",
    "gov",    "hr",   "hrs",  "ie",   "inc",  "jan", "jr",  "lb",   "lbs",  "lt",   "ltd",  "lv",
    "mins",   "mr",   "mrs",  "ms",   "mt",   "nov", "oct", "oz",   "ph",   "prof", "ps",   "reps",
    "rt",     "sen",  "sept", "sgt",  "sq",   "sr",  "st",  "ste",  "tel",  "thu",  "thur", "thurs",
    "tue",    "tues", "univ", "viz",  "vol",  "vs",  "yrs"};

// ... and those that do if they begin with a capital; in lower case they are words.
inline constexpr std::string_view kCapitalAbbreviations[] = {
    "al",  "calif", "cmdr", "comm", "conf", "ed",  "fig", "gen",  "hon",
    "jul", "jun",   "la",   "maj",  "mar",  "mob", "mon", "para", "pvt",
    "que", "rep",   "rev",  "sat",  "sec",  "sep", "sun", "va",   "wed"};

// What comes before a hyphen that does not end the word: "e-mail", "non-stop".
inline constexpr std::string_view kPrefixes[] = {
    "anti",  "arch",  "bi",     "co",     "counter", "cross", "de",    "e",     "eco",   "ex",
    "extra", "hyper", "infra",  "inter",  "intra",   "macro", "mega",  "meta",  "micro", "mid",
    "mini",  "mono",  "multi",  "neo",    "non",     "over",  "pan",   "para",  "post",  "pre",
    "pro",   "proto", "pseudo", "psycho", "quasi",   "re",    "semi",  "socio", "sub",   "super",
    "supra", "tele",  "trans",  "tri",    "ultra",   "un",    "under", "uni"};

struct Split {
  std::string_view word;
  std::size_t at[2];  // Where the word is cut; 0: not.
};

// Words run together: those of everyday speech, and contractions whose apostrophe was left out.
inline constexpr Split kSplits[] = {
    {"aint", {2, 0}},     {"alot", {1, 0}},   {"arent", {3, 0}},  {"arnt", {2, 0}},
    {"awhile", {1, 0}},   {"cannot", {3, 0}}, {"cant", {2, 0}},   {"couldnt", {5, 0}},
    {"didnt", {3, 0}},    {"doesnt", {4, 0}}, {"dont", {2, 0}},   {"dunno", {2, 3}},
    {"gimme", {3, 0}},    {"gonna", {3, 0}},  {"gotta", {3, 0}},  {"hadnt", {3, 0}},
    {"hasnt", {3, 0}},    {"havent", {4, 0}}, {"heres", {4, 0}},  {"hes", {2, 0}},
    {"i'ma", {1, 3}},     {"im", {1, 0}},     {"isnt", {2, 0}},   {"ive", {1, 0}},
    {"lemme", {3, 0}},    {"lets", {3, 0}},   {"outta", {3, 0}},  {"shes", {3, 0}},
    {"shouldnt", {6, 0}}, {"thats", {4, 0}},  {"theres", {5, 0}}, {"theyll", {4, 0}},
    {"theyre", {4, 0}},   {"theyve", {4, 0}}, {"wanna", {3, 0}},  {"wasnt", {3, 0}},
    {"werent", {4, 0}},   {"weve", {2, 0}},   {"whats", {4, 0}},  {"wont", {2, 0}},
    {"wouldnt", {5, 0}},  {"youll", {3, 0}},  {"youre", {3, 0}},  {"youve", {3, 0}},
};

// What follows "its" where "it's" is meant.
inline constexpr std::string_view kAfterIts[] = {
    "a",         "all",    "also",    "an",     "been",      "cheap", "definitely", "easy",
    "for",       "from",   "getting", "going",  "gonna",     "good",  "great",      "hard",
    "important", "in",     "just",    "like",   "necessary", "not",   "nothing",    "now",
    "only",      "pretty", "really",  "simply", "so",        "still", "that",       "the",
    "time",      "to",     "too",     "very"};

// Units that are words of their own though written right after the number: "11am", "65k" ...
inline constexpr std::string_view kUnits[] = {"am", "bn", "c",  "cm", "f",  "ft", "gb", "hh",
                                              "hr", "hz", "k",  "kg", "km", "lb", "mb", "mg",
                                              "ml", "mm", "oz", "p",  "pm", "x",  "yr"};

// What may follow an apostrophe and be a word with it.
inline constexpr std::string_view kClitics[] = {"d", "ll", "m", "re", "s", "ve"};

// Words that begin with an apostrophe.
inline constexpr std::string_view kElided[] = {"bout", "cause", "cuz", "d",   "em",  "ll",   "m",
                                               "n",    "re",    "s",   "til", "tis", "twas", "ve"};

// The last part of names of hosts and files.
inline constexpr std::string_view kNameEnds[] = {
    "au",  "biz", "ca",  "com",  "css",  "csv", "doc",  "docx", "edu", "eu",  "exe", "fr",
    "gif", "gov", "htm", "html", "info", "int", "jpeg", "jpg",  "mil", "mp3", "net", "org",
    "pdf", "php", "png", "ppt",  "txt",  "uk",  "url",  "us",   "xls", "xml", "zip"};

// The first part of names of newsgroups.
inline constexpr std::string_view kNewsgroups[] = {"alt", "comp", "misc", "news",
                                                   "rec", "sci",  "soc",  "talk"};

inline constexpr std::string_view kSchemes[] = {"file://",  "ftp://",  "http://",
                                                "https://", "mailto:", "www."};

// Smileys, as they are written; the longest that fits is taken.
inline constexpr std::string_view kSmileys[] = {
    "(-:", "(:", "(;", "/:", "8-)", ":'(", ":(", ":)",  ":*", ":-(", ":-)", ":-/", ":-D", ":-P",
    ":-p", ":/", ":D", ":O", ":P",  ":S",  ":]", ":o",  ":p", ":|",  ";(",  ";)",  ";-)", ";D",
    ";P",  "<3", "=(", "=)", "=D",  "=P",  "=]", ">:(", "D:", "XD",  "^^",  "^_^", "xD",
};

}  // namespace attend

#endif  // ATTEND_ENGINE_TEXT_WORDS_TABLES_H_
