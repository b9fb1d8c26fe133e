// attend info: this machine, and what attend makes of it.
#include <memory>
#include <vector>

#include "attend/attend.h"
#include "bench/harness/machine.h"
#include "tools/commands.h"
#include "tools/json_writer.h"
#include "tools/model_options.h"

namespace attend::tools {
namespace {

// What becomes of bf16 on the instruction set in use.
std::string Bf16Text() {
  const std::string isa = CurrentIsa();
  if (isa == "amx") return "tiles of products, by the CPU's AMX unit";
  return isa == "avx512_bf16" ? "pairs of products, by the CPU's bf16 unit"
                              : "widened to f32; there is no bf16 unit";
}

void PrintJson(const ModelOptions& options, const ThreadAdvice& advice, Console* console) {
  JsonWriter writer;
  writer.BeginObject().Key("version").String(Version()).Key("libraries").String(LibraryVersions());
  writer.Key("cpu").String(bench::CpuName()).Key("caches").BeginObject();
  for (const bench::Cache& cache : bench::Caches()) writer.Key(cache.name).String(cache.size);
  writer.EndObject().Key("isa").String(CurrentIsa()).Key("isas").BeginArray();
  for (const std::string& isa : AvailableIsas()) writer.String(isa);
  writer.EndArray();
  writer.Key("precisions").BeginObject().Key("f32").String("f32");
  writer.Key("bf16").String(Bf16Text()).Key("int8").String("exact sums of integers").EndObject();
  writer.Key("threads").Int(options.threads > 0 ? options.threads : advice.num_threads);
  writer.Key("threads_reason").String(options.threads > 0 ? "--threads" : advice.reason);
  writer.EndObject().EndLine();
  console->out().Write(writer.text());
}

void InfoLine(std::string_view key, std::string_view value, Console* console) {
  std::string line(key);
  line.resize(12, ' ');
  console->out().Write(console->Paint(line, "2") + Printable(value) + "\n");
}

void PrintPlain(const ModelOptions& options, const ThreadAdvice& advice, Console* console) {
  InfoLine("attend", Version(), console);
  InfoLine("libraries", LibraryVersions(), console);
  InfoLine("CPU", bench::CpuName(), console);
  std::string caches;
  for (const bench::Cache& cache : bench::Caches()) {
    caches += (caches.empty() ? "" : ", ") + cache.name + " " + cache.size;
  }
  InfoLine("caches", caches.empty() ? "unknown" : caches, console);
  std::string isas;
  for (const std::string& isa : AvailableIsas()) isas += " " + isa;
  InfoLine("ISA", CurrentIsa() + ", of" + isas, console);
  InfoLine("precisions", "f32, bf16 (" + Bf16Text() + "), int8 (exact sums of integers)", console);
  const int threads = options.threads > 0 ? options.threads : advice.num_threads;
  InfoLine(
      "threads",
      std::to_string(threads) + " (" + (options.threads > 0 ? "--threads" : advice.reason) + ")",
      console);
}

int RunInfo(const ModelOptions& options, Console* console) {
  if (const int code = ApplyOptions(options, console); code != kExitOk) return code;
  const ThreadAdvice advice = AdviseThreads();
  if (console->json) {
    PrintJson(options, advice, console);
  } else {
    PrintPlain(options, advice, console);
  }
  return console->Finish();
}

}  // namespace

void AddInfo(Program* program) {
  auto options = std::make_shared<ModelOptions>();
  Command command =
      program->Add("info", "This machine: CPU, instruction sets, threads and why, libraries", "", 0,
                   0, [options](const Program::Arguments&, Console* console) {
                     return RunInfo(*options, console);
                   });
  AddMachineOptions(&command, options.get());
}

}  // namespace attend::tools
