#include "tools/convert_source.h"

#include <set>
#include <utility>

#include "tools/json.h"

namespace attend {
namespace {

constexpr char kIndexName[] = "model.safetensors.index.json";

// What to say when there are no safetensors.
Status NoWeights(const FolderReader& folder) {
  const std::string where = folder.PathOf("model.safetensors");
  const std::string save = "load it with transformers and save it again with save_pretrained";
  for (const char* name : {"pytorch_model.bin", "pytorch_model.bin.index.json"}) {
    if (!folder.Has(name)) continue;
    return {ErrorCode::kUnsupported,
            std::string("expected model.safetensors, got ") + name +
                ", a pickle, which can run code when it is read",
            where, save + "(FOLDER, safe_serialization=True)"};
  }
  for (const char* name : {"tf_model.h5", "flax_model.msgpack", "model.ckpt.index"}) {
    if (!folder.Has(name)) continue;
    return {ErrorCode::kUnsupported,
            std::string("expected model.safetensors, got ") + name + " of another framework", where,
            save};
  }
  return {ErrorCode::kNotFound,
          "expected model.safetensors or " + std::string(kIndexName) + ", got neither", where,
          "give the folder that holds config.json and the weights"};
}

}  // namespace

Status WeightStore::AddFile(const FolderReader& folder, const std::string& name,
                            const std::string& prefix) {
  Result<InputFile> input = folder.OpenFile(name);
  if (!input.ok()) return input.status();
  file_bytes_ += input->size();
  Result<SafetensorsFile> file = SafetensorsFile::Open(*std::move(input));
  if (!file.ok()) return file.status();
  files_.push_back(std::make_unique<SafetensorsFile>(*std::move(file)));
  const SafetensorsFile& added = *files_.back();
  for (const StoredTensor& tensor : added.tensors()) {
    const auto [place, inserted] =
        tensors_.emplace(prefix + tensor.name, SourceTensor{&added, &tensor});
    if (!inserted) {
      return {ErrorCode::kCorrupt,
              "the tensor " + Quoted(tensor.name) + " is in this file and in " +
                  place->second.file->path(),
              added.path()};
    }
  }
  return {};
}

Status WeightStore::AddShards(const FolderReader& folder, const std::string& prefix) {
  const std::string where = folder.PathOf(kIndexName);
  auto index = folder.ReadJson(kIndexName, kMaxJsonBytes);
  if (!index.ok()) return index.status();
  const nlohmann::json* map = JsonFind(*index, "weight_map");
  if (map == nullptr || !map->is_object() || map->empty()) {
    return {ErrorCode::kCorrupt, "expected an object \"weight_map\" of tensors and their files",
            where};
  }
  std::set<std::string> names;
  for (const auto& [tensor, file] : map->items()) {
    const auto* name = file.get_ptr<const std::string*>();
    if (name == nullptr || !IsPlainName(*name) || !name->ends_with(".safetensors")) {
      return {ErrorCode::kCorrupt,
              Quoted(tensor) + " is in " + JsonExcerpt(file) +
                  "; expected the plain name of a .safetensors file in this folder",
              where};
    }
    names.insert(*name);
    if (names.size() > kMaxShards) {
      return {ErrorCode::kCapacity, "more than " + std::to_string(kMaxShards) + " shards", where};
    }
  }
  for (const std::string& name : names) {
    ATTEND_RETURN_IF_ERROR(AddFile(folder, name, prefix));
  }
  for (const auto& [tensor, file] : map->items()) {
    const SourceTensor* found = Find(prefix + tensor);
    const std::string path = folder.PathOf(file.get_ref<const std::string&>());
    if (found == nullptr || found->file->path() != path) {
      return {ErrorCode::kCorrupt,
              "expected the tensor " + Quoted(tensor) + " in " + path + ", which does not have it",
              where};
    }
  }
  return {};
}

Status WeightStore::AddFolder(const FolderReader& folder, const std::string& prefix) {
  // As transformers does: one file, if there is one, goes before shards.
  if (folder.Has("model.safetensors")) return AddFile(folder, "model.safetensors", prefix);
  if (folder.Has(kIndexName)) return AddShards(folder, prefix);
  return NoWeights(folder);
}

const SourceTensor* WeightStore::Find(std::string_view name) const {
  const auto found = tensors_.find(name);
  return found == tensors_.end() ? nullptr : &found->second;
}

}  // namespace attend
