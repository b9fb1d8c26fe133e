#include "engine/log.h"

#include <algorithm>
#include <cstdarg>
#include <cstdio>

#include "engine/os_error.h"

namespace attend {

void TellLoaded(Logger* logger, const std::string& path, const FileBytes& bytes,
                const std::string& what) {
  if (const int error = bytes.map_error(); error != 0) {
    Tell(logger, LogLevel::kWarning, LogCode::kNotMapped,
         OsError(error, "map the file, which was read into memory instead", path).ToString());
  }
  Tell(logger, LogLevel::kInfo, LogCode::kModelLoaded,
       path + ": " + std::to_string(bytes.bytes().size()) +
           (bytes.mapped() ? " bytes, mapped; " : " bytes, read into memory; ") + what);
}

void TellLoaded(Logger* logger, size_t size, const std::string& what) {
  Tell(logger, LogLevel::kInfo, LogCode::kModelLoaded,
       std::to_string(size) + " bytes in memory, copied; " + what);
}

void TellFormatted(Logger* logger, LogLevel level, LogCode code, const char* format, ...) {
  if (!Wants(logger, level)) return;
  char text[256];
  va_list arguments;
  va_start(arguments, format);
  const int size = std::vsnprintf(text, sizeof(text), format, arguments);
  va_end(arguments);
  if (size < 0) return;
  const auto length = std::min(static_cast<size_t>(size), sizeof(text) - 1);
  logger->Log({level, code, {text, length}});
}

}  // namespace attend
