// The report as JUnit XML and as one HTML page.
#include <algorithm>
#include <cstdio>
#include <map>

#include "vkformer/conformance.h"

namespace vkformer {
namespace {

std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += static_cast<unsigned char>(c) < 32 && c != '\n' ? ' ' : c;
    }
  }
  return out;
}

std::string number(double value, const char* format) {
  char text[64];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

struct Row {
  int passed = 0, failed = 0, expected = 0;
  double error = 0, ulps = 0;
};

// By operator and tier.
std::map<std::pair<std::string, Tier>, Row> table_of(const ConformanceReport& report) {
  std::map<std::pair<std::string, Tier>, Row> table;
  for (const ConformanceCheck& c : report.checks) {
    Row& row = table[{c.op, c.tier}];
    const bool expected = c.outcome == ConformanceOutcome::kExpectedNever ||
                          c.outcome == ConformanceOutcome::kExpectedNotYet;
    (c.failed() ? row.failed : expected ? row.expected : row.passed)++;
    if (c.failed()) continue;
    row.error = std::max(row.error, c.error);
    row.ulps = std::max(row.ulps, c.ulps);
  }
  return table;
}

std::string device_rows(const ConformanceReport& r) {
  const DeviceInfo& d = r.device;
  std::string text;
  const auto row = [&](const char* name, const std::string& value) {
    text += std::string("<tr><th>") + name + "</th><td>" + escaped(value) + "</td></tr>\n";
  };
  row("Device", d.name + " (" + choice_name(d.kind) + ")");
  row("Driver", d.driver + ", Vulkan " + d.api_version);
  row("UUID", d.uuid);
  row("Tier", std::string(choice_name(r.tier)) +
                  " (best: " + (d.best_tier ? choice_name(*d.best_tier) : "none") +
                  "), subgroups of " + std::to_string(d.subgroup_size));
  row("Bytes a binding can cover", std::to_string(d.max_storage_range));
  row("Shared memory, invocations of a workgroup",
      std::to_string(d.max_shared_bytes) + " bytes, " + std::to_string(d.max_invocations));
  row("vkformer",
      r.vkformer + ", " + choice_name(r.extent) + " run of " + number(r.seconds, "%.0f") + " s");
  for (const std::string& note : d.notes) row("Note", note);
  return text;
}

std::string fingerprint_html(const ConformanceReport& r) {
  if (!r.fingerprint) return {};
  const ConformanceFingerprint& f = *r.fingerprint;
  std::string text = "<h2>Fingerprint</h2>\n<p>";
  if (!f.digest.empty()) {
    text += "<code>" + escaped(f.digest) + "</code> of " + std::to_string(f.tensors) +
            " tensors in reproducible precision, " + std::to_string(f.compared_with_host) +
            " compared with the host" + (f.message.empty() ? ", all with its bits. " : ". ");
  }
  return text + escaped(f.message) + "</p>\n";
}

std::string list_of(const char* title, const std::vector<std::string>& items) {
  if (items.empty()) return {};
  std::string text = std::string("<details><summary>") + title + " (" +
                     std::to_string(items.size()) + ")</summary><ul>\n";
  for (const std::string& item : items) text += "<li><code>" + escaped(item) + "</code></li>\n";
  return text + "</ul></details>\n";
}

std::string failures_html(const ConformanceReport& r) {
  std::string text;
  for (const ConformanceCheck& c : r.checks) {
    if (c.message.empty() && c.outcome == ConformanceOutcome::kPassed) continue;
    text += "<h3 class=\"" + std::string(c.failed() ? "bad" : "known") + "\">" + escaped(c.name) +
            "</h3>\n<p>" + escaped(choice_name(c.outcome)) + ". " + escaped(c.message) +
            "</p>\n<p>Kernels:";
    for (const std::string& kernel : c.kernels) text += " <code>" + escaped(kernel) + "</code>";
    text += "</p>\n<pre>" + escaped(c.reproduce) + "</pre>\n";
  }
  return text.empty() ? "<p>None.</p>\n" : text;
}

constexpr const char* kErrorsMeaning =
    "<p><b>Error / allowed</b> decides: the largest difference from the reference in double, as a "
    "share of what rounding may cost there; up to 1 passes. <b>Units in the last place</b> (ULP) "
    "is "
    "the largest difference in steps between neighboring f32 numbers at the expected value. Where "
    "terms cancel and the expected value is close to 0, such a step is as small as 1e-45, and a "
    "harmless difference of 1e-17 counts as 1e28 of them. A few ULP say that a result is as exact "
    "as f32 can be; many say nothing.</p>\n";

constexpr const char* kStyle =
    "body{font:15px/1.5 system-ui,sans-serif;margin:2em auto;max-width:60em;padding:0 1em;"
    "color:#222;background:#fff}table{border-collapse:collapse}th,td{text-align:left;padding:.15em "
    ".8em;border-bottom:1px solid #ddd}td.n{text-align:right;font-variant-numeric:tabular-nums}"
    ".bad{color:#b00020}.good{color:#1b7e3c}.known{color:#8a6d00}pre{background:#f4f4f4;padding:"
    ".6em;overflow:auto}h3{margin-bottom:.2em}";

}  // namespace

