#include "tools/trace_file.h"

#include <utility>

#include "tools/whole_file.h"

namespace attend::tools {

Status TraceFile::Start() {
  if (path.empty()) return {};
  Result<Trace> made = Trace::Create();
  if (!made.ok()) return made.status();
  trace.emplace(*std::move(made));
  return {};
}

Status TraceFile::Write() const {
  return trace.has_value() ? WriteWholeFile(path, trace->ToJson()) : Status();
}

}  // namespace attend::tools
