#include "tools/man_page.h"

#include <span>
#include <string_view>

#include "attend/attend.h"

namespace attend::tools {
namespace {

// Text as man(7) takes it: a hyphen that can be copied, and no request at the start of a line.
std::string RoffEscaped(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    const bool starts_line = escaped.empty() || escaped.back() == '\n';
    if (starts_line && (c == '.' || c == '\'')) escaped += "\\&";
    if (c == '\\') {
      escaped += "\\e";
    } else if (c == '-') {
      escaped += "\\-";
    } else {
      escaped += c;
    }
  }
  return escaped;
}

void AddOptions(std::span<const Program::OptionHelp> options, std::string* page) {
  for (const Program::OptionHelp& option : options) {
    *page += ".TP\n\\fB" + RoffEscaped(option.names) + "\\fR";
    if (!option.type.empty()) *page += " \\fI" + RoffEscaped(option.type) + "\\fR";
    *page += "\n" + RoffEscaped(option.text) + "\n";
  }
}

constexpr std::string_view kTexts =
    "Texts come from the arguments, else from standard input, one a line; the output keeps their\n"
    "order and is flushed whenever the input has nothing more at hand.\n"
    "A text that looks like an option goes behind \\fB\\-\\-\\fR.\n"
    "Without \\fB\\-m\\fR the model that ships for the task is used.\n";

constexpr std::string_view kEnd =
    ".SH EXIT STATUS\n"
    ".TP\n0\nDone.\n"
    ".TP\n1\nA defect, or the instruction set is fixed already.\n"
    ".TP\n2\nThe command line is wrong.\n"
    ".TP\n3\nAn invalid or unsupported model or input.\n"
    ".TP\n4\nA file or stream cannot be read or written.\n"
    ".TP\n5\nA limit, or memory.\n"
    ".TP\n6\n\\fBattend verify\\fR says no.\n"
    ".TP\n7\nThis CPU lacks the instruction set of \\fB\\-\\-isa\\fR.\n"
    ".TP\n8\nA deadline.\n"
    ".TP\n130\nInterrupted.\n"
    ".SH ENVIRONMENT\n"
    ".TP\n.B ATTEND_MODELS\nThe folder of the models that ship, if it is not beside the program.\n"
    ".TP\n.B NO_COLOR\nIf set and not empty, no colours unless \\fB\\-\\-color always\\fR asks for "
    "them.\n";

}  // namespace

std::string ManPage(const std::vector<Program::Description>& all) {
  const Program::Description& program = all.front();
  std::string page = ".TH ATTEND 1 \"\" \"attend " + std::string(Version()) +
                     "\" \"User Commands\"\n"
                     ".SH NAME\nattend \\- runs self\\-attention models on CPUs\n"
                     ".SH SYNOPSIS\n\\fBattend\\fR \\fICOMMAND\\fR [\\fIOPTIONS\\fR] "
                     "[\\fIARGUMENTS\\fR]\n"
                     ".SH DESCRIPTION\n" +
                     RoffEscaped(program.description) + "\n" + std::string(kTexts) +
                     ".SH OPTIONS\n";
  AddOptions(program.help, &page);
  page += ".SH COMMANDS\n";
  for (const Program::Description& command : std::span(all).subspan(1)) {
    page += ".SS attend " + RoffEscaped(command.name) + " [OPTIONS]";
    if (!command.positionals.empty()) page += " " + RoffEscaped(command.positionals);
    page += "\n" + RoffEscaped(command.description) + ".\n";
    AddOptions(command.help, &page);
  }
  return page + std::string(kEnd);
}

}  // namespace attend::tools
