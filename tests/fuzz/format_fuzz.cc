// The verifier and the loader on any bytes. Verified means: every accessor stays inside the file,
// and a file that is written from what they say is the same file, byte by byte (there is one layout
// for one content). Every input is tried as it is and with its checksums repaired, which no search
// would find.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "engine/config.h"
#include "engine/format.h"
#include "engine/format_layout.h"

namespace attend {
namespace {

// A failure that the fuzzer sees.
void Require(bool condition) {
  if (!condition) std::abort();
}

bool IsInside(std::span<const std::byte> part, std::span<const std::byte> whole) {
  return part.data() >= whole.data() && part.size() <= whole.size() &&
         static_cast<size_t>(part.data() - whole.data()) <= whole.size() - part.size();
}

// Makes the sizes and the checksums right wherever the tables allow to find them.
void Repair(std::vector<std::byte>* file) {
  namespace l = layout;
  if (file->size() < l::kPreambleBytes) return;
  std::byte* data = file->data();
  std::memcpy(data, l::kMagic.data(), l::kMagic.size());
  l::Store32(data + l::kVersionAt, l::kVersion);
  l::Store32(data + l::kEndianTagAt, l::kEndianTag);
  l::Store64(data + l::kRequiredFeaturesAt, 0);
  std::memset(data + l::kReservedAt, 0, l::kPreambleBytes - l::kReservedAt);
  l::Store64(data + l::kFileBytesAt, file->size());
  const uint64_t header_bytes = l::Load64(data + l::kHeaderBytesAt);
  if (header_bytes < l::kPreambleBytes || header_bytes > file->size()) return;
  const uint64_t values = l::Load64(data + l::kValueCountAt);
  const uint64_t tensors = l::Load64(data + l::kTensorCountAt);
  if (values > kMaxValues || tensors > kMaxTensors) return;
  const uint64_t table = l::kPreambleBytes + values * l::kValueRecordBytes;
  for (uint64_t i = 0; i < tensors; ++i) {
    const uint64_t at = table + i * l::kTensorRecordBytes;
    if (at + l::kTensorRecordBytes > header_bytes) break;
    const uint64_t offset = l::Load64(data + at + l::kDataOffsetAt);
    const uint64_t bytes = l::Load64(data + at + l::kDataBytesAt);
    if (bytes > file->size() || offset > file->size() - bytes) continue;
    l::Store64(data + at + l::kDataChecksumAt, l::DataChecksum({data + offset, bytes}));
  }
  std::byte checksum[16];
  l::HeaderChecksum({data, header_bytes}, checksum);
  std::memcpy(data + l::kChecksumAt, checksum, sizeof(checksum));
}

// Copies one value of whatever type it has.
void CopyValue(const FileView& view, std::string_view key, FileWriter* writer) {
  if (const auto value = view.FindInt(key)) return writer->SetInt(key, *value);
  if (const auto value = view.FindFloat(key)) return writer->SetFloat(key, *value);
  if (const auto value = view.FindBool(key)) return writer->SetBool(key, *value);
  if (const auto value = view.FindString(key)) return writer->SetString(key, *value);
  if (const auto value = view.FindInts(key)) return writer->SetInts(key, *value);
  const auto strings = view.FindStrings(key);
  Require(strings.has_value());
  writer->SetStrings(key, std::vector<std::string>(strings->begin(), strings->end()));
}

void CheckVerified(const FileView& view) {
  FileWriter writer;
  for (const std::string_view key : view.keys()) CopyValue(view, key, &writer);
  for (size_t i = 0; i < view.num_tensors(); ++i) {
    const TensorView tensor = view.tensor(i);
    Require(IsInside(tensor.bytes, view.bytes()));
    Require(tensor.num_elements() * DTypeSize(tensor.dtype) == tensor.bytes.size());
    const auto found = view.FindTensor(tensor.name);
    Require(found && found->bytes.data() == tensor.bytes.data());
    writer.AddTensor(tensor.name, tensor.dtype, {tensor.shape.begin(), tensor.shape.end()},
                     [tensor](std::span<std::byte> out) {
                       std::memcpy(out.data(), tensor.bytes.data(), out.size());
                       return Status();
                     });
  }
  Result<std::vector<std::byte>> again = writer.WriteToBytes();
  Require(again.ok() && again->size() == view.bytes().size());
  // The optional features are the one thing of a file that has no accessor.
  namespace l = layout;
  if (l::Load64(view.bytes().data() + l::kOptionalFeaturesAt) == 0) {
    Require(std::memcmp(again->data(), view.bytes().data(), again->size()) == 0);
  }
  const Result<ModelConfig> config = ReadConfig(view);
  if (config.ok()) Require(CheckConfig(*config).ok());
  (void)CheckFinite(view).ok();
}

void CheckOne(std::span<const std::byte> bytes) {
  // At an odd address too, where an aligned load would be undefined behaviour.
  std::vector<std::byte> shifted(bytes.size() + 1);
  std::copy(bytes.begin(), bytes.end(), shifted.begin() + 1);
  const VerifyReport report = Verify(std::span(shifted).subspan(1), VerifyLevel::kFull);
  const FileBytes file = FileBytes::Copy(bytes);
  Require(report.error == Verify(file.bytes(), VerifyLevel::kFull).error);
  const Result<FileView> view = FileView::Open(file.bytes(), VerifyLevel::kFull, "fuzz");
  Require(view.ok() == report.ok());
  if (view.ok()) return CheckVerified(*view);
  Require(!view.status().what().empty());
}

}  // namespace
}  // namespace attend

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  attend::CheckOne(bytes);
  std::vector<std::byte> repaired(bytes.begin(), bytes.end());
  attend::Repair(&repaired);
  attend::CheckOne(repaired);
  return 0;
}
