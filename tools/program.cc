#include "tools/program.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <exception>
#include <new>
#include <utility>

#include "attend/attend.h"
#include "tools/commands.h"
#include "tools/interrupt.h"
#include "tools/man_page.h"
#include "tools/suggest.h"

namespace attend::tools {
namespace {

// CLI11's help, with the positional arguments that it does not parse itself.
class HelpFormatter : public CLI::Formatter {
 public:
  std::map<std::string, std::string> positionals;

  std::string make_usage(const CLI::App* app, std::string) const override {
    if (app->get_parent() == nullptr) return "Usage: attend COMMAND [OPTIONS] [ARGUMENTS]\n";
    const auto it = positionals.find(app->get_name());
    const std::string arguments = it == positionals.end() ? "" : " " + it->second;
    return "Usage: attend " + app->get_name() + " [OPTIONS]" + arguments + "\n";
  }
};

// "-5" and "-" are texts; "-x" and "--xyz" were meant as options.
bool LooksLikeOption(const std::string& argument) {
  return argument.size() > 1 && argument[0] == '-' && !(argument[1] >= '0' && argument[1] <= '9');
}

std::vector<std::string> OptionNames(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
    for (const std::string& name : option->get_snames()) names.push_back("-" + name);
  }
  return names;
}

std::vector<Program::OptionHelp> HelpOf(const CLI::App& app) {
  std::vector<Program::OptionHelp> all;
  for (const CLI::Option* option : app.get_options()) {
    std::string names;
    for (const std::string& name : option->get_snames()) names += ", -" + name;
    for (const std::string& name : option->get_lnames()) names += ", --" + name;
    const std::string type = option->get_items_expected() == 0 ? "" : option->get_type_name();
    all.push_back({names.substr(std::min<size_t>(2, names.size())), type.substr(0, type.find(':')),
                   option->get_description()});
  }
  return all;
}

// "--name=" is an empty value; the parser would take the next argument for it.
std::vector<std::string> SplitEmptyValues(const std::vector<std::string>& arguments) {
  std::vector<std::string> split;
  for (const std::string& argument : arguments) {
    const bool empty = argument.size() > 3 && argument.starts_with("--") &&
                       argument.find('=') == argument.size() - 1;
    split.push_back(empty ? argument.substr(0, argument.size() - 1) : argument);
    if (empty) split.emplace_back();
  }
  return split;
}

std::string HelpHint(const std::string& command) {
  return "see `attend " + (command.empty() ? "" : command + " ") + "--help`";
}

std::string VersionText() {
  return std::string("attend ") + Version() + "\n" + LibraryVersions() + "\nISA " + CurrentIsa() +
         "\n";
}

}  // namespace

Program::Program() : app_(std::make_unique<CLI::App>("Runs self-attention models on CPUs.")) {
  app_->name("attend");
  app_->formatter(std::make_shared<HelpFormatter>());
  app_->set_help_flag("-h,--help", "Print this help");
  app_->set_version_flag("--version", VersionText);
  app_->require_subcommand(0, 1);
  app_->footer(
      "Texts come from the arguments, else from standard input, one a line.\n"
      "`attend COMMAND --help` says more; `--` ends the options.");
  AddTag(this);
  AddClassify(this);
  AddEmbed(this);
  AddRank(this);
  AddGenerate(this);
  AddTokenize(this);
  AddAttention(this);
  AddRun(this);
  AddConvert(this);
  AddInspect(this);
  AddVerify(this);
  AddBench(this);
  AddInfo(this);
  AddCompletion(this);
}

Program::~Program() = default;

Command Program::Add(const std::string& name, const std::string& description,
                     const std::string& positionals, int min_arguments, int max_arguments,
                     Run run) {
  CLI::App* command = app_->add_subcommand(name, description);
  command->allow_extras();
  command->add_flag("--json", console_.json, "Results, and errors, as JSON");
  command->add_option("--color", color_, "Colours: auto, always or never")
      ->type_name("WHEN")
      ->check(CLI::IsMember({"auto", "always", "never"}));
  std::static_pointer_cast<HelpFormatter>(app_->get_formatter())->positionals[name] = positionals;
  commands_[name] = {command, min_arguments, max_arguments, std::move(run), positionals};
  return Command(command);
}

std::vector<Program::Description> Program::Describe() const {
  std::vector<Description> all = {
      {app_->get_name(), app_->get_description(), "", OptionNames(*app_), HelpOf(*app_)}};
  for (const auto& [name, entry] : commands_) {
    all.push_back({name, entry.app->get_description(), entry.positionals, OptionNames(*entry.app),
                   HelpOf(*entry.app)});
  }
  return all;
}

