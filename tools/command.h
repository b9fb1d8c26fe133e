// One subcommand and its options. The only door to the parser, which is costly to compile.
#ifndef ATTEND_TOOLS_COMMAND_H_
#define ATTEND_TOOLS_COMMAND_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace attend::tools {

class Command {
 public:
  explicit Command(CLI::App* app) : app_(app) {}

  // --name: sets *value.
  void Flag(const std::string& name, bool* value, const std::string& description);
  // --name TYPE.
  void Text(const std::string& name, std::string* value, const std::string& type,
            const std::string& description, bool required = false);
  // --name N, from min to max.
  void Int(const std::string& name, int32_t* value, int32_t min, int32_t max,
           const std::string& description);
  // The same and others, with "not given" told apart.
  void OptionalInt(const std::string& name, std::optional<int32_t>* value, int32_t min, int32_t max,
                   const std::string& description);
  void OptionalFloat(const std::string& name, std::optional<double>* value,
                     const std::string& description);
  void OptionalSeed(const std::string& name, std::optional<uint64_t>* value,
                    const std::string& description);
  // --name TYPE, one of `allowed`.
  void Choice(const std::string& name, std::string* value, const std::string& type,
              const std::vector<std::string>& allowed, const std::string& description);
  // --name A,B: any of `allowed`, with commas.
  void Choices(const std::string& name, std::vector<std::string>* values, const std::string& type,
               const std::vector<std::string>& allowed, const std::string& description);

 private:
  CLI::App* app_;
};

}  // namespace attend::tools

#endif  // ATTEND_TOOLS_COMMAND_H_
