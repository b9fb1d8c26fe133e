// The picture as a file: one SVG, which HTML wraps. Above, one head with a rectangle for every
// pair; below, all heads of all layers, each pair a piece of a line, so that pictures of many heads
// stay small. Colours are classes, given twice: light, and dark where the reader prefers that.
#include <algorithm>
#include <cmath>
#include <cstdio>

#include "tools/attention_picture.h"
#include "tools/attention_svg_parts.h"
#include "tools/json_writer.h"

namespace attend::tools {
namespace {

constexpr double kMargin = 28, kGap = 12, kCharWidth = 7.3;
constexpr int64_t kSvgLabelWidth = 16;
constexpr int kLevels = 20;

std::string XmlEscaped(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    switch (c) {
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '&':
        escaped += "&amp;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      default:
        escaped += c;
    }
  }
  return escaped;
}

// A number of a drawing: two decimals are a hundredth of a pixel.
std::string N(double value) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.2f", value);
  std::string number = text;
  while (number.back() == '0') number.pop_back();
  if (number.back() == '.') number.pop_back();
  return number == "-0" ? "0" : number;
}

std::string Attribute(const char* name, double value) {
  return std::string(" ") + name + "=\"" + N(value) + "\"";
}

struct Text {
  double x, y;
  const char* type = "";    // class
  const char* anchor = "";  // "middle", "end"
  double turn = 0;          // degrees
};

std::string Draw(const Text& t, std::string_view words) {
  std::string text = "<text" + Attribute("x", t.x) + Attribute("y", t.y);
  if (*t.type != '\0') text += std::string(" class=\"") + t.type + "\"";
  if (*t.anchor != '\0') text += std::string(" text-anchor=\"") + t.anchor + "\"";
  if (t.turn != 0) {
    text += " transform=\"rotate(" + N(t.turn) + " " + N(t.x) + " " + N(t.y) + ")\"";
  }
  return text + ">" + XmlEscaped(words) + "</text>\n";
}

class SvgPicture {
 public:
  explicit SvgPicture(const AttentionPicture& picture)
      : p_(picture),
        rows_(static_cast<double>(picture.queries.size())),
        columns_(static_cast<double>(picture.keys.size())),
        largest_(Largest(picture.weights)) {
    for (const std::string& token : p_.queries) queries_.push_back(Shorten(token, kSvgLabelWidth));
    for (const std::string& token : p_.keys) keys_.push_back(Shorten(token, kSvgLabelWidth));
    Measure();
  }

  std::string Draw() const {
    std::string svg = "<svg id=\"attend\" xmlns=\"http://www.w3.org/2000/svg\"" +
                      Attribute("width", width_) + Attribute("height", height_) +
                      " viewBox=\"0 0 " + N(width_) + " " + N(height_) + "\">\n<title>" +
                      XmlEscaped(p_.title) + "</title>\n<style>" + kSvgStyle + "</style>\n" +
                      "<rect class=\"bg\" width=\"100%\" height=\"100%\"/>\n";
    svg += Heading() + Detail() + Legend() + Grid();
    svg += std::string("<script>//<![CDATA[\n") + Data() + kSvgScript + "//]]></script>\n";
    return svg + "</svg>\n";
  }

 private:
  // Sizes: the large head as large as its tokens need, the small ones as wide as the page has room.
  void Measure() {
    cell_ = std::clamp(560.0 / std::max(rows_, columns_), 15.0, 46.0);
    double query_width = 0, key_width = 0;
    for (const std::string& label : queries_) {
      query_width = std::max(query_width, static_cast<double>(DisplayWidth(label)) * kCharWidth);
    }
    for (const std::string& label : keys_) {
      key_width = std::max(key_width, static_cast<double>(DisplayWidth(label)) * kCharWidth);
    }
    turned_ = key_width > cell_ - 4;
    detail_x_ = kMargin + std::max(query_width, 40.0) + 10;
    detail_y_ = 104 + (turned_ ? key_width * 0.87 + 14 : 26);
    detail_right_ = detail_x_ + columns_ * cell_ + (turned_ ? key_width * 0.5 : 0);

    panels_ = p_.heads() > 1 ? p_.heads() + 1 : 1;  // the mean first
    grid_x_ = kMargin + 58;
    const double room = std::max(1180.0, detail_right_ + 260) - grid_x_ - kMargin;
    const double side = std::clamp(room / static_cast<double>(panels_) - kGap, 56.0, 150.0);
    small_ = side / std::max(rows_, columns_);
    // Few tokens, few heads: their names fit beside the small ones too.
    named_ = small_ >= 9;
    if (named_) grid_x_ += std::min(query_width * 0.8, 80.0);
    grid_y_ = detail_y_ + rows_ * cell_ + 62 + (named_ ? std::min(key_width * 0.8, 80.0) : 0);
    const double grid_right =
        grid_x_ + static_cast<double>(panels_) * (columns_ * small_ + kGap) + kGap;
    width_ = std::ceil(std::max({grid_right + kMargin, detail_right_ + 48 + 200 + kMargin, 560.0}));
    height_ =
        std::ceil(grid_y_ + static_cast<double>(p_.layers()) * (rows_ * small_ + kGap) + kMargin);
  }

