// The picture in a terminal: a row of bars for every token, one for each token that it sees.
#include <algorithm>
#include <cmath>
#include <cstdio>

#include "tools/attention_picture.h"
#include "tools/utf8.h"

namespace attend::tools {
namespace {

constexpr int64_t kTerminalLabelWidth = 14;
constexpr int64_t kNumberWidth = 6;  // of a cell: a bar and "0.43"

std::string Spaces(int64_t count) {
  return std::string(static_cast<size_t>(std::max<int64_t>(count, 0)), ' ');
}

std::string PadLeft(std::string_view text, int64_t width) {
  return Spaces(width - DisplayWidth(text)) + std::string(text);
}

// A bar as high as the weight, in eighths of the largest; a dot where it is next to nothing, a
// blank where there is none. Negative weights, which only the normaliser "none" has, are shades.
std::string_view Bar(float weight, float largest) {
  constexpr std::string_view kBars[] = {"·", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  constexpr std::string_view kShades[] = {"·", "░", "░", "░", "▒", "▒", "▒", "▓", "▓"};
  if (weight == 0 || largest == 0) return " ";
  const float share = std::fabs(weight) / largest;
  const int level = std::clamp(static_cast<int>(std::lround(share * 8)), 0, 8);
  return weight < 0 ? kShades[level] : kBars[level];
}

// From grey to red, legible on light and dark.
std::string_view ColorOf(float weight, float largest) {
  constexpr std::string_view kColors[] = {"38;5;246", "38;5;179", "38;5;172", "38;5;166",
                                          "38;5;160"};
  if (largest == 0) return kColors[0];
  const float share = std::fabs(weight) / largest;
  return kColors[std::clamp(static_cast<int>(share * 5), 0, 4)];
}

std::string Number(float weight) {
  char text[32];
  std::snprintf(text, sizeof(text), std::fabs(weight) < 10 ? "%.2f" : "%.1f",
                static_cast<double>(weight));
  return text;
}

// One drawing of columns [begin, end) of the keys.
class Drawing {
 public:
  Drawing(const AttentionPicture& picture, const Painter& paint)
      : picture_(picture),
        paint_(paint),
        weights_(picture.Matrix(static_cast<size_t>(picture.layer), picture.head)),
        largest_(Largest(weights_)) {
    for (const std::string& token : picture.queries)
      queries_.push_back(Shorten(token, kTerminalLabelWidth));
    for (const std::string& token : picture.keys)
      keys_.push_back(Shorten(token, kTerminalLabelWidth));
    for (const std::string& label : queries_) margin_ = std::max(margin_, DisplayWidth(label));
  }

  std::string Draw(int64_t width) const {
    std::string text =
        picture_.Name(static_cast<size_t>(picture_.layer), picture_.head) +
        paint_("  (every row looks at the columns; █ is " + Number(largest_) + ")", "2") + "\n";
    const int64_t room = std::max<int64_t>(width - margin_ - 1, 8);
    const int64_t count = static_cast<int64_t>(keys_.size());
    int64_t cell = kNumberWidth;
    for (const std::string& label : keys_) cell = std::max(cell, DisplayWidth(label));
    if ((cell + 1) * count <= room) return text + WithNumbers(cell);
    cell = 2 * count <= room ? 2 : 1;
    for (int64_t begin = 0; begin < count; begin += room / cell) {
      const int64_t end = std::min(count, begin + room / cell);
      if (end - begin < count) {
        text += paint_("columns " + std::to_string(begin) + " to " + std::to_string(end - 1) +
                           " of " + std::to_string(count),
                       "2") +
                "\n";
      }
      text += Compact(begin, end, cell);
    }
    return text;
  }

 private:
  float at(size_t i, int64_t j) const {
    return weights_[i * keys_.size() + static_cast<size_t>(j)];
  }

  std::string WithNumbers(int64_t cell) const {
    std::string text = Spaces(margin_);
    for (const std::string& label : keys_) text += " " + PadLeft(label, cell);
    text += "\n";
    for (size_t i = 0; i < queries_.size(); ++i) {
      text += PadLeft(queries_[i], margin_);
      for (size_t j = 0; j < keys_.size(); ++j) {
        const float weight = at(i, static_cast<int64_t>(j));
        const std::string value = std::string(Bar(weight, largest_)) + PadLeft(Number(weight), 5);
        text += Spaces(1 + cell - kNumberWidth) + paint_(value, ColorOf(weight, largest_));
      }
      text += "\n";
    }
    return text;
  }

  // The names of columns stand upright above them.
  std::string Compact(int64_t begin, int64_t end, int64_t cell) const {
    std::vector<std::vector<std::string>> names;
    size_t height = 0;
    for (int64_t j = begin; j < end; ++j) {
      std::vector<std::string>& name = names.emplace_back();
      std::string_view left = keys_[static_cast<size_t>(j)];
      while (!left.empty()) {
        const Utf8Char c = DecodeUtf8(left);
        // What has no column of its own, or would take two, has no place in a column of one.
        const int64_t width = DisplayWidth(left.substr(0, c.size));
        name.emplace_back(0 < width && width <= cell ? left.substr(0, c.size) : "?");
        left.remove_prefix(c.size);
      }
      height = std::max(height, name.size());
    }
    std::string text;
    for (size_t line = 0; line < height; ++line) {
      std::string row = Spaces(margin_ + 1);
      for (const std::vector<std::string>& name : names) {
        const size_t above = height - name.size();
        const std::string_view c = line < above ? " " : std::string_view(name[line - above]);
        row += std::string(c) + Spaces(cell - DisplayWidth(c));
      }
      row.erase(row.find_last_not_of(' ') + 1);
      text += row + "\n";
    }
    for (size_t i = 0; i < queries_.size(); ++i) {
      text += PadLeft(queries_[i], margin_) + " ";
      for (int64_t j = begin; j < end; ++j) {
        const std::string_view bar = Bar(at(i, j), largest_);
        std::string shown(bar);
        if (cell == 2) shown += bar == "·" ? " " : bar;
        text += paint_(shown, ColorOf(at(i, j), largest_));
      }
      text += "\n";
    }
    return text;
  }

  const AttentionPicture& picture_;
  const Painter& paint_;
  std::vector<float> weights_;
  float largest_;
  std::vector<std::string> queries_, keys_;
  int64_t margin_ = 0;
};

}  // namespace

std::string DrawInTerminal(const AttentionPicture& picture, int64_t width, const Painter& paint) {
  return Drawing(picture, paint).Draw(width);
}

}  // namespace attend::tools
