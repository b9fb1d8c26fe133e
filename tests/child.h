// The attend program as a child process: what tests of the command line stand on.
#ifndef ATTEND_TESTS_CHILD_H_
#define ATTEND_TESTS_CHILD_H_

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

namespace attend::testing {

inline std::string ProgramPath() { return ATTEND_BINARY_DIR "/tools/attend"; }

// A running program with pipes to its standard streams.
class Child {
 public:
  explicit Child(const std::vector<std::string>& arguments,
                 const std::vector<std::string>& environment = {}) {
    int in[2], out[2], err[2];
    if (pipe2(in, O_CLOEXEC) != 0 || pipe2(out, O_CLOEXEC) != 0 || pipe2(err, O_CLOEXEC) != 0) {
      std::abort();
    }
    pid_ = fork();
    if (pid_ == 0) {
      signal(SIGPIPE, SIG_DFL);  // ignored below, and that would be inherited
      dup2(in[0], 0);
      dup2(out[1], 1);
      dup2(err[1], 2);
      for (const std::string& variable : environment) putenv(const_cast<char*>(variable.c_str()));
      std::vector<char*> argv;
      for (const std::string& argument : arguments)
        argv.push_back(const_cast<char*>(argument.c_str()));
      argv.push_back(nullptr);
      execvp(argv[0], argv.data());
      _exit(127);
    }
    close(in[0]), close(out[1]), close(err[1]);
    in_ = in[1], out_ = out[0], err_ = err[0];
    fcntl(in_, F_SETFL, O_NONBLOCK);
    signal(SIGPIPE, SIG_IGN);
  }

  ~Child() {
    if (pid_ > 0) {
      kill(pid_, SIGKILL);
      waitpid(pid_, nullptr, 0);
    }
    CloseInput(), CloseOutput();
    close(err_);
  }

  pid_t pid() const { return pid_; }
  const std::string& out() const { return out_text_; }
  const std::string& err() const { return err_text_; }

  void CloseInput() {
    if (in_ >= 0) close(in_);
    in_ = -1;
  }
  void CloseOutput() {
    if (out_ >= 0) close(out_);
    out_ = -1;
  }

  // Writes what the pipe takes of `text` and reads what is there, waiting at most `timeout_ms` for
  // either. Returns how much was written, or -1 when nothing happened in time.
  ssize_t Pump(std::string_view text, int timeout_ms) {
    struct pollfd fds[3] = {
        {out_, POLLIN, 0}, {err_, POLLIN, 0}, {text.empty() ? -1 : in_, POLLOUT, 0}};
    if (poll(fds, 3, timeout_ms) <= 0) return -1;
    Read(fds[0], &out_, &out_text_);
    Read(fds[1], nullptr, &err_text_);
    if ((fds[2].revents & (POLLOUT | POLLERR)) == 0) return 0;
    const ssize_t written = write(in_, text.data(), text.size());
    if (written < 0 && errno == EPIPE) CloseInput();
    return written < 0 ? 0 : written;
  }

  // Reads until the output has `lines` line ends. False: not within `timeout_ms`.
  bool WaitLines(size_t lines, int timeout_ms = 20000) {
    while (Lines() < lines) {
      if (Pump("", timeout_ms) < 0 || ended_) return Lines() >= lines;
    }
    return true;
  }
  size_t Lines() const {
    return static_cast<size_t>(std::count(out_text_.begin(), out_text_.end(), '\n'));
  }

  // Gives all of `text`, closes the input, reads to the end and waits. The exit code, or minus the
  // signal that ended it.
  int Finish(std::string_view text = {}) {
    while (!text.empty() && in_ >= 0 && !ended_) {
      const ssize_t written = Pump(text, 60000);
      if (written < 0) break;
      text.remove_prefix(static_cast<size_t>(written));
    }
    CloseInput();
    while (!ended_ && out_ >= 0 && Pump("", 60000) >= 0) {
    }
    while (!err_ended_ && Pump("", 60000) >= 0) {
    }
    int status = 0;
    waitpid(pid_, &status, 0);
    pid_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }

