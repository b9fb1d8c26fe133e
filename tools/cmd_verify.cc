// attend verify: is a file whole.
#include <cmath>
#include <cstring>

#include "engine/config.h"
#include "engine/format.h"
#include "tools/commands.h"
#include "tools/interrupt.h"
#include "tools/json_writer.h"

namespace attend::tools {
namespace {

// Whether the exponent of one of `count` numbers is all ones: infinity or not a number.
template <typename Bits>
bool AllFinite(std::span<const std::byte> bytes, Bits exponent_mask, size_t* bad) {
  for (size_t i = 0; i < bytes.size() / sizeof(Bits); ++i) {
    Bits value;
    std::memcpy(&value, bytes.data() + i * sizeof(Bits), sizeof(Bits));
    if ((value & exponent_mask) == exponent_mask) {
      *bad = i;
      return false;
    }
  }
  return true;
}

bool IsFinite(const TensorView& tensor, size_t* bad) {
  switch (tensor.dtype) {
    case DType::kF32:
      return AllFinite<uint32_t>(tensor.bytes, 0x7F800000u, bad);
    case DType::kF16:
      return AllFinite<uint16_t>(tensor.bytes, uint16_t{0x7C00}, bad);
    case DType::kBf16:
      return AllFinite<uint16_t>(tensor.bytes, uint16_t{0x7F80}, bad);
    default:
      return true;
  }
}

// Structure, checksums, config against tensors, and every number finite.
Status VerifyFile(std::span<const std::byte> bytes, const std::string& path, size_t* tensors) {
  Result<FileView> file = FileView::Open(bytes, VerifyLevel::kFull, path);
  if (!file.ok()) return file.status();
  Result<ModelConfig> config = ReadConfig(*file);
  if (!config.ok()) {
    const Status& status = config.status();
    return Status(status.code(), status.what(), path + ", " + status.where(), status.hint());
  }
  for (size_t i = 0; i < file->num_tensors(); ++i) {
    const TensorView tensor = file->tensor(i);
    size_t bad = 0;
    if (IsFinite(tensor, &bad)) continue;
    return Status(ErrorCode::kCorrupt,
                  "element " + std::to_string(bad) + " is infinite or not a number",
                  path + ", tensor " + std::string(tensor.name), "convert the model again");
  }
  *tensors = file->num_tensors();
  return {};
}

int RunVerify(const std::string& path, Console* console) {
  EndAtOnceWhenInterrupted();
  Result<FileBytes> bytes = FileBytes::Open(path, FileBytes::Mode::kMap);
  if (!bytes.ok()) return console->Fail(bytes.status());
  size_t tensors = 0;
  const Status status = VerifyFile(bytes->bytes(), path, &tensors);
  // What is damaged is an answer here, not a failure to answer.
  const bool answered = status.ok() || status.code() == ErrorCode::kCorrupt;
  if (console->json && answered) {
    JsonWriter writer;
    writer.BeginObject().Key("file").String(path).Key("ok").Bool(status.ok());
    writer.Key("bytes").Int(static_cast<int64_t>(bytes->bytes().size()));
    if (status.ok()) writer.Key("tensors").Int(static_cast<int64_t>(tensors));
    if (!status.ok()) writer.Key("what").String(status.what()).Key("where").String(status.where());
    writer.EndObject().EndLine();
    console->out().Write(writer.text());
  }
  if (!status.ok()) return answered ? console->Fail(status, kExitNo) : console->Fail(status);
  if (!console->json) {
    console->out().Write(Printable(path) + ": whole (" + std::to_string(tensors) + " tensors, " +
                         std::to_string(bytes->bytes().size()) + " bytes)\n");
  }
  return console->Finish();
}

}  // namespace

void AddVerify(Program* program) {
  program->Add("verify", "Is a file whole: structure, checksums, every number finite", "FILE", 1, 1,
               [](const Program::Arguments& arguments, Console* console) {
                 return RunVerify(arguments[0], console);
               });
}

}  // namespace attend::tools
