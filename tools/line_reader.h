// Lines of a file descriptor, and whether the next one is at hand without waiting.
#ifndef ATTEND_TOOLS_LINE_READER_H_
#define ATTEND_TOOLS_LINE_READER_H_

#include <cstddef>
#include <string>

#include "attend/status.h"

namespace attend::tools {

class LineReader {
 public:
  // The longest line that is read; a longer one is an error, not a reason to take all memory.
  static constexpr size_t kMaxLineBytes = size_t{64} << 20;

  explicit LineReader(int fd) : fd_(fd) {}

  // The next line without its line end ("\n" or "\r\n"), waiting for it; *found is false at the
  // end. A last line without a line end counts, if it is not empty.
  // Errors: kIo; kCapacity (too long a line); kCancelled (a signal asked the program to end).
  Status Next(std::string* line, bool* found);

  // Whether Next would return at once: a whole line, or the end, is there.
  bool AtHand();

  // The number of the line that Next returned last, from 1.
  size_t line_number() const { return line_number_; }

 private:
  bool FindLineEnd();
  Status Read();

  int fd_;
  std::string buffer_;
  size_t begin_ = 0;     // of what was not returned yet
  size_t searched_ = 0;  // no line end in [begin_, searched_)
  bool ended_ = false;
  Status status_;
  size_t line_number_ = 0;
};

}  // namespace attend::tools

#endif  // ATTEND_TOOLS_LINE_READER_H_
