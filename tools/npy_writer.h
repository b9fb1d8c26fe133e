// A NumPy file of f32 rows whose number is known only at the end.
#ifndef ATTEND_TOOLS_NPY_WRITER_H_
#define ATTEND_TOOLS_NPY_WRITER_H_

#include <cstddef>
#include <span>
#include <string>

#include "attend/status.h"

namespace attend::tools {

// Writes beside `path` and renames at the end, so that `path` is whole or untouched.
class NpyWriter {
 public:
  NpyWriter(std::string path, size_t columns);
  NpyWriter(const NpyWriter&) = delete;
  NpyWriter& operator=(const NpyWriter&) = delete;
  ~NpyWriter();  // without Finish: leaves nothing behind

  void AddRow(std::span<const float> row);
  // The first error so far: kIo.
  const Status& status() const { return status_; }
  // Completes the file.
  Status Finish();

 private:
  std::string Header() const;
  void Drain();
  void Fail(const char* action);

  std::string path_;
  std::string temporary_;
  size_t columns_;
  size_t rows_ = 0;
  int fd_ = -1;
  std::string buffer_;
  Status status_;
};

}  // namespace attend::tools

#endif  // ATTEND_TOOLS_NPY_WRITER_H_
