// Requests of many threads, each with a deadline, answered by one Batcher.
#include <attend/batcher.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

namespace {

// What a caller makes of an answer: the label with the largest logit, or why there is none.
std::string LabelOf(const attend::Model& model, const attend::Result<attend::BatchAnswer>& answer) {
  if (!answer.ok()) return attend::ErrorCodeName(answer.status().code());
  const auto best = std::max_element(answer->logits.begin(), answer->logits.end());
  return model.info().labels[static_cast<size_t>(best - answer->logits.begin())];
}

// One request from start to end, as any thread of a server would make it.
std::string Ask(attend::Batcher* batcher, const std::string& text, int64_t deadline_us) {
  attend::BatchRequest request;
  request.text = text;
  request.deadline_us = deadline_us;
  attend::Result<attend::PendingAnswer> pending = batcher->Submit(request);
  // BUSY: the queue is full. Tell the caller now, while it can still ask somebody else.
  if (!pending.ok()) return attend::ErrorCodeName(pending.status().code());
  return LabelOf(batcher->model(), pending->Wait());
}

}  // namespace

int main(int argc, char** argv) {
  attend::Result<attend::Model> model = attend::Model::Load(argc > 1 ? argv[1] : SENTIMENT_MODEL);
  if (!model.ok()) {
    std::fprintf(stderr, "%s\n", model.status().ToString().c_str());
    return 1;
  }
  attend::BatcherOptions options;
  options.num_workers = 2;           // two batches at the same time
  options.max_queued_requests = 64;  // more are refused at once
  attend::Result<attend::Batcher> batcher = attend::Batcher::Create(*model, options);
  if (!batcher.ok()) {
    std::fprintf(stderr, "%s\n", batcher.status().ToString().c_str());
    return 1;
  }

  const std::vector<std::string> texts = {"What a lovely film!", "I want my money back.",
                                          "The best evening of the year.",
                                          "Dull, and far too long."};
  std::vector<std::string> labels(texts.size());
  std::vector<std::thread> callers;
  for (size_t i = 0; i < texts.size(); ++i) {
    callers.emplace_back([&, i] { labels[i] = Ask(&*batcher, texts[i], 10'000'000); });
  }
  for (std::thread& caller : callers) caller.join();
  for (size_t i = 0; i < texts.size(); ++i) {
    std::printf("%s\t%s\n", labels[i].c_str(), texts[i].c_str());
  }
  // A request that is late is not computed.
  std::printf("%s\n", Ask(&*batcher, texts[0], -1).c_str());

  batcher->Drain();
  const attend::BatcherStatistics statistics = batcher->statistics();
  std::fprintf(stderr, "%lld answered in %lld batches, half waited at most %lld us\n",
               static_cast<long long>(statistics.answered),
               static_cast<long long>(statistics.batches),
               static_cast<long long>(statistics.queued_p50_us));
}
