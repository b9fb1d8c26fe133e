// attend bench: latency, throughput, what the machine could do, and a page of it.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <span>
#include <sstream>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "attend/attend.h"
#include "bench/harness/ab.h"
#include "bench/harness/compare.h"
#include "bench/harness/document.h"
#include "bench/harness/print.h"
#include "bench/harness/report.h"
#include "bench/harness/worker.h"
#include "tools/commands.h"
#include "tools/find_model.h"
#include "tools/interrupt.h"
#include "tools/json.h"
#include "tools/model_options.h"
#include "tools/whole_file.h"

namespace attend::tools {
namespace {

constexpr size_t kMaxDocumentBytes = 64 << 20;

struct BenchOptions {
  ModelOptions model;
  std::vector<std::string> sections;
  std::string text;
  std::string share = "auto", backend = "default";
  std::optional<double> seconds;
  std::optional<uint64_t> seed;
  bool quick = false, load = false, serve = false;
  std::string compare;  // the first of two documents
  std::optional<double> fail_above;
  std::string ab, ab_program;
  int32_t pairs = 0;  // 0: as many as usual
  std::string report;
  std::string document;  // where the document goes, if not to standard output
};

Share ShareOf(const std::string& name) {
  if (name == "sequences") return Share::kSequences;
  if (name == "rows") return Share::kRows;
  return name == "columns" ? Share::kColumns : Share::kAuto;
}

ThreadBackend BackendOf(const std::string& name) {
  if (name == "openmp") return ThreadBackend::kOpenMp;
  if (name == "thread") return ThreadBackend::kThread;
  return name == "serial" ? ThreadBackend::kSerial : ThreadBackend::kDefault;
}

SessionOptions SessionOptionsOf(const BenchOptions& options) {
  return {.num_threads = options.model.threads,
          .precision = PrecisionOf(options.model.precision),
          .backend = BackendOf(options.backend),
          .share = ShareOf(options.share)};
}

bench::Context ContextOf(const BenchOptions& options, Console* console) {
  bench::Context context;
  if (options.quick) context.effort = bench::QuickEffort();
  if (options.seconds) context.effort.cell_s = *options.seconds;
  context.progress = [console](const std::string& text) { console->Progress(text); };
  context.stop = Interrupted;
  return context;
}

// The command line of this process, as somebody would type it.
std::string TypedCommand() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  std::string typed, word;
  for (bool first = true; std::getline(file, word, '\0'); first = false) {
    if (first) word = "attend";
    const bool plain = word.find_first_of(" \t\n\"'$&|;<>()*?\\`") == std::string::npos;
    typed += (typed.empty() ? "" : " ") + (plain && !word.empty() ? word : "'" + word + "'");
  }
  return typed;
}

// One option of a worker's command line; a flag has no value.
struct WorkerOption {
  std::string name;
  std::optional<std::string> value;
};

// The options that say what is timed.
std::vector<WorkerOption> WorkerOptions(const BenchOptions& options) {
  std::vector<WorkerOption> all = {{"--serve", {}}, {"--model", options.model.model}};
  const auto add = [&all](const char* name, const std::string& value) {
    if (!value.empty()) all.push_back({name, value});
  };
  add("--threads", options.model.threads > 0 ? std::to_string(options.model.threads) : "");
  add("--isa", options.model.isa == "all" ? "" : options.model.isa);
  add("--precision", options.model.precision);
  add("--text", options.text);
  add("--share", options.share == "auto" ? "" : options.share);
  add("--backend", options.backend == "default" ? "" : options.backend);
  if (options.quick) all.push_back({"--quick", {}});
  return all;
}

// "--share rows --threads=1" in place of what is there of the same names.
std::vector<WorkerOption> WithChanges(std::vector<WorkerOption> options, const std::string& text) {
  std::istringstream in(text);
  std::vector<WorkerOption> changes;
  for (std::string word; in >> word;) {
    if (!word.starts_with("-")) {
      if (!changes.empty() && !changes.back().value) changes.back().value = word;
      continue;
    }
    const size_t equals = word.find('=');
    changes.push_back({word.substr(0, equals), {}});
    if (equals != std::string::npos) changes.back().value = word.substr(equals + 1);
    if (changes.back().name == "-m") changes.back().name = "--model";
  }
  for (const WorkerOption& change : changes) {
    std::erase_if(options, [&](const WorkerOption& old) { return old.name == change.name; });
    options.push_back(change);
  }
  return options;
}

std::vector<std::string> CommandOf(const std::string& program,
                                   const std::vector<WorkerOption>& options) {
  std::vector<std::string> command = {program, "bench"};
  for (const WorkerOption& option : options) {
    command.push_back(option.name);
    if (option.value) command.push_back(*option.value);
  }
  return command;
}

// A document to its file, or to standard output; else `plain` for people.
int WriteResult(const BenchOptions& options, const bench::Json& document, const std::string& plain,
                Console* console) {
  console->ClearProgress();
  if (!options.document.empty()) {
    const Status status = WriteWholeFile(options.document, document.dump(1) + "\n");
    if (!status.ok()) return console->Fail(status);
  }
  const bool to_output = console->json && options.document.empty();
  console->out().Write(to_output ? document.dump() + "\n" : plain);
  return console->Finish();
}

int WriteReport(const std::string& folder, const bench::Json& document, Console* console) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return console->Fail(Status(ErrorCode::kIo, error.message(), folder));
  for (const auto& [name, text] : {std::pair("bench.json", document.dump(1) + "\n"),
                                   std::pair("index.html", bench::DrawReport(document))}) {
    const Status status = WriteWholeFile(folder + "/" + name, text);
    if (!status.ok()) return console->Fail(status);
  }
  return kExitOk;
}

