// What sentence-transformers adds to a folder: modules.json and the folders it names.
#ifndef ATTEND_TOOLS_CONVERT_SENTENCE_H_
#define ATTEND_TOOLS_CONVERT_SENTENCE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "attend/status.h"
#include "engine/config.h"
#include "tools/convert_plan.h"
#include "tools/convert_source.h"
#include "tools/folder.h"

namespace attend {

// One linear layer over the pooled vector.
struct SentenceDense {
  std::string folder;  // "2_Dense"
  int64_t in_features = 0;
  int64_t out_features = 0;
  bool bias = true;
  Activation activation = Activation::kTanh;
};

// The pipeline: a transformer, then perhaps pooling, dense layers and a division by the length.
struct SentencePipeline {
  std::string transformer_folder;    // "" where it is the folder itself
  Pooling pooling = Pooling::kNone;  // kNone: the hidden states are the answer
  int64_t pooling_width = 0;         // that the pooling expects; 0: it does not say
  std::vector<SentenceDense> dense;
  bool normalize = false;
  std::vector<std::string> notes;
};

// Reads modules.json; a folder without one has an empty pipeline.
// Errors: kCorrupt, kUnsupported (a module, an order of modules, a way of pooling that is not run).
Result<SentencePipeline> ReadSentencePipeline(const FolderReader& folder);

// What sentence_bert_config.json says: the longest sequence, and whether text is lower-cased before
// it is tokenized.
struct SentenceLimits {
  int64_t max_seq_length = 0;  // 0: it does not say
  bool lower_case = false;
};
Result<SentenceLimits> ReadSentenceLimits(const FolderReader& transformer_folder);

// Makes `plan`, that of an encoder, one of sentence embeddings. The weights of dense layers are
// called FOLDER/linear.* .
Status PlanSentenceEmbedding(const SentencePipeline& pipeline, const std::string& where,
                             ConversionPlan* plan);

}  // namespace attend

#endif  // ATTEND_TOOLS_CONVERT_SENTENCE_H_
