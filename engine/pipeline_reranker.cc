// Reranker: texts by relevance to a query.
#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "attend/text.h"
#include "engine/pipeline.h"
#include "engine/text/guard.h"

namespace attend {
namespace {

double Dot(std::span<const float> a, std::span<const float> b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += static_cast<double>(a[i]) * b[i];
  return sum;
}

// Cosine of a and b; 0 where one of them is zero.
float Cosine(std::span<const float> a, std::span<const float> b) {
  const double lengths = std::sqrt(Dot(a, a)) * std::sqrt(Dot(b, b));
  return lengths > 0 ? static_cast<float>(Dot(a, b) / lengths) : 0.0f;
}

}  // namespace

struct ATTEND_LOCAL Reranker::Impl {
  PipelineRunner runner;
  bool cross_encoder;

  Result<std::vector<Ranked>> Rank(std::string_view query, std::span<const std::string_view> texts);
  Status ScorePairs(std::string_view query, std::span<const std::string_view> texts,
                    std::vector<Ranked>* ranked);
  Status ScoreVectors(std::string_view query, std::span<const std::string_view> texts,
                      std::vector<Ranked>* ranked);
};

Status Reranker::Impl::ScorePairs(std::string_view query, std::span<const std::string_view> texts,
                                  std::vector<Ranked>* ranked) {
  SequenceList list;
  for (size_t i = 0; i < texts.size(); ++i) {
    Status status = runner.Encode(query, &texts[i], &list, &(*ranked)[i].truncated);
    if (!status.ok()) return AtText(status, i, texts.size());
  }
  return runner.Run(list,
                    [&](size_t i, const Output& output) { (*ranked)[i].score = output.logits[0]; });
}

Status Reranker::Impl::ScoreVectors(std::string_view query, std::span<const std::string_view> texts,
                                    std::vector<Ranked>* ranked) {
  SequenceList list;
  bool query_truncated = false;
  Status status = runner.Encode(query, nullptr, &list, &query_truncated);
  if (!status.ok()) return Status(status.code(), status.what(), "query", status.hint());
  for (size_t i = 0; i < texts.size(); ++i) {
    status = runner.Encode(texts[i], nullptr, &list, &(*ranked)[i].truncated);
    if (!status.ok()) return AtText(status, i, texts.size());
    if (query_truncated) (*ranked)[i].truncated = true;
  }
  std::vector<float> query_vector;
  return runner.Run(list, [&](size_t i, const Output& output) {
    if (i == 0) {
      query_vector.assign(output.pooled.begin(), output.pooled.end());
    } else {
      (*ranked)[i - 1].score = Cosine(query_vector, output.pooled);
    }
  });
}

Result<std::vector<Ranked>> Reranker::Impl::Rank(std::string_view query,
                                                 std::span<const std::string_view> texts) {
  runner.telemetry().Begin();
  std::vector<Ranked> ranked(texts.size());
  for (size_t i = 0; i < ranked.size(); ++i) ranked[i].index = i;
  if (texts.empty()) return ranked;
  ATTEND_RETURN_IF_ERROR(cross_encoder ? ScorePairs(query, texts, &ranked)
                                       : ScoreVectors(query, texts, &ranked));
  std::stable_sort(ranked.begin(), ranked.end(),
                   [](const Ranked& a, const Ranked& b) { return a.score > b.score; });
  return ranked;
}

Reranker::Reranker(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Reranker::Reranker(Reranker&&) noexcept = default;
Reranker& Reranker::operator=(Reranker&&) noexcept = default;
Reranker::~Reranker() = default;

Result<Reranker> Reranker::Load(const std::string& path, const PipelineOptions& options) {
  return LoadPipeline<Reranker>(path, options);
}

Result<Reranker> Reranker::Create(const Model& model, const PipelineOptions& options) {
  return WithoutExceptions("Reranker", [&]() -> Result<Reranker> {
    const ModelInfo& info = model.info();
    const bool cross_encoder = info.task == Task::kSequence;
    if (cross_encoder && info.labels.size() != 1) {
      return Status(ErrorCode::kUnsupported,
                    "a reranker cannot use this model: it has " +
                        std::to_string(info.labels.size()) + " labels; expected 1",
                    "model", "it classifies texts; use Classifier or `attend classify`");
    }
    Result<PipelineRunner> runner = PipelineRunner::Create(
        model, options, cross_encoder ? Task::kSequence : Task::kEmbedding, "a reranker");
    if (!runner.ok()) return runner.status();
    return Reranker(std::make_unique<Impl>(Impl{*std::move(runner), cross_encoder}));
  });
}

Result<std::vector<Ranked>> Reranker::Rank(std::string_view query,
                                           std::span<const std::string_view> texts) {
  if (impl_ == nullptr) return MovedFrom("Reranker");
  return WithoutExceptions("Reranker", [&] { return impl_->Rank(query, texts); });
}

const Model& Reranker::model() const { return impl_->runner.model(); }
const Telemetry* Reranker::telemetry() const { return impl_->runner.telemetry().get(); }

}  // namespace attend
