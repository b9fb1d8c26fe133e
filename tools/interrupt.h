// SIGINT and SIGTERM end the program between two batches, so that what was computed is written and
// no half-written file stays behind.
#ifndef ATTEND_TOOLS_INTERRUPT_H_
#define ATTEND_TOOLS_INTERRUPT_H_

#include <string>

namespace attend::tools {

// Installs the handlers, and gives SIGPIPE its default back: a program whose reader has gone dies
// quietly, like every filter.
void InstallSignalHandlers();

// Whether the program was asked to end. A second signal ends it at once.
bool Interrupted();

// Waits until `fd` can be read, or was asked to end: a signal that comes just before a read would
// otherwise be seen only when there is something to read.
void WaitToRead(int fd);

// From now on the first signal ends the program at once, with exit code 130: for commands whose
// work cannot be stopped half-way and leaves nothing behind.
void EndAtOnceWhenInterrupted();

}  // namespace attend::tools

#endif  // ATTEND_TOOLS_INTERRUPT_H_
