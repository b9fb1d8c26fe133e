// Hugging Face folders for tests: made in a temporary place, changed, damaged, and removed again.
#ifndef ATTEND_TESTS_HF_FOLDER_H_
#define ATTEND_TESTS_HF_FOLDER_H_

#include <gtest/gtest.h>
#include <stdlib.h>

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace attend {

inline std::string ReadWhole(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// A tensor of a safetensors file under construction.
struct TestTensor {
  std::string dtype;
  std::vector<uint64_t> shape;
  std::string data;

  float* floats() { return reinterpret_cast<float*>(data.data()); }
};
using TestTensors = std::map<std::string, TestTensor>;

// [rows, columns] (or [rows], if columns is 0) of small numbers that `seed` decides.
inline TestTensor RandomTensor(uint64_t rows, uint64_t columns, uint32_t seed) {
  TestTensor tensor{"F32", {rows}, {}};
  if (columns > 0) tensor.shape.push_back(columns);
  const size_t count = rows * (columns > 0 ? columns : 1);
  tensor.data.resize(count * sizeof(float));
  for (size_t i = 0; i < count; ++i) {
    seed = seed * 1664525u + 1013904223u;
    const float value = static_cast<float>(static_cast<int32_t>(seed)) * 0x1p-32f;
    std::memcpy(tensor.data.data() + i * sizeof(value), &value, sizeof(value));
  }
  return tensor;
}

// The bytes of a safetensors file: a length, a header, data.
inline std::string WithLength(const std::string& header, const std::string& data) {
  const uint64_t length = header.size();
  std::string bytes(sizeof(length), '\0');
  std::memcpy(bytes.data(), &length, sizeof(length));
  return bytes + header + data;
}

inline std::string SafetensorsBytes(const TestTensors& tensors) {
  nlohmann::json header = nlohmann::json::object();
  std::string data;
  for (const auto& [name, tensor] : tensors) {
    header[name] = {{"dtype", tensor.dtype},
                    {"shape", tensor.shape},
                    {"data_offsets", {data.size(), data.size() + tensor.data.size()}}};
    data += tensor.data;
  }
  return WithLength(header.dump(), data);
}

inline TestTensors ReadTensors(const std::string& path) {
  const std::string bytes = ReadWhole(path);
  uint64_t length = 0;
  std::memcpy(&length, bytes.data(), sizeof(length));
  const auto header = nlohmann::json::parse(bytes.substr(8, length));
  TestTensors tensors;
  for (const auto& [name, entry] : header.items()) {
    if (name == "__metadata__") continue;
    const size_t begin = entry["data_offsets"][0], end = entry["data_offsets"][1];
    tensors[name] = {entry["dtype"], entry["shape"], bytes.substr(8 + length + begin, end - begin)};
  }
  return tensors;
}

// A folder that is removed with the object.
class TestFolder {
 public:
  TestFolder() {
    std::string pattern = ::testing::TempDir() + "attend_convert_XXXXXX";
    path_ = mkdtemp(pattern.data());
  }
  // A copy of one of tests/data/hf, whose config and weights can be changed before Save().
  explicit TestFolder(std::string_view golden) : TestFolder() {
    const std::filesystem::path from = std::string(ATTEND_TEST_DATA "/hf/") + std::string(golden);
    for (const auto& entry : std::filesystem::directory_iterator(from)) {
      const std::string name = entry.path().filename();
      if (name.starts_with("golden") || name.starts_with("cases") || name.ends_with(".md"))
        continue;
      Write(name, ReadWhole(entry.path()));
    }
    config = nlohmann::json::parse(ReadWhole(Path("config.json")));
    if (std::filesystem::exists(Path("model.safetensors"))) {
      tensors = ReadTensors(Path("model.safetensors"));
    }
  }
  TestFolder(const TestFolder&) = delete;
  TestFolder& operator=(const TestFolder&) = delete;
  ~TestFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  const std::string& path() const { return path_; }
  std::string Path(std::string_view name) const { return path_ + "/" + std::string(name); }
  void Write(std::string_view name, const std::string& bytes) const {
    std::filesystem::create_directories(std::filesystem::path(Path(name)).parent_path());
    std::ofstream(Path(name), std::ios::binary) << bytes;
  }
  void Remove(std::string_view name) const { std::filesystem::remove_all(Path(name)); }
  bool Has(std::string_view name) const { return std::filesystem::exists(Path(name)); }
  // Writes config.json and model.safetensors as they are now.
  void Save() const {
    Write("config.json", config.dump());
    Write("model.safetensors", SafetensorsBytes(tensors));
  }

  nlohmann::json config;
  TestTensors tensors;

 private:
  std::string path_;
};

}  // namespace attend

#endif  // ATTEND_TESTS_HF_FOLDER_H_
