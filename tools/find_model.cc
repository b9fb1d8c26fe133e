#include "tools/find_model.h"

#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <vector>

namespace attend::tools {

Result<std::string> FindShippedModel(const std::string& name) {
  namespace fs = std::filesystem;
  std::vector<fs::path> folders;
  const char* variable = std::getenv("ATTEND_MODELS");
  if (variable != nullptr && *variable != '\0') folders.emplace_back(variable);
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  if (!error) {
    const fs::path folder = program.parent_path();
    folders.push_back(folder / "../share/attend/models");  // an installation
    folders.push_back(folder / "models");                  // a build tree anywhere: a link
    folders.push_back(folder / "../../models");            // a build tree inside the source
    folders.push_back(folder / "../../../models");
  }
  std::string looked;
  for (const fs::path& folder : folders) {
    const fs::path path = (folder / name).lexically_normal();
    if (fs::exists(path, error)) return path.string();
    looked += (looked.empty() ? "" : ", ") + path.parent_path().string();
  }
  return Status(ErrorCode::kNotFound, "the shipped model is in none of: " + looked, name,
                "name a model with -m, or its folder with ATTEND_MODELS");
}

}  // namespace attend::tools