// Whether `ratio` is more than is allowed, and the exit code that says so.
int Verdict(const BenchOptions& options, double ratio, const std::string& cell, Console* console) {
  if (!options.fail_above || ratio <= *options.fail_above) return kExitOk;
  const std::string what = cell + " takes " + bench::Fixed(ratio, 3) +
                           " times as long; allowed are " + bench::Fixed(*options.fail_above, 3);
  return console->Fail(Status(ErrorCode::kInvalidArgument, what, "--fail-above"), kExitNo);
}

int RunCompare(const BenchOptions& options, const Program::Arguments& arguments, Console* console) {
  if (arguments.size() != 1) {
    return console->FailUsage("--compare takes two files", "--compare",
                              "attend bench --compare A.json B.json");
  }
  bench::Json documents[2];
  for (int i = 0; i < 2; ++i) {
    const Result<nlohmann::json> read =
        ParseJsonFile(i == 0 ? options.compare : arguments[0], kMaxDocumentBytes);
    if (!read.ok()) return console->Fail(read.status());
    documents[i] = bench::Json(*read);
  }
  const Result<bench::Json> comparison = bench::CompareDocuments(documents[0], documents[1]);
  if (!comparison.ok()) return console->Fail(comparison.status());
  const int code = WriteResult(options, *comparison, bench::PrintComparison(*comparison), console);
  if (code != kExitOk) return code;
  const bench::Json& worst = comparison->at("worst");
  return Verdict(options, bench::NumberOf(worst, "ratio"), bench::TextOf(worst, "cell"), console);
}

int RunSides(const BenchOptions& options, Console* console) {
  const std::vector<WorkerOption> own = WorkerOptions(options);
  const std::string program = options.ab_program.empty() ? bench::OwnPath() : options.ab_program;
  const bench::AbSides sides = {.a = CommandOf(bench::OwnPath(), own),
                                .b = CommandOf(program, WithChanges(own, options.ab))};
  const int pairs = options.pairs > 0 ? options.pairs : options.quick ? 3 : 15;
  const Result<bench::Json> result = bench::CompareSides(sides, pairs, ContextOf(options, console));
  if (!result.ok()) return console->Fail(result.status());
  const int code = WriteResult(options, *result, bench::PrintSides(*result), console);
  if (code != kExitOk) return code;
  for (const bench::Json& cell : result->at("cells")) {
    // Slower beyond doubt.
    const int verdict =
        Verdict(options, bench::NumberOf(cell, "low"),
                bench::TextOf(cell, "case") + " (at the interval's lower end)", console);
    if (verdict != kExitOk) return verdict;
  }
  return kExitOk;
}

