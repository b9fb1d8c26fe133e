// A model's weights as the plan wants them: packed linear layers, vectors in f32, embedding tables
// as the file holds them. Filled under a lock on first use, shared by all Sessions of the Model.
#ifndef ATTEND_ENGINE_WEIGHTS_H_
#define ATTEND_ENGINE_WEIGHTS_H_

#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "attend/status.h"
#include "engine/format.h"
#include "kernels/embedding.h"
#include "kernels/gemm.h"

namespace attend {

// One linear layer, ready to run.
struct Linear {
  std::shared_ptr<const LinearKernel> kernel;
  std::shared_ptr<const PackedLinear> weights;
};

// Rows of several weights, one after another: output column c of the layer is row `row` of
// `tensor`.
struct RowBlock {
  std::string tensor;  // "layers.0.attention.q": .weight and .bias are added
  int64_t row = 0;
  int64_t count = 0;
  std::string bias = {};  // the tensor of the bias, if it has another name
  float scale = 1;        // the weights are multiplied with it, the bias is not
  bool shared = false;    // the weight is read from the file as well: an embedding table
};

class WeightCache {
 public:
  // Borrows both, which must outlive it.
  WeightCache(const FileView* file, const FileBytes* bytes)
      : file_(file), bytes_(bytes), pool_(std::make_shared<AlignedPool>(bytes->bytes().size())) {}

  // A linear layer whose rows are those of `blocks` in order, cut into panels of `panel_width`
  // columns (0: as CutPanels likes), packed for `type`. Each type is packed once, from the file.
  Result<Linear> GetLinear(const std::vector<RowBlock>& blocks, int64_t panel_width, GemmType type);
  // All rows of NAME.weight [N, K] with NAME.bias.
  Result<RowBlock> WholeLayer(const std::string& name) const;

  // A vector in f32; empty if the file has no such tensor.
  Result<std::span<const float>> GetVector(const std::string& name);

  // A table as the file holds it; data is null if the file has no such tensor.
  EmbeddingTable GetTable(const std::string& name) const;

  bool Has(const std::string& name) const { return file_->FindTensor(name).has_value(); }
  size_t packed_bytes() const;
  // All that a plan needs has been packed: gives back what memory is left over.
  void Trim();

 private:
  Result<std::shared_ptr<const LinearKernel>> GetKernel(int64_t n, int64_t k, Panels panels,
                                                        GemmType type);
  Status WidenRows(const std::string& name, int64_t row, int64_t count, float* out) const;

  const FileView* file_;
  const FileBytes* bytes_;
  std::shared_ptr<AlignedPool> pool_;  // for what is packed
  mutable std::mutex mutex_;
  // By N, K, the panels' width and the type.
  std::map<std::tuple<int64_t, int64_t, int64_t, GemmType>, std::shared_ptr<const LinearKernel>>
      kernels_;
  std::map<std::string, std::shared_ptr<const PackedLinear>> packed_;
  std::map<std::string, std::vector<float>> vectors_;
};

}  // namespace attend

#endif  // ATTEND_ENGINE_WEIGHTS_H_
