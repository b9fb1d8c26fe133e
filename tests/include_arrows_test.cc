// Who may include whom: the arrows of the house, held against every source file.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace attend {
namespace {

// Files under `folder` may include what begins with one of `allowed`. The first rule that fits a
// file's path decides.
struct Arrow {
  std::string_view folder;
  std::vector<std::string_view> allowed;
};

const std::vector<Arrow>& Arrows() {
  static const std::vector<Arrow> arrows = {
      {"include/attend/", {"attend/"}},
      // Text knows no kernel, and no more of the engine than where its bytes come from.
      {"engine/text/",
       {"attend/", "engine/text/", "engine/format.h", "engine/log.h", "engine/model.h"}},
      {"engine/", {"attend/", "engine/", "kernels/"}},
      {"kernels/", {"attend/status.h", "kernels/", "hwy/"}},
      // Converters write what the engine reads: the file, its config, and the tokenizer in it.
      {"tools/unicode/", {"tools/unicode/", "engine/text/"}},
      // One command measures, and what it measures with sees the inside of the engine.
      {"tools/cmd_bench", {"attend/", "tools/", "bench/harness/", "engine/atomic_file.h"}},
      {"tools/cmd_info", {"attend/", "tools/", "bench/harness/machine.h"}},
      {"tools/",
       {"attend/", "tools/", "engine/format.h", "engine/config.h", "engine/atomic_file.h",
        "engine/generate_settings.h", "engine/layer_choice.h", "engine/text/tokenizer_data.h"}},
      {"tests/", {"attend/", "bench/harness/", "engine/", "kernels/", "tests/", "tools/", "hwy/"}},
      // It is part of the program, as tests/ and the other benches are not.
      {"bench/harness/", {"attend/", "bench/harness/", "engine/", "kernels/", "hwy/"}},
      {"bench/", {"attend/", "engine/", "kernels/", "tests/", "bench/", "hwy/"}},
      {"examples/", {"attend/"}},
  };
  return arrows;
}

// Foreign headers that live behind one door each.
struct Door {
  std::string_view header;
  std::vector<std::string_view> files;
};

const std::vector<Door>& Doors() {
  static const std::vector<Door> doors = {
      {"dnnl", {"kernels/gemm", "bench/harness/onednn_gemm"}},
      {"oneapi/dnnl", {"kernels/gemm", "bench/harness/onednn_gemm"}},
      {"omp.h",
       {"engine/parallel", "tests/parallel_test", "tests/openmp_host_test", "tests/manners_test"}},
      {"immintrin.h", {"kernels/", "engine/parallel"}},  // parallel: the pause of a spin barrier
      {"hwy/", {"kernels/", "tests/", "bench/"}},
      {"xxhash.h", {"engine/format"}},
      {"nlohmann/", {"tools/", "tests/", "bench/"}},
      {"CLI/", {"tools/"}},
      {"utf8proc.h", {"tools/unicode/"}},
      {"gtest/", {"tests/"}},
      {"benchmark/", {"bench/"}},
      {"attend/", {"include/", "engine/", "kernels/", "tools/", "tests/", "bench/", "examples/"}},
      {"thread", {"engine/parallel", "tests/", "bench/", "tools/", "examples/"}},
      {"regex", {}},  // slow, recursive, and dependent on the locale
      {"iostream", {"tools/", "tests/", "bench/", "examples/"}},  // the library prints nothing
  };
  return doors;
}

bool StartsWithAny(std::string_view text, const std::vector<std::string_view>& starts) {
  for (const std::string_view start : starts) {
    if (text.starts_with(start)) return true;
  }
  return false;
}

// The header that `line` includes, with its opening quote or bracket in front; or nothing.
std::string_view IncludedIn(std::string_view line) {
  const size_t hash = line.find_first_not_of(" \t");
  if (hash == std::string_view::npos || line[hash] != '#') return {};
  const size_t word = line.find_first_not_of(" \t", hash + 1);
  if (word == std::string_view::npos || !line.substr(word).starts_with("include")) return {};
  const size_t begin = line.find_first_of("\"<", word);
  if (begin == std::string_view::npos) return {};
  const size_t end = line.find_first_of("\">", begin + 1);
  if (end == std::string_view::npos) return {};
  return line.substr(begin, end - begin);
}

// What is wrong with `file` including `header` ("\"a/b.h" or "<c"), or nothing.
std::string Objection(std::string_view file, std::string_view header) {
  const std::string_view name = header.substr(1);
  for (const Door& door : Doors()) {
    if (name == door.header || (name.starts_with(door.header) && door.header.ends_with("/")) ||
        (door.header.find("dnnl") != std::string_view::npos && name.starts_with(door.header))) {
      if (!StartsWithAny(file, door.files)) return "is behind a door that this file is not";
    }
  }
  if (header[0] != '"') return {};
  for (const Arrow& arrow : Arrows()) {
    if (!file.starts_with(arrow.folder)) continue;
    return StartsWithAny(name, arrow.allowed) ? "" : "has no arrow to it";
  }
  return "lies in no folder of the house";
}

std::vector<std::string> Objections(const std::string& file, std::istream& in) {
  std::vector<std::string> found;
  int number = 0;
  for (std::string line; std::getline(in, line);) {
    ++number;
    const std::string_view header = IncludedIn(line);
    if (header.empty()) continue;
    const std::string objection = Objection(file, header);
    if (objection.empty()) continue;
    found.push_back(file + ":" + std::to_string(number) + ": " + std::string(header.substr(1)) +
                    " " + objection);
  }
  return found;
}

TEST(IncludeArrows, EveryFileKeepsToThem) {
  const std::filesystem::path root = ATTEND_SOURCE_DIR;
  int files = 0;
  for (const char* folder :
       {"include", "engine", "kernels", "tools", "tests", "bench", "examples"}) {
    if (!std::filesystem::exists(root / folder)) continue;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(root / folder)) {
      const std::string extension = entry.path().extension();
      if (extension != ".h" && extension != ".cc" && extension != ".inc") continue;
      std::ifstream in(entry.path());
      const std::string file = std::filesystem::relative(entry.path(), root).generic_string();
      for (const std::string& objection : Objections(file, in)) ADD_FAILURE() << objection;
      ++files;
    }
  }
  EXPECT_GT(files, 60);
}