std::string conformance_junit(const ConformanceReport& report) {
  std::string text =
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n<testsuite name=\"" +
      escaped("vkformer conformance on " + report.device.name) + "\" tests=\"" +
      std::to_string(report.checks.size()) + "\" failures=\"" +
      std::to_string(report.count(ConformanceOutcome::kFailed)) + "\" time=\"" +
      number(report.seconds, "%.3f") + "\">\n";
  for (const ConformanceCheck& c : report.checks) {
    text += "<testcase classname=\"" + escaped(c.op) + "\" name=\"" + escaped(c.name) +
            "\" time=\"" + number(c.milliseconds * 1e-3, "%.4f") + "\"";
    if (c.failed()) {
      text += "><failure message=\"" + escaped(c.message) + "\">" + escaped(c.reproduce) +
              "</failure></testcase>\n";
    } else if (!c.message.empty()) {
      text += "><skipped message=\"" +
              escaped(std::string(choice_name(c.outcome)) + ": " + c.message) + "\"/></testcase>\n";
    } else {
      text += "/>\n";
    }
  }
  return text + "</testsuite>\n</testsuites>\n";
}

std::string conformance_html(const ConformanceReport& r) {
  const int failed = r.count(ConformanceOutcome::kFailed);
  std::string text =
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width\">\n<title>vkformer on " +
      escaped(r.device.name) + "</title>\n<style>" + kStyle +
      "</style>\n</head>\n<body>\n<h1>vkformer conformance</h1>\n<p class=\"" +
      (failed == 0 ? "good" : "bad") + "\">" + std::to_string(r.checks.size()) + " checks, " +
      std::to_string(failed) + " failed, " +
      std::to_string(r.count(ConformanceOutcome::kExpectedNever) +
                     r.count(ConformanceOutcome::kExpectedNotYet)) +
      " failed as expected, " + std::to_string(r.count(ConformanceOutcome::kUnexpectedPass)) +
      " passed unexpectedly.</p>\n<table>\n" + device_rows(r) + "</table>\n" + fingerprint_html(r) +
      "<h2>Failures</h2>\n" + failures_html(r) + "<h2>Operators</h2>\n" + kErrorsMeaning +
      "<table>\n<tr><th>Operator</th><th>Tier</th><th>Passed</th>"
      "<th>Failed</th><th>Expected</th><th>Error / allowed</th><th>Units in the last "
      "place</th></tr>\n";
  for (const auto& [key, row] : table_of(r)) {
    text += "<tr><td>" + escaped(key.first) + "</td><td>" + choice_name(key.second) +
            "</td><td class=\"n\">" + std::to_string(row.passed) + "</td><td class=\"n" +
            (row.failed > 0 ? " bad" : "") + "\">" + std::to_string(row.failed) +
            "</td><td class=\"n\">" + std::to_string(row.expected) + "</td><td class=\"n\">" +
            number(row.error, "%.3f") + "</td><td class=\"n\">" + number(row.ulps, "%.3g") +
            "</td></tr>\n";
  }
  return text + "</table>\n<h2>Kernels</h2>\n" + list_of("Checked", r.kernels_run) +
         list_of("Not checked", r.kernels_not_run) + list_of("Excluded from now on", r.demoted) +
         "</body>\n</html>\n";
}

}  // namespace vkformer
