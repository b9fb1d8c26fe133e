// A Hugging Face folder becomes one .attend file.
#ifndef ATTEND_TOOLS_CONVERT_H_
#define ATTEND_TOOLS_CONVERT_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "attend/attend.h"
#include "attend/status.h"
#include "engine/config.h"

namespace attend {

// How the weights of linear layers and embedding tables are stored. Biases and norms keep the type
// they have in the folder.
enum class WeightStorage {
  kKeep,  // as in the folder: F32, F16 or BF16
  kBf16,  // rounded to the nearest, ties to even
  kInt8,  // per output row, symmetric: q = round(w / s), s = max|w| / 127; for a smaller file
};

struct ConvertOptions {
  std::string folder;
  std::string output;
  // What the file asks the engine to compute in. kFile: f32. kBf16 and kInt8 also store weights as
  // such, unless `weights` says something else; layers that lose too much in them are measured
  // (engine/layer_choice.h), and stay more exact.
  Precision precision = Precision::kFile;
  WeightStorage weights = WeightStorage::kKeep;
  double budget = 0.04;  // what kBf16 and kInt8 may lose of the answer: LayerChoiceOptions
};

// A tensor of the folder that is not in the file, and why.
struct UnusedTensor {
  std::string name;
  std::string type;  // "F32 [300, 60]"
  std::string reason;
};

// What a conversion understood and did.
struct ConvertReport {
  ModelConfig config;
  std::string source_class;  // "BertForTokenClassification"; empty if the folder does not say
  std::string tokenizer;     // "wordpiece"; empty: the file takes token ids only
  std::vector<std::pair<std::string, std::string>> understood;  // name and value, for people
  std::vector<std::string> notes;  // what a user should know: one sentence each
  std::vector<UnusedTensor> unused;
  int64_t num_tensors = 0;  // of the file: weights, scales and the tokenizer, as verify counts
  int64_t num_parameters = 0;
  uint64_t source_bytes = 0;  // of the weights' files
};

// Converts `options.folder` to the file `options.output`, which is replaced in one step or left as
// it was. The same folder gives the same bytes. Memory: at most twice the largest tensor + 64 MiB;
// for kBf16 and kInt8, which run the model, what a Session in f32 and in them needs. For a moment
// there is then a file `output`.measured.
// Errors: kNotFound, kIo; kCorrupt (a file of the folder is damaged, a tensor is missing or has
// another shape, a weight is not finite: says which); kUnsupported (naming field, value and what is
// allowed); kCapacity.
Status ConvertFolder(const ConvertOptions& options, ConvertReport* report);

}  // namespace attend

#endif  // ATTEND_TOOLS_CONVERT_H_