  // How dark: the square root shows small weights too.
  double Shade(float weight) const {
    return largest_ == 0 ? 0 : std::sqrt(std::fabs(static_cast<double>(weight) / largest_));
  }

  std::string Heading() const {
    const bool one_head = p_.heads() == 1;
    return attend::tools::Draw({kMargin, 44, "h"}, Shorten(p_.title, 90)) +
           attend::tools::Draw(
               {kMargin, 68, "m"},
               "Who looks at whom: every row is a token, its squares the weights it gives to the "
               "columns. " +
                   std::to_string(p_.layers()) + (p_.layers() == 1 ? " layer of " : " layers of ") +
                   std::to_string(p_.heads()) + (one_head ? " head." : " heads."));
  }

  std::string Detail() const {
    const size_t layer = static_cast<size_t>(p_.layer);
    std::string svg = "<text id=\"at-name\" class=\"b\"" + Attribute("x", kMargin) +
                      Attribute("y", 96) + ">" + p_.Name(layer, p_.head) + "</text>\n";
    for (size_t j = 0; j < keys_.size(); ++j) {
      const double x = detail_x_ + (static_cast<double>(j) + 0.5) * cell_;
      const Text place = turned_ ? Text{x + 4, detail_y_ - 7, "t", "", -60}
                                 : Text{x, detail_y_ - 8, "t", "middle"};
      svg += attend::tools::Draw(place, keys_[j]);
    }
    for (size_t i = 0; i < queries_.size(); ++i) {
      const double y = detail_y_ + (static_cast<double>(i) + 0.5) * cell_ + 4;
      svg += attend::tools::Draw({detail_x_ - 8, y, "t", "end"}, queries_[i]);
    }
    svg += "<rect class=\"p\"" + Attribute("x", detail_x_) + Attribute("y", detail_y_) +
           Attribute("width", columns_ * cell_) + Attribute("height", rows_ * cell_) + "/>\n";
    return svg + "<g id=\"at-cells\">\n" + Cells(p_.Matrix(layer, p_.head)) + "</g>\n";
  }

  // A rectangle for every pair, with its weight to point at, and in it where there is room.
  std::string Cells(const std::vector<float>& matrix) const {
    const bool numbers = cell_ >= 34;
    std::string rectangles, words;
    for (size_t i = 0; i < queries_.size(); ++i) {
      for (size_t j = 0; j < keys_.size(); ++j) {
        const float weight = matrix[i * keys_.size() + j];
        const double x = detail_x_ + static_cast<double>(j) * cell_;
        const double y = detail_y_ + static_cast<double>(i) * cell_;
        rectangles += std::string("<rect class=\"") + (weight < 0 ? "n" : "c") + "\"" +
                      Attribute("x", x + 0.5) + Attribute("y", y + 0.5) +
                      Attribute("width", cell_ - 1) + Attribute("height", cell_ - 1) +
                      Attribute("fill-opacity", Shade(weight)) + "><title>" +
                      XmlEscaped(queries_[i]) + " → " + XmlEscaped(keys_[j]) + ": " +
                      FormatFloat(Rounded(weight)) + "</title></rect>\n";
        if (!numbers) continue;
        char number[32];
        std::snprintf(number, sizeof(number), "%.2f", static_cast<double>(weight));
        words += attend::tools::Draw(
            {x + cell_ / 2, y + cell_ / 2 + 4, Shade(weight) > 0.6 ? "w v" : "k v", "middle"},
            number);
      }
    }
    return rectangles + words;
  }

