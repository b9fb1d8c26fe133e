// How a folder says that its model generates: generation_config.json, or, in old folders, the same
// fields in config.json.
#ifndef ATTEND_TOOLS_CONVERT_GENERATION_H_
#define ATTEND_TOOLS_CONVERT_GENERATION_H_

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "attend/status.h"
#include "attend/text.h"
#include "tools/folder.h"

namespace attend {

// The settings of the folder, checked against `vocab_size`; what a user should know is added to
// `notes`. `config` is the folder's config.json.
// Errors: kUnsupported (a field that changes what is generated in a way that attend does not do:
// names it, its value and what is allowed); kCorrupt (a value that no such field can have); kIo.
Result<GenerationSettings> ReadFolderGeneration(const FolderReader& folder,
                                                const nlohmann::json& config, int64_t vocab_size,
                                                std::vector<std::string>* notes);

}  // namespace attend

#endif  // ATTEND_TOOLS_CONVERT_GENERATION_H_
