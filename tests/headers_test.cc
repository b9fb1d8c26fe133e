// The public headers stand alone: each compiles by itself without a warning, and none of them
// brings in what attend is made of.
#include <gtest/gtest.h>
#include <stdio.h>

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace attend {
namespace {

// The exit status and the output of a shell command.
std::pair<int, std::string> RunCommand(const std::string& command) {
  std::string output;
  FILE* pipe = popen((command + " 2>&1").c_str(), "r");
  if (pipe == nullptr) return {-1, "popen failed"};
  char buffer[4096];
  for (size_t n; (n = fread(buffer, 1, sizeof(buffer), pipe)) > 0;) output.append(buffer, n);
  return {pclose(pipe), output};
}

// Compiles a file of `text` with the flags, and returns as RunCommand does.
std::pair<int, std::string> Compile(const std::string& text, const std::string& flags) {
  return RunCommand("printf '%s\\n' '" + text + "' | '" ATTEND_CXX_COMPILER "' -x c++ " + flags +
                    " -I '" ATTEND_SOURCE_DIR "/include' -");
}

std::vector<std::string> PublicHeaders() {
  std::vector<std::string> headers;
  const std::filesystem::path root = ATTEND_SOURCE_DIR "/include";
  for (const auto& entry : std::filesystem::recursive_directory_iterator(root)) {
    if (!entry.is_regular_file() || entry.path().extension() != ".h") continue;
    headers.push_back(std::filesystem::relative(entry.path(), root).generic_string());
  }
  return headers;
}

constexpr const char* kStrict =
    "-std=c++20 -fsyntax-only -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion "
    "-Werror -fno-exceptions -fno-rtti";

TEST(Headers, EachCompilesAloneWithoutWarnings) {
  EXPECT_GE(PublicHeaders().size(), 3u);
  for (const std::string& header : PublicHeaders()) {
    // Twice: the guard works.
    const std::string include = "#include <" + header + ">";
    const auto [status, output] = Compile(include + "\n" + include + "\nint main() {}", kStrict);
    EXPECT_EQ(status, 0) << header << "\n" << output;
  }
}

TEST(Headers, AWarningIsFound) {
  EXPECT_NE(Compile("inline int F(int unused) { return 0; }", kStrict).first, 0);
}

TEST(Headers, NothingOfTheInsideShows) {
  for (const std::string& header : PublicHeaders()) {
    const auto [status, files] = Compile("#include <" + header + ">", "-std=c++20 -M");
    EXPECT_EQ(status, 0) << files;
    for (const char* foreign :
         {"hwy", "dnnl", "omp.h", "nlohmann", "xxhash", "/engine/", "/kernels/"}) {
      EXPECT_EQ(files.find(foreign), std::string::npos) << header << " brings in " << foreign;
    }
  }
}

}  // namespace
}  // namespace attend
