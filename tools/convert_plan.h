// What the converters of single architectures share. An architecture is one file that turns a
// config.json into a ConversionPlan, and one line in the table of convert.cc.
#ifndef ATTEND_TOOLS_CONVERT_PLAN_H_
#define ATTEND_TOOLS_CONVERT_PLAN_H_

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "attend/status.h"
#include "engine/config.h"
#include "tools/convert_source.h"

namespace attend {

// Reads the fields of an object, checked, one after another; the first error is kept, and what is
// read after it means nothing.
class FieldReader {
 public:
  FieldReader(const nlohmann::json& object, std::string_view where)
      : object_(object), where_(where) {}

  int64_t Int(std::string_view key, int64_t min, int64_t max);
  int64_t Int(std::string_view key, int64_t min, int64_t max, int64_t fallback);
  double Float(std::string_view key, double min, double max, double fallback);
  bool Bool(std::string_view key, bool fallback);
  std::string String(std::string_view key, std::string_view fallback);
  // An activation by the name that transformers knows it by.
  Activation ActivationName(std::string_view key, std::string_view fallback);
  // The field must be absent, null or `allowed`: any other value changes what is computed.
  void MustBe(std::string_view key, const nlohmann::json& allowed);

  const Status& status() const { return status_; }

 private:
  template <typename T>
  T Take(Result<T> result);

  const nlohmann::json& object_;
  std::string where_;
  Status status_;
};

// The error for a field that is well-formed and asks for something this converter does not do.
Status UnsupportedField(std::string_view key, const nlohmann::json& value, std::string_view allowed,
                        std::string_view where);

// What is read of a folder before its architecture is asked.
struct ConversionSource {
  const nlohmann::json& config;
  std::string where;  // the path of config.json
  const WeightStore& weights;
  std::string class_name;           // "BertForTokenClassification"; "" if config.json does not say
  bool sentence_embedding = false;  // modules.json pools the hidden states: heads are not used
};

// A tensor of the folder, or a part of it, that becomes one of the file.
struct TensorSource {
  TensorSource() = default;
  TensorSource(std::string tensor)
      : name(std::move(tensor)) {}  // NOLINT(google-explicit-constructor)

  std::string name;
  uint64_t row = 0;         // its rows begin there in the folder's ...
  uint64_t total_rows = 0;  // ... which has so many; 0: it is all of them
  bool transposed = false;  // stored as [in, out]
  bool as_matrix = false;   // a vector that is stored as [1, width]
};

// What becomes of a folder.
struct ConversionPlan {
  ModelConfig config;
  std::map<std::string, TensorSource> tensors;  // the file's name -> the folder's
  // Why tensors whose names begin so are not used.
  std::vector<std::pair<std::string, std::string>> unused_reasons;
  std::vector<std::string> notes;

  // NAME.weight and NAME.bias come from SOURCE.weight and SOURCE.bias.
  void MapLinear(const std::string& name, const std::string& source);
  // Of layers that may have no bias: NAME.bias only if the folder has it or `bias` says so.
  void MapWeight(const WeightStore& weights, const std::string& name, const std::string& source,
                 bool bias = false);
  // The same for a layer norm, whose tensors old folders call gamma and beta.
  void MapNorm(const WeightStore& weights, const std::string& name, const std::string& source);
};

enum class Head { kNone, kTokens, kSequence };

// Which head the class of the folder has: `family` ("Bert") and "Model", "ForTokenClassification"
// or "ForSequenceClassification". Classes of `encoder_only` have heads that are left out.
// Errors: kUnsupported naming the class and those allowed.
Result<Head> FindHead(const ConversionSource& source, std::string_view family,
                      std::initializer_list<std::string_view> encoder_only);

// The one of `prefixes` with which the folder has `tensor`. Errors: kCorrupt (none, or several).
Result<std::string> FindPrefix(const ConversionSource& source,
                               std::initializer_list<std::string_view> prefixes,
                               std::string_view tensor);

// Errors: kUnsupported (the folder's class is not one of `classes`, nor missing): names them.
Status CheckClass(const ConversionSource& source, std::initializer_list<std::string_view> classes);

// The first of `names` that the folder has. Errors: kCorrupt naming the first.
Result<std::string> FindTensor(const ConversionSource& source,
                               std::initializer_list<std::string_view> names);

// Fills in what a classification head has: the tensor head.*, num_labels by the rows of
// NAME.weight, and labels, by id2label. Errors: kCorrupt, kUnsupported.
Status MapLabels(const ConversionSource& source, const std::string& name, ConversionPlan* plan);

// Refuses what would change the maths of any model and none here does.
Status CheckCommonFields(const ConversionSource& source, bool encoder_decoder);

// Notes the fields of config.json that no converter here knows.
void NoteUnknownFields(const ConversionSource& source, ConversionPlan* plan);

// What follows from width, heads and positions in BERT and its kin: one key/value head a head,
// equal heads, learned positions that bound the length, norms behind the blocks. The names are the
// folder's, for the error that heads do not divide the width.
Status SetEncoderShape(const ConversionSource& source, std::string_view heads_field,
                       std::string_view width_field, ModelConfig* config);

// The fields and layers that BERT and ELECTRA have in common.
Status PlanBertConfig(const ConversionSource& source, ModelConfig* config);
void MapBertEncoder(const ConversionSource& source, const std::string& prefix,
                    ConversionPlan* plan);

// The architectures. Each fills in `plan` from what `source` says.
Status PlanBert(const ConversionSource& source, ConversionPlan* plan);
Status PlanDistilBert(const ConversionSource& source, ConversionPlan* plan);
Status PlanElectra(const ConversionSource& source, ConversionPlan* plan);
Status PlanAttendEncoder(const ConversionSource& source, ConversionPlan* plan);
Status PlanT5(const ConversionSource& source, ConversionPlan* plan);
Status PlanBart(const ConversionSource& source, ConversionPlan* plan);
Status PlanMarian(const ConversionSource& source, ConversionPlan* plan);
Status PlanGpt2(const ConversionSource& source, ConversionPlan* plan);
Status PlanLlama(const ConversionSource& source, ConversionPlan* plan);
Status PlanQwen3(const ConversionSource& source, ConversionPlan* plan);

}  // namespace attend

#endif  // ATTEND_TOOLS_CONVERT_PLAN_H_
