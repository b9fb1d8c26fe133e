// What tests of refused conversions share: a change of a folder, and what the error must say.
#ifndef ATTEND_TESTS_CONVERT_REFUSAL_H_
#define ATTEND_TESTS_CONVERT_REFUSAL_H_

#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/hf_folder.h"
#include "tools/convert.h"

namespace attend {

struct Refusal {
  const char* name;
  std::function<void(TestFolder&)> damage;
  ErrorCode code;
  const char* what;
};

// Damages a copy of `golden` and converts it onto a file that must stay as it was.
inline void ExpectRefused(const char* golden, const std::vector<Refusal>& cases) {
  for (const Refusal& c : cases) {
    SCOPED_TRACE(c.name);
    TestFolder folder(golden), out;
    c.damage(folder);
    out.Write("m", "as it was");
    ConvertReport report;
    const Status status =
        ConvertFolder({.folder = folder.path(), .output = out.Path("m")}, &report);
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.code(), c.code) << status.ToString();
    EXPECT_NE(status.ToString().find(c.what), std::string::npos) << status.ToString();
    EXPECT_TRUE(status.where().starts_with(folder.path())) << status.ToString();
    EXPECT_EQ(ReadWhole(out.Path("m")), "as it was");
    const auto left = std::filesystem::directory_iterator(out.path());
    EXPECT_EQ(std::distance(begin(left), end(left)), 1);
  }
}

// A change of one field of config.json.
inline Refusal Field(const char* name, const char* key, nlohmann::json value, ErrorCode code,
                     const char* what) {
  return {name,
          [key, value](TestFolder& folder) {
            folder.config[key] = value;
            folder.Save();
          },
          code, what};
}

// A change of the weights.
inline Refusal Weights(const char* name, std::function<void(TestTensors&)> change, ErrorCode code,
                       const char* what) {
  return {name,
          [change](TestFolder& folder) {
            change(folder.tensors);
            folder.Save();
          },
          code, what};
}

}  // namespace attend

#endif  // ATTEND_TESTS_CONVERT_REFUSAL_H_
