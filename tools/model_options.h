// The options that every command which runs a model has, and what they come to.
#ifndef ATTEND_TOOLS_MODEL_OPTIONS_H_
#define ATTEND_TOOLS_MODEL_OPTIONS_H_

#include <cstdint>
#include <memory>
#include <string>

#include "attend/attend.h"
#include "attend/text.h"
#include "tools/command.h"
#include "tools/console.h"
#include "tools/trace_file.h"

namespace attend::tools {

struct ModelOptions {
  std::string model;       // empty: the one shipped for the task
  std::string precision;   // empty: what the file says
  std::string isa;         // empty: the best there is
  int32_t threads = 0;     // 0: what affinity and quota allow
  int32_t max_length = 0;  // 0: what the model takes
  int32_t batch_tokens = 8192;
  bool truncate = false;
  std::string offsets = "bytes";
  std::shared_ptr<TraceFile> trace = std::make_shared<TraceFile>();
};

// -m, --precision, --isa, --threads, --batch-tokens, --trace.
void AddModelOptions(Command* command, ModelOptions* options);
// --max-length and --truncate.
void AddLengthOptions(Command* command, ModelOptions* options, bool with_truncate);
// --offsets.
void AddOffsetOption(Command* command, std::string* offsets);
// --isa and --threads alone.
void AddMachineOptions(Command* command, ModelOptions* options);

// "f32", "bf16" or "int8"; else what the file says.
Precision PrecisionOf(const std::string& name);

OffsetUnit OffsetUnitOf(const std::string& name);

// Limits the instruction set, and begins a trace, if they were asked for; the trace is written when
// the command is done. Reports an error and returns its exit code, or 0.
int ApplyOptions(const ModelOptions& options, Console* console);

// Loads the model: the one that was named, else the shipped one of that name (empty: none is
// shipped for this task).
Result<Model> LoadModel(const ModelOptions& options, const std::string& shipped,
                        const std::string& command);

// The options for a pipeline or Session over `model`. A text as long as the model takes always fits
// into a run.
PipelineOptions PipelineOptionsOf(const ModelOptions& options, const Model& model);

}  // namespace attend::tools

#endif  // ATTEND_TOOLS_MODEL_OPTIONS_H_
