// Runs a model as a co-process of bench/peers/peers.py, so that attend and its peers are timed in
// turns within one program. Reads one command a line and answers each with one line:
//
//   batch NAME B L1 ... LB ID ...   keeps a batch under NAME   -> ok
//   run NAME                        runs it once               -> nanoseconds of Session::Run
//   hidden NAME                     runs it once               -> its hidden states
//
// The first answer is "ready", or "error: ..." where there is nothing to run.
//
//   peer_driver MODEL.attend THREADS [f32|bf16|int8 [ISA]]
#include <charconv>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "attend/attend.h"

namespace {

struct Batch {
  std::vector<int32_t> ids;
  std::vector<int32_t> offsets = {0};
  attend::TokenBatch view() const { return {.ids = ids, .offsets = offsets}; }
};

// Reads what follows NAME in a batch command.
bool ReadBatch(std::istream& in, Batch* batch) {
  int32_t sequences = 0;
  if (!(in >> sequences) || sequences < 1) return false;
  for (int32_t b = 0, length = 0; b < sequences; ++b) {
    if (!(in >> length)) return false;
    batch->offsets.push_back(batch->offsets.back() + length);
  }
  for (int32_t id = 0; in >> id;) batch->ids.push_back(id);
  return static_cast<int64_t>(batch->ids.size()) == batch->offsets.back();
}

// The answer to one command; an answer that begins with "error" ends the comparison.
std::string Answer(const std::string& line, attend::Session* session,
                   std::map<std::string, Batch>* batches) {
  std::istringstream in(line);
  std::string command, name;
  in >> command >> name;
  if (command == "batch") {
    Batch batch;
    if (!ReadBatch(in, &batch)) return "error: not a batch";
    (*batches)[name] = std::move(batch);
    return "ok";
  }
  const auto found = batches->find(name);
  if (found == batches->end()) return "error: no batch " + name;
  const auto start = std::chrono::steady_clock::now();
  const attend::Result<attend::Output> output = session->Run(found->second.view());
  const auto taken = std::chrono::steady_clock::now() - start;
  if (!output.ok()) return "error: " + output.status().ToString();
  if (command == "run") return std::to_string(std::chrono::nanoseconds(taken).count());
  if (command != "hidden") return "error: no command " + command;
  std::string numbers;
  for (const float value : output->hidden) {
    char text[32];
    const std::to_chars_result end = std::to_chars(text, text + sizeof(text), value);
    numbers.append(text, end.ptr).push_back(' ');
  }
  return numbers;
}

attend::Precision PrecisionOf(const std::string& name) {
  if (name == "f32") return attend::Precision::kF32;
  if (name == "bf16") return attend::Precision::kBf16;
  return name == "int8" ? attend::Precision::kInt8 : attend::Precision::kFile;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: %s MODEL.attend THREADS [f32|bf16|int8 [ISA]]\n", argv[0]);
    return 2;
  }
  const attend::Status limited = argc > 4 ? attend::LimitIsa(argv[4]) : attend::Status();
  const attend::Result<attend::Model> model = attend::Model::Load(argv[1]);
  if (!limited.ok() || !model.ok()) {
    std::cout << "error: " << (limited.ok() ? model.status() : limited).ToString() << std::endl;
    return 1;
  }
  attend::Result<attend::Session> session =
      attend::Session::Create(*model, {.num_threads = std::atoi(argv[2]),
                                       .max_tokens = 16384,
                                       .precision = PrecisionOf(argc > 3 ? argv[3] : "")});
  if (!session.ok()) {
    std::cout << "error: " << session.status().ToString() << std::endl;
    return 1;
  }
  std::cout << "ready" << std::endl;
  std::map<std::string, Batch> batches;
  for (std::string line; std::getline(std::cin, line);) {
    std::cout << Answer(line, &*session, &batches) << std::endl;
  }
  return 0;
}