 private:
  void Read(const struct pollfd& fd, int* owner, std::string* text) {
    if ((fd.revents & (POLLIN | POLLHUP)) == 0) return;
    char buffer[65536];
    const ssize_t count = read(fd.fd, buffer, sizeof buffer);
    if (count > 0) {
      text->append(buffer, static_cast<size_t>(count));
    } else if (owner != nullptr) {
      ended_ = true;
      CloseOutput();
    } else {
      err_ended_ = true;
      close(err_);
      err_ = -1;
    }
  }

  pid_t pid_ = -1;
  int in_ = -1, out_ = -1, err_ = -1;
  bool ended_ = false, err_ended_ = false;
  std::string out_text_, err_text_;
};

struct Outcome {
  int code = 0;
  std::string out;
  std::string err;

  // Standard output as JSON Lines.
  std::vector<nlohmann::json> objects() const {
    std::vector<nlohmann::json> all;
    std::istringstream lines(out);
    for (std::string line; std::getline(lines, line);) all.push_back(nlohmann::json::parse(line));
    return all;
  }
  // The error object on standard error.
  nlohmann::json error() const { return nlohmann::json::parse(err).at("error"); }
};

// Runs `attend ARGUMENTS...` with `input` on its standard input.
inline Outcome Attend(std::vector<std::string> arguments, std::string_view input = {},
                      const std::vector<std::string>& environment = {}) {
  arguments.insert(arguments.begin(), ProgramPath());
  Child child(arguments, environment);
  Outcome outcome;
  outcome.code = child.Finish(input);
  outcome.out = child.out();
  outcome.err = child.err();
  return outcome;
}

// A folder that is gone at the end.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "attend-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) std::abort();
    path_ = name;
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }
  const std::string& path() const { return path_; }

  std::string Write(const std::string& name, std::string_view text) const {
    std::ofstream(*this / name, std::ios::binary) << text;
    return *this / name;
  }

 private:
  std::string path_;
};

inline bool Has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

inline std::string ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// Converted from the tiny Hugging Face folders of the test data, once for all tests of a program.
class Models {
 public:
  static const Models& Get() {
    static const Models models;
    return models;
  }
  std::string tagger, classifier, embedder;
  const TemporaryFolder& folder() const { return folder_; }

 private:
  Models() {
    namespace fs = std::filesystem;
    const std::string data = ATTEND_TEST_DATA "/hf/";
    tagger = Convert(data + "bert_token_classification", "tagger");
    classifier = Convert(data + "bert_sequence_classification", "classifier");
    // The same encoder as a sentence-transformers folder.
    const std::string sentence = folder_ / "sentence";
    fs::copy(data + "bert", sentence, fs::copy_options::recursive);
    folder_.Write(
        "sentence/modules.json",
        R"([{"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"},
                      {"idx": 1, "name": "1", "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
                      {"idx": 2, "name": "2", "path": "2_Normalize", "type": "sentence_transformers.models.Normalize"}])");
    fs::create_directory(sentence + "/1_Pooling");
    fs::create_directory(sentence + "/2_Normalize");
    folder_.Write("sentence/1_Pooling/config.json",
                  R"({"word_embedding_dimension": 60, "pooling_mode_cls_token": false,
                      "pooling_mode_mean_tokens": true, "pooling_mode_max_tokens": false,
                      "pooling_mode_mean_sqrt_len_tokens": false})");
    embedder = Convert(sentence, "embedder");
  }

  std::string Convert(const std::string& source, const std::string& name) {
    const std::string file = folder_ / (name + ".attend");
    const Outcome outcome = Attend({"convert", source, "-o", file});
    EXPECT_EQ(outcome.code, 0) << source << "\n" << outcome.err;
    return file;
  }

  TemporaryFolder folder_;
};

}  // namespace attend::testing

#endif  // ATTEND_TESTS_CHILD_H_
