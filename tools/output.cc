#include "tools/output.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "tools/utf8.h"

namespace attend::tools {
namespace {

constexpr size_t kBufferBytes = size_t{64} << 10;

void AppendEscaped(unsigned char byte, std::string* out) {
  constexpr char kDigits[] = "0123456789abcdef";
  *out += "\\x";
  *out += kDigits[byte >> 4];
  *out += kDigits[byte & 15];
}

}  // namespace

void HoldStandardDescriptors() {
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd) {
    if (::fcntl(fd, F_GETFD) >= 0) continue;
    // The wrong way round: using it is the error that it was before. The lowest free number is fd.
    if (::open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) != fd) return;
  }
}

Status WriteAll(int fd, std::string_view bytes, std::string_view where) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) {
      return Status(ErrorCode::kIo, std::string("cannot write: ") + std::strerror(errno),
                    std::string(where));
    }
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return {};
}

void OutputStream::Write(std::string_view text) {
  buffer_ += text;
  if (buffer_.size() >= kBufferBytes) Drain();
}

void OutputStream::Drain() {
  if (status_.ok()) status_ = WriteAll(fd_, buffer_, "standard output");
  buffer_.clear();
}

Status OutputStream::Flush() {
  if (!buffer_.empty()) Drain();
  return status_;
}

std::string Printable(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size();) {
    const Utf8Char c = DecodeUtf8(text.substr(i));
    const bool control = c.code_point < 0x20 || (c.code_point >= 0x7F && c.code_point < 0xA0);
    if (!c.valid || control) {
      for (size_t j = 0; j < c.size; ++j)
        AppendEscaped(static_cast<unsigned char>(text[i + j]), &out);
    } else {
      out += text.substr(i, c.size);
    }
    i += c.size;
  }
  return out;
}

}  // namespace attend::tools
