// --trace FILE: what ran when, written when the command is done.
#ifndef ATTEND_TOOLS_TRACE_FILE_H_
#define ATTEND_TOOLS_TRACE_FILE_H_

#include <optional>
#include <string>

#include "attend/trace.h"

namespace attend::tools {

struct TraceFile {
  std::string path;            // empty: none was asked for
  std::optional<Trace> trace;  // from Start on

  Trace* get() { return trace.has_value() ? &*trace : nullptr; }

  // Errors: as Trace::Create.
  Status Start();
  // Errors: kIo.
  Status Write() const;
};

}  // namespace attend::tools

#endif  // ATTEND_TOOLS_TRACE_FILE_H_
