#include "tools/texts.h"

#include <unistd.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "tools/json_line.h"

namespace attend::tools {
namespace {

using nlohmann::json;

Status WrongLine(const std::string& where, std::string what, std::string hint = {}) {
  return Status(ErrorCode::kInvalidArgument, std::move(what), where, std::move(hint));
}

// Sets *out to the string under `key`, if it is there.
Status TakeString(const json& object, const char* key, const std::string& where, std::string* out,
                  bool* found) {
  const auto it = object.find(key);
  *found = it != object.end();
  if (!*found) return {};
  if (!it->is_string()) {
    return WrongLine(where,
                     std::string("\"") + key + "\" is " + it->type_name() + "; expected a string");
  }
  *out = it->get<std::string>();
  return {};
}

void CutAtSpaces(const std::string& line, TextItem* item) {
  item->has_words = true;
  if (line.empty()) return;
  size_t begin = 0;
  for (size_t end = line.find(' '); end != std::string::npos; end = line.find(' ', begin)) {
    item->words.push_back(line.substr(begin, end - begin));
    begin = end + 1;
  }
  item->words.push_back(line.substr(begin));
}

Status ParseObject(const std::string& line, LineShape shape, TextItem* item) {
  json object;
  ATTEND_RETURN_IF_ERROR(ParseJsonLine(line, item->where, &object));
  bool has_text = false;
  bool has_pair = false;
  ATTEND_RETURN_IF_ERROR(TakeString(object, "text", item->where, &item->text, &has_text));
  ATTEND_RETURN_IF_ERROR(TakeString(object, "pair", item->where, &item->pair, &has_pair));
  const auto words = object.find("words");
  if (words != object.end()) {
    item->has_words = true;
    if (!words->is_array()) {
      return WrongLine(item->where, "\"words\" is not a list; expected a list of strings");
    }
    for (const json& word : *words) {
      if (!word.is_string()) {
        return WrongLine(item->where, std::string("\"words\" holds ") + word.type_name() +
                                          "; expected strings only");
      }
      item->words.push_back(word.get<std::string>());
    }
  }
  if (!has_text && !item->has_words) {
    return WrongLine(item->where, "the object has no \"text\"",
                     "give one object a line, like {\"text\": \"I saw a saw\"}");
  }
  if (shape == LineShape::kPair && !has_pair) {
    return WrongLine(item->where, "the object has no \"pair\"",
                     "give {\"text\": ..., \"pair\": ...}, or leave out --pair");
  }
  if (shape == LineShape::kWords && !item->has_words) CutAtSpaces(item->text, item);
  return {};
}

}  // namespace

void AddInputOption(Command* command, TextOptions* options) {
  command->Choice("--input", &options->input, "FORMAT", {"lines", "json"},
                  "Lines of standard input are texts, or objects {\"text\", \"pair\", \"words\"}");
}

TextSource::TextSource(std::vector<std::string> arguments, const TextOptions& options)
    : arguments_(std::move(arguments)),
      options_(options),
      streaming_(arguments_.empty()),
      reader_(STDIN_FILENO) {}

Status TextSource::Parse(std::string line, TextItem* item) const {
  if (options_.input == "json" && streaming_) return ParseObject(line, options_.shape, item);
  if (options_.shape == LineShape::kWords) {
    CutAtSpaces(line, item);
  } else if (options_.shape == LineShape::kPair) {
    const size_t tab = line.find('\t');
    if (tab == std::string::npos || line.find('\t', tab + 1) != std::string::npos) {
      return WrongLine(item->where, "expected two texts with one TAB between them",
                       "texts that hold TABs themselves go through --input json");
    }
    item->pair = line.substr(tab + 1);
    line.resize(tab);
  }
  item->text = std::move(line);
  return {};
}

Status TextSource::Next(TextItem* item, bool* found) {
  std::string line;
  *found = false;
  if (!streaming_) {
    if (next_argument_ == arguments_.size()) return {};
    line = std::move(arguments_[next_argument_++]);
    *found = true;
    item->where = "text " + std::to_string(next_argument_);
  } else {
    ATTEND_RETURN_IF_ERROR(reader_.Next(&line, found));
    if (!*found) return {};
    item->where = "line " + std::to_string(reader_.line_number());
  }
  return Parse(std::move(line), item);
}

Status TextSource::NextBatch(std::vector<TextItem>* items) {
  items->clear();
  if (!pending_.ok()) return pending_;
  size_t bytes = 0;
  while (items->size() < options_.max_items && bytes < options_.max_bytes &&
         (items->empty() || AtHand())) {
    TextItem item;
    bool found = false;
    Status status = Next(&item, &found);
    if (!status.ok()) {
      if (items->empty()) return status;
      pending_ = std::move(status);
      return {};
    }
    if (!found) break;
    bytes += item.text.size() + item.pair.size();
    for (const std::string& word : item.words) bytes += word.size() + 1;
    items->push_back(std::move(item));
  }
  return {};
}

bool TextSource::AtHand() {
  if (!pending_.ok()) return true;
  return streaming_ ? reader_.AtHand() : next_argument_ < arguments_.size();
}

}  // namespace attend::tools
