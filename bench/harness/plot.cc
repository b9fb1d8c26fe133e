#include "bench/harness/plot.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <utility>

namespace attend::bench {
namespace {

// A plot is drawn for a width of 440: what a column of the page has, so that letters keep their
// size on a narrow page and on a wide one.
constexpr double kWidth = 440, kHeight = 300;
constexpr double kLeft = 64, kRight = 14, kTop = 34, kBottom = 44;
constexpr double kLegendLine = 17;

std::string Number(double value) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.1f", value);
  return text;
}

std::string Text(double x, double y, const char* classes, const std::string& text,
                 const char* anchor = "start") {
  return "<text class=\"" + std::string(classes) + "\" x=\"" + Number(x) + "\" y=\"" + Number(y) +
         "\" text-anchor=\"" + anchor + "\">" + Escaped(text) + "</text>\n";
}

std::string Line(double x1, double y1, double x2, double y2, const char* classes) {
  return "<line class=\"" + std::string(classes) + "\" x1=\"" + Number(x1) + "\" y1=\"" +
         Number(y1) + "\" x2=\"" + Number(x2) + "\" y2=\"" + Number(y2) + "\"/>\n";
}

std::string Open(double height, const std::string& title) {
  return "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 " + Number(kWidth) + " " +
         Number(height) + "\" role=\"img\" aria-label=\"" + Escaped(title) + "\">\n" +
         Text(kWidth / 2, 18, "t", title, "middle");
}

// From values to places.
struct Axis {
  double low = 0, high = 1, from = 0, to = 1;
  bool log = false;

  double At(double value) const {
    const double part = log ? (std::log(value) - std::log(low)) / (std::log(high) - std::log(low))
                            : (value - low) / (high - low);
    return from + part * (to - from);
  }
};

// Whole steps of 1, 2 or 5 that cut `high` into four to nine.
std::vector<double> LinearTicks(double high) {
  double step = std::pow(10.0, std::floor(std::log10(high)));
  if (high / step < 2) {
    step /= 5;
  } else if (high / step < 5) {
    step /= 2;
  }
  std::vector<double> ticks;
  for (int i = 0; i * step <= high * 1.0001; ++i) ticks.push_back(i * step);
  return ticks;
}

// Powers of ten; where there are few, also twice and five times them.
std::vector<double> LogTicks(double low, double high) {
  std::vector<double> ticks;
  const bool few = high / low < 300;
  for (double ten = std::pow(10.0, std::floor(std::log10(low))); ten <= high; ten *= 10) {
    for (const double times : {1.0, 2.0, 5.0}) {
      const double tick = ten * times;
      if (times > 1 && !few) continue;
      if (tick >= low * 0.9999 && tick <= high * 1.0001) ticks.push_back(tick);
    }
  }
  return ticks;
}

// The range of all points along one axis, with room at the ends.
template <typename Get>
Axis RangeOf(const LinePlot& plot, bool log, const Get& get) {
  double low = INFINITY, high = -INFINITY;
  for (const Series& series : plot.series) {
    for (const Point& point : series.points) {
      low = std::min(low, get(point));
      high = std::max(high, get(point));
    }
  }
  if (!(low <= high)) low = high = 1;
  Axis axis{.log = log};
  if (log) {
    axis.low = low / 1.15;
    axis.high = high * 1.15;
  } else {
    axis.low = 0;
    axis.high = high > 0 ? high * 1.06 : 1;
  }
  return axis;
}

std::string DrawAxes(const LinePlot& plot, const Axis& x, const Axis& y) {
  std::string svg;
  const std::vector<double> x_ticks = !plot.x_ticks.empty() ? plot.x_ticks
                                      : x.log               ? LogTicks(x.low, x.high)
                                                            : LinearTicks(x.high);
  const std::vector<double> y_ticks = y.log ? LogTicks(y.low, y.high) : LinearTicks(y.high);
  for (const double tick : y_ticks) {
    svg += Line(x.from, y.At(tick), x.to, y.At(tick), "g");
    svg += Text(x.from - 6, y.At(tick) + 4, "k", plot.y_text(tick), "end");
  }
  double last = -INFINITY;
  for (const double tick : x_ticks) {
    svg += Line(x.At(tick), y.from, x.At(tick), y.from + 4, "a");
    if (x.At(tick) - last < 26) continue;  // the letters would touch
    last = x.At(tick);
    svg += Text(last, y.from + 17, "k", plot.x_text(tick), "middle");
  }
  svg += Line(x.from, y.from, x.to, y.from, "a");
  svg += Text((x.from + x.to) / 2, y.from + 36, "k", plot.x_label, "middle");
  return svg + Text(4, kTop - 2, "k", plot.y_label);
}

std::string DrawSeries(const Series& series, size_t color, const Axis& x, const Axis& y) {
  const std::string name = "s" + std::to_string(color % 6);
  std::string svg, places;
  for (const Point& point : series.points) {
    places += (places.empty() ? "" : " ") + Number(x.At(point.x)) + "," + Number(y.At(point.y));
  }
  if (series.line) {
    svg += "<polyline class=\"l " + name + (series.dashed ? " d" : "") + "\" points=\"" + places +
           "\"/>\n";
  }
  std::vector<std::pair<double, double>> labels;  // where they are
  for (const Point& point : series.points) {
    const double px = x.At(point.x), py = y.At(point.y);
    if (series.marks) {
      svg += "<circle class=\"m " + name + "\" cx=\"" + Number(px) + "\" cy=\"" + Number(py) +
             "\" r=\"3.5\"/>\n";
    }
    if (point.label.empty()) continue;
    double lx = px + 6, ly = py - 6;
    const auto taken = [&](const auto& other) {
      return std::abs(other.first - lx) < 14 && std::abs(other.second - ly) < 11;
    };
    while (std::any_of(labels.begin(), labels.end(), taken)) ly -= 11;
    labels.emplace_back(lx, ly);
    svg += Text(lx, ly, "k", point.label);
  }
  return svg;
}

}  // namespace

