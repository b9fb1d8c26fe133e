// The command line: parses it, says what is wrong with it, and runs the subcommand.
#ifndef ATTEND_TOOLS_PROGRAM_H_
#define ATTEND_TOOLS_PROGRAM_H_

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tools/command.h"
#include "tools/console.h"

namespace CLI {
class App;
}

namespace attend::tools {

class Program {
 public:
  // Positional arguments: texts may look like anything, so that the parser leaves them alone.
  using Arguments = std::vector<std::string>;
  using Run = std::function<int(const Arguments& arguments, Console* console)>;

  Program();
  ~Program();

  // Adds a subcommand. `positionals` is shown in its usage line ("[TEXT...]"), and at least
  // `min_arguments` and at most `max_arguments` (-1: any number) are taken. The result takes its
  // options; --json and --color are there already.
  Command Add(const std::string& name, const std::string& description,
              const std::string& positionals, int min_arguments, int max_arguments, Run run);

  // Everything from the command line to the exit code.
  int Main(int argc, const char* const* argv);

  // The program itself, then its commands, with all their options.
  struct OptionHelp {
    std::string names;  // "-m, --model"
    std::string type;   // "FILE", or empty
    std::string text;
  };
  struct Description {
    std::string name;
    std::string description;
    std::string positionals;           // "[TEXT...]"
    std::vector<std::string> options;  // "--json", "-m", ...
    std::vector<OptionHelp> help;      // of the same
  };
  std::vector<Description> Describe() const;

 private:
  struct Entry {
    CLI::App* app;
    int min_arguments;
    int max_arguments;
    Run run;
    std::string positionals;
  };

  int RunCommand(const std::string& name, Arguments arguments, Arguments verbatim);
  int Unknown(const std::string& word);

  std::unique_ptr<CLI::App> app_;
  std::map<std::string, Entry> commands_;
  Console console_;
  std::string color_ = "auto";
};

}  // namespace attend::tools

#endif  // ATTEND_TOOLS_PROGRAM_H_
