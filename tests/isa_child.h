// Tests of what has one ISA a process: the test runs itself again, once an ISA.
#ifndef ATTEND_TESTS_ISA_CHILD_H_
#define ATTEND_TESTS_ISA_CHILD_H_

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "attend/attend.h"
#include "kernels/isa.h"
#include "tests/tile_emulator.h"

namespace attend::testing {

// The name of the ISA that this CPU lacks but tests can emulate (tests/tile_emulator.h), or "".
// Everything is slow there: give it little to do.
inline std::string Emulated() {
  return AvailableIsas().back() == "avx512_bf16" && EmulateTiles() ? "amx" : "";
}

// The ISA that this process is to use, already set; or null in the parent.
inline const char* ChildIsa() {
  const char* isa = std::getenv("ATTEND_TEST_ISA");
  if (isa == nullptr) return nullptr;
  if (isa == Emulated()) {
    SetIsaForTest(Isa::kAmx);
  } else {
    EXPECT_TRUE(LimitIsa(isa).ok()) << isa;
  }
  return isa;
}

// Runs the tests of `filter` of this program in a child that uses `isa`.
inline void ExpectChildPasses(const std::string& isa, const std::string& filter) {
  std::fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    setenv("ATTEND_TEST_ISA", isa.c_str(), 1);
    unsetenv("GTEST_OUTPUT");
    execl("/proc/self/exe", "test", ("--gtest_filter=" + filter).c_str(), nullptr);
    _exit(127);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << isa << ", status " << status;
}

}  // namespace attend::testing

#endif  // ATTEND_TESTS_ISA_CHILD_H_
