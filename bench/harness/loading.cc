// Loading, with and without the file in memory, and what a model holds.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

#include "bench/harness/machine.h"
#include "bench/harness/sections.h"
#include "bench/harness/stats.h"
#include "bench/harness/timing.h"

namespace attend::bench {
namespace {

// Asks the system to forget the file's pages, and says which part of them it still has: another
// process that maps the file, or a file system in memory, keeps them.
Result<double> DropPages(const std::string& path) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) {
    return Status(ErrorCode::kIo, std::generic_category().message(errno), path);
  }
  struct stat info = {};
  fstat(file, &info);
  fdatasync(file);  // pages that are not written yet are not forgotten
  posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
  const size_t size = static_cast<size_t>(std::max<off_t>(info.st_size, 1));
  const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  std::vector<unsigned char> there((size + page - 1) / page, 1);
  void* const map = mmap(nullptr, size, PROT_READ, MAP_SHARED, file, 0);
  if (map != MAP_FAILED) {
    mincore(map, size, there.data());
    munmap(map, size);
  }
  close(file);
  const auto count = std::count_if(there.begin(), there.end(), [](auto b) { return b & 1; });
  return static_cast<double>(count) / static_cast<double>(there.size());
}

struct LoadTimes {
  std::vector<double> load, create, first_run, total;
};

// Everything between a path and a first answer.
Status LoadOnce(const std::string& path, const SessionOptions& options, LoadTimes* times) {
  const double start = Now();
  const Result<Model> model = Model::Load(path);
  if (!model.ok()) return model.status();
  const double loaded = Now();
  Result<Subject> subject = Subject::Open(*model, options);
  if (!subject.ok()) return subject.status();
  const double created = Now();
  const Batch batch = subject->MakeBatch(1, std::min<int64_t>(16, subject->max_length()));
  const double before = Now();
  const Result<Output> output = subject->RunFor(batch);
  const double end = Now();
  if (!output.ok()) return output.status();
  times->load.push_back(loaded - start);
  times->create.push_back(created - loaded);
  times->first_run.push_back(end - before);
  times->total.push_back(end - before + created - start);
  return Status();
}

Json TimesJson(const LoadTimes& times) {
  return {{"runs", times.total.size()},
          {"load_s", Median(times.load)},
          {"create_s", Median(times.create)},
          {"first_run_s", Median(times.first_run)},
          {"total_s", Median(times.total)}};
}

}  // namespace

Result<Json> MeasureLoading(const std::string& path, const SessionOptions& options,
                            const Context& context) {
  LoadTimes warm, cold;
  // The first one pays for the library's own pages and generated code.
  {
    LoadTimes ignored;
    ATTEND_RETURN_IF_ERROR(LoadOnce(path, options, &ignored));
  }
  double kept = 0;
  for (int i = 0; i < context.effort.loads; ++i) {
    if (context.stop()) return Stopped();
    context.progress("loading, " + std::to_string(i + 1));
    ATTEND_RETURN_IF_ERROR(LoadOnce(path, options, &warm));
    const Result<double> part = DropPages(path);
    if (!part.ok()) return part.status();
    kept = std::max(kept, *part);
    ATTEND_RETURN_IF_ERROR(LoadOnce(path, options, &cold));
  }
  Json section = {{"warm", TimesJson(warm)}, {"cold", TimesJson(cold)}};
  // More than a trace means that the cold figures are not cold.
  section["cold"]["pages_kept"] = kept;
  return section;
}

Json MeasureMemory(Subject& subject, int64_t resident_before) {
  const ModelInfo& info = subject.model().info();
  return {{"file_bytes", info.file_bytes},
          {"session_bytes", subject.session().memory_bytes()},
          {"weight_bytes", subject.session().weight_bytes()},
          {"max_tokens", subject.options().max_tokens},
          {"max_sequences", subject.options().max_sequences},
          {"resident_before_bytes", resident_before},
          {"resident_bytes", ResidentBytes()}};
}

}  // namespace attend::bench
