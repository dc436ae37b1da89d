// `vkformer tune`: finds the fastest kernels of matrix products on a device and keeps them.
#include "vkformer/tuning.h"

#include <cstdio>

#include "command_line.h"

namespace vkformer::cli {

namespace {

struct TuneCommand {
  bool quick = false;
  double ms_per_choice = 0;
};

double gain(const TunedChoice& choice) {
  return choice.winner_ms > 0 ? choice.usual_ms / choice.winner_ms : 1.0;
}

void print_table(const TuneReport& report) {
  const auto row = [](const std::string& shape, const std::string& usual, const std::string& winner,
                      const std::string& before, const std::string& after,
                      const std::string& speed) {
    char text[256];
    std::snprintf(text, sizeof(text), "%-44s %-12s %-12s %10s %10s %8s", shape.c_str(),
                  usual.c_str(), winner.c_str(), before.c_str(), after.c_str(), speed.c_str());
    print_line(text);
  };
  row("rows x outputs x inputs, weights", "usual", "winner", "usual ms", "winner ms", "speed");
  for (const TunedChoice& c : report.choices) {
    row(c.shape, c.usual, c.winner, fixed(c.usual_ms, 3), fixed(c.winner_ms, 3),
        "x" + fixed(gain(c), 2));
  }
}

Json report_json(const TuneReport& report, const Device& device) {
  Json json;
  json["device"] = device.info().name;
  json["driver"] = device.info().driver;
  json["tier"] = choice_name(device.tier());
  json["file"] = report.file;
  json["choices"] = Json::array();
  for (const TunedChoice& c : report.choices) {
    Json choice;
    choice["shape"] = c.shape;
    choice["usual"] = c.usual;
    choice["winner"] = c.winner;
    choice["usual_ms"] = c.usual_ms;
    choice["winner_ms"] = c.winner_ms;
    choice["tried"] = c.tried;
    choice["candidates"] = Json::array();
    for (const TunedCandidate& candidate : c.candidates) {
      Json one;
      one["choice"] = candidate.choice;
      one["ms"] = candidate.ms ? Json(*candidate.ms) : Json();
      choice["candidates"].push_back(std::move(one));
    }
    json["choices"].push_back(std::move(choice));
  }
  return json;
}

int run_tune(const CommonOptions& common, const TuneCommand& command) {
  const Result<Device> device = open_device(common);
  if (!device) return report_device(device.error());
  TuneOptions options;
  if (command.quick) options.effort = TuneOptions::Effort::kQuick;
  options.ms_per_choice = command.ms_per_choice;
  Result<TuneReport> tuned = [&] {
    const Progress progress("timing matrix products", common.progress());
    return tune_device(*device, options);
  }();
  if (!tuned) return report(tuned.error());
  if (common.json) {
    print_json(report_json(*tuned, *device));
    return kExitOk;
  }
  print_table(*tuned);
  print_line(tuned->file.empty() ? "nothing is stored: there is no cache directory"
                                 : "stored in " + tuned->file + "; --tuned uses it");
  return kExitOk;
}

}  // namespace

void add_tune_command(CLI::App& app, CommandLine& line) {
  CLI::App* command =
      app.add_subcommand("tune", "Time the kernels of matrix products and keep the fastest.");
  const auto options = std::make_shared<TuneCommand>();
  command->add_flag("--quick", options->quick, "one shape for each number of rows, fewer rounds");
  command
      ->add_option("--ms-per-choice", options->ms_per_choice,
                   "milliseconds of timing for each choice; 0: as the effort says")
      ->check(CLI::Range(0.0, 60000.0));
  add_device_options(*command, line.common);
  add_output_options(*command, line.common);
  add_examples(*command,
               "  vkformer tune --quick\n"
               "  vkformer tune --device llvmpipe --cache-dir build/cache\n"
               "  vkformer generate models/g2p-en attention --tuned\n");
  command->callback([&line, options] {
    line.run = [&line, options] { return run_tune(line.common, *options); };
  });
}

}  // namespace vkformer::cli
