// Embedder: a vector for every text.
#include <utility>

#include "attend/text.h"
#include "engine/model.h"
#include "engine/pipeline.h"
#include "engine/text/guard.h"

namespace attend {

struct ATTEND_LOCAL Embedder::Impl {
  PipelineRunner runner;

  Result<std::vector<Embedding>> Run(std::span<const std::string_view> texts);
};

Result<std::vector<Embedding>> Embedder::Impl::Run(std::span<const std::string_view> texts) {
  runner.telemetry().Begin();
  std::vector<Embedding> results(texts.size());
  SequenceList list;
  for (size_t i = 0; i < texts.size(); ++i) {
    Status status = runner.Encode(texts[i], nullptr, &list, &results[i].truncated);
    if (!status.ok()) return AtText(status, i, texts.size());
  }
  ATTEND_RETURN_IF_ERROR(runner.Run(list, [&](size_t i, const Output& output) {
    results[i].values.assign(output.pooled.begin(), output.pooled.end());
  }));
  return results;
}

Embedder::Embedder(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Embedder::Embedder(Embedder&&) noexcept = default;
Embedder& Embedder::operator=(Embedder&&) noexcept = default;
Embedder::~Embedder() = default;

Result<Embedder> Embedder::Load(const std::string& path, const PipelineOptions& options) {
  return LoadPipeline<Embedder>(path, options);
}

Result<Embedder> Embedder::Create(const Model& model, const PipelineOptions& options) {
  return WithoutExceptions("Embedder", [&]() -> Result<Embedder> {
    Result<PipelineRunner> runner =
        PipelineRunner::Create(model, options, Task::kEmbedding, "an embedder");
    if (!runner.ok()) return runner.status();
    return Embedder(std::make_unique<Impl>(Impl{*std::move(runner)}));
  });
}

Result<Embedding> Embedder::Embed(std::string_view text) {
  return OnlyAnswer(EmbedBatch(std::span(&text, 1)));
}

Result<std::vector<Embedding>> Embedder::EmbedBatch(std::span<const std::string_view> texts) {
  if (impl_ == nullptr) return MovedFrom("Embedder");
  return WithoutExceptions("Embedder", [&] { return impl_->Run(texts); });
}

int32_t Embedder::dimensions() const {
  const ModelConfig& config = model().data().config;
  return static_cast<int32_t>(config.dense_sizes.empty() ? config.hidden_size
                                                         : config.dense_sizes.back());
}

const Model& Embedder::model() const { return impl_->runner.model(); }
const Telemetry* Embedder::telemetry() const { return impl_->runner.telemetry().get(); }

}  // namespace attend
