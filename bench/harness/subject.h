// What is measured: a model, a Session over it, and the batches that it is given.
#ifndef ATTEND_BENCH_HARNESS_SUBJECT_H_
#define ATTEND_BENCH_HARNESS_SUBJECT_H_

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "attend/attend.h"
#include "attend/status.h"

namespace attend::bench {

// Sequences end to end, in whichever form the model takes them.
struct Batch {
  std::vector<int32_t> ids = {};
  std::vector<float> rows = {};  // of models that take vectors
  std::vector<int32_t> offsets = {0};
  int32_t input_size = 0;  // 0: ids
  bool writes = false;     // an encoder-decoder: has written as much as it reads

  int64_t tokens() const { return offsets.back(); }
  int64_t sequences() const { return static_cast<int64_t>(offsets.size()) - 1; }
};

// The ids of a text in a file, a line each.
struct Texts {
  std::string file;
  std::vector<std::vector<int32_t>> ids = {};
  int64_t tokens = 0;
  int64_t cut = 0;  // texts that were longer than the model takes, and cut
};

// Reads `file` and tokenizes every line. Errors: kIo, kNotFound (the file); kUnsupported (a model
// without a tokenizer); kInvalidArgument (no line).
Result<Texts> ReadTexts(const std::string& file, const std::string& model_path,
                        const ModelInfo& info);

class Subject {
 public:
  // Errors: as of Session::Create; kUnsupported for a model that needs edges.
  static Result<Subject> Open(const Model& model, const SessionOptions& options);

  // `sequences` of `length` tokens each: ids or vectors that look like noise and are always the
  // same.
  Batch MakeBatch(int64_t sequences, int64_t length) const;
  Batch MakeBatch(std::span<const std::vector<int32_t>> sequences) const;

  // Runs once. Seconds of Session::Run alone.
  Result<double> Run(const Batch& batch);
  // The same, and what came out.
  Result<Output> RunFor(const Batch& batch);

  // At most `seconds` of runs, but at least `least` (and one that is not counted).
  Result<std::vector<double>> Times(const Batch& batch, double seconds, int least);

  // The longest sequence that a grid may have.
  int64_t max_length() const;
  const Model& model() const { return model_; }
  Session& session() { return session_; }
  const SessionOptions& options() const { return options_; }

 private:
  Subject(Model model, Session session, const SessionOptions& options)
      : model_(std::move(model)), session_(std::move(session)), options_(options) {}

  void AddSequence(std::span<const int32_t> ids, int64_t length, Batch* batch) const;

  Model model_;
  Session session_;
  SessionOptions options_;
};

// The precision that a Session with these options runs in.
Precision PrecisionOf(const Model& model, const SessionOptions& options);

// As an option of the command line has it.
const char* ShareName(Share share);

}  // namespace attend::bench

#endif  // ATTEND_BENCH_HARNESS_SUBJECT_H_
