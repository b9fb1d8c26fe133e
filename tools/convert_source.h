// The weights of a folder: one file, or shards and an index, and those of folders inside it.
#ifndef ATTEND_TOOLS_CONVERT_SOURCE_H_
#define ATTEND_TOOLS_CONVERT_SOURCE_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "attend/status.h"
#include "engine/format.h"
#include "tools/convert.h"
#include "tools/folder.h"
#include "tools/safetensors.h"

namespace attend {

inline constexpr size_t kMaxShards = 512;
inline constexpr size_t kMaxJsonBytes = size_t{64} << 20;

// A tensor and the file that has it; or a part of it: rows [row, row + rows), after turning it if
// it is stored as [in, out].
struct SourceTensor {
  const SafetensorsFile* file = nullptr;
  const StoredTensor* stored = nullptr;
  uint64_t row = 0;
  uint64_t rows = 0;  // 0: all of the tensor
  bool transposed = false;

  uint64_t row_size() const;  // 1 of vectors that are not whole
  uint64_t num_elements() const;
};

class WeightStore {
 public:
  // Adds the tensors of model.safetensors, or of the shards that model.safetensors.index.json
  // names. `prefix` goes in front of their names ("2_Dense/").
  // Errors: kNotFound (says what is there instead), kCorrupt, kIo, kCapacity.
  Status AddFolder(const FolderReader& folder, const std::string& prefix);

  // Null if there is none.
  const SourceTensor* Find(std::string_view name) const;
  bool Has(std::string_view name) const { return Find(name) != nullptr; }
  const std::map<std::string, SourceTensor, std::less<>>& tensors() const { return tensors_; }
  uint64_t file_bytes() const { return file_bytes_; }

 private:
  Status AddFile(const FolderReader& folder, const std::string& name, const std::string& prefix);
  Status AddShards(const FolderReader& folder, const std::string& prefix);

  std::vector<std::unique_ptr<SafetensorsFile>> files_;  // in the order they were added
  std::map<std::string, SourceTensor, std::less<>> tensors_;
  uint64_t file_bytes_ = 0;
};

// Adds `source` to the file as the tensor `spec`, stored as `storage` says; its data is read, in
// pieces, when the writer gets to it. `source` must live until then.
// Errors, when the data is read: kCorrupt (a value that is not finite: names tensor, row, column).
void AddWeight(const SourceTensor& source, const TensorSpec& spec, WeightStorage storage,
               FileWriter* writer);

}  // namespace attend

#endif  // ATTEND_TOOLS_CONVERT_SOURCE_H_
