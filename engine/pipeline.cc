#include "engine/pipeline.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "engine/telemetry.h"

namespace attend {
namespace {

// What a model of `task` is for, and which pipeline and command take it.
const char* TaskPurpose(Task task) {
  switch (task) {
    case Task::kHidden:
      return "gives hidden states only; run it with Session or `attend run`";
    case Task::kTokens:
      return "labels words; use Tagger or `attend tag`";
    case Task::kSequence:
      return "labels whole texts; use Classifier or `attend classify`";
    case Task::kEmbedding:
      return "makes a vector of a text; use Embedder or `attend embed`";
    case Task::kGenerate:
      return "writes text; use Generator or `attend generate`";
  }
  return "is of an unknown kind";
}

}  // namespace

Status RequireTask(const Model& model, Task task, std::string_view pipeline) {
  if (model.info().task == task) return {};
  return Status(
      ErrorCode::kUnsupported,
      std::string(pipeline) + " cannot use this model: it " + TaskPurpose(model.info().task),
      "model");
}

Result<Tokenizer> RequireTokenizer(const Model& model, std::string_view pipeline) {
  Result<Tokenizer> tokenizer = Tokenizer::FromModel(model);
  if (tokenizer.ok() && tokenizer->vocab_size() > model.info().vocab_size) {
    return Status(ErrorCode::kCorrupt,
                  "the tokenizer has " + std::to_string(tokenizer->vocab_size()) +
                      " tokens; expected at most the model's " +
                      std::to_string(model.info().vocab_size),
                  "model", "convert it again with the tokenizer that it was trained with");
  }
  if (tokenizer.ok() || tokenizer.status().code() != ErrorCode::kNotFound) return tokenizer;
  return Status(ErrorCode::kUnsupported,
                std::string(pipeline) + " cannot use this model: it has no tokenizer", "model",
                "give it token ids through Session or `attend run`");
}

Result<int32_t> EffectiveMaxLength(const Model& model, const PipelineOptions& options,
                                   int32_t num_added) {
  const int32_t model_limit = model.info().max_length;
  int32_t limit = options.session.max_tokens;
  if (model_limit > 0) limit = std::min(limit, model_limit);
  if (limit <= num_added) {
    return Status(ErrorCode::kInvalidArgument,
                  "the model and the session take " + std::to_string(limit) +
                      " tokens; the special tokens of a text and one more are " +
                      std::to_string(num_added + 1),
                  "max_tokens", "raise SessionOptions::max_tokens");
  }
  if (options.max_length == 0) return limit;
  if (options.max_length <= num_added || options.max_length > limit) {
    return Status(ErrorCode::kInvalidArgument,
                  "max_length is " + std::to_string(options.max_length) + "; expected " +
                      std::to_string(num_added + 1) + " to " + std::to_string(limit) +
                      " (what the model and the session take)",
                  "max_length");
  }
  return options.max_length;
}

Status EncodeText(const Tokenizer& tokenizer, std::string_view text, const std::string_view* pair,
                  bool truncate, int32_t max_length, Encoding* encoding) {
  EncodeOptions encode;
  encode.max_tokens = truncate ? max_length : 0;
  if (pair == nullptr) {
    ATTEND_RETURN_IF_ERROR(tokenizer.EncodeInto(text, encode, encoding));
  } else {
    Result<Encoding> both = tokenizer.EncodePair(text, *pair, encode);
    if (!both.ok()) return both.status();
    *encoding = *std::move(both);
  }
  if (encoding->ids.size() <= static_cast<size_t>(max_length)) return {};
  return Status(ErrorCode::kCapacity,
                "the text has " + std::to_string(encoding->ids.size()) +
                    " tokens; the model takes at most " + std::to_string(max_length),
                "text", "shorten it, or allow it to be cut (--truncate)");
}

void CallTelemetry::Add(const Telemetry* run) {
  if (sum_.has_value() && run != nullptr) AddRun(*run, &*sum_);
}

void SequenceList::Add(std::span<const int32_t> ids, std::span<const int32_t> type_ids) {
  ids_.insert(ids_.end(), ids.begin(), ids.end());
  type_ids_.insert(type_ids_.end(), type_ids.begin(), type_ids.end());
  offsets_.push_back(ids_.size());
}

PipelineRunner::PipelineRunner(Model model, Tokenizer tokenizer, Session session,
                               const PipelineOptions& options, int32_t max_length)
    : model_(std::move(model)),
      tokenizer_(std::move(tokenizer)),
      session_(std::move(session)),
      options_(options),
      max_length_(max_length),
      telemetry_(options.session.telemetry) {}

Result<PipelineRunner> PipelineRunner::Create(const Model& model, const PipelineOptions& options,
                                              Task task, std::string_view pipeline) {
  ATTEND_RETURN_IF_ERROR(RequireTask(model, task, pipeline));
  Result<Tokenizer> tokenizer = RequireTokenizer(model, pipeline);
  if (!tokenizer.ok()) return tokenizer.status();
  Result<int32_t> max_length =
      EffectiveMaxLength(model, options, tokenizer->num_added_tokens(/*pair=*/false));
  if (!max_length.ok()) return max_length.status();
  Result<Session> session = Session::Create(model, options.session);
  if (!session.ok()) return session.status();
  return PipelineRunner(model, *std::move(tokenizer), *std::move(session), options, *max_length);
}

Status PipelineRunner::Encode(std::string_view text, const std::string_view* pair,
                              SequenceList* list, bool* truncated) {
  const EncodeScope scope(options_.session.trace, telemetry_.encode_ns());
  ATTEND_RETURN_IF_ERROR(
      EncodeText(tokenizer_, text, pair, options_.truncate, max_length_, &encoding_));
  *truncated = encoding_.truncated;
  list->Add(encoding_.ids, encoding_.type_ids);
  return {};
}

Status PipelineRunner::Run(const SequenceList& list, const Sink& sink) {
  const size_t max_tokens = static_cast<size_t>(options_.session.max_tokens);
  const size_t max_sequences = static_cast<size_t>(options_.session.max_sequences);
  size_t first = 0;
  while (first < list.size()) {
    size_t last = first + 1;
    size_t tokens = list.length(first);
    while (last < list.size() && last - first < max_sequences &&
           tokens + list.length(last) <= max_tokens) {
      tokens += list.length(last++);
    }
    ATTEND_RETURN_IF_ERROR(RunRange(list, first, last, sink));
    first = last;
  }
  return {};
}

Status PipelineRunner::RunRange(const SequenceList& list, size_t first, size_t last,
                                const Sink& sink) {
  offsets_.assign(1, 0);
  for (size_t i = first; i < last; ++i) {
    offsets_.push_back(offsets_.back() + static_cast<int32_t>(list.length(i)));
  }
  TokenBatch batch;
  batch.ids = list.ids(first, last);
  batch.offsets = offsets_;
  if (model_.info().type_vocab_size > 0) batch.type_ids = list.type_ids(first, last);
  Result<Output> output = session_.Run(batch);
  if (!output.ok()) return output.status();
  telemetry_.Add(output->telemetry);

  const size_t sequences = last - first;
  const size_t tokens = batch.ids.size();
  const bool logits_by_token = model_.info().task == Task::kTokens;
  const size_t hidden_width = output->hidden.size() / tokens;
  const size_t pooled_width = output->pooled.size() / sequences;
  const size_t logits_width = output->logits.size() / (logits_by_token ? tokens : sequences);
  for (size_t i = 0; i < sequences; ++i) {
    const size_t row = static_cast<size_t>(offsets_[i]);
    const size_t rows = list.length(first + i);
    Output part;
    part.share = output->share;
    part.hidden = output->hidden.subspan(row * hidden_width, rows * hidden_width);
    part.pooled = output->pooled.subspan(i * pooled_width, pooled_width);
    part.logits = logits_by_token ? output->logits.subspan(row * logits_width, rows * logits_width)
                                  : output->logits.subspan(i * logits_width, logits_width);
    sink(first + i, part);
  }
  return {};
}

Best BestLabel(std::span<const float> logits) {
  Best best;
  if (logits.empty()) return best;
  best.index = static_cast<size_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());
  double sum = 0;
  for (float logit : logits) sum += std::exp(static_cast<double>(logit) - logits[best.index]);
  best.probability = static_cast<float>(1 / sum);
  return best;
}

std::vector<float> Probabilities(std::span<const float> logits) {
  std::vector<float> scores(logits.size());
  if (logits.size() == 1) {
    scores[0] = static_cast<float>(1 / (1 + std::exp(-static_cast<double>(logits[0]))));
    return scores;
  }
  if (logits.empty()) return scores;
  const double largest = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (float logit : logits) sum += std::exp(logit - largest);
  for (size_t i = 0; i < logits.size(); ++i) {
    scores[i] = static_cast<float>(std::exp(logits[i] - largest) / sum);
  }
  return scores;
}

Status AtText(const Status& status, size_t index, size_t count) {
  if (status.ok() || count <= 1) return status;
  std::string where = "texts[" + std::to_string(index) + "]";
  if (!status.where().empty()) where += ", " + status.where();
  return Status(status.code(), status.what(), where, status.hint());
}

}  // namespace attend
