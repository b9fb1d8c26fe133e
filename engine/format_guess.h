// What bytes that are not an .attend file seem to be, for messages.
#ifndef ATTEND_ENGINE_FORMAT_GUESS_H_
#define ATTEND_ENGINE_FORMAT_GUESS_H_

#include <cstddef>
#include <span>

namespace attend {

struct FormatGuess {
  const char* what;  // "This is a Git-LFS pointer, not the model itself."
  const char* hint;  // what to do about it
};

// Looks at the first bytes only. Never fails: what nothing is known of is "not an .attend file".
FormatGuess GuessFormat(std::span<const std::byte> bytes) noexcept;

}  // namespace attend

#endif  // ATTEND_ENGINE_FORMAT_GUESS_H_
