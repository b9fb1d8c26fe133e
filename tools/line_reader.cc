#include "tools/line_reader.h"

#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "tools/interrupt.h"

namespace attend::tools {
namespace {

constexpr size_t kReadBytes = size_t{64} << 10;

}  // namespace

// Moves searched_ to the first line end, if there is one.
bool LineReader::FindLineEnd() {
  const size_t found = buffer_.find('\n', searched_);
  searched_ = found == std::string::npos ? buffer_.size() : found;
  return found != std::string::npos;
}

Status LineReader::Read() {
  if (begin_ > 0) {  // what was returned makes room; memory stays that of the longest line
    buffer_.erase(0, begin_);
    searched_ -= begin_;
    begin_ = 0;
  }
  const size_t size = buffer_.size();
  if (size > kMaxLineBytes) {
    return Status(ErrorCode::kCapacity,
                  "the line is longer than " + std::to_string(kMaxLineBytes) + " bytes",
                  "line " + std::to_string(line_number_ + 1), "cut the text into shorter lines");
  }
  WaitToRead(fd_);
  if (Interrupted()) return Status(ErrorCode::kCancelled, "interrupted");
  buffer_.resize(size + kReadBytes);
  const ssize_t count = ::read(fd_, buffer_.data() + size, kReadBytes);
  const int error = errno;
  buffer_.resize(size + (count > 0 ? static_cast<size_t>(count) : 0));
  if (count == 0) ended_ = true;
  if (count >= 0) return {};
  if (error != EINTR) {
    return Status(ErrorCode::kIo, std::string("cannot read: ") + std::strerror(error),
                  "standard input");
  }
  if (Interrupted()) return Status(ErrorCode::kCancelled, "interrupted");
  return {};
}

Status LineReader::Next(std::string* line, bool* found) {
  *found = false;
  while (!FindLineEnd()) {
    if (ended_) {
      if (begin_ == buffer_.size()) return {};
      break;
    }
    if (status_.ok()) status_ = Read();
    if (!status_.ok()) return status_;
  }
  size_t end = searched_;
  ++line_number_;
  *found = true;
  if (end > begin_ && end < buffer_.size() && buffer_[end - 1] == '\r') --end;
  line->assign(buffer_, begin_, end - begin_);
  begin_ = searched_ = searched_ < buffer_.size() ? searched_ + 1 : searched_;
  return {};
}

bool LineReader::AtHand() {
  while (!FindLineEnd()) {
    if (ended_ || !status_.ok()) return true;
    struct pollfd poll_fd = {.fd = fd_, .events = POLLIN, .revents = 0};
    if (::poll(&poll_fd, 1, 0) <= 0) return false;
    status_ = Read();
  }
  return true;
}

}  // namespace attend::tools
