// Telling a Logger, if there is one that wants to know.
#ifndef ATTEND_ENGINE_LOG_H_
#define ATTEND_ENGINE_LOG_H_

#include <string>

#include "attend/log.h"

namespace attend {

inline bool Wants(const Logger* logger, LogLevel level) {
  return logger != nullptr && level >= logger->least();
}

// Ask Wants first: whoever makes a text in vain has allocated it in vain.
inline void Tell(Logger* logger, LogLevel level, LogCode code, const std::string& message) {
  if (Wants(logger, level)) logger->Log({level, code, message});
}

// The same with the text of snprintf, cut at 255 bytes: allocates nothing.
[[gnu::format(printf, 4, 5)]] void TellFormatted(Logger* logger, LogLevel level, LogCode code,
                                                 const char* format, ...);

}  // namespace attend

#endif  // ATTEND_ENGINE_LOG_H_
