#include "tools/suggest.h"

#include <algorithm>
#include <cstddef>

namespace attend::tools {
namespace {

size_t EditDistance(std::string_view a, std::string_view b) {
  std::vector<std::vector<size_t>> cost(a.size() + 1, std::vector<size_t>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); ++i) {
    for (size_t j = 0; j <= b.size(); ++j) {
      if (i == 0 || j == 0) {
        cost[i][j] = i + j;
        continue;
      }
      const size_t replace = cost[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      cost[i][j] = std::min({replace, cost[i - 1][j] + 1, cost[i][j - 1] + 1});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        cost[i][j] = std::min(cost[i][j], cost[i - 2][j - 2] + 1);
      }
    }
  }
  return cost[a.size()][b.size()];
}

}  // namespace

std::string Nearest(std::string_view word, const std::vector<std::string>& known) {
  if (word.size() > 64) return {};
  const size_t limit = std::max<size_t>(1, word.size() / 3);
  std::string nearest;
  size_t best = limit + 1;
  for (const std::string& candidate : known) {
    size_t distance = EditDistance(word, candidate);
    if (word.size() >= 3 && candidate.starts_with(word)) distance = std::min<size_t>(distance, 1);
    if (distance < best) best = distance, nearest = candidate;
  }
  return nearest;
}

}  // namespace attend::tools
