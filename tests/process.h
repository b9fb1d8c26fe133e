// What tests ask the system about processes, and run through its shell.
#ifndef ATTEND_TESTS_PROCESS_H_
#define ATTEND_TESTS_PROCESS_H_

#include <stdio.h>
#include <sys/types.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <string>
#include <utility>

namespace attend::testing {

// A field of /proc/PID/status that is given in kB ("VmRSS", what is resident; "VmHWM", the most
// that ever was), in bytes; -1: there is none.
inline int64_t StatusBytes(const std::string& field, pid_t pid = getpid()) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/status");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with(field + ":")) return std::atoll(line.c_str() + field.size() + 1) * 1024;
  }
  return -1;
}

// The exit status and the output of a shell command.
inline std::pair<int, std::string> RunCommand(const std::string& command) {
  std::string output;
  FILE* const pipe = popen((command + " 2>&1").c_str(), "r");
  if (pipe == nullptr) return {-1, "popen failed"};
  char buffer[4096];
  for (size_t n; (n = fread(buffer, 1, sizeof(buffer), pipe)) > 0;) output.append(buffer, n);
  return {pclose(pipe), output};
}

}  // namespace attend::testing

#endif  // ATTEND_TESTS_PROCESS_H_
