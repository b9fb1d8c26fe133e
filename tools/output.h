// Standard output in large pieces, flushed when it is told to, with every error noticed.
#ifndef ATTEND_TOOLS_OUTPUT_H_
#define ATTEND_TOOLS_OUTPUT_H_

#include <string>
#include <string_view>

#include "attend/status.h"

namespace attend::tools {

class OutputStream {
 public:
  explicit OutputStream(int fd) : fd_(fd) {}
  OutputStream(const OutputStream&) = delete;
  OutputStream& operator=(const OutputStream&) = delete;

  void Write(std::string_view text);
  // Writes what is buffered. Errors: kIo, of this or of any Write before.
  Status Flush();
  // The first error so far.
  const Status& status() const { return status_; }

 private:
  void Drain();

  int fd_;
  std::string buffer_;
  Status status_;
};

// `text` with control characters made visible (\x1b), so that a text or a name out of a file cannot
// command the terminal. Bytes that are not UTF-8 are shown the same way.
std::string Printable(std::string_view text);

// Whoever starts the program may have closed standard input, output or error: takes their numbers,
// so that no file that is opened later gets one and is written over by what is printed.
void HoldStandardDescriptors();

// Writes all of `bytes` to `fd`. Errors: kIo with the system's reason.
Status WriteAll(int fd, std::string_view bytes, std::string_view where);

}  // namespace attend::tools

#endif  // ATTEND_TOOLS_OUTPUT_H_