  std::string Legend() const {
    const double x = detail_right_ + 48, y = detail_y_;
    std::string svg = attend::tools::Draw({x, y + 8, "m"}, "weight");
    constexpr int kSteps = 40;
    for (int i = 0; i < kSteps; ++i) {
      const double share = (i + 0.5) / kSteps;
      svg += "<rect class=\"c\"" + Attribute("x", x + i * 200.0 / kSteps) + Attribute("y", y + 18) +
             Attribute("width", 200.0 / kSteps + 0.2) + " height=\"12\"" +
             Attribute("fill-opacity", share) + "/>\n";
    }
    for (const double share : {0.0, 0.25, 0.5, 1.0}) {
      char number[32];
      std::snprintf(number, sizeof(number), "%.2g", share * share * static_cast<double>(largest_));
      const char* anchor = share == 0 ? "" : share == 1 ? "end" : "middle";
      svg += attend::tools::Draw({x + share * 200, y + 46, "s", anchor}, number);
    }
    if (std::any_of(p_.weights.begin(), p_.weights.end(), [](float w) { return w < 0; })) {
      svg += "<rect class=\"n\"" + Attribute("x", x) + Attribute("y", y + 60) +
             " width=\"12\" height=\"12\"/>\n" +
             attend::tools::Draw({x + 20, y + 70, "s"}, "below zero");
    }
    if (panels_ > 1 || p_.layers() > 1) {
      svg += attend::tools::Draw({x, y + 98, "s"}, "A click on a small square shows it large.");
    }
    svg += "<text id=\"at-point\" class=\"b\"" + Attribute("x", x) + Attribute("y", y + 124) +
           "></text>\n";
    return svg;
  }

  std::string Grid() const {
    const double step_y = rows_ * small_ + kGap;
    std::string svg;
    const double name_y = grid_y_ - (named_ ? KeyRoom() : 0) - 10;
    for (size_t n = 0; n < panels_; ++n) {
      const std::string name =
          Column(n) == kMeanOfHeads && p_.heads() > 1
              ? "mean"
              : "head " +
                    std::to_string(p_.head_numbers[static_cast<size_t>(std::max(Column(n), 0))]);
      svg += attend::tools::Draw({PanelX(n) + columns_ * small_ / 2, name_y, "s", "middle"}, name);
      for (size_t j = 0; named_ && j < keys_.size(); ++j) {
        const double x = PanelX(n) + (static_cast<double>(j) + 0.5) * small_ + 3;
        svg += attend::tools::Draw({x, grid_y_ - 5, "x", "", -90}, Shorten(keys_[j], 10));
      }
    }
    for (size_t l = 0; l < p_.layers(); ++l) {
      const double y = grid_y_ + static_cast<double>(l) * step_y;
      svg += attend::tools::Draw({kMargin, y + rows_ * small_ / 2 + 4, "s"},
                                 "layer " + std::to_string(p_.layer_numbers[l]));
      for (size_t i = 0; named_ && i < queries_.size(); ++i) {
        const double at = y + (static_cast<double>(i) + 0.5) * small_ + 3;
        svg += attend::tools::Draw({grid_x_ - 5, at, "x", "end"}, Shorten(queries_[i], 10));
      }
      for (size_t n = 0; n < panels_; ++n) svg += Panel(l, n, PanelX(n), y);
    }
    return svg;
  }

  double KeyRoom() const {
    double room = 0;
    for (const std::string& key : keys_) {
      room = std::max(room, static_cast<double>(DisplayWidth(Shorten(key, 10))) * 5.6);
    }
    return room + 4;
  }

  int32_t Column(size_t panel) const { return static_cast<int32_t>(panel) - 1; }
  // The mean stands a little apart.
  double PanelX(size_t panel) const {
    return grid_x_ + static_cast<double>(panel) * (columns_ * small_ + kGap) +
           (panel > 0 ? kGap : 0);
  }

