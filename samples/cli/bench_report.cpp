#include "bench_report.h"

#include <algorithm>
#include <ctime>

#include "files.h"

namespace vkformer::cli {

namespace {

constexpr const char* kFormat = "vkformer-bench-1";

std::string today() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%d", &parts);
  return text;
}

double per_second(double amount, double ms) {
  return ms > 0 ? amount * 1e-6 / ms : 0;
}

// Six significant digits are more than any timing has.
double rounded(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.6g", value);
  return std::strtod(text, nullptr);
}

Json row_json(const BenchRow& row) {
  Json json;
  json["section"] = row.section;
  json["name"] = row.name;
  json["value"] = rounded(row.value);
  json["unit"] = row.unit;
  if (row.flops > 0 || row.bytes > 0) {
    json["flops"] = rounded(row.flops);
    json["bytes"] = rounded(row.bytes);
    json["gflops"] = rounded(per_second(row.flops, row.value));
    json["gbytes"] = rounded(per_second(row.bytes, row.value));
  }
  if (row.share > 0) {
    json["share"] = rounded(row.share);
    json["bound"] = row.bound;
  }
  if (!row.hash.empty()) json["hash"] = row.hash;
  if (!row.kernels.empty()) json["kernels"] = row.kernels;
  if (!row.note.empty()) json["note"] = row.note;
  return json;
}

std::string quoted(const std::string& text) {
  if (text.find_first_of(",\"\n") == std::string::npos) return text;
  std::string result = "\"";
  for (char c : text) result += c == '"' ? std::string("\"\"") : std::string(1, c);
  return result + '"';
}

std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.6g", value);
  return text;
}

std::string report_csv(const BenchReport& report) {
  std::string csv =
      "section,name,value,unit,flops,bytes,gflops,gbytes,share,bound,hash,kernels,note\n";
  for (const BenchRow& row : report.rows) {
    csv += quoted(row.section) + ',' + quoted(row.name) + ',' + number(row.value) + ',' + row.unit +
           ',' + number(row.flops) + ',' + number(row.bytes) + ',' +
           number(row.unit == "ms" ? per_second(row.flops, row.value) : 0) + ',' +
           number(row.unit == "ms" ? per_second(row.bytes, row.value) : 0) + ',' +
           number(row.share) + ',' + row.bound + ',' + row.hash + ',' + row.kernels + ',' +
           quoted(row.note) + '\n';
  }
  return csv;
}

// Three significant digits of anything from nanoseconds to minutes.
std::string short_number(double value) {
  const int digits = value >= 100 ? 0 : value >= 10 ? 1 : value >= 1 ? 2 : value >= 0.1 ? 3 : 4;
  return fixed(value, digits);
}

std::string row_line(const BenchRow& row) {
  std::string line = padded(row.name, 43) + " ";
  line += padded(short_number(row.value) + " " + row.unit, 16);
  const bool timed = row.unit == "ms";
  line += padded(timed && row.flops > 0 ? short_number(per_second(row.flops, row.value)) : "", 9);
  line += padded(timed && row.bytes > 0 ? short_number(per_second(row.bytes, row.value)) : "", 8);
  line += padded(row.share > 0 ? fixed(row.share * 100, 1) + "% " + row.bound : "", 17);
  line += padded(row.hash, row.hash.empty() ? 0 : 17) + row.note;
  const size_t end = line.find_last_not_of(' ');
  return line.substr(0, end + 1);
}

void print_table(const BenchReport& report) {
  print_line(report.device.value("device", "") + ", " + report.device.value("driver", "") +
             ", tier " + report.device.value("tier", "") + ", " + report.date);
  std::string section;
  for (const BenchRow& row : report.rows) {
    if (row.section != section) {
      section = row.section;
      print_line("");
      const bool estimated = report.device.value("estimated", false);
      print_line(padded(section, 44) + padded(estimated ? "estimated" : "measured", 16) +
                 padded("GFLOP/s", 9) + padded("GB/s", 8) + padded("of roofline", 17) +
                 "output hash, notes");
    }
    print_line(row_line(row));
  }
}

Result<Json> read_bench_report(const std::string& path) {
  Result<Json> json = read_json_file(path);
  if (!json) return json.error();
  const auto format = json->find("format"), rows = json->find("rows");
  const bool good =
      format != json->end() && *format == kFormat && rows != json->end() && rows->is_array() &&
      std::all_of(rows->begin(), rows->end(), [](const Json& row) { return row.is_object(); });
  if (good) return json;
  return Error{ErrorCode::kInvalidFile,
               "[" + path + "] is no report of `vkformer bench --json FILE`."};
}

struct Compared {
  std::string key;
  double ratio = 0;
  double before = 0;
  double after = 0;
  std::string unit;
  bool same_output = true;
};

bool lower_is_better(const std::string& unit) {
  return unit == "ms" || unit == "us" || unit == "MB" || unit == "J/token" || unit == "us/token";
}

// What both have and can be divided, the slowest change first.
std::vector<Compared> compare_rows(const Json& before, const Json& after) {
  std::vector<Compared> list;
  for (const Json& a : before["rows"]) {
    for (const Json& b : after["rows"]) {
      if (a.value("section", "") != b.value("section", "") ||
          a.value("name", "") != b.value("name", "") ||
          a.value("unit", "") != b.value("unit", "")) {
        continue;
      }
      Compared row{.key = a.value("section", "") + "/" + a.value("name", ""),
                   .before = a.value("value", 0.0),
                   .after = b.value("value", 0.0),
                   .unit = a.value("unit", "")};
      if (!(row.before > 0) || !(row.after > 0)) continue;
      row.ratio = lower_is_better(row.unit) ? row.before / row.after : row.after / row.before;
      // Estimates have no output.
      const std::string had = a.value("hash", ""), has = b.value("hash", "");
      row.same_output = had == has || had.empty() || has.empty();
      list.push_back(std::move(row));
    }
  }
  std::stable_sort(list.begin(), list.end(),
                   [](const Compared& a, const Compared& b) { return a.ratio < b.ratio; });
  return list;
}

