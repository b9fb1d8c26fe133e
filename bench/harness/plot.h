// Plots as inline SVG: drawn once, without script; colours come from the page's classes (s0 .. s5).
#ifndef ATTEND_BENCH_HARNESS_PLOT_H_
#define ATTEND_BENCH_HARNESS_PLOT_H_

#include <functional>
#include <string>
#include <vector>

namespace attend::bench {

// Text inside of markup.
std::string Escaped(const std::string& text);

struct Point {
  double x = 0, y = 0;
  std::string label = {};  // beside the point, or empty
};

struct Series {
  std::string name;
  std::vector<Point> points = {};
  bool line = true;     // joined
  bool marks = true;    // a dot at each point
  bool dashed = false;  // a bound rather than a measurement
};

struct LinePlot {
  std::string title;
  std::string x_label, y_label;
  bool log_x = false, log_y = false;
  std::vector<double> x_ticks = {};  // empty: powers of ten
  std::function<std::string(double)> x_text = {}, y_text = {};
  std::vector<Series> series = {};
};
std::string DrawLines(const LinePlot& plot);

struct Bar {
  std::string name;
  double value = 0;
  std::string text;    // behind the bar
  double within = -1;  // a part of the bar drawn full, the rest pale; below 0: all of it
  int color = 0;
};
// Horizontal bars, each below its name.
std::string DrawBars(const std::string& title, const std::vector<Bar>& bars);

}  // namespace attend::bench

#endif  // ATTEND_BENCH_HARNESS_PLOT_H_
