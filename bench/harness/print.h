// A document for people: tables of plain text.
#ifndef ATTEND_BENCH_HARNESS_PRINT_H_
#define ATTEND_BENCH_HARNESS_PRINT_H_

#include <string>
#include <utility>
#include <vector>

#include "bench/harness/json.h"

namespace attend::bench {

// A table: the first column is words, the others are numbers.
class TextTable {
 public:
  explicit TextTable(std::vector<std::string> head) : rows_{std::move(head)} {}
  void Add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
  const std::vector<std::vector<std::string>>& rows() const { return rows_; }
  std::string Text() const;

 private:
  std::vector<std::vector<std::string>> rows_;  // the head first
};

// Numbers with units, three or four digits: "1.234 ms", "92.1 GFLOP/s", "11.3 MiB", "87 %".
std::string Milliseconds(double seconds);
std::string Seconds(double seconds);
std::string PerSecond(double value, const char* unit);
std::string Mebibytes(double bytes);
std::string Percent(double part);
std::string Fixed(double value, int digits);

// The tables of a document, section by section, each with its title; the page shows the same.
struct TitledTable {
  std::string section;
  std::string title;
  std::string note;  // a sentence below the title, or empty
  TextTable table;
};
std::vector<TitledTable> TablesOf(const Json& document);

// All of it, with the machine first.
std::string PrintDocument(const Json& document);
// What the machine is, a line each: {"CPU", "AMD EPYC ..."}.
std::vector<std::pair<std::string, std::string>> FactsOf(const Json& document);

// What CompareDocuments and CompareSides give.
std::string PrintComparison(const Json& comparison);
std::string PrintSides(const Json& sides);

}  // namespace attend::bench

#endif  // ATTEND_BENCH_HARNESS_PRINT_H_