std::string Escaped(const std::string& text) {
  std::string escaped;
  for (const char c : text) {
    switch (c) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      default:
        escaped += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
    }
  }
  return escaped;
}

std::string DrawLines(const LinePlot& plot) {
  const size_t named =
      static_cast<size_t>(std::count_if(plot.series.begin(), plot.series.end(),
                                        [](const Series& series) { return !series.name.empty(); }));
  const double legend = kLegendLine * static_cast<double>(named);
  Axis x = RangeOf(plot, plot.log_x, [](const Point& point) { return point.x; });
  Axis y = RangeOf(plot, plot.log_y, [](const Point& point) { return point.y; });
  x.from = kLeft, x.to = kWidth - kRight;
  y.from = kHeight - kBottom, y.to = kTop + 10;
  std::string svg = Open(kHeight + legend, plot.title) + DrawAxes(plot, x, y);
  double at = kHeight + 8;
  for (size_t i = 0; i < plot.series.size(); ++i) {
    const Series& series = plot.series[i];
    svg += DrawSeries(series, i, x, y);
    if (series.name.empty()) continue;
    const std::string name = "s" + std::to_string(i % 6);
    if (series.line) {
      svg += Line(kLeft, at - 4, kLeft + 22, at - 4,
                  ("l " + name + (series.dashed ? " d" : "")).c_str());
    } else {
      svg += "<circle class=\"m " + name + "\" cx=\"" + Number(kLeft + 11) + "\" cy=\"" +
             Number(at - 4) + "\" r=\"3.5\"/>\n";
    }
    svg += Text(kLeft + 30, at, "k", series.name);
    at += kLegendLine;
  }
  return svg + "</svg>\n";
}

std::string DrawBars(const std::string& title, const std::vector<Bar>& bars) {
  constexpr double kLine = 36, kBar = 12, kRoom = 96;
  double most = 0;
  for (const Bar& bar : bars) most = std::max(most, bar.value);
  const double height = kTop + kLine * static_cast<double>(bars.size()) + 6;
  std::string svg = Open(height, title);
  double y = kTop;
  for (const Bar& bar : bars) {
    const double width = most > 0 ? (kWidth - 12 - kRoom) * bar.value / most : 0;
    const auto rectangle = [&](double part, const char* pale) {
      return "<rect class=\"f" + std::string(pale) + " s" + std::to_string(bar.color % 6) +
             "\" x=\"8\" y=\"" + Number(y + 17) + "\" width=\"" + Number(width * part) +
             "\" height=\"" + Number(kBar) + "\"/>\n";
    };
    svg += Text(8, y + 12, "k", bar.name);
    svg += rectangle(1, bar.within >= 0 ? " p" : "");
    if (bar.within >= 0) svg += rectangle(std::min(1.0, bar.within), "");
    svg += Text(8 + width + 6, y + 17 + kBar - 2, "k", bar.text);
    y += kLine;
  }
  return svg + "</svg>\n";
}

}  // namespace attend::bench
