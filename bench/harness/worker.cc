#include "bench/harness/worker.h"

#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <iostream>
#include <span>
#include <sstream>
#include <system_error>

#include "engine/config.h"

extern char** environ;

namespace attend::bench {
namespace {

Json ErrorLine(const Status& status) {
  return {{"error", status.what() + (status.where().empty() ? "" : " (" + status.where() + ")")}};
}

// Lengths with tails of every kind.
Batch ProbeBatch(const Subject& subject) {
  Batch batch = subject.MakeBatch(0, 0);
  for (const int64_t length : {3, 17, 40, 1, 64}) {
    const Batch one = subject.MakeBatch(1, std::min(length, subject.max_length()));
    batch.ids.insert(batch.ids.end(), one.ids.begin(), one.ids.end());
    batch.rows.insert(batch.rows.end(), one.rows.begin(), one.rows.end());
    batch.offsets.push_back(batch.offsets.back() + one.offsets.back());
  }
  return batch;
}

Result<Json> Outputs(Subject& subject) {
  const Result<Output> output = subject.RunFor(ProbeBatch(subject));
  if (!output.ok()) return output.status();
  const auto list = [](std::span<const float> values) {
    Json json = Json::array();
    for (const float value : values) json.push_back(value);
    return json;
  };
  return Json{{"hidden", list(output->hidden)},
              {"pooled", list(output->pooled)},
              {"logits", list(output->logits)}};
}

Result<Json> TimeTexts(Subject& subject, const Texts* texts, int64_t text_batch) {
  if (texts == nullptr) return Status(ErrorCode::kInvalidArgument, "there are no texts", "--text");
  const std::span<const std::vector<int32_t>> all(texts->ids);
  const size_t size = static_cast<size_t>(text_batch);
  double sum = 0;
  for (size_t i = 0; i < all.size(); i += size) {
    const Result<double> taken =
        subject.Run(subject.MakeBatch(all.subspan(i, std::min(size, all.size() - i))));
    if (!taken.ok()) return taken.status();
    sum += *taken;
  }
  return Json(sum);
}

Result<Json> Answer(const std::string& line, Subject& subject, const Texts* texts,
                    int64_t text_batch) {
  std::istringstream in(line);
  std::string command;
  in >> command;
  if (command == "outputs") return Outputs(subject);
  if (command == "texts") return TimeTexts(subject, texts, text_batch);
  int64_t sequences = 0, length = 0;
  int least = 0;
  double seconds = 0;
  if (command != "time" || !(in >> sequences >> length >> least >> seconds) || sequences < 1 ||
      length < 1) {
    return Status(ErrorCode::kInvalidArgument, "no such command", line);
  }
  const Result<std::vector<double>> times =
      subject.Times(subject.MakeBatch(sequences, length), seconds, least);
  if (!times.ok()) return times.status();
  return Json(*times);
}

}  // namespace

void Serve(Subject& subject, const Texts* texts, int64_t text_batch) {
  const Json facts = {{"version", Version()},
                      {"isa", CurrentIsa()},
                      {"precision", Name(PrecisionOf(subject.model(), subject.options()))},
                      {"threads", subject.session().num_threads()},
                      {"max_length", subject.max_length()},
                      {"max_tokens", subject.options().max_tokens},
                      {"session_bytes", subject.session().memory_bytes()},
                      {"weight_bytes", subject.session().weight_bytes()},
                      {"texts", texts == nullptr ? 0 : texts->ids.size()}};
  std::cout << facts.dump() << std::endl;
  for (std::string line; std::getline(std::cin, line);) {
    const Result<Json> answer = Answer(line, subject, texts, text_batch);
    std::cout << (answer.ok() ? *answer : ErrorLine(answer.status())).dump() << std::endl;
  }
}

void ServeError(const Status& status) { std::cout << ErrorLine(status).dump() << std::endl; }

Result<std::unique_ptr<Worker>> Worker::Start(const std::vector<std::string>& argv) {
  std::unique_ptr<Worker> worker(new Worker);
  worker->name_ = argv.front();
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    return Status(ErrorCode::kIo, std::generic_category().message(errno), argv.front());
  }
  worker->socket_ = ends[0];
  std::vector<char*> arguments;
  for (const std::string& argument : argv) {
    arguments.push_back(const_cast<char*>(argument.c_str()));
  }
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], 0);
  posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
  const int failed = posix_spawn(&worker->pid_, argv.front().c_str(), &actions, nullptr,
                                 arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  if (failed != 0) {
    worker->pid_ = -1;
    return Status(ErrorCode::kIo, "cannot be run: " + std::generic_category().message(failed),
                  argv.front());
  }
  Result<Json> facts = worker->Read();
  if (!facts.ok()) {
    // What it refuses it refuses as a whole.
    if (facts.status().code() != ErrorCode::kInternal) return facts.status();
    return Status(ErrorCode::kUnsupported, facts.status().what(), argv.front());
  }
  worker->facts_ = *std::move(facts);
  return worker;
}

Worker::~Worker() {
  if (socket_ >= 0) close(socket_);
  if (pid_ > 0) waitpid(pid_, nullptr, 0);
}

Result<Json> Worker::Read() {
  size_t end;
  while ((end = buffer_.find('\n')) == std::string::npos) {
    char bytes[1 << 16];
    const ssize_t count = recv(socket_, bytes, sizeof(bytes), 0);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) {
      return Status(ErrorCode::kIo, "the program that was to be timed has ended", name_,
                    "it must know `attend bench --serve`, as builds from version 0.1.0 on do");
    }
    buffer_.append(bytes, static_cast<size_t>(count));
  }
  const std::string line = buffer_.substr(0, end);
  buffer_.erase(0, end + 1);
  Json answer = Json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (answer.is_discarded()) {
    return Status(ErrorCode::kIo, "the answer is not JSON: " + line.substr(0, 80), name_);
  }
  if (answer.is_object() && answer.contains("error")) {
    return Status(
        ErrorCode::kInternal,
        answer["error"].is_string() ? answer["error"].get<std::string>() : answer["error"].dump(),
        name_);
  }
  return answer;
}

Result<Json> Worker::Ask(const std::string& line) {
  const std::string bytes = line + "\n";
  for (size_t sent = 0; sent < bytes.size();) {
    const ssize_t count = send(socket_, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return Status(ErrorCode::kIo, "the program has ended", name_);
    sent += static_cast<size_t>(count);
  }
  return Read();
}

Result<std::vector<double>> Worker::Time(int64_t sequences, int64_t length, int least,
                                         double seconds) {
  const Result<Json> answer =
      Ask("time " + std::to_string(sequences) + " " + std::to_string(length) + " " +
          std::to_string(least) + " " + std::to_string(seconds));
  if (!answer.ok()) return answer.status();
  return answer->get<std::vector<double>>();
}

std::string OwnPath() {
  std::error_code error;
  const std::filesystem::path path = std::filesystem::read_symlink("/proc/self/exe", error);
  return error ? "/proc/self/exe" : path.string();
}

}  // namespace attend::bench
