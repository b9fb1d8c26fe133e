// What the pipelines of text.h share: encoded sequences are put end to end, cut into runs that the
// Session takes, and every sequence's own part of the output is handed to the pipeline.
#ifndef ATTEND_ENGINE_PIPELINE_H_
#define ATTEND_ENGINE_PIPELINE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "attend/attend.h"
#include "attend/status.h"
#include "attend/text.h"
#include "engine/trace_buffer.h"

// Of what lies inside an exported class, and would be exported with it.
#define ATTEND_LOCAL __attribute__((visibility("hidden")))

namespace attend {

// Sequences of token ids, end to end.
class SequenceList {
 public:
  void Add(std::span<const int32_t> ids, std::span<const int32_t> type_ids);

  size_t size() const { return offsets_.size() - 1; }
  size_t length(size_t sequence) const { return offsets_[sequence + 1] - offsets_[sequence]; }
  std::span<const int32_t> ids(size_t first, size_t last) const { return Part(ids_, first, last); }
  std::span<const int32_t> type_ids(size_t first, size_t last) const {
    return Part(type_ids_, first, last);
  }

 private:
  std::span<const int32_t> Part(const std::vector<int32_t>& values, size_t first,
                                size_t last) const {
    return std::span(values).subspan(offsets_[first], offsets_[last] - offsets_[first]);
  }

  std::vector<int32_t> ids_;
  std::vector<int32_t> type_ids_;
  std::vector<size_t> offsets_ = {0};  // of all sequences; a run's own begin at 0 again
};

// Text is encoded from here to the end of the block: a span "tokenize" of `trace` if there is one,
// and added to *encode_ns if that is not null.
class EncodeScope {
 public:
  EncodeScope(Trace* trace, int64_t* encode_ns)
      : span_(TraceOf(trace, "tokenize")),
        encode_ns_(encode_ns),
        begin_ns_(encode_ns == nullptr ? 0 : TraceNow()) {}
  ~EncodeScope() {
    if (encode_ns_ != nullptr) *encode_ns_ += TraceNow() - begin_ns_;
  }
  EncodeScope(const EncodeScope&) = delete;
  EncodeScope& operator=(const EncodeScope&) = delete;

 private:
  TraceScope span_;
  int64_t* encode_ns_;
  int64_t begin_ns_;
};

// What a pipeline tells of a call, if its options ask for it.
class CallTelemetry {
 public:
  explicit CallTelemetry(bool on) {
    if (on) sum_.emplace();
  }
  // Another call begins.
  void Begin() {
    if (sum_.has_value()) sum_.emplace();
  }
  void Add(const Telemetry* run);
  int64_t* encode_ns() { return sum_.has_value() ? &sum_->encode_ns : nullptr; }
  const Telemetry* get() const { return sum_.has_value() ? &*sum_ : nullptr; }

 private:
  std::optional<Telemetry> sum_;
};

// Whether `pipeline` ("a tagger") can use a model whose task is `task`.
// Errors: kUnsupported (says what the model is for).
Status RequireTask(const Model& model, Task task, std::string_view pipeline);

// The tokenizer of a model for `pipeline`. Errors: kUnsupported (there is none); as FromModel's.
Result<Tokenizer> RequireTokenizer(const Model& model, std::string_view pipeline);

// The longest sequence that the model, the session and the caller allow together, of which
// `num_added` tokens are special ones.
// Errors: kInvalidArgument (max_length out of range, or no room for a token).
Result<int32_t> EffectiveMaxLength(const Model& model, const PipelineOptions& options,
                                   int32_t num_added);

// Encodes `text`, or the pair `text`, `*pair`, into at most `max_length` tokens.
// Errors: kInvalidArgument (invalid UTF-8); kCapacity (too long, and `truncate` is off).
Status EncodeText(const Tokenizer& tokenizer, std::string_view text, const std::string_view* pair,
                  bool truncate, int32_t max_length, Encoding* encoding);

// A model with its tokenizer and one Session: what every pipeline stands on.
class PipelineRunner {
 public:
  // `pipeline` names the caller in messages ("a tagger").
  // Errors: as Session::Create; kUnsupported (the model has no tokenizer, or is of another task
  // than `task`: says what it is for); kInvalidArgument (max_length out of range).
  static Result<PipelineRunner> Create(const Model& model, const PipelineOptions& options,
                                       Task task, std::string_view pipeline);

  // Encodes `text`, or the pair `text`, `*pair`, as the options say; *truncated tells whether it
  // was cut. Errors: kInvalidArgument (invalid UTF-8); kCapacity (too long, and truncate is off).
  Status Encode(std::string_view text, const std::string_view* pair, SequenceList* list,
                bool* truncated);

  // Called with the number of a sequence and what was computed for it alone: hidden [L, D],
  // pooled [D'], logits [L, C] or [C].
  using Sink = std::function<void(size_t sequence, const Output& output)>;

  // Runs all sequences, as many at a time as the Session takes, in order.
  // Errors: as Session::Run.
  Status Run(const SequenceList& list, const Sink& sink);

  // Of the call that goes on: whoever takes one begins it.
  CallTelemetry& telemetry() { return telemetry_; }
  const CallTelemetry& telemetry() const { return telemetry_; }
  const Model& model() const { return model_; }
  const Tokenizer& tokenizer() const { return tokenizer_; }
  // The longest sequence in tokens, special ones included.
  int32_t max_length() const { return max_length_; }

 private:
  PipelineRunner(Model model, Tokenizer tokenizer, Session session, const PipelineOptions& options,
                 int32_t max_length);

  Status RunRange(const SequenceList& list, size_t first, size_t last, const Sink& sink);

  Model model_;
  Tokenizer tokenizer_;
  Session session_;
  PipelineOptions options_;
  int32_t max_length_;
  CallTelemetry telemetry_;
  Encoding encoding_;             // reused
  std::vector<int32_t> offsets_;  // of one run, reused
};

// A pipeline over the model in the file `path`.
template <typename Pipeline, typename Options>
Result<Pipeline> LoadPipeline(const std::string& path, const Options& options) {
  Result<Model> model = Model::Load(path, {.logger = options.session.logger});
  if (!model.ok()) return model.status();
  return Pipeline::Create(*model, options);
}

// The answer to a batch of one text.
template <typename Answer>
Result<Answer> OnlyAnswer(Result<std::vector<Answer>> answers) {
  if (!answers.ok()) return answers.status();
  return std::move(answers->front());
}

// The label with the largest logit and its softmax probability.
struct Best {
  size_t index = 0;
  float probability = 0;
};
Best BestLabel(std::span<const float> logits);

// Softmax of `logits`; of a single logit, its sigmoid.
std::vector<float> Probabilities(std::span<const float> logits);

// `status` with "texts[index]" in front of its place if there are several texts.
Status AtText(const Status& status, size_t index, size_t count);

}  // namespace attend

#endif  // ATTEND_ENGINE_PIPELINE_H_
