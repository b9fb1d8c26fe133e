// Where a command's results and errors go.
#ifndef ATTEND_TOOLS_CONSOLE_H_
#define ATTEND_TOOLS_CONSOLE_H_

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "attend/status.h"
#include "tools/exit_code.h"
#include "tools/output.h"

namespace attend::tools {

// --color: always, never, or only on a terminal that wants it.
enum class ColorMode { kAuto, kAlways, kNever };

class Console {
 public:
  Console();

  bool json = false;                   // --json
  ColorMode color = ColorMode::kAuto;  // --color
  std::function<Status()> at_end;      // what is left to do when a command is done

  OutputStream& out() { return out_; }

  // Text in a colour of the terminal ("1" bold, "2" dim, "31" red) if standard output shows it.
  std::string Paint(std::string_view text, std::string_view sgr) const;

  // Prints an error to standard error: for people, or with --json as one object
  // {"error":{"code","what","where","hint"}}. Returns the exit code: the table's, unless another is
  // given. Results printed so far are flushed first.
  int Fail(const Status& status, std::optional<ExitCode> exit_code = {});
  // The same for a command line that makes no sense.
  int FailUsage(std::string_view what, std::string_view where, std::string_view hint);

  // Flushes the results; kExitOk, or reports why they could not be written.
  int Finish();

  // A remark for people on standard error; nothing with --json.
  void Note(std::string_view text);

  // Progress on one line of standard error, overwritten, at most ten times a second; nothing unless
  // standard error is a terminal.
  void Progress(std::string_view text);
  void ClearProgress();

 private:
  int Report(std::string_view code, std::string_view what, std::string_view where,
             std::string_view hint, ExitCode exit_code);

  OutputStream out_;
  bool out_is_terminal_;
  bool error_is_terminal_;
  bool progress_shown_ = false;
  int64_t progress_at_ms_ = 0;
};

}  // namespace attend::tools

#endif  // ATTEND_TOOLS_CONSOLE_H_
