#include "tools/npy_writer.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include "tools/output.h"

namespace attend::tools {
namespace {

constexpr size_t kHeaderBytes = 128;  // room for any number of rows
constexpr size_t kBufferBytes = size_t{1} << 20;

}  // namespace

NpyWriter::NpyWriter(std::string path, size_t columns)
    : path_(std::move(path)),
      temporary_(path_ + ".tmp-" + std::to_string(::getpid())),
      columns_(columns) {
  fd_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (fd_ < 0) Fail("cannot create");
  buffer_ = Header();
}

NpyWriter::~NpyWriter() {
  if (fd_ < 0) return;
  ::close(fd_);
  ::unlink(temporary_.c_str());
}

void NpyWriter::Fail(const char* action) {
  if (!status_.ok()) return;
  status_ = Status(ErrorCode::kIo, std::string(action) + ": " + std::strerror(errno), path_);
}

// NumPy's format 1.0, padded with spaces to a fixed size.
std::string NpyWriter::Header() const {
  std::string header("\x93NUMPY\x01\x00", 8);
  const size_t text_bytes = kHeaderBytes - 10;
  header += static_cast<char>(text_bytes & 0xFF);
  header += static_cast<char>(text_bytes >> 8);
  header += "{'descr': '<f4', 'fortran_order': False, 'shape': (" + std::to_string(rows_) + ", " +
            std::to_string(columns_) + "), }";
  header.resize(kHeaderBytes - 1, ' ');
  return header + "\n";
}

void NpyWriter::AddRow(std::span<const float> row) {
  buffer_.append(reinterpret_cast<const char*>(row.data()), row.size_bytes());
  ++rows_;
  if (buffer_.size() >= kBufferBytes) Drain();
}

void NpyWriter::Drain() {
  if (status_.ok()) status_ = WriteAll(fd_, buffer_, path_);
  buffer_.clear();
}

Status NpyWriter::Finish() {
  Drain();
  if (!status_.ok()) return status_;
  if (::lseek(fd_, 0, SEEK_SET) < 0) Fail("cannot seek");
  if (status_.ok()) status_ = WriteAll(fd_, Header(), path_);
  if (status_.ok() && ::fsync(fd_) < 0) Fail("cannot write");
  if (status_.ok() && std::rename(temporary_.c_str(), path_.c_str()) < 0) Fail("cannot rename");
  if (!status_.ok()) return status_;
  ::close(std::exchange(fd_, -1));
  return {};
}

}  // namespace attend::tools
