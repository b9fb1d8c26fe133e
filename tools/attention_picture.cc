#include "tools/attention_picture.h"

#include <algorithm>
#include <cmath>

#include "tools/output.h"
#include "tools/utf8.h"

namespace attend::tools {
namespace {

// Where most combining marks are, and where characters are two columns wide.
constexpr uint32_t kMarks[][2] = {{0x0300, 0x036F}, {0x0483, 0x0489}, {0x0591, 0x05BD},
                                  {0x064B, 0x065F}, {0x0900, 0x0902}, {0x0E34, 0x0E3A},
                                  {0x200B, 0x200F}, {0x20D0, 0x20F0}, {0xFE00, 0xFE0F}};
constexpr uint32_t kWide[][2] = {{0x1100, 0x115F},   {0x2E80, 0x303E},  {0x3041, 0xA4CF},
                                 {0xA960, 0xA97C},   {0xAC00, 0xD7A3},  {0xF900, 0xFAFF},
                                 {0xFE30, 0xFE6F},   {0xFF01, 0xFF60},  {0xFFE0, 0xFFE6},
                                 {0x1F300, 0x1FAFF}, {0x20000, 0x3FFFD}};

template <size_t n>
bool IsIn(uint32_t c, const uint32_t (&ranges)[n][2]) {
  return std::any_of(std::begin(ranges), std::end(ranges),
                     [c](const uint32_t(&range)[2]) { return range[0] <= c && c <= range[1]; });
}

int64_t ColumnsOf(uint32_t code_point) {
  if (IsIn(code_point, kMarks)) return 0;
  return IsIn(code_point, kWide) ? 2 : 1;
}

}  // namespace

std::vector<float> AttentionPicture::Matrix(size_t layer_index, int32_t head_index) const {
  const size_t size = queries.size() * keys.size();
  const float* const all = weights.data() + layer_index * heads() * size;
  if (head_index != kMeanOfHeads) {
    const float* const from = all + static_cast<size_t>(head_index) * size;
    return {from, from + size};
  }
  std::vector<float> mean(size);
  for (size_t i = 0; i < size; ++i) {
    double sum = 0;
    for (size_t h = 0; h < heads(); ++h) sum += static_cast<double>(all[h * size + i]);
    mean[i] = static_cast<float>(sum / static_cast<double>(heads()));
  }
  return mean;
}

std::string AttentionPicture::Name(size_t layer_index, int32_t head_index) const {
  const std::string name = "layer " + std::to_string(layer_numbers[layer_index]);
  if (head_index == kMeanOfHeads && heads() > 1) {
    return name + ", mean of " + std::to_string(heads()) + " heads";
  }
  return name + ", head " +
         std::to_string(head_numbers[static_cast<size_t>(std::max(head_index, 0))]);
}

float Largest(std::span<const float> values) {
  float largest = 0;
  for (const float value : values) largest = std::max(largest, std::fabs(value));
  return largest;
}

int64_t DisplayWidth(std::string_view text) {
  int64_t width = 0;
  while (!text.empty()) {
    const Utf8Char c = DecodeUtf8(text);
    width += ColumnsOf(c.code_point);
    text.remove_prefix(c.size);
  }
  return width;
}

std::string Shorten(std::string_view text, int64_t width) {
  const std::string whole = Printable(text);
  if (DisplayWidth(whole) <= width) return whole;
  std::string cut;
  for (std::string_view left = whole; !left.empty();) {
    const Utf8Char c = DecodeUtf8(left);
    if (DisplayWidth(cut) + ColumnsOf(c.code_point) > width - 1) break;
    cut += left.substr(0, c.size);
    left.remove_prefix(c.size);
  }
  return cut + "…";
}

}  // namespace attend::tools