Status ServeModel(const BenchOptions& options) {
  const Result<Model> model = Model::Load(options.model.model);
  if (!model.ok()) return model.status();
  std::optional<bench::Texts> texts;
  if (!options.text.empty()) {
    Result<bench::Texts> read = bench::ReadTexts(options.text, options.model.model, model->info());
    if (!read.ok()) return read.status();
    texts = *std::move(read);
  }
  const bench::Texts* const given = texts ? &*texts : nullptr;
  const bench::Effort effort = options.quick ? bench::QuickEffort() : bench::Effort();
  SessionOptions session = SessionOptionsOf(options);
  session.max_tokens = bench::TokensNeeded(effort, model->info(), given);
  Result<bench::Subject> subject = bench::Subject::Open(*model, session);
  if (!subject.ok()) return subject.status();
  bench::Serve(*subject, given, effort.text_batch);
  return Status();
}

int RunServe(const BenchOptions& options) {
  const Status status = ServeModel(options);
  if (status.ok()) return kExitOk;
  bench::ServeError(status);
  return ExitCodeOf(status.code());
}

// Those that were named; else all but the long ones, or of those what was asked for.
std::vector<std::string> SectionsOf(const BenchOptions& options) {
  const bool all_isas = options.model.isa == "all";
  std::vector<std::string> sections = options.sections;
  if (sections.empty() && (options.report.empty() ? !all_isas && !options.load : true)) {
    for (const std::string& name : bench::SectionNames()) {
      if (name != "isas" && name != "load") sections.push_back(name);
    }
  }
  if (options.load) sections.emplace_back("load");
  if (all_isas) sections.emplace_back("isas");
  return sections;
}

int RunSections(const BenchOptions& options, Console* console) {
  bench::RunSettings settings = {.command = TypedCommand(),
                                 .model_path = options.model.model,
                                 .options = SessionOptionsOf(options),
                                 .sections = SectionsOf(options),
                                 .text = options.text,
                                 .quick = options.quick,
                                 .seed = options.seed.value_or(1)};
  BenchOptions plain = options;
  plain.model.precision.clear();  // the sweep names it, and the ISA
  plain.model.isa.clear();
  settings.worker = CommandOf(bench::OwnPath(), WorkerOptions(plain));
  const Result<bench::Json> document = bench::RunSections(settings, ContextOf(options, console));
  console->ClearProgress();
  if (!document.ok()) return console->Fail(document.status());
  if (!options.report.empty()) {
    const int code = WriteReport(options.report, *document, console);
    if (code != kExitOk) return code;
  }
  return WriteResult(options, *document, bench::PrintDocument(*document), console);
}

// The model of the command line: an argument, --model, or the shipped tagger.
int FindModel(const Program::Arguments& arguments, BenchOptions* options, Console* console) {
  for (const std::string& argument : arguments) {
    // `--json FILE`: a model is no .json.
    if (console->json && argument.ends_with(".json") && options->document.empty()) {
      options->document = argument;
    } else if (options->model.model.empty()) {
      options->model.model = argument;
    } else {
      return console->FailUsage("unexpected argument '" + argument + "'", "bench",
                                "attend bench [MODEL]");
    }
  }
  if (!options->model.model.empty()) return kExitOk;
  Result<std::string> path = FindShippedModel("pos-en.attend");
  if (!path.ok()) return console->Fail(path.status());
  options->model.model = *std::move(path);
  return kExitOk;
}

