#include "bench/harness/print.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <iterator>

namespace attend::bench {
namespace {

// How many columns of a terminal `text` takes: bytes that begin a character. (There are no wide
// ones in these tables.)
size_t Width(const std::string& text) {
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

// Enough digits that four count.
int Digits(double value) {
  const double size = std::abs(value);
  return size >= 1000 ? 0 : size >= 100 ? 1 : size >= 10 ? 2 : 3;
}

}  // namespace

std::string Fixed(double value, int digits) {
  char text[64];
  std::snprintf(text, sizeof(text), "%.*f", digits, value);
  return text;
}

std::string Milliseconds(double seconds) {
  const double value = seconds * 1e3;
  return Fixed(value, Digits(value)) + " ms";
}

std::string Seconds(double seconds) {
  if (seconds < 1e-3) return Fixed(seconds * 1e6, Digits(seconds * 1e6)) + " µs";
  if (seconds < 1) return Milliseconds(seconds);
  return Fixed(seconds, Digits(seconds)) + " s";
}

std::string PerSecond(double value, const char* unit) {
  const char* const prefixes[] = {"", "k", "M", "G", "T"};
  size_t prefix = 0;
  while (value >= 1000 && prefix + 1 < std::size(prefixes)) {
    value /= 1000;
    ++prefix;
  }
  return Fixed(value, std::min(Digits(value), 2)) + " " + prefixes[prefix] + unit + "/s";
}

std::string Mebibytes(double bytes) { return Fixed(bytes / (1 << 20), 1) + " MiB"; }

std::string Percent(double part) { return Fixed(part * 100, part < 0.0995 ? 1 : 0) + " %"; }

std::string TextTable::Text() const {
  std::vector<size_t> widths;
  for (const std::vector<std::string>& row : rows_) {
    widths.resize(std::max(widths.size(), row.size()));
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], Width(row[i]));
  }
  std::string text;
  for (const std::vector<std::string>& row : rows_) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) {
      const std::string space(widths[i] - Width(row[i]), ' ');
      line += i == 0 ? row[i] + space : "  " + space + row[i];
    }
    text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
  return text;
}

std::vector<std::pair<std::string, std::string>> FactsOf(const Json& document) {
  const Json& machine = document.at("machine");
  const Json& model = document.at("model");
  const Json& settings = document.at("settings");
  std::string caches, isas;
  for (const auto& [name, size] : machine.at("caches").items()) {
    caches += (caches.empty() ? "" : ", ") + name + " " + size.get<std::string>();
  }
  for (const Json& isa : machine.at("isas")) {
    isas += (isas.empty() ? "" : ", ") + isa.get<std::string>();
  }
  return {
      {"CPU", TextOf(machine, "cpu")},
      {"caches", caches.empty() ? "unknown" : caches},
      {"ISA", TextOf(settings, "isa") + ", of " + isas},
      {"threads", settings.at("threads").dump() + " (" + TextOf(machine, "threads_reason") + ")"},
      {"precision", TextOf(settings, "precision")},
      {"attend", TextOf(document.at("attend"), "version") + ", " +
                     TextOf(document.at("attend"), "libraries")},
      {"model", TextOf(model, "file") + ": " + model.at("num_layers").dump() + " layers of width " +
                    model.at("hidden_size").dump() + ", " + model.at("parameters").dump() +
                    " parameters"},
      {"date", TextOf(document, "date")},
      {"command", TextOf(document, "command")}};
}

std::string PrintDocument(const Json& document) {
  std::string text;
  for (const auto& [name, value] : FactsOf(document)) {
    text += name + std::string(12 - std::min<size_t>(name.size(), 11), ' ') + value + "\n";
  }
  for (const TitledTable& table : TablesOf(document)) {
    text += "\n" + table.title + "\n" + (table.note.empty() ? "" : table.note + "\n");
    text += table.table.Text();
  }
  return text;
}

std::string PrintComparison(const Json& comparison) {
  std::string text;
  for (const Json& line : comparison.at("differs")) {
    text += "differs: " + line.get<std::string>() + "\n";
  }
  TextTable table({"cell", "A", "B", "B / A"});
  for (const Json& cell : comparison.at("cells")) {
    table.Add({TextOf(cell, "cell"), Seconds(NumberOf(cell, "a_s")), Seconds(NumberOf(cell, "b_s")),
               Fixed(NumberOf(cell, "ratio"), 3)});
  }
  const Json& worst = comparison.at("worst");
  return text + table.Text() + "slowest: " + TextOf(worst, "cell") + ", " +
         Fixed(NumberOf(worst, "ratio"), 3) + "\n";
}

std::string PrintSides(const Json& sides) {
  std::string text = "A  " + TextOf(sides.at("a"), "command") + "\nB  " +
                     TextOf(sides.at("b"), "command") +
                     "\nratio: time of B / time of A, median of pairs, 95 % interval; A / A: the "
                     "same of A beside itself\n\n";
  const auto interval = [](const Json& cell, const char* low, const char* high) {
    return Fixed(NumberOf(cell, low), 3) + " to " + Fixed(NumberOf(cell, high), 3);
  };
  TextTable table({"case", "A", "B", "ratio", "interval", "A / A", "interval"});
  for (const Json& cell : sides.at("cells")) {
    table.Add({TextOf(cell, "case"), Seconds(NumberOf(cell, "a_s")), Seconds(NumberOf(cell, "b_s")),
               Fixed(NumberOf(cell, "ratio"), 3), interval(cell, "low", "high"),
               Fixed(NumberOf(cell, "noise"), 3), interval(cell, "noise_low", "noise_high")});
  }
  return text + table.Text();
}

}  // namespace attend::bench
