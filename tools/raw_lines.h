// The lines of `attend run`: token ids or vectors in.
#ifndef ATTEND_TOOLS_RAW_LINES_H_
#define ATTEND_TOOLS_RAW_LINES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "attend/attend.h"
#include "attend/text.h"
#include "tools/line_reader.h"

namespace attend::tools {

// Whether sequences come with what a decoder has written.
inline bool IsEncoderDecoder(const ModelInfo& info) {
  return info.architecture == "encoder_decoder";
}

// One sequence: ids, or rows [length, width].
struct RawItem {
  bool vectors = false;
  std::vector<int32_t> ids;
  std::vector<int32_t> type_ids;
  std::vector<int32_t> decoder_ids;
  std::vector<float> rows;
  size_t length = 0;
  bool has_edges = false;
  std::vector<Edge> edges;
  bool generates = false;       // what is asked for is what the model writes
  std::string generate;         // the settings as they are written; empty: none
  GenerationSettings settings;  // read from them
  std::string where;            // "line 17"
};

// Reads one object {"ids"} or {"input"}, with "type_ids", "decoder_ids", "edges" and "generate".
// `info` is of the model that the line is for.
// Errors: kInvalidArgument naming key and position; kUnsupported (a key that this model has no use
// for).
Status ParseRawLine(const std::string& line, const ModelInfo& info, RawItem* item);

// Standard input as a source of sequences, for Stream.
class RawSource {
 public:
  // Batches end before `max_tokens` or `max_sequences` would be exceeded, if they hold two or more.
  RawSource(const ModelInfo& info, size_t max_tokens, size_t max_sequences);

  Status NextBatch(std::vector<RawItem>* items);
  bool AtHand();
  bool streaming() const { return true; }

 private:
  const ModelInfo& info_;
  size_t max_tokens_;
  size_t max_sequences_;
  LineReader reader_;
  Status pending_;
  bool has_held_ = false;
  RawItem held_;  // read, but too much for the batch before
};

}  // namespace attend::tools

#endif  // ATTEND_TOOLS_RAW_LINES_H_
