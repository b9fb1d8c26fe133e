#include "tools/console.h"

#include <unistd.h>

#include <chrono>
#include <cstdlib>

#include "tools/json_writer.h"

namespace attend::tools {
namespace {

bool IsSet(const char* variable) {
  const char* value = std::getenv(variable);
  return value != nullptr && *value != '\0';
}

// Whether a stream shows colours: NO_COLOR and a dumb terminal say no, CLICOLOR_FORCE says yes.
bool ShowsColor(ColorMode mode, bool terminal) {
  if (mode != ColorMode::kAuto) return mode == ColorMode::kAlways;
  if (IsSet("NO_COLOR")) return false;
  if (IsSet("CLICOLOR_FORCE") && std::string_view(std::getenv("CLICOLOR_FORCE")) != "0")
    return true;
  const char* term = std::getenv("TERM");
  return terminal && term != nullptr && std::string_view(term) != "dumb";
}

std::string Painted(std::string_view text, std::string_view sgr) {
  return "\x1b[" + std::string(sgr) + "m" + std::string(text) + "\x1b[0m";
}

int64_t NowMs() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// What cannot be written to standard error has nowhere else to go.
void WriteError(std::string_view text) {
  [[maybe_unused]] const Status ignored = WriteAll(STDERR_FILENO, text, "standard error");
}

}  // namespace

Console::Console()
    : out_(STDOUT_FILENO),
      out_is_terminal_(::isatty(STDOUT_FILENO) == 1),
      error_is_terminal_(::isatty(STDERR_FILENO) == 1) {}

std::string Console::Paint(std::string_view text, std::string_view sgr) const {
  return ShowsColor(color, out_is_terminal_) ? Painted(text, sgr) : std::string(text);
}

int Console::Fail(const Status& status, std::optional<ExitCode> exit_code) {
  return Report(ErrorCodeName(status.code()), status.what(), status.where(), status.hint(),
                exit_code.value_or(ExitCodeOf(status.code())));
}

int Console::FailUsage(std::string_view what, std::string_view where, std::string_view hint) {
  return Report("USAGE", what, where, hint, kExitUsage);
}

int Console::Report(std::string_view code, std::string_view what, std::string_view where,
                    std::string_view hint, ExitCode exit_code) {
  // An error here would only hide the first one.
  [[maybe_unused]] const Status flushed = out_.Flush();
  ClearProgress();
  if (json) {
    JsonWriter writer;
    writer.BeginObject().Key("error").BeginObject();
    writer.Key("code").String(code).Key("what").String(what);
    writer.Key("where").String(where).Key("hint").String(hint);
    writer.EndObject().EndObject().EndLine();
    WriteError(writer.text());
    return exit_code;
  }
  std::string text =
      ShowsColor(color, error_is_terminal_) ? Painted("attend:", "31") : std::string("attend:");
  if (!where.empty()) text += " " + Printable(where) + ":";
  text += " " + Printable(what) + "\n";
  if (!hint.empty()) text += "  hint: " + Printable(hint) + "\n";
  WriteError(text);
  return exit_code;
}

int Console::Finish() {
  ClearProgress();
  const Status status = out_.Flush();
  return status.ok() ? kExitOk : Fail(status);
}

void Console::Note(std::string_view text) {
  if (json) return;
  ClearProgress();
  WriteError("attend: " + Printable(text) + "\n");
}

void Console::Progress(std::string_view text) {
  if (!error_is_terminal_ || out_is_terminal_) return;
  const char* term = std::getenv("TERM");
  if (term == nullptr || std::string_view(term) == "dumb") return;
  const int64_t now = NowMs();
  if (progress_shown_ && now - progress_at_ms_ < 100) return;
  progress_at_ms_ = now;
  progress_shown_ = true;
  WriteError("\r\x1b[K" + std::string(text));
}

void Console::ClearProgress() {
  if (progress_shown_) WriteError("\r\x1b[K");
  progress_shown_ = false;
}

}  // namespace attend::tools
