// `vkformer conformance`: checks a device, writes reports, compares two of them.
#include <cstdio>
#include <map>
#include <memory>
#include <sstream>

#include "command_line.h"
#include "files.h"
#include "vkformer/conformance.h"

namespace vkformer::cli {

namespace {

struct ConformanceCommandOptions {
  ConformanceOptions run;
  bool quick = false, full = false, list = false, demote = false, forget = false;
  bool print_json = false;
  std::string json, html, junit, never, not_yet, shaders;
  std::string before, after;  // of `diff`
};

// Lines of a file, without empty ones and those that begin with #.
Result<std::vector<std::string>> read_list(const std::string& path) {
  std::vector<std::string> list;
  if (path.empty()) return list;
  const Result<std::string> text = read_text_file(path);
  if (!text) return text.error();
  std::istringstream lines(*text);
  for (std::string line; std::getline(lines, line);) {
    while (!line.empty() && (line.back() == ' ' || line.back() == '\r')) line.pop_back();
    if (!line.empty() && line.front() != '#') list.push_back(line);
  }
  return list;
}

struct Sums {
  int passed = 0, failed = 0, expected = 0;
  double error = 0;
};

void print_table(const ConformanceReport& report) {
  std::map<std::string, Sums> sums;
  for (const ConformanceCheck& c : report.checks) {
    Sums& s = sums[padded(c.op, 22) + choice_name(c.tier)];
    (c.failed() ? s.failed : c.message.empty() ? s.passed : s.expected)++;
    if (!c.failed()) s.error = std::max(s.error, c.error);
  }
  if (report.fingerprint) {
    const ConformanceFingerprint& f = *report.fingerprint;
    print_line(padded("fingerprint", 22) + f.digest +
               (f.digest.empty()
                    ? f.message
                    : "  " + std::to_string(f.tensors) + " tensors, " +
                          std::to_string(f.compared_with_host) + " compared with the host"));
    print_line("");
  }
  print_line(padded("operator", 22) + padded("tier", 10) +
             " passed  failed  expected  error/allowed");
  for (const auto& [name, s] : sums) {
    char text[96];
    std::snprintf(text, sizeof text, "%7d %7d %9d %14.3f", s.passed, s.failed, s.expected, s.error);
    print_line(padded(name, 32) + text);
  }
  for (const ConformanceCheck& c : report.checks) {
    if (c.outcome == ConformanceOutcome::kPassed) continue;
    print_line("");
    print_line(c.name + ": " + choice_name(c.outcome));
    if (!c.message.empty()) print_line("  " + c.message);
    std::string kernels;
    for (const std::string& kernel : c.kernels) kernels += " " + kernel;
    print_line("  kernels:" + kernels);
    if (c.failed()) print_line("  again: " + c.reproduce);
  }
  print_line("");
  print_line(std::to_string(report.checks.size()) + " checks, " +
             std::to_string(report.count(ConformanceOutcome::kFailed)) + " failed, " +
             std::to_string(report.kernels_run.size()) + " kernels run, " +
             std::to_string(report.kernels_not_run.size()) + " not, " + fixed(report.seconds, 1) +
             " s on " + report.device.name);
  for (const std::string& name : report.demoted) {
    print_line("omitted from now on: " + name + " (" + report.demotion_file + ")");
  }
}

Status write_reports(const ConformanceCommandOptions& options, const ConformanceReport& report) {
  const std::pair<const std::string&, std::string (*)(const ConformanceReport&)> files[] = {
      {options.json, conformance_json},
      {options.html, conformance_html},
      {options.junit, conformance_junit}};
  for (const auto& [path, write] : files) {
    if (path.empty()) continue;
    const Status written = write_text_file(path, write(report));
    if (!written) return written;
  }
  return {};
}

Status read_lists(ConformanceCommandOptions& options) {
  const Result<std::vector<std::string>> never = read_list(options.never);
  if (!never) return never.error();
  const Result<std::vector<std::string>> not_yet = read_list(options.not_yet);
  if (!not_yet) return not_yet.error();
  options.run.expected_never = *never;
  options.run.expected_not_yet = *not_yet;
  return {};
}

int list_checks(const ConformanceCommandOptions& options) {
  for (const std::string& name : conformance_checks(options.run)) print_line(name);
  return kExitOk;
}

int run_checks(const CommonOptions& common, ConformanceCommandOptions& options) {
  using Extent = ConformanceExtent;
  options.run.extent = options.quick ? Extent::kQuick : Extent::kFull;
  if (options.list) return list_checks(options);
  options.run.demote = options.demote;
  const Status lists = read_lists(options);
  if (!lists) return report(lists.error());
  const Result<Device> device = open_device(common);
  if (!device) return report_device(device.error());
  if (options.forget || !options.shaders.empty()) {
    const Status done =
        options.forget ? forget_demotions(*device) : dump_shaders(*device, options.shaders);
    return done ? kExitOk : report(done.error());
  }
  const Result<ConformanceReport> made = [&] {
    Progress progress("checking " + device->info().name, common.progress());
    options.run.progress = [&progress](const std::string&, int done, int all) {
      progress.set(done, all);
    };
    return run_conformance(*device, options.run);
  }();
  if (!made) return report(made.error());
  if (made->checks.empty()) {
    return report({ErrorCode::kNotFound,
                   "[conformance] No check has such a name; --list prints those that there are."});
  }
  const Status written = write_reports(options, *made);
  if (!written) return report(written.error());
  if (options.print_json) print_line(conformance_json(*made));
  if (!options.print_json && !common.quiet) print_table(*made);
  return made->count(ConformanceOutcome::kFailed) == 0 ? kExitOk : kExitFailed;
}

Result<ConformanceReport> read_report(const std::string& path) {
  const Result<std::string> text = read_text_file(path);
  if (!text) return text.error();
  Result<ConformanceReport> parsed = parse_conformance_json(*text);
  if (!parsed) return parsed.error().with_context(path);
  return parsed;
}

std::string outcome_text(const std::optional<ConformanceOutcome>& outcome) {
  return outcome ? choice_name(*outcome) : "absent";
}

int run_diff(const CommonOptions& common, const ConformanceCommandOptions& options) {
  const Result<ConformanceReport> before = read_report(options.before);
  if (!before) return report(before.error());
  const Result<ConformanceReport> after = read_report(options.after);
  if (!after) return report(after.error());
  const std::vector<ConformanceChange> changes = compare_conformance(*before, *after);
  bool worse = false;
  Json json = Json::array();
  for (const ConformanceChange& change : changes) {
    worse = worse || change.after == ConformanceOutcome::kFailed;
    const std::string before_text = outcome_text(change.before);
    const std::string after_text = outcome_text(change.after);
    if (common.json) {
      json.push_back({{"name", change.name}, {"before", before_text}, {"after", after_text}});
    } else {
      print_line(change.name + ": " + before_text + " -> " + after_text);
    }
  }
  if (common.json) print_json(json);
  if (!common.json && !common.quiet) {
    print_line(std::to_string(changes.size()) + " checks differ (" + before->device.name + ", " +
               before->device.driver + " -> " + after->device.name + ", " + after->device.driver +
               ")");
  }
  return worse ? kExitFailed : kExitOk;
}

void add_diff(CLI::App& command, CommandLine& line,
              const std::shared_ptr<ConformanceCommandOptions>& options) {
  CLI::App* diff = command.add_subcommand("diff", "Checks whose outcome differs in two reports.");
  add_file_option(*diff, "BEFORE", options->before, "report in JSON")->required();
  add_file_option(*diff, "AFTER", options->after, "report in JSON")->required();
  add_output_options(*diff, line.common);
  add_examples(*diff, "  vkformer conformance diff old-driver.json new-driver.json\n");
  diff->callback([&line, options] {
    line.run = [&line, options] { return run_diff(line.common, *options); };
  });
}

void add_check_options(CLI::App& command, ConformanceCommandOptions& options) {
  CLI::Option* quick = command.add_flag(
      "--quick", options.quick, "a choice of sizes: half a minute with lavapipe on two cores");
  command.add_flag("--full", options.full, "all sizes, 25 runs of each; the default")
      ->excludes(quick);
  command.add_option("--filter", options.run.filters,
                     "only checks with this in their names; may be repeated");
  command.add_option("--repeats", options.run.repeats, "runs of each, which must agree to the bit")
      ->check(CLI::Range(1, 10000));
  add_file_option(command, "--expect-never", options.never,
                  "file of names that never pass here, one a line; * at an end");
  add_file_option(command, "--expect-not-yet", options.not_yet,
                  "file of names that do not pass yet");
  command.add_flag("--demote", options.demote,
                   "omit kernels that fail from now on, on this device and driver");
  command.add_flag("--forget", options.forget, "take back what --demote did");
  command.add_flag("--list", options.list, "print the names of the checks, those of --filter only");
  CLI::Option* json = command.add_option("--json", options.json,
                                         "write JSON to FILE, or print it where none is named");
  json->expected(0, 1)->type_name("[FILE]");
  command.parse_complete_callback(
      [json, &options] { options.print_json = json->count() > 0 && options.json.empty(); });
  add_file_option(command, "--html", options.html, "write it as a page to FILE");
  add_file_option(command, "--junit", options.junit, "write it as JUnit XML to FILE");
  add_folder_option(command, "--failures", options.run.failure_folder,
                    "write a folder for every failure, to be examined elsewhere");
  add_folder_option(command, "--dump-shaders", options.shaders,
                    "write the SPIR-V of every kernel to this folder, and nothing else");
}

}  // namespace

void add_conformance_command(CLI::App& app, CommandLine& line) {
  CLI::App* command = app.add_subcommand(
      "conformance", "Check every operator and kernel on a device against double precision.");
  const auto options = std::make_shared<ConformanceCommandOptions>();
  add_check_options(*command, *options);
  command->add_flag("-q,--quiet", line.common.quiet,
                    "no progress and no notes on stderr; errors remain");
  add_device_options(*command, line.common);
  add_diff(*command, line, options);
  add_examples(*command,
               "  vkformer conformance --quick\n"
               "  vkformer conformance --html report.html --json report.json\n"
               "  vkformer conformance --filter softmax/ --tier baseline\n"
               "  vkformer conformance --quick --demote\n");
  command->callback([command, &line, options] {
    if (!command->get_subcommands().empty()) return;
    line.run = [&line, options] { return run_checks(line.common, *options); };
  });
}

}  // namespace vkformer::cli
