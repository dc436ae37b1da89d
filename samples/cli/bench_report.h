// What `vkformer bench` measured: rows for people, as JSON and as CSV, and the comparison of two.
#pragma once

#include <string>
#include <vector>

#include "output.h"
#include "vkformer/benchmark.h"
#include "vkformer/device.h"

namespace vkformer::cli {

// One number with what belongs to it.
struct BenchRow {
  std::string section;  // "roofline", "operators", "models", ...
  std::string name;     // unique within its section
  double value = 0;
  std::string unit;  // "ms", "GFLOP/s", ...; times are better low, all others high
  double flops = 0;  // operations and bytes of what took `value` ms; 0: not known
  double bytes = 0;
  double share = 0;     // of the roofline that binds; 0: none
  std::string bound;    // "compute" or "bandwidth": which one that is
  std::string hash;     // of the output, or empty
  std::string kernels;  // the variants that ran, or empty; not in the table
  std::string note;
};

struct BenchReport {
  Json device;  // name, driver, tier and so on; "estimated": true where nothing was measured
  std::string date;
  Roofline roofline;
  std::vector<BenchRow> rows;
};

// Where a report goes besides the terminal.
struct ReportFiles {
  bool print_json = false;  // instead of the table
  std::string json;
  std::string csv;
};

// Of today, and of no device yet.
BenchReport start_report();
BenchReport start_report(const Device& device);
// Fills in share and bound of a row in ms with flops and bytes.
void set_roofline_share(const Roofline& roofline, BenchRow& row);
void add_roofline_rows(const Roofline& roofline, std::vector<BenchRow>& rows);
// Prints the table, or the JSON, and writes the files.
Status emit_report(const BenchReport& report, const ReportFiles& files);

Json report_json(const BenchReport& report);
BenchRow row_from_json(const Json& row);

struct CompareReportsOptions {
  std::string before;  // files that --json wrote
  std::string after;
  double fail_below = 0;  // exit status 1 where a ratio is below; 0: never
  bool json = false;
};
// Ratios of speed, after to before, of the rows that both have.
int compare_reports(const CompareReportsOptions& options);

}  // namespace vkformer::cli
