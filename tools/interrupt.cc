#include "tools/interrupt.h"

#include <signal.h>
#include <unistd.h>

#include "tools/exit_code.h"

namespace attend::tools {
namespace {

volatile sig_atomic_t interrupted = 0;
volatile sig_atomic_t at_once = 0;

extern "C" void OnSignal(int) {
  if (interrupted != 0 || at_once != 0) _exit(kExitInterrupted);
  interrupted = 1;
}

}  // namespace

void InstallSignalHandlers() {
  struct sigaction action = {};
  action.sa_handler = OnSignal;  // no SA_RESTART: a blocked read has to return
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  struct sigaction standard = {};
  standard.sa_handler = SIG_DFL;
  sigaction(SIGPIPE, &standard, nullptr);
}

bool Interrupted() { return interrupted != 0; }

void EndAtOnceWhenInterrupted() { at_once = 1; }

}  // namespace attend::tools
