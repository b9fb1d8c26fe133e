#include "engine/models/models.h"

#include <string_view>

namespace attend {
namespace {

struct Architecture {
  std::string_view name;
  Status (*build)(Graph&);
};

constexpr Architecture kArchitectures[] = {
    {"encoder", &BuildEncoder},
    {"decoder", [](Graph& graph) { return BuildDecoder(graph); }},
};

}  // namespace

Status BuildGraph(Graph& graph) {
  std::string known;
  for (const Architecture& architecture : kArchitectures) {
    if (architecture.name == graph.config().architecture) return architecture.build(graph);
    known += known.empty() ? "" : ", ";
    known += architecture.name;
  }
  return Status(ErrorCode::kUnsupported,
                "the architecture is \"" + graph.config().architecture + "\", known are " + known,
                "architecture", "the file is for a newer attend");
}

}  // namespace attend
