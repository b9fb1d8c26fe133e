#include "engine/log.h"

#include <algorithm>
#include <cstdarg>
#include <cstdio>

namespace attend {

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
