#include "tools/model_options.h"

#include <algorithm>

#include "tools/find_model.h"

namespace attend::tools {
namespace {

// Enough short texts to fill a run of the default number of tokens.
constexpr int32_t kMaxSequences = 512;

}  // namespace

void AddMachineOptions(Command* command, ModelOptions* options) {
  command->Int("--threads", &options->threads, 0, 1024,
               "Threads; 0, the default: what affinity and the cgroup quota allow");
  command->Text("--isa", &options->isa, "NAME",
                "The best instruction set to use: sse4, avx2, avx512, avx512_vnni, avx512_bf16 or "
                "amx");
}

void AddModelOptions(Command* command, ModelOptions* options) {
  command->Text("-m,--model", &options->model, "FILE", "An .attend file");
  command->Choice("--precision", &options->precision, "NAME", {"f32", "bf16", "int8"},
                  "Arithmetic of the linear layers; default: what the file says");
  AddMachineOptions(command, options);
  command->Int("--batch-tokens", &options->batch_tokens, 1, 1 << 20,
               "Tokens of one run; default: 8192");
  command->Text("--trace", &options->trace->path, "FILE",
                "What ran when, for ui.perfetto.dev or chrome://tracing");
}

void AddLengthOptions(Command* command, ModelOptions* options, bool with_truncate) {
  command->Int("--max-length", &options->max_length, 1, 1 << 20,
               "Tokens of one text, special ones included; default: what the model takes");
  if (!with_truncate) return;
  command->Flag("--truncate", &options->truncate,
                "Cut texts that are too long instead of giving an error");
}

void AddOffsetOption(Command* command, std::string* offsets) {
  command->Choice("--offsets", offsets, "UNIT", {"bytes", "codepoints", "utf16"},
                  "What begin and end count");
}

Precision PrecisionOf(const std::string& name) {
  if (name == "f32") return Precision::kF32;
  if (name == "bf16") return Precision::kBf16;
  if (name == "int8") return Precision::kInt8;
  return Precision::kFile;
}

OffsetUnit OffsetUnitOf(const std::string& name) {
  if (name == "codepoints") return OffsetUnit::kCodePoints;
  return name == "utf16" ? OffsetUnit::kUtf16 : OffsetUnit::kBytes;
}

int ApplyOptions(const ModelOptions& options, Console* console) {
  if (!options.trace->path.empty()) {
    const Status status = options.trace->Start();
    if (!status.ok()) return console->Fail(status);
    console->at_end = [trace = options.trace] { return trace->Write(); };
  }
  if (options.isa.empty()) return kExitOk;
  const Status status = LimitIsa(options.isa);
  switch (status.code()) {
    case ErrorCode::kOk:
      return kExitOk;
    case ErrorCode::kInvalidArgument:
      return console->FailUsage(status.what(), "--isa", status.hint());
    case ErrorCode::kUnsupported:
      return console->Fail(status, kExitIsa);
    default:
      return console->Fail(status);
  }
}

Result<Model> LoadModel(const ModelOptions& options, const std::string& shipped,
                        const std::string& command) {
  if (!options.model.empty()) return Model::Load(options.model);
  if (shipped.empty()) {
    return Status(ErrorCode::kNotFound, "attend ships no model for `" + command + "`", "--model",
                  "convert one with `attend convert FOLDER -o FILE` and name it with -m");
  }
  Result<std::string> path = FindShippedModel(shipped);
  if (!path.ok()) return path.status();
  return Model::Load(*path);
}

PipelineOptions PipelineOptionsOf(const ModelOptions& options, const Model& model) {
  PipelineOptions pipeline;
  pipeline.session.num_threads = options.threads;
  pipeline.session.max_tokens = std::max(options.batch_tokens, model.info().max_length);
  pipeline.session.max_sequences = std::min(kMaxSequences, pipeline.session.max_tokens);
  pipeline.session.precision = PrecisionOf(options.precision);
  pipeline.session.trace = options.trace->get();
  pipeline.offset_unit = OffsetUnitOf(options.offsets);
  pipeline.truncate = options.truncate;
  pipeline.max_length = options.max_length;
  return pipeline;
}

}  // namespace attend::tools
