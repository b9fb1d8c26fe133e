#include "tools/raw_generate.h"

#include <algorithm>
#include <vector>

namespace attend::tools {

Status RawGenerator::Prepare() { return generator_.For(1).status(); }

Result<std::vector<Generation>> RawGenerator::Generate(std::span<const RawItem> items) {
  size_t longest = 1, longest_begun = 1;
  std::vector<GenerationInput> inputs;
  for (const RawItem& item : items) {
    inputs.push_back({.ids = item.ids, .decoder_ids = item.decoder_ids});
    longest = std::max(longest, item.ids.size());
    longest_begun = std::max(longest_begun, item.decoder_ids.size() + 1);  // and the start token
  }
  bool is_new = false;
  const Result<Generator*> generator = generator_.For(longest, longest_begun, &is_new);
  if (!generator.ok()) return generator.status();
  if (is_new) prepared_.clear();
  const RawItem& first = items.front();
  if (first.generate != prepared_) {
    ATTEND_RETURN_IF_ERROR((*generator)->Set(first.settings));
    prepared_ = first.generate;
  }
  return (*generator)->GenerateIds(inputs);
}

Status RawGenerator::Run(std::span<const RawItem> items, JsonWriter* writer) {
  for (size_t first = 0; first < items.size();) {
    size_t last = first + 1;
    while (last < items.size() && items[last].generate == items[first].generate) ++last;
    const Result<std::vector<Generation>> generations =
        Generate(items.subspan(first, last - first));
    if (!generations.ok()) return generations.status();
    for (const Generation& generation : *generations) {
      writer->BeginObject().Key("generated").BeginArray();
      for (const GeneratedText& output : generation.outputs) {
        writer->BeginArray();
        for (int32_t id : output.ids) writer->Int(id);
        writer->EndArray();
      }
      writer->EndArray().Key("scores").BeginArray();
      for (const GeneratedText& output : generation.outputs) {
        writer->Float(static_cast<float>(output.score));
      }
      writer->EndArray().EndObject().EndLine();
    }
    first = last;
  }
  return {};
}

}  // namespace attend::tools
