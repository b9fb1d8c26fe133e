#include "bench/harness/document.h"

#include <algorithm>
#include <ctime>
#include <optional>
#include <utility>

#include "bench/harness/isa_sweep.h"
#include "bench/harness/machine.h"
#include "bench/harness/rates.h"
#include "engine/config.h"

namespace attend::bench {
namespace {

std::string DateNow() {
  const std::time_t now = std::time(nullptr);
  std::tm parts = {};
  gmtime_r(&now, &parts);
  char text[32];
  std::strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

const char* NameOf(ThreadBackend backend) {
  constexpr const char* kNames[] = {"default", "openmp", "thread", "serial"};
  return kNames[static_cast<int>(backend)];
}

Json MachineJson(const RunSettings& settings) {
  Json caches = Json::object();
  for (const Cache& cache : Caches()) caches[cache.name] = cache.size;
  const ThreadAdvice advice = AdviseThreads();
  const bool asked = settings.options.num_threads > 0;
  return {{"cpu", CpuNameWithModel()},
          {"caches", caches},
          {"isa", CurrentIsa()},
          {"isas", AvailableIsas()},
          {"threads_advised", advice.num_threads},
          {"threads_reason", asked ? "--threads" : advice.reason}};
}

Json ModelJson(const std::string& path, const ModelInfo& info) {
  return {{"file", path},
          {"source", info.source},
          {"task", Name(info.task)},
          {"hidden_size", info.hidden_size},
          {"num_layers", info.num_layers},
          {"num_heads", info.num_heads},
          {"intermediate_size", info.intermediate_size},
          {"max_length", info.max_length},
          {"parameters", info.num_parameters},
          {"file_bytes", info.file_bytes}};
}

// Requests of one sequence each: texts if there are any, else lengths as sentences have them.
std::vector<Batch> MakeRequests(const Subject& subject, const Texts* texts) {
  std::vector<Batch> requests;
  if (texts != nullptr) {
    const size_t count = std::min<size_t>(texts->ids.size(), 1000);
    for (size_t i = 0; i < count; ++i) {
      requests.push_back(subject.MakeBatch(std::span(texts->ids).subspan(i, 1)));
    }
    return requests;
  }
  // Deciles of the lengths of English sentences in tokens (UD English EWT).
  for (const int64_t length : {5, 8, 11, 15, 18, 22, 27, 33, 45, 70}) {
    requests.push_back(subject.MakeBatch(1, std::min(length, subject.max_length())));
  }
  return requests;
}

class Run {
 public:
  Run(const RunSettings& settings, const Context& context)
      : settings_(settings), context_(context) {}

  Result<Json> All() {
    resident_before_ = ResidentBytes();
    // Loading comes first, while nobody has the file open.
    ATTEND_RETURN_IF_ERROR(Loading());
    const Result<Model> model = Model::Load(settings_.model_path);
    if (!model.ok()) return model.status();
    ATTEND_RETURN_IF_ERROR(Open(*model));
    Head(*model);
    ATTEND_RETURN_IF_ERROR(MeasureRatesOnce());
    for (const std::string& name : SectionNames()) {
      if (!Wants(name)) continue;
      ATTEND_RETURN_IF_ERROR(Section(name));
    }
    return std::move(document_);
  }

 private:
  bool Wants(const std::string& name) const {
    return std::find(settings_.sections.begin(), settings_.sections.end(), name) !=
           settings_.sections.end();
  }

  Status Loading() {
    if (!Wants("loading")) return Status();
    Result<Json> section = MeasureLoading(settings_.model_path, settings_.options, context_);
    if (!section.ok()) return section.status();
    loading_ = *std::move(section);
    return Status();
  }

  Status Open(const Model& model) {
    if (!settings_.text.empty()) {
      Result<Texts> texts = ReadTexts(settings_.text, settings_.model_path, model.info());
      if (!texts.ok()) return texts.status();
      texts_ = *std::move(texts);
    }
    SessionOptions options = settings_.options;
    options.max_tokens = TokensNeeded(context_.effort, model.info(), texts());
    Result<Subject> subject = Subject::Open(model, options);
    if (!subject.ok()) return subject.status();
    subject_.emplace(*std::move(subject));
    return Status();
  }

  const Texts* texts() const { return texts_ ? &*texts_ : nullptr; }

  void Head(const Model& model) {
    document_["attend"] = {
        {"version", Version()}, {"libraries", LibraryVersions()}, {"bench_format", 1}};
    document_["command"] = settings_.command;
    document_["date"] = DateNow();
    document_["machine"] = MachineJson(settings_);
    document_["model"] = ModelJson(settings_.model_path, model.info());
    document_["settings"] = {{"precision", Name(PrecisionOf(model, settings_.options))},
                             {"isa", CurrentIsa()},
                             {"threads", subject_->session().num_threads()},
                             {"share", ShareName(settings_.options.share)},
                             {"backend", NameOf(settings_.options.backend)},
                             {"quick", settings_.quick},
                             {"cell_s", context_.effort.cell_s}};
  }

  Status MeasureRatesOnce() {
    const char* const users[] = {"rates", "latency", "throughput", "texts", "steps"};
    if (std::none_of(std::begin(users), std::end(users),
                     [this](const char* name) { return Wants(name); })) {
      return Status();
    }
    context_.progress("what the machine can do");
    Result<Rates> rates = MeasureRates(subject_->session().num_threads(), context_.effort.rate_s);
    if (!rates.ok()) return rates.status();
    rates_ = *std::move(rates);
    return Status();
  }

  Status Section(const std::string& name) {
    if (context_.stop()) return Stopped();
    Result<Json> section = Measure(name);
    if (!section.ok()) return section.status();
    document_[name] = *std::move(section);
    return Status();
  }

  Result<Json> Measure(const std::string& name) {
    const Rates* const rates = rates_ ? &*rates_ : nullptr;
    if (name == "loading") return loading_;
    if (name == "rates") return rates_->ToJson();
    if (name == "latency") return MeasureLatency(*subject_, rates, context_);
    if (name == "throughput") return MeasureThroughput(*subject_, rates, context_);
    if (name == "texts") {
      if (texts_) return MeasureTexts(*subject_, *texts_, rates, context_);
      return Json{{"left_out", "no --text was given"}};
    }
    if (name == "steps") return MeasureSteps(*subject_, *rates_, context_);
    if (name == "memory") return MeasureMemory(*subject_, resident_before_);
    if (name == "threads") return MeasureThreads(context_);
    if (name == "load") {
      return MeasureLoad(*subject_, MakeRequests(*subject_, texts()), settings_.seed, context_);
    }
    if (name == "isas") return SweepIsas(settings_.worker, context_);
    return Status(ErrorCode::kInternal, "there is no section " + name, "bench");
  }

  const RunSettings& settings_;
  const Context& context_;
  int64_t resident_before_ = 0;
  std::optional<Texts> texts_;
  std::optional<Subject> subject_;
  std::optional<Rates> rates_;
  Json loading_, document_;
};

}  // namespace

Result<Json> RunSections(const RunSettings& settings, const Context& context) {
  return Run(settings, context).All();
}

int32_t TokensNeeded(const Effort& effort, const ModelInfo& info, const Texts* texts) {
  const auto longest = [&info](int64_t length) {
    return info.max_length > 0 ? std::min<int64_t>(length, info.max_length) : length;
  };
  int64_t needed = 8 * longest(128);  // of the instruction sets
  for (const int64_t length : effort.lengths) needed = std::max(needed, longest(length));
  for (const int64_t sequences : effort.batches) {
    for (const int64_t length : effort.batch_lengths) {
      needed = std::max(needed, sequences * longest(length));
    }
    needed = std::max(needed, sequences * longest(effort.step_lengths.back()));
  }
  if (texts != nullptr) {
    const int64_t size = effort.text_batch, count = static_cast<int64_t>(texts->ids.size());
    for (int64_t begin = 0; begin < count; begin += size) {
      int64_t tokens = 0;
      for (int64_t i = begin; i < std::min(begin + size, count); ++i) {
        tokens += static_cast<int64_t>(texts->ids[static_cast<size_t>(i)].size());
      }
      needed = std::max(needed, tokens);
    }
  }
  return static_cast<int32_t>(std::min<int64_t>(needed, 1 << 20));
}

}  // namespace attend::bench
