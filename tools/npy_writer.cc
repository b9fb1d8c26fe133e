#include "tools/npy_writer.h"

namespace attend::tools {
namespace {

constexpr size_t kHeaderBytes = 128;  // room for any number of rows
constexpr size_t kWriteBytes = size_t{1} << 20;

}  // namespace

NpyWriter::NpyWriter(const std::string& path, size_t columns) : columns_(columns) {
  status_ = file_.Create(path);
  buffer_ = Header();
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
  if (buffer_.size() >= kWriteBytes) Drain();
}

void NpyWriter::Put(uint64_t offset, const std::string& bytes) {
  if (status_.ok()) status_ = file_.Put(offset, std::as_bytes(std::span(bytes)));
}

void NpyWriter::Drain() {
  Put(written_, buffer_);
  written_ += buffer_.size();
  buffer_.clear();
}

Status NpyWriter::Finish() {
  Drain();
  Put(0, Header());  // with the number of rows, which is known now
  if (status_.ok()) status_ = file_.Commit();
  return status_;
}

}  // namespace attend::tools
