// Search by meaning: every line of a file becomes a vector, a query the vector that is compared
// with all of them. For some 100,000 lines no index is needed: comparing is a small part of the
// time.
#include <attend/text.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <numeric>
#include <string>
#include <vector>

namespace {

double Milliseconds(std::chrono::steady_clock::time_point since) {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - since)
      .count();
}

// Vectors of length 1, end to end, so that an inner product is a cosine.
class Index {
 public:
  explicit Index(attend::Embedder embedder) : embedder_(std::move(embedder)) {}

  attend::Status Add(std::span<const std::string_view> texts) {
    attend::Result<std::vector<attend::Embedding>> vectors = embedder_.EmbedBatch(texts);
    if (!vectors.ok()) return vectors.status();
    for (attend::Embedding& vector : *vectors) {
      const std::vector<float>& v = vector.values;
      const double length = std::sqrt(std::inner_product(v.begin(), v.end(), v.begin(), 0.0));
      for (const float value : v) vectors_.push_back(static_cast<float>(value / length));
    }
    return {};
  }

  // The scores of all lines for the vector that was added last, which is taken out again.
  std::vector<float> ScoresOfLast() {
    const auto width = static_cast<std::ptrdiff_t>(embedder_.dimensions());
    const std::vector<float> query(vectors_.end() - width, vectors_.end());
    vectors_.resize(vectors_.size() - query.size());
    std::vector<float> scores;
    for (auto row = vectors_.begin(); row != vectors_.end(); row += width) {
      scores.push_back(std::inner_product(query.begin(), query.end(), row, 0.0f));
    }
    return scores;
  }

 private:
  attend::Embedder embedder_;
  std::vector<float> vectors_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) return std::fprintf(stderr, "usage: search_example MODEL LINES QUERY...\n"), 2;
  attend::Result<attend::Embedder> embedder =
      attend::Embedder::Load(argv[1], {.session = {.max_tokens = 4096}, .truncate = true});
  if (!embedder.ok()) return std::puts(embedder.status().ToString().c_str()), 1;
  Index index(*std::move(embedder));
  std::vector<std::string> lines;
  std::ifstream file(argv[2]);
  for (std::string line; std::getline(file, line);) lines.push_back(line);

  auto start = std::chrono::steady_clock::now();
  const std::vector<std::string_view> texts(lines.begin(), lines.end());
  for (size_t i = 0; i < texts.size(); i += 256) {
    const auto part = std::span(texts).subspan(i, std::min<size_t>(256, texts.size() - i));
    if (attend::Status status = index.Add(part); !status.ok()) {
      return std::puts(status.ToString().c_str()), 1;
    }
  }
  const double all_ms = Milliseconds(start);
  std::fprintf(stderr, "%zu lines in %.0f ms, %.2f ms a line\n", lines.size(), all_ms,
               all_ms / static_cast<double>(std::max<size_t>(lines.size(), 1)));

  for (int i = 3; i < argc; ++i) {
    start = std::chrono::steady_clock::now();
    const std::string_view query = argv[i];
    if (attend::Status status = index.Add(std::span(&query, 1)); !status.ok()) {
      return std::puts(status.ToString().c_str()), 1;
    }
    const double embed_ms = Milliseconds(start);
    const std::vector<float> scores = index.ScoresOfLast();
    std::vector<size_t> order(scores.size());
    std::iota(order.begin(), order.end(), size_t{0});
    const size_t shown = std::min<size_t>(3, order.size());
    std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(shown),
                      order.end(), [&](size_t a, size_t b) { return scores[a] > scores[b]; });
    std::fprintf(stderr, "query in %.2f ms, of which %.2f ms to embed it\n", Milliseconds(start),
                 embed_ms);
    for (size_t k = 0; k < shown; ++k) {
      std::printf("%.3f\t%s\n", scores[order[k]], lines[order[k]].c_str());
    }
  }
}
