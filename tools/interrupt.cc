#include "tools/interrupt.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>

#include "tools/exit_code.h"

namespace attend::tools {
namespace {

volatile sig_atomic_t interrupted = 0;
volatile sig_atomic_t at_once = 0;
int wake_pipe[2] = {-1, -1};  // has a byte in it once a signal has come

extern "C" void OnSignal(int) {
  if (interrupted != 0 || at_once != 0) _exit(kExitInterrupted);
  interrupted = 1;
  const int error = errno;
  [[maybe_unused]] const ssize_t ignored = write(wake_pipe[1], "", 1);
  errno = error;
}

}  // namespace

void InstallSignalHandlers() {
  // Without the pipe, signals are still seen between two batches.
  if (pipe2(wake_pipe, O_CLOEXEC | O_NONBLOCK) != 0) wake_pipe[0] = wake_pipe[1] = -1;
  struct sigaction action = {};
  action.sa_handler = OnSignal;  // no SA_RESTART: a blocked read has to return
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  struct sigaction standard = {};
  standard.sa_handler = SIG_DFL;
  sigaction(SIGPIPE, &standard, nullptr);
}

bool Interrupted() { return interrupted != 0; }

void WaitToRead(int fd) {
  struct pollfd fds[2] = {{fd, POLLIN, 0}, {wake_pipe[0], POLLIN, 0}};
  // Whatever else poll says, the read says it better.
  while (poll(fds, 2, -1) < 0 && errno == EINTR && interrupted == 0) {
  }
}

void EndAtOnceWhenInterrupted() { at_once = 1; }

}  // namespace attend::tools
