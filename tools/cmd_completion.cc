// attend completion: what a shell needs to complete commands and options, made from the parser.
#include "tools/commands.h"

namespace attend::tools {
namespace {

using CommandEntry = Program::Description;

std::string Join(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
  return text;
}

std::string Names(const std::vector<CommandEntry>& commands) {
  std::string text;
  for (const CommandEntry& command : commands) text += (text.empty() ? "" : " ") + command.name;
  return text;
}

// A text inside single quotes of a shell.
std::string Quoted(const std::string& text) {
  std::string quoted = "'";
  for (char c : text) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

std::string Bash(const std::vector<CommandEntry>& commands, const CommandEntry& program) {
  std::string text =
      "# Completion of attend for bash: source <(attend completion bash)\n"
      "_attend() {\n"
      "  local word=\"${COMP_WORDS[COMP_CWORD]}\" options=\n"
      "  if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
      "    COMPREPLY=($(compgen -W '" +
      Names(commands) + " " + Join(program.options) +
      "' -- \"$word\"))\n"
      "    return\n"
      "  fi\n"
      "  case \"${COMP_WORDS[1]}\" in\n";
  for (const CommandEntry& command : commands) {
    text += "    " + command.name + ") options='" + Join(command.options) + "' ;;\n";
  }
  return text +
         "  esac\n"
         "  case \"$word\" in\n"
         "    -*) COMPREPLY=($(compgen -W \"$options\" -- \"$word\")) ;;\n"
         "    *) COMPREPLY=($(compgen -f -- \"$word\")) ;;\n"
         "  esac\n"
         "}\n"
         "complete -o filenames -F _attend attend\n";
}

std::string Zsh(const std::vector<CommandEntry>& commands, const CommandEntry& program) {
  std::string text =
      "#compdef attend\n"
      "# Completion of attend for zsh: source <(attend completion zsh)\n"
      "_attend() {\n"
      "  local -a options\n"
      "  if (( CURRENT == 2 )); then\n"
      "    compadd -- " +
      Names(commands) + " " + Join(program.options) +
      "\n"
      "    return\n"
      "  fi\n"
      "  case \"${words[2]}\" in\n";
  for (const CommandEntry& command : commands) {
    text += "    " + command.name + ") options=(" + Join(command.options) + ") ;;\n";
  }
  return text +
         "  esac\n"
         "  if [[ \"${words[CURRENT]}\" == -* ]]; then\n"
         "    compadd -- $options\n"
         "  else\n"
         "    _files\n"
         "  fi\n"
         "}\n"
         "compdef _attend attend\n";
}

std::string Fish(const std::vector<CommandEntry>& commands) {
  std::string text = "# Completion of attend for fish: attend completion fish | source\n";
  for (const CommandEntry& command : commands) {
    text += "complete -c attend -n __fish_use_subcommand -a " + command.name + " -d " +
            Quoted(command.description) + "\n";
    for (const std::string& option : command.options) {
      const bool is_long = option.starts_with("--");
      text += "complete -c attend -n '__fish_seen_subcommand_from " + command.name + "' " +
              (is_long ? "-l " + option.substr(2) : "-s " + option.substr(1)) + "\n";
    }
  }
  return text;
}

int RunCompletion(const Program& program, const std::string& shell, Console* console) {
  std::vector<CommandEntry> commands = program.Describe();
  const CommandEntry all = commands.front();
  commands.erase(commands.begin());
  if (shell == "bash") {
    console->out().Write(Bash(commands, all));
  } else if (shell == "zsh") {
    console->out().Write(Zsh(commands, all));
  } else if (shell == "fish") {
    console->out().Write(Fish(commands));
  } else {
    return console->FailUsage("no such shell; expected bash, zsh or fish", shell, "");
  }
  return console->Finish();
}

}  // namespace

void AddCompletion(Program* program) {
  program->Add("completion", "A completion script for bash, zsh or fish", "bash|zsh|fish", 1, 1,
               [program](const Program::Arguments& arguments, Console* console) {
                 return RunCompletion(*program, arguments[0], console);
               });
}

}  // namespace attend::tools
