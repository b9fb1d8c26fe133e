// A service changes its model while it works: whoever answers a request finishes it with the model
// it began with, and takes the new one for the next. Nothing waits, nothing fails, and the old
// model goes with its last user.
#include <attend/text.h>

#include <atomic>
#include <cstdio>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

namespace {

// The model to use from now on. A Model is a handle: copies share everything.
class CurrentModel {
 public:
  explicit CurrentModel(attend::Model model) : model_(std::move(model)) {}

  void Set(attend::Model model) {
    const std::lock_guard lock(mutex_);
    model_ = std::move(model);
    ++version_;
  }
  // Whether there is a newer one than `*version`; then it is in *model.
  bool Newer(int* version, std::optional<attend::Model>* model) {
    if (version_ == *version) return false;  // the usual case takes no lock
    const std::lock_guard lock(mutex_);
    *version = version_;
    *model = model_;
    return true;
  }

 private:
  std::mutex mutex_;
  attend::Model model_;
  std::atomic<int> version_{1};
};

struct Counts {
  std::atomic<int> by_version[3] = {0, 0, 0};
  std::atomic<int> failed{0};
};

// Answers requests until it has answered 20 with the second model.
void Serve(CurrentModel* current, Counts* counts) {
  int version = 0;
  std::optional<attend::Model> model;
  std::optional<attend::Tagger> tagger;
  for (int second = 0; second < 20;) {
    if (current->Newer(&version, &model)) {
      attend::Result<attend::Tagger> made =
          attend::Tagger::Create(*model, {.session = {.max_tokens = 512}});
      if (made.ok()) tagger.emplace(*std::move(made));  // else the old one goes on
      model.reset();
    }
    if (!tagger || !tagger->Tag("I saw a saw").ok()) ++counts->failed;
    ++counts->by_version[version];
    second += version == 2 ? 1 : 0;
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return std::fprintf(stderr, "usage: hot_swap_example MODEL NEW_MODEL\n"), 2;
  attend::Result<attend::Model> first = attend::Model::Load(argv[1]);
  if (!first.ok()) return std::puts(first.status().ToString().c_str()), 1;
  CurrentModel current(*first);
  Counts counts;
  std::vector<std::thread> workers;
  for (int i = 0; i < 2; ++i) workers.emplace_back(Serve, &current, &counts);
  while (counts.by_version[1] < 20) std::this_thread::yield();
  // Loading takes its time here and nobody else's. A model that cannot be loaded changes nothing.
  attend::Result<attend::Model> second = attend::Model::Load(argv[2]);
  if (!second.ok()) std::puts(second.status().ToString().c_str());
  current.Set(second.ok() ? *second : *first);
  for (std::thread& worker : workers) worker.join();
  std::printf("old model: %s, new model: %d answers, failed: %d\n",
              counts.by_version[1] >= 20 ? "at least 20 answers" : "too few",
              counts.by_version[2].load(), counts.failed.load());
  return counts.failed > 0;
}
