// Classifier: n -> 1, a label for every text or pair of texts.
#include <algorithm>
#include <utility>

#include "attend/text.h"
#include "engine/pipeline.h"
#include "engine/text/guard.h"

namespace attend {

struct ATTEND_LOCAL Classifier::Impl {
  PipelineRunner runner;

  Result<std::vector<Classification>> Run(std::span<const std::string_view> texts,
                                          const std::string_view* pairs);
};

Result<std::vector<Classification>> Classifier::Impl::Run(std::span<const std::string_view> texts,
                                                          const std::string_view* pairs) {
  runner.telemetry().Begin();
  std::vector<Classification> results(texts.size());
  SequenceList list;
  for (size_t i = 0; i < texts.size(); ++i) {
    const std::string_view* pair = pairs == nullptr ? nullptr : pairs + i;
    Status status = runner.Encode(texts[i], pair, &list, &results[i].truncated);
    if (!status.ok()) return AtText(status, i, texts.size());
  }
  const std::vector<std::string>& labels = runner.model().info().labels;
  ATTEND_RETURN_IF_ERROR(runner.Run(list, [&](size_t i, const Output& output) {
    results[i].scores = Probabilities(output.logits);
    results[i].label = labels[BestLabel(output.logits).index];
  }));
  return results;
}

Classifier::Classifier(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Classifier::Classifier(Classifier&&) noexcept = default;
Classifier& Classifier::operator=(Classifier&&) noexcept = default;
Classifier::~Classifier() = default;

Result<Classifier> Classifier::Load(const std::string& path, const PipelineOptions& options) {
  return LoadPipeline<Classifier>(path, options);
}

Result<Classifier> Classifier::Create(const Model& model, const PipelineOptions& options) {
  return WithoutExceptions("Classifier", [&]() -> Result<Classifier> {
    Result<PipelineRunner> runner =
        PipelineRunner::Create(model, options, Task::kSequence, "a classifier");
    if (!runner.ok()) return runner.status();
    return Classifier(std::make_unique<Impl>(Impl{*std::move(runner)}));
  });
}

Result<Classification> Classifier::Classify(std::string_view text) {
  return OnlyAnswer(ClassifyBatch(std::span(&text, 1)));
}

Result<Classification> Classifier::ClassifyPair(std::string_view text, std::string_view pair) {
  return OnlyAnswer(ClassifyPairBatch(std::span(&text, 1), std::span(&pair, 1)));
}

Result<std::vector<Classification>> Classifier::ClassifyBatch(
    std::span<const std::string_view> texts) {
  if (impl_ == nullptr) return MovedFrom("Classifier");
  return WithoutExceptions("Classifier", [&] { return impl_->Run(texts, nullptr); });
}

Result<std::vector<Classification>> Classifier::ClassifyPairBatch(
    std::span<const std::string_view> texts, std::span<const std::string_view> pairs) {
  if (impl_ == nullptr) return MovedFrom("Classifier");
  return WithoutExceptions("Classifier", [&]() -> Result<std::vector<Classification>> {
    if (texts.size() != pairs.size()) {
      return Status(ErrorCode::kInvalidArgument,
                    "there are " + std::to_string(texts.size()) + " texts and " +
                        std::to_string(pairs.size()) + " second texts; expected as many",
                    "pairs");
    }
    return impl_->Run(texts, pairs.data());
  });
}

std::span<const std::string> Classifier::labels() const { return model().info().labels; }
const Model& Classifier::model() const { return impl_->runner.model(); }
const Telemetry* Classifier::telemetry() const { return impl_->runner.telemetry().get(); }

}  // namespace attend
