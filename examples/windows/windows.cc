// A text of any length for a model that reads 512 tokens: cut into windows between words, each
// classified, and the mean of all for the whole. Offsets point back into the text.
#include <attend/text.h>

#include <algorithm>
#include <cstdio>
#include <iostream>
#include <iterator>
#include <string>
#include <vector>

namespace {

// Parts of `text` of at most `tokens` tokens that begin and end between words.
std::vector<std::string_view> Windows(std::string_view text, const attend::Encoding& encoding,
                                      size_t tokens) {
  const std::vector<attend::TextRange>& at = encoding.offsets;
  std::vector<std::string_view> windows;
  for (size_t first = 0, next = 0; first < at.size(); first = next) {
    next = std::min(first + tokens, at.size());
    // Tokens that touch are of one word; a word longer than a window is cut all the same.
    size_t border = next;
    while (border < at.size() && border > first && at[border].begin == at[border - 1].end) --border;
    if (border > first) next = border;
    windows.push_back(text.substr(at[first].begin, at[next - 1].end - at[first].begin));
  }
  return windows;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return std::fprintf(stderr, "usage: windows_example MODEL < TEXT\n"), 2;
  attend::Result<attend::Model> model = attend::Model::Load(argv[1]);
  if (!model.ok()) return std::puts(model.status().ToString().c_str()), 1;
  attend::Result<attend::Tokenizer> tokenizer = attend::Tokenizer::FromModel(*model);
  if (!tokenizer.ok()) return std::puts(tokenizer.status().ToString().c_str()), 1;
  attend::Result<attend::Classifier> classifier = attend::Classifier::Create(*model);
  if (!classifier.ok()) return std::puts(classifier.status().ToString().c_str()), 1;

  const std::string text{std::istreambuf_iterator<char>(std::cin), {}};
  attend::Encoding encoding;
  const attend::EncodeOptions plain{.add_special_tokens = false};
  if (attend::Status status = tokenizer->EncodeInto(text, plain, &encoding); !status.ok()) {
    return std::puts(status.ToString().c_str()), 1;
  }
  // Shorter than the model would take: 100 tokens say what they think, 500 say a bit of everything.
  const std::vector<std::string_view> windows = Windows(text, encoding, 100);
  const auto answers = classifier->ClassifyBatch(windows);
  if (!answers.ok()) return std::puts(answers.status().ToString().c_str()), 1;
  const std::span<const std::string> labels = classifier->labels();
  std::vector<float> mean(labels.size());
  for (size_t i = 0; i < windows.size(); ++i) {
    const auto begin = static_cast<size_t>(windows[i].data() - text.data());
    std::printf("%zu-%zu\t%s\n", begin, begin + windows[i].size(), (*answers)[i].label.c_str());
    for (size_t c = 0; c < mean.size(); ++c) {
      mean[c] += (*answers)[i].scores[c] / static_cast<float>(windows.size());
    }
  }
  if (windows.empty()) return 0;
  const auto best = std::max_element(mean.begin(), mean.end());
  std::printf("all\t%s\t%.2f\n", labels[static_cast<size_t>(best - mean.begin())].c_str(), *best);
}
