// A program with one thread and a loop of its own: requests are put together as they come, and run
// when the loop has time. attend starts no thread.
#include <attend/batcher.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <iterator>
#include <utility>

namespace {

int ThreadsOfProcess() {
  const std::filesystem::directory_iterator tasks("/proc/self/task");
  return static_cast<int>(std::distance(begin(tasks), end(tasks)));
}

}  // namespace

int main(int argc, char** argv) {
  attend::Result<attend::Model> model = attend::Model::Load(argc > 1 ? argv[1] : SENTIMENT_MODEL);
  if (!model.ok()) {
    std::fprintf(stderr, "%s\n", model.status().ToString().c_str());
    return 1;
  }
  attend::BatcherOptions options;
  options.session.backend = attend::ThreadBackend::kSerial;
  options.num_workers = 1;
  options.start_threads = false;
  attend::Result<attend::Batcher> batcher = attend::Batcher::Create(*model, options);
  if (!batcher.ok()) {
    std::fprintf(stderr, "%s\n", batcher.status().ToString().c_str());
    return 1;
  }
  for (const char* text : {"What a lovely film!", "I want my money back."}) {
    attend::BatchRequest request;
    request.text = text;
    request.done = [&, text](attend::Result<attend::BatchAnswer> answer) {
      if (!answer.ok()) return;
      const auto best = std::max_element(answer->logits.begin(), answer->logits.end());
      const size_t label = static_cast<size_t>(best - answer->logits.begin());
      std::printf("%s\t%s\n", model->info().labels[label].c_str(), text);
    };
    if (!batcher->Submit(std::move(request)).ok()) return 1;
  }
  // Where the loop has time: one batch of what has come, on this thread.
  const attend::Result<int64_t> answered = batcher->ServeWaiting();
  if (!answered.ok()) return 1;
  std::printf("%lld answered by %d thread\n", static_cast<long long>(*answered),
              ThreadsOfProcess());
}
