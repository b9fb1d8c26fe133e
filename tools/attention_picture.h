// Pictures of attention weights: in the terminal, and as one self-contained SVG or HTML file.
#ifndef ATTEND_TOOLS_ATTENTION_PICTURE_H_
#define ATTEND_TOOLS_ATTENTION_PICTURE_H_

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace attend::tools {

inline constexpr int32_t kMeanOfHeads = -1;

// Weights [layers, heads, queries, keys] with the names of rows and columns. The layers and heads
// of a picture may be some of the model's: `layer_numbers` and `head_numbers` say which.
struct AttentionPicture {
  std::string title;
  std::vector<std::string> queries, keys;
  std::vector<int32_t> layer_numbers, head_numbers;
  std::vector<float> weights;
  // What is shown large: indices into layer_numbers and head_numbers, or kMeanOfHeads.
  int32_t layer = 0, head = kMeanOfHeads;

  size_t layers() const { return layer_numbers.size(); }
  size_t heads() const { return head_numbers.size(); }
  // [queries, keys] of one head, or the mean over all of `head_numbers`.
  std::vector<float> Matrix(size_t layer_index, int32_t head_index) const;
  // "layer 3, head 0" or "layer 3, mean of 12 heads".
  std::string Name(size_t layer_index, int32_t head_index) const;
};

// The largest absolute value.
float Largest(std::span<const float> values);
// The columns of a terminal that `text` takes: none for combining marks, two for wide characters.
int64_t DisplayWidth(std::string_view text);
// `text` without control characters and at most `width` columns wide, the last an ellipsis if cut.
std::string Shorten(std::string_view text, int64_t width);

// Paints text in a colour, or leaves it as it is.
using Painter = std::function<std::string(std::string_view text, std::string_view sgr)>;

// What is shown large, as lines of at most `width` columns: with numbers while they fit, then
// as bars alone, then in parts.
std::string DrawInTerminal(const AttentionPicture& picture, int64_t width, const Painter& paint);

// Everything: one head large, all heads small. Follows the reader's choice of light and dark. With
// scripts allowed, a click on a small head shows it large and pointing at it tells its weights.
std::string DrawSvg(const AttentionPicture& picture);
std::string DrawHtml(const AttentionPicture& picture);

}  // namespace attend::tools

#endif  // ATTEND_TOOLS_ATTENTION_PICTURE_H_