int Program::Unknown(const std::string& word) {
  std::vector<std::string> known;
  for (const auto& [name, command] : commands_) known.push_back(name);
  if (LooksLikeOption(word)) known = OptionNames(*app_);
  const std::string nearest = Nearest(word, known);
  const char* what = LooksLikeOption(word) ? "no such option" : "no such command";
  return console_.FailUsage(
      what, word, nearest.empty() ? HelpHint("") : "did you mean `attend " + nearest + "`?");
}

int Program::RunCommand(const std::string& name, Arguments arguments, Arguments verbatim) {
  const Entry& command = commands_.at(name);
  for (const std::string& argument : arguments) {
    if (!LooksLikeOption(argument)) continue;
    const std::string option = argument.substr(0, argument.find('='));
    const std::string nearest = Nearest(option, OptionNames(*command.app));
    return console_.FailUsage("no such option", option,
                              nearest.empty()
                                  ? HelpHint(name) + "; a text that begins with - goes behind --"
                                  : "did you mean " + nearest + "?");
  }
  arguments.insert(arguments.end(), verbatim.begin(), verbatim.end());
  const int count = static_cast<int>(arguments.size());
  if (count < command.min_arguments) {
    return console_.FailUsage("an argument is missing", name, HelpHint(name));
  }
  if (command.max_arguments >= 0 && count > command.max_arguments) {
    return console_.FailUsage(
        "unexpected argument '" + arguments[static_cast<size_t>(command.max_arguments)] + "'", name,
        HelpHint(name));
  }
  const int code = command.run(arguments, &console_);
  if (!console_.at_end) return code;
  const Status status = console_.at_end();
  return status.ok() || code != kExitOk ? code : console_.Fail(status);
}

int Program::Main(int argc, const char* const* argv) {
  HoldStandardDescriptors();
  InstallSignalHandlers();
  // What stands behind "--" is text, whatever it looks like: the parser never sees it.
  std::vector<std::string> all(argv + std::min(argc, 1), argv + argc);
  const auto end = std::find(all.begin(), all.end(), "--");
  Arguments verbatim(end == all.end() ? end : end + 1, all.end());
  all.erase(end, all.end());
  all = SplitEmptyValues(all);
  console_.json = std::find(all.begin(), all.end(), "--json") != all.end();

  if (all.empty()) return console_.FailUsage("a command is missing", "", HelpHint(""));
  if (all[0] == "--man") {  // for packagers: what `man attend` shows
    console_.out().Write(ManPage(Describe()));
    return console_.Finish();
  }
  if (all[0] == "help") {  // `attend help tag` is `attend tag --help`
    all.erase(all.begin());
    all.emplace_back("--help");
  }
  const bool option = LooksLikeOption(all[0]);
  if (option ? Nearest(all[0], OptionNames(*app_)) != all[0] : commands_.count(all[0]) == 0) {
    return Unknown(all[0]);
  }
  try {
    std::reverse(all.begin(), all.end());  // as CLI11 takes them
    app_->parse(all);
    if (app_->get_subcommands().empty()) {
      return console_.FailUsage("a command is missing", "", HelpHint(""));
    }
    const CLI::App* command = app_->get_subcommands().front();
    console_.color = color_ == "always"  ? ColorMode::kAlways
                     : color_ == "never" ? ColorMode::kNever
                                         : ColorMode::kAuto;
    return RunCommand(command->get_name(), command->remaining(), std::move(verbatim));
  } catch (const CLI::CallForHelp&) {
    const std::vector<CLI::App*> chosen = app_->get_subcommands();
    console_.out().Write(chosen.empty() ? app_->help() : chosen.front()->help());
    console_.out().Write("\n");
    return console_.Finish();
  } catch (const CLI::CallForVersion& version) {
    console_.out().Write(version.what());
    return console_.Finish();
  } catch (const CLI::ParseError& error) {
    const std::vector<CLI::App*> chosen = app_->get_subcommands();
    const std::string name = chosen.empty() ? "" : chosen.front()->get_name();
    return console_.FailUsage(error.what(), name, HelpHint(name));
  } catch (const std::bad_alloc&) {
    return console_.Fail(
        Status(ErrorCode::kCapacity, "out of memory", "", "try a smaller --batch-tokens"));
  } catch (const std::exception& error) {
    return console_.Fail(Status(ErrorCode::kInternal, error.what(), "attend"));
  }
}

}  // namespace attend::tools