TEST(IncludeArrows, WhatBreaksThemIsFound) {
  const struct {
    const char* file;
    const char* text;
    bool allowed;
  } cases[] = {
      {"engine/plan.cc", "#include \"kernels/gemm.h\"", true},
      {"kernels/gemm.cc", "#include <dnnl.h>", true},
      {"engine/parallel.cc", "#include <omp.h>", true},
      {"tools/main.cc", "#include \"engine/format.h\"", true},
      {"kernels/pool.cc", "#include <algorithm>", true},
      {"engine/plan.cc", "// #include <dnnl.h>", true},
      {"kernels/gemm.cc", "#include \"engine/plan.h\"", false},
      {"kernels/gemm.cc", "#include \"attend/attend.h\"", false},
      {"kernels/pool.cc", "#include <dnnl.hpp>", false},
      {"engine/session.cc", "  #  include <omp.h>", false},
      {"engine/session.cc", "#include \"hwy/highway.h\"", false},
      {"engine/session.cc", "#include \"tools/json.h\"", false},
      {"engine/config.cc", "#include <nlohmann/json.hpp>", false},
      {"engine/text/trie.cc", "#include \"kernels/gemm.h\"", false},
      {"include/attend/text.h", "#include \"engine/model.h\"", false},
      {"include/attend/text.h", "#include <iostream>", false},
      {"tools/main.cc", "#include \"kernels/gemm.h\"", false},
      {"tools/cmd_bench.cc", "#include \"bench/harness/document.h\"", true},
      {"tools/cmd_bench.cc", "#include \"engine/plan.h\"", false},
      {"tools/cmd_tag.cc", "#include \"bench/harness/document.h\"", false},
      {"tools/cmd_info.cc", "#include \"bench/harness/document.h\"", false},
      {"bench/harness/steps.cc", "#include \"engine/session.h\"", true},
      {"bench/harness/steps.cc", "#include \"tests/reference.h\"", false},
      {"bench/harness/steps.cc", "#include \"tools/console.h\"", false},
      {"examples/tag/main.cc", "#include \"engine/format.h\"", false},
      {"elsewhere/a.cc", "#include \"attend/attend.h\"", false},
  };
  for (const auto& c : cases) {
    std::istringstream in(c.text);
    EXPECT_EQ(Objections(c.file, in).empty(), c.allowed) << c.file << ": " << c.text;
  }
}

}  // namespace
}  // namespace attend
