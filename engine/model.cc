#include "engine/model.h"

#include <string>
#include <utility>

#include "attend/attend.h"
#include "engine/check.h"
#include "engine/log.h"
#include "engine/os_error.h"
#include "kernels/gemm.h"
#include "kernels/isa.h"

namespace attend {
namespace {

ModelInfo MakeInfo(const ModelData& data) {
  const ModelConfig& config = data.config;
  ModelInfo info;
  info.architecture = config.architecture;
  info.source = config.source;
  info.description = config.description;
  info.task = config.task;
  info.precision = config.precision;
  info.hidden_size = static_cast<int32_t>(config.hidden_size);
  info.num_layers = static_cast<int32_t>(config.num_layers);
  info.num_heads = static_cast<int32_t>(config.num_heads);
  info.num_kv_heads = static_cast<int32_t>(config.num_kv_heads);
  info.head_dim = static_cast<int32_t>(config.head_dim);
  info.intermediate_size = static_cast<int32_t>(config.intermediate_size);
  info.vocab_size = static_cast<int32_t>(config.vocab_size);
  info.input_size = static_cast<int32_t>(config.input_size);
  info.type_vocab_size = static_cast<int32_t>(config.type_vocab_size);
  info.max_length = static_cast<int32_t>(config.max_length);
  info.labels = config.labels;
  if (config.pooling != Pooling::kNone) info.pooling = Name(config.pooling);
  info.normalized = config.normalize;
  if (const auto kind = data.file.FindString("tokenizer")) info.tokenizer = *kind;
  info.file_bytes = static_cast<int64_t>(data.bytes.bytes().size());
  for (size_t i = 0; i < data.file.num_tensors(); ++i) {
    const TensorView tensor = data.file.tensor(i);
    if (tensor.dtype == DType::kU8) continue;
    if (tensor.name.ends_with(".scale")) continue;
    info.num_parameters += static_cast<int64_t>(tensor.num_elements());
  }
  return info;
}

Result<Model> MakeModel(FileBytes bytes, std::string_view where) {
  Result<FileView> file = FileView::Open(bytes.bytes(), VerifyLevel::kStructure, where);
  if (!file.ok()) return file.status();
  auto data = std::make_shared<ModelData>(std::move(bytes), *file);
  Result<ModelConfig> config = ReadConfig(data->file);
  if (!config.ok()) {
    const Status& status = config.status();
    return Status(status.code(), status.what(), std::string(where) + ", " + status.where(),
                  status.hint());
  }
  data->config = std::move(*config);
  data->info = MakeInfo(*data);
  data->weights = std::make_unique<WeightCache>(&data->file, &data->bytes);
  return Model(std::move(data));
}

// What was loaded, and how.
void TellLoaded(Logger* logger, const std::string& path, const ModelData& data) {
  if (!Wants(logger, LogLevel::kWarning)) return;
  if (const int error = data.bytes.map_error(); error != 0) {
    Tell(logger, LogLevel::kWarning, LogCode::kNotMapped,
         OsError(error, "map the file, which was read into memory instead", path).ToString());
  }
  const ModelInfo& info = data.info;
  Tell(logger, LogLevel::kInfo, LogCode::kModelLoaded,
       path + ": " + std::to_string(info.file_bytes) +
           (data.bytes.mapped() ? " bytes, mapped; " : " bytes, read into memory; ") +
           info.architecture + " (" + info.source + ") for " + Name(info.task) + ", " +
           std::to_string(info.num_layers) + " layers of width " +
           std::to_string(info.hidden_size) + ", " + Name(info.precision));
}

}  // namespace

Result<Model> Model::Load(const std::string& path, const LoadOptions& options) {
  try {
    ATTEND_RETURN_IF_ERROR(
        CheckOption("LoadOptions", "mode", static_cast<int64_t>(options.mode), 0, 1));
    const bool read = options.mode == LoadMode::kRead;
    Result<FileBytes> bytes =
        FileBytes::Open(path, read ? FileBytes::Mode::kRead : FileBytes::Mode::kMap);
    if (!bytes.ok()) return bytes.status();
    Result<Model> model = MakeModel(std::move(*bytes), path);
    if (model.ok()) TellLoaded(options.logger, path, model->data());
    return model;
  } catch (const std::bad_alloc&) {
    return Status(ErrorCode::kCapacity, "no memory to load the model", path);
  }
}

Result<Model> Model::FromBytes(std::span<const std::byte> bytes) {
  try {
    return MakeModel(FileBytes::Copy(bytes), "bytes");
  } catch (const std::bad_alloc&) {
    return Status(ErrorCode::kCapacity, "no memory to load the model", "bytes");
  }
}

const ModelInfo& Model::info() const { return data_->info; }

Status LimitIsa(std::string_view name) {
  Result<Isa> isa = ParseIsa(name);
  if (!isa.ok()) return isa.status();
  return LimitIsa(*isa);
}

std::vector<std::string> AvailableIsas() {
  std::vector<std::string> names;
  for (const Isa isa : SupportedIsas()) names.emplace_back(IsaName(isa));
  return names;
}

std::string CurrentIsa() { return IsaName(ChosenIsa()); }

const char* Version() { return ATTEND_VERSION; }

std::string LibraryVersions() {
  return std::string(GemmLibraryVersion()) + ", " + SimdLibraryVersion();
}

}  // namespace attend
