// The lines of `attend run` that a model answers by generating.
#ifndef ATTEND_TOOLS_RAW_GENERATE_H_
#define ATTEND_TOOLS_RAW_GENERATE_H_

#include <span>
#include <string>

#include "attend/attend.h"
#include "attend/text.h"
#include "tools/growing_generator.h"
#include "tools/json_writer.h"
#include "tools/raw_lines.h"

namespace attend::tools {

class RawGenerator {
 public:
  RawGenerator(const Model& model, const GeneratorOptions& options)
      : generator_(model, options, /*limit=*/0) {}

  // Takes the memory for texts of usual length, so that a model that cannot generate is refused
  // before anything is read. Errors: as Generator::Create's.
  Status Prepare();

  // Appends a line {"generated": [ids, ...], "scores": [...]} for every item, whose settings lie
  // over those of the model file.
  Status Run(std::span<const RawItem> items, JsonWriter* writer);

 private:
  // Generates for items of the same settings.
  Result<std::vector<Generation>> Generate(std::span<const RawItem> items);

  GrowingGenerator generator_;
  std::string prepared_;  // RawItem::generate of what the generator is set to
};

}  // namespace attend::tools

#endif  // ATTEND_TOOLS_RAW_GENERATE_H_
