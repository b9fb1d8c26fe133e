// Telling a Logger, if there is one that wants to know.
#ifndef ATTEND_ENGINE_LOG_H_
#define ATTEND_ENGINE_LOG_H_

#include <string>

#include "attend/log.h"
#include "engine/format.h"

namespace attend {

inline bool Wants(const Logger* logger, LogLevel level) {
  return logger != nullptr && level >= logger->least();
}

// Ask Wants first: whoever makes a text in vain has allocated it in vain.
inline void Tell(Logger* logger, LogLevel level, LogCode code, const std::string& message) {
  if (Wants(logger, level)) logger->Log({level, code, message});
}

// It was loaded from `path`, whose bytes are `bytes`: what it is.
void TellLoaded(Logger* logger, const std::string& path, const FileBytes& bytes,
                const std::string& what);
// The same of `size` bytes in memory, which were copied.
void TellLoaded(Logger* logger, size_t size, const std::string& what);

// As Tell, with the text of snprintf, cut at 255 bytes: allocates nothing.
[[gnu::format(printf, 4, 5)]] void TellFormatted(Logger* logger, LogLevel level, LogCode code,
                                                 const char* format, ...);

}  // namespace attend

#endif  // ATTEND_ENGINE_LOG_H_