  // A head as lines, one class of opacity after the other; neighbours of one shade are one line.
  std::string Panel(size_t layer, size_t panel, double x, double y) const {
    const std::vector<float> matrix = p_.Matrix(layer, p_.heads() == 1 ? 0 : Column(panel));
    std::vector<std::string> lines(2 * kLevels + 1);
    const size_t columns = keys_.size();
    for (size_t i = 0; i < queries_.size(); ++i) {
      for (size_t j = 0; j < columns;) {
        const int level = Level(matrix[i * columns + j]);
        size_t end = j + 1;
        while (end < columns && Level(matrix[i * columns + end]) == level) ++end;
        if (level != 0) {
          lines[static_cast<size_t>(level + kLevels)] +=
              "M" + std::to_string(j) + " " + std::to_string(i) + "h" + std::to_string(end - j);
        }
        j = end;
      }
    }
    const bool chosen =
        p_.layer == static_cast<int32_t>(layer) && (p_.heads() == 1 || p_.head == Column(panel));
    std::string svg =
        "<g class=\"g" + std::string(chosen ? " on" : "") + "\" data-l=\"" + std::to_string(layer) +
        "\" data-h=\"" + std::to_string(p_.heads() == 1 ? 0 : Column(panel)) + "\"><title>" +
        p_.Name(layer, p_.heads() == 1 ? 0 : Column(panel)) + "</title><rect class=\"p\"" +
        Attribute("x", x) + Attribute("y", y) + Attribute("width", columns_ * small_) +
        Attribute("height", rows_ * small_) + "/><g transform=\"translate(" + N(x) + " " + N(y) +
        ") scale(" + N4(small_) + ") translate(0 .5)\">";
    for (int level = -kLevels; level <= kLevels; ++level) {
      const std::string& line = lines[static_cast<size_t>(level + kLevels)];
      if (line.empty()) continue;
      svg += std::string("<path class=\"") + (level < 0 ? "ln" : "l") + "\"" +
             Attribute("stroke-opacity", std::abs(level) / static_cast<double>(kLevels)) + " d=\"" +
             line + "\"/>";
    }
    return svg + "</g></g>\n";
  }

  static std::string N4(double value) {
    char text[32];
    std::snprintf(text, sizeof(text), "%.4f", value);
    return text;
  }

  int Level(float weight) const {
    const int level = static_cast<int>(std::lround(Shade(weight) * kLevels));
    return weight < 0 ? -level : level;
  }

  // Four decimals are what a reader can use.
  static float Rounded(float weight) {
    return static_cast<float>(std::round(static_cast<double>(weight) * 1e4) / 1e4);
  }

  // What the script needs: names, and weights in ten thousandths.
  std::string Data() const {
    JsonWriter writer;
    const auto strings = [&](const char* key, const std::vector<std::string>& values) {
      writer.Key(key).BeginArray();
      for (const std::string& value : values) writer.String(value);
      writer.EndArray();
    };
    const auto numbers = [&](const char* key, const std::vector<int32_t>& values) {
      writer.Key(key).BeginArray();
      for (const int32_t value : values) writer.Int(value);
      writer.EndArray();
    };
    writer.BeginObject();
    strings("q", queries_);
    strings("k", keys_);
    numbers("layers", p_.layer_numbers);
    numbers("heads", p_.head_numbers);
    writer.Key("max").Float(largest_).Key("w").BeginArray();
    for (const float weight : p_.weights) {
      writer.Int(std::lround(static_cast<double>(weight) * 1e4));
    }
    writer.EndArray().EndObject();
    std::string data = writer.text();
    // Nothing in a token may end the script.
    for (size_t at = 0; (at = data.find_first_of("<>&", at)) != std::string::npos;) {
      const char* const code = data[at] == '<'   ? "\\u003c"
                               : data[at] == '>' ? "\\u003e"
                                                 : "\\u0026";
      data.replace(at, 1, code);
    }
    return "var D=" + data + ";\n";
  }

  const AttentionPicture& p_;
  double rows_, columns_;
  float largest_;
  std::vector<std::string> queries_, keys_;
  size_t panels_ = 1;
  bool turned_ = false, named_ = false;
  double cell_ = 0, small_ = 0, detail_x_ = 0, detail_y_ = 0, grid_x_ = 0, grid_y_ = 0,
         detail_right_ = 0;
  double width_ = 0, height_ = 0;
};

}  // namespace

std::string DrawSvg(const AttentionPicture& picture) {
  return "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n" + SvgPicture(picture).Draw();
}

std::string DrawHtml(const AttentionPicture& picture) {
  return "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
         "<meta name=\"viewport\" content=\"width=device-width\">\n"
         "<meta name=\"color-scheme\" content=\"light dark\">\n<title>" +
         XmlEscaped(Shorten(picture.title, 90)) +
         "</title>\n<style>body{margin:0;background:#fff}"
         "@media(prefers-color-scheme:dark){body{background:#0d1117}}</style>\n"
         "</head>\n<body>\n" +
         SvgPicture(picture).Draw() + "</body>\n</html>\n";
}

}  // namespace attend::tools