int RunBench(BenchOptions options, const Program::Arguments& arguments, Console* console) {
  if (options.seconds && !(*options.seconds > 0 && *options.seconds <= 3600)) {
    return console->FailUsage("allowed are more than 0 and at most 3600", "--seconds", "");
  }
  if (options.fail_above && !(*options.fail_above > 0)) {
    return console->FailUsage("a ratio is more than 0", "--fail-above", "");
  }
  const bool sides = !options.ab.empty() || !options.ab_program.empty();
  const int modes = (options.compare.empty() ? 0 : 1) + (sides ? 1 : 0) + (options.serve ? 1 : 0);
  if (modes > 1 || (modes == 1 && !options.report.empty())) {
    return console->FailUsage(
        "only one of --compare, --ab (or --ab-program), --serve and --report can be", "bench", "");
  }
  if (options.fail_above && options.compare.empty() && !sides) {
    return console->FailUsage("nothing is compared", "--fail-above", "with --compare or --ab");
  }
  if (!options.compare.empty()) return RunCompare(options, arguments, console);
  if (const int code = FindModel(arguments, &options, console); code != kExitOk) return code;
  if (options.model.isa == "all") {
    if (modes > 0) return console->FailUsage("`all` is for whole runs", "--isa", "");
  } else if (const int code = ApplyOptions(options.model, console); code != kExitOk) {
    return code;
  }
  if (options.serve) return RunServe(options);
  return sides ? RunSides(options, console) : RunSections(options, console);
}

}  // namespace

void AddBench(Program* program) {
  auto options = std::make_shared<BenchOptions>();
  Command command = program->Add(
      "bench", "How fast a model runs here, and how far that is from what the machine can do",
      "[MODEL]", 0, 2, [options](const Program::Arguments& arguments, Console* console) {
        return RunBench(*options, arguments, console);
      });
  command.Text("-m,--model", &options->model.model, "FILE",
               "An .attend file; default: the shipped tagger");
  command.Choice("--precision", &options->model.precision, "NAME", {"f32", "bf16", "int8"},
                 "Arithmetic of the linear layers; default: what the file says");
  command.Int("--threads", &options->model.threads, 0, 1024,
              "Threads; 0, the default: what affinity and the cgroup quota allow");
  command.Text("--isa", &options->model.isa, "NAME",
               "The best instruction set to use; all: every one times every precision, each in a "
               "process of its own");
  command.Choices("--sections", &options->sections, "NAMES", bench::SectionNames(),
                  "What to measure; default: all but load and isas");
  command.Text("--text", &options->text, "FILE", "Texts, one a line, run as they come");
  command.Flag("--load", &options->load, "Open loop: arrivals at 30, 50, 70 and 85 % of capacity");
  command.Text("--report", &options->report, "DIR",
               "A page, DIR/index.html, and the document behind it, DIR/bench.json");
  command.Text("--output", &options->document, "FILE", "The document, as --json FILE");
  command.Text("--compare", &options->compare, "A.json B.json", "Two documents, cell by cell");
  command.Text("--ab", &options->ab, "OPTIONS",
               "This run in turns with one of other options, as in --ab \"--share rows\"");
  command.Text("--ab-program", &options->ab_program, "PATH",
               "This program in turns with another build of it");
  command.Int("--pairs", &options->pairs, 1, 10000, "Pairs of turns of --ab; default: 15");
  command.OptionalFloat("--fail-above", &options->fail_above,
                        "Exit code 6 if a time of B is more than X times A's");
  command.Choice("--share", &options->share, "NAME", {"auto", "sequences", "rows", "columns"},
                 "How rows are shared among threads");
  command.Choice("--backend", &options->backend, "NAME", {"default", "openmp", "thread", "serial"},
                 "Where threads come from");
  command.OptionalFloat("--seconds", &options->seconds, "For each cell; default: 0.5");
  command.OptionalSeed("--seed", &options->seed, "Of the arrivals of --load; default: 1");
  command.Flag("--quick", &options->quick, "Little of everything: to see whether it works");
  command.Flag("--serve", &options->serve,
               "Answer another attend bench, which times this one (--ab, --isa all)");
}

}  // namespace attend::tools
