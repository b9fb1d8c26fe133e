#include "tools/model_options.h"

#include <CLI/CLI.hpp>
#include <algorithm>

#include "tools/find_model.h"

namespace attend::tools {
namespace {

// Enough short texts to fill a run of the default number of tokens.
constexpr int32_t kMaxSequences = 512;

Precision PrecisionOf(const std::string& name) {
  if (name == "f32") return Precision::kF32;
  if (name == "bf16") return Precision::kBf16;
  if (name == "int8") return Precision::kInt8;
  return Precision::kFile;
}

}  // namespace

void AddMachineOptions(CLI::App* command, ModelOptions* options) {
  command->add_option("--threads", options->threads,
                      "Threads; 0, the default: what affinity and the cgroup quota allow")
      ->type_name("N")
      ->check(CLI::Range(0, 1024));
  command->add_option("--isa", options->isa,
                      "The best instruction set to use: sse4, avx2, avx512, avx512_vnni, "
                      "avx512_bf16 or amx")
      ->type_name("NAME");
}

void AddModelOptions(CLI::App* command, ModelOptions* options) {
  command->add_option("-m,--model", options->model, "An .attend file")->type_name("FILE");
  command->add_option("--precision", options->precision,
                      "Arithmetic of the linear layers: f32, bf16 or int8; default: what the file "
                      "says")
      ->type_name("NAME")
      ->check(CLI::IsMember({"f32", "bf16", "int8"}));
  AddMachineOptions(command, options);
  command->add_option("--batch-tokens", options->batch_tokens, "Tokens of one run (8192)")
      ->type_name("N")
      ->check(CLI::Range(1, 1 << 20));
}

void AddLengthOptions(CLI::App* command, ModelOptions* options, bool with_truncate) {
  command->add_option("--max-length", options->max_length,
                      "Tokens of one text, special ones included; default: what the model takes")
      ->type_name("N")
      ->check(CLI::Range(1, 1 << 20));
  if (!with_truncate) return;
  command->add_flag("--truncate", options->truncate,
                    "Cut texts that are too long instead of giving an error");
}

void AddOffsetOption(CLI::App* command, std::string* offsets) {
  command->add_option("--offsets", *offsets, "What begin and end count: bytes, codepoints or utf16")
      ->type_name("UNIT")
      ->check(CLI::IsMember({"bytes", "codepoints", "utf16"}));
}

OffsetUnit OffsetUnitOf(const std::string& name) {
  if (name == "codepoints") return OffsetUnit::kCodePoints;
  return name == "utf16" ? OffsetUnit::kUtf16 : OffsetUnit::kBytes;
}

int ApplyIsa(const ModelOptions& options, Console* console) {
  if (options.isa.empty()) return kExitOk;
  const Status status = LimitIsa(options.isa);
  switch (status.code()) {
    case ErrorCode::kOk: return kExitOk;
    case ErrorCode::kInvalidArgument:
      return console->FailUsage(status.what(), "--isa", status.hint());
    case ErrorCode::kUnsupported: return console->Fail(status, kExitIsa);
    default: return console->Fail(status);
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
  pipeline.offset_unit = OffsetUnitOf(options.offsets);
  pipeline.truncate = options.truncate;
  pipeline.max_length = options.max_length;
  return pipeline;
}

}  // namespace attend::tools
