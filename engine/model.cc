#include "engine/model.h"

#include <string>
#include <utility>

#include "attend/attend.h"
#include "engine/log.h"
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

// What was loaded, in a few words.
std::string Summary(const ModelInfo& info) {
  return info.architecture + " (" + info.source + ") for " + Name(info.task) + ", " +
         std::to_string(info.num_layers) + " layers of width " + std::to_string(info.hidden_size) +
         ", " + Name(info.precision);
}

}  // namespace

Result<Model> Model::Load(const std::string& path, const LoadOptions& options) {
  try {
    Result<FileBytes> bytes = FileBytes::Open(path, options);
    if (!bytes.ok()) return bytes.status();
    Result<Model> model = MakeModel(std::move(*bytes), path);
    if (model.ok() && Wants(options.logger, LogLevel::kWarning)) {
      TellLoaded(options.logger, path, model->data().bytes, Summary(model->info()));
    }
    return model;
  } catch (const std::bad_alloc&) {
    return Status(ErrorCode::kCapacity, "no memory to load the model", path);
  }
}

Result<Model> Model::FromBytes(std::span<const std::byte> bytes, const LoadOptions& options) {
  try {
    Result<Model> model = MakeModel(FileBytes::Copy(bytes), "bytes");
    if (model.ok() && Wants(options.logger, LogLevel::kInfo)) {
      TellLoaded(options.logger, bytes.size(), Summary(model->info()));
    }
    return model;
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
