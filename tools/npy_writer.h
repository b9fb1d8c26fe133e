// A NumPy file of f32 rows whose number is known only at the end.
#ifndef ATTEND_TOOLS_NPY_WRITER_H_
#define ATTEND_TOOLS_NPY_WRITER_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "attend/status.h"
#include "engine/atomic_file.h"

namespace attend::tools {

// `path` is whole, or untouched: without Finish nothing is left behind.
class NpyWriter {
 public:
  NpyWriter(const std::string& path, size_t columns);

  void AddRow(std::span<const float> row);
  // The first error so far: AtomicFile's.
  const Status& status() const { return status_; }
  // Completes the file.
  Status Finish();

 private:
  std::string Header() const;
  void Put(uint64_t offset, const std::string& bytes);
  void Drain();

  AtomicFile file_;
  size_t columns_;
  size_t rows_ = 0;
  uint64_t written_ = 0;
  std::string buffer_;
  Status status_;
};

}  // namespace attend::tools

#endif  // ATTEND_TOOLS_NPY_WRITER_H_