void print_compared(const std::vector<Compared>& list, bool as_json) {
  Json rows = Json::array();
  if (!as_json) {
    print_line(padded("row", 56) + padded("speed", 8) + padded("before", 12) + padded("after", 12) +
               "unit");
  }
  for (const Compared& row : list) {
    if (!as_json) {
      print_line(padded(row.key, 55) + " " + padded(fixed(row.ratio, 3), 8) +
                 padded(short_number(row.before), 12) + padded(short_number(row.after), 12) +
                 row.unit + (row.same_output ? "" : ", the output differs"));
      continue;
    }
    Json json;
    json["row"] = row.key;
    json["ratio"] = row.ratio;
    json["before"] = row.before;
    json["after"] = row.after;
    json["unit"] = row.unit;
    json["same_output"] = row.same_output;
    rows.push_back(std::move(json));
  }
  if (as_json) print_json(rows);
}

}  // namespace

BenchRow row_from_json(const Json& row) {
  BenchRow result;
  result.section = row.value("section", "");
  result.name = row.value("name", "");
  result.value = row.value("value", 0.0);
  result.unit = row.value("unit", "");
  result.flops = row.value("flops", 0.0);
  result.bytes = row.value("bytes", 0.0);
  result.share = row.value("share", 0.0);
  result.bound = row.value("bound", "");
  result.hash = row.value("hash", "");
  result.kernels = row.value("kernels", "");
  result.note = row.value("note", "");
  return result;
}

BenchReport start_report() {
  return {.date = today()};
}

BenchReport start_report(const Device& device) {
  const DeviceInfo info = device.info();
  BenchReport report = start_report();
  report.device["device"] = info.name;
  report.device["driver"] = info.driver;
  report.device["kind"] = choice_name(info.kind);
  report.device["api"] = info.api_version;
  report.device["tier"] = choice_name(device.tier());
  return report;
}

void set_roofline_share(const Roofline& roofline, BenchRow& row) {
  if (row.unit != "ms" || !(row.value > 0)) return;
  const double compute = roofline.fma_gflops > 0 ? row.flops * 1e-6 / roofline.fma_gflops : 0;
  const double bandwidth = roofline.copy_gbytes > 0 ? row.bytes * 1e-6 / roofline.copy_gbytes : 0;
  row.bound = compute > bandwidth ? "compute" : "bandwidth";
  row.share = std::max(compute, bandwidth) / row.value;
}

void add_roofline_rows(const Roofline& roofline, std::vector<BenchRow>& rows) {
  const auto add = [&rows](const char* name, double value, const char* unit) {
    BenchRow row;
    row.section = "roofline";
    row.name = name;
    row.value = value;
    row.unit = unit;
    rows.push_back(std::move(row));
  };
  add("multiply-add f32", roofline.fma_gflops, "GFLOP/s");
  if (roofline.fma_f16_gflops > 0) add("multiply-add f16", roofline.fma_f16_gflops, "GFLOP/s");
  if (roofline.units_gflops > 0) add("matrix units", roofline.units_gflops, "GFLOP/s");
  add("multiply-add u32", roofline.fma_int_gops, "Gop/s");
  add("copy", roofline.copy_gbytes, "GB/s");
  add("empty dispatch", roofline.dispatch_us, "us");
  add("barrier", roofline.barrier_us, "us");
  add("submit and wait", roofline.submit_us, "us");
}

Json report_json(const BenchReport& report) {
  Json json;
  json["format"] = kFormat;
  json["vkformer"] = VKFORMER_VERSION;
  json["date"] = report.date;
  json.update(report.device);
  Json rows = Json::array();
  for (const BenchRow& row : report.rows) rows.push_back(row_json(row));
  json["rows"] = std::move(rows);
  return json;
}

Status emit_report(const BenchReport& report, const ReportFiles& files) {
  const Json json = report_json(report);
  if (files.print_json) {
    print_json(json);
  } else {
    print_table(report);
  }
  if (!files.json.empty()) {
    // A line for each row, so that differences read well.
    std::string text;
    for (const auto& [key, value] : json.items()) {
      text += text.empty() ? "{\n" : ",\n";
      text += Json(key).dump() + ": ";
      if (key != "rows") {
        text += json_text(value);
        continue;
      }
      std::string lines;
      for (const Json& row : value) lines += (lines.empty() ? "\n  " : ",\n  ") + json_text(row);
      text += "[" + lines + "\n]";
    }
    const Status written = write_text_file(files.json, text + "\n}\n");
    if (!written) return written;
  }
  return files.csv.empty() ? Status() : write_text_file(files.csv, report_csv(report));
}

int compare_reports(const CompareReportsOptions& options) {
  const Result<Json> before = read_bench_report(options.before);
  if (!before) return report(before.error());
  const Result<Json> after = read_bench_report(options.after);
  if (!after) return report(after.error());
  const std::vector<Compared> list = compare_rows(*before, *after);
  if (list.empty()) {
    return report({ErrorCode::kInvalidFile, "[compare] " + options.before + " and " +
                                                options.after + " have no row in common."});
  }
  print_compared(list, options.json);
  return options.fail_below > 0 && list.front().ratio < options.fail_below ? kExitFailed : kExitOk;
}

}  // namespace vkformer::cli
