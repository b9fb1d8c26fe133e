// The texts that a command works on: its arguments, or standard input, one a line or one JSON
// object a line.
#ifndef ATTEND_TOOLS_TEXTS_H_
#define ATTEND_TOOLS_TEXTS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "attend/status.h"
#include "tools/command.h"
#include "tools/line_reader.h"

namespace attend::tools {

// What one line holds.
enum class LineShape {
  kText,
  kPair,   // text TAB text
  kWords,  // words, separated by single spaces
};

struct TextItem {
  std::string text;
  std::string pair;
  std::vector<std::string> words;
  bool has_words = false;  // words were given, if only none
  std::string where;       // "argument 1", "line 17"
};

struct TextOptions {
  LineShape shape = LineShape::kText;
  std::string input = "lines";  // --input: "lines" or "json"
  size_t max_items = 512;       // of one batch
  size_t max_bytes = 32 << 10;  // of one batch, if it has more than one text

  // Batches of about as many tokens as a run takes: four bytes a token is English.
  void SetBatch(int32_t batch_tokens) { max_bytes = static_cast<size_t>(batch_tokens) * 4; }
};

// --input json.
void AddInputOption(Command* command, TextOptions* options);

class TextSource {
 public:
  // Takes `arguments`, or standard input if there are none.
  TextSource(std::vector<std::string> arguments, const TextOptions& options);

  // The next texts: waits for one and takes what is at hand behind it. None: the end.
  // Errors: kInvalidArgument (a line that is not what `options` says); as LineReader::Next. Texts
  // read before the error are returned first, the error by the next call.
  Status NextBatch(std::vector<TextItem>* items);

  // Whether more texts can be had without waiting.
  bool AtHand();

  // Whether texts come from standard input.
  bool streaming() const { return streaming_; }

 private:
  Status Next(TextItem* item, bool* found);
  Status Parse(std::string line, TextItem* item) const;

  std::vector<std::string> arguments_;
  TextOptions options_;
  bool streaming_;
  size_t next_argument_ = 0;
  LineReader reader_;
  Status pending_;
};

}  // namespace attend::tools

#endif  // ATTEND_TOOLS_TEXTS_H_
