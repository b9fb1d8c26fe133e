// The header of a safetensors file, and JSON, from any bytes. The first two bytes are the length of
// the data that would follow, the rest is the header. What is accepted must cover the data exactly,
// every byte by one tensor, and be JSON for the strict reader too.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tools/json.h"
#include "tools/safetensors.h"

namespace attend {
namespace {

// A failure that the fuzzer sees.
void Require(bool condition) {
  if (!condition) std::abort();
}

void CheckHeader(std::string_view header, uint64_t data_bytes) {
  const uint64_t begin = 8 + header.size();
  const auto tensors = ParseSafetensorsHeader(header, begin + data_bytes, "fuzz");
  if (!tensors.ok()) return Require(!tensors.status().what().empty());
  std::vector<std::pair<uint64_t, uint64_t>> ranges;
  std::string last;
  for (const StoredTensor& tensor : *tensors) {
    Require(!tensor.name.empty() && (last.empty() || last < tensor.name));
    last = tensor.name;
    uint64_t bits = StoredTypeBits(tensor.type);
    for (const uint64_t dimension : tensor.shape) {
      Require(!__builtin_mul_overflow(bits, dimension, &bits));
    }
    Require(bits == tensor.size_bytes * 8);
    ranges.emplace_back(tensor.offset, tensor.size_bytes);
  }
  std::sort(ranges.begin(), ranges.end());
  uint64_t end = begin;
  for (const auto& [offset, size] : ranges) {
    Require(offset == end);
    end += size;
  }
  Require(end == begin + data_bytes);
  Require(ParseJson(header, "fuzz").ok());
}

}  // namespace
}  // namespace attend

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto json = attend::ParseJson(bytes, "fuzz");
  if (json.ok()) attend::Require(attend::ParseJson(json->dump(), "again").ok());
  if (size < 2) return 0;
  attend::CheckHeader(bytes.substr(2), uint64_t{data[0]} | uint64_t{data[1]} << 8);
  return 0;
}
