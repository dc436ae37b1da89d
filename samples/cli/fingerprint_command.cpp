// `vkformer fingerprint`: what a device computes in reproducible precision, as digests, and the
// first difference between two of them.
#include <cstdio>
#include <filesystem>
#include <map>
#include <memory>

#include "bench_models.h"
#include "command_line.h"
#include "files.h"
#include "vkformer/fingerprint.h"

namespace vkformer::cli {

namespace {

struct FingerprintCommandOptions {
  std::vector<std::string> models, filters;
  std::string json;
  bool print_json = false;
  std::string first, second;  // of `diff`
};

std::string digest_text(uint64_t digest) {
  char text[20];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(digest));
  return text;
}

// "softmax" of a check, "model/gpt2" of a model's layer.
std::string group_of(const std::string& name) {
  const size_t from = name.starts_with("model/") ? 6 : 0;
  return name.substr(0, name.find('/', from));
}

void print_fingerprint(const Fingerprint& f) {
  std::map<std::string, Fingerprint> groups;
  for (const FingerprintEntry& e : f.entries) groups[group_of(e.name)].entries.push_back(e);
  for (const auto& [name, group] : groups) {
    print_line(padded(name, 26) + digest_text(group.digest()) + "  " +
               std::to_string(group.entries.size()));
  }
  print_line(padded("all", 26) + digest_text(f.digest()) + "  " + std::to_string(f.entries.size()) +
             " tensors on " + f.device.name + ", " + f.device.driver);
  if (f.compared_with_host == 0) return;
  print_line(padded("host", 26) + std::to_string(f.compared_with_host) + " tensors compared: " +
             (f.host_difference ? f.host_difference->message : "all have the bits of the host"));
}

constexpr int kNewTokens = 12;  // of a generation

// The last part of a path: what a fingerprint calls a model, wherever it lies.
std::string last_part(const std::string& path) {
  const std::filesystem::path whole(path);
  return (whole.has_filename() ? whole : whole.parent_path()).filename().string();
}

// A folder with a model and the inputs of its pass, as tests/golden has them.
Result<FingerprintModel> model_with_inputs(const std::string& folder) {
  Result<TensorMap> stored = read_tensor_file(folder + "/inputs.safetensors");
  if (!stored) return stored.error();
  // Prompts of generations have names of their own.
  std::erase_if(*stored, [](const auto& input) { return input.first.starts_with("generate."); });
  const auto inputs = [stored = *stored](const ModelInfo&) -> Result<TensorMap> { return stored; };
  return FingerprintModel{last_part(folder), ModelSource::directory(folder + "/model"), inputs,
                          kNewTokens};
}

// The first run of a model of `bench models`, or of a directory; generations are short.
Result<FingerprintModel> fingerprint_model(const std::string& name) {
  constexpr int64_t kTokens = 24;
  std::error_code ignored;
  if (std::filesystem::exists(name + "/inputs.safetensors", ignored)) {
    return model_with_inputs(name);
  }
  const Result<BenchModel> opened = open_bench_model(name);
  if (!opened) return opened.error();
  const auto inputs = [model = *opened](const ModelInfo& info) {
    const ModelRun run{.name = "", .batch = 1, .tokens = kTokens};
    return bench_inputs(model, info, run, DecoderInput::kYes);
  };
  return FingerprintModel{last_part(name), opened->source, inputs, kNewTokens};
}

int run_fingerprint(const CommonOptions& common, const FingerprintCommandOptions& options) {
  FingerprintOptions wanted{.filters = options.filters};
  for (const std::string& name : options.models) {
    Result<FingerprintModel> model = fingerprint_model(name);
    if (!model) return report(model.error());
    wanted.models.push_back(std::move(*model));
  }
  const Result<Device> device = open_device(common);
  if (!device) return report_device(device.error());
  const Result<Fingerprint> taken = [&] {
    Progress progress("computing on " + device->info().name, common.progress());
    wanted.progress = [&progress](const std::string&, int done, int all) {
      progress.set(done, all);
    };
    return take_fingerprint(*device, wanted);
  }();
  if (!taken) return report(taken.error());
  if (taken->entries.empty()) {
    return report({ErrorCode::kNotFound,
                   "[fingerprint] No check has such a name; `vkformer conformance --list` prints "
                   "those that there are."});
  }
  if (!options.json.empty()) {
    const Status written = write_text_file(options.json, fingerprint_json(*taken));
    if (!written) return report(written.error());
  }
  if (options.print_json) {
    print_line(fingerprint_json(*taken));
  } else {
    print_fingerprint(*taken);
  }
  return taken->host_difference ? kExitFailed : kExitOk;
}

Result<Fingerprint> read_fingerprint(const std::string& path) {
  const Result<std::string> text = read_text_file(path);
  if (!text) return text.error();
  Result<Fingerprint> parsed = parse_fingerprint_json(*text);
  if (!parsed) return parsed.error().with_context(path);
  return parsed;
}

int run_diff_fingerprints(const CommonOptions& common, const FingerprintCommandOptions& options) {
  const Result<Fingerprint> first = read_fingerprint(options.first);
  if (!first) return report(first.error());
  const Result<Fingerprint> second = read_fingerprint(options.second);
  if (!second) return report(second.error());
  const auto difference = compare_fingerprints(*first, *second);
  if (common.json) {
    Json json{{"equal", !difference}};
    if (difference) {
      json["name"] = difference->name;
      json["tensor"] = difference->tensor;
      json["first"] = difference->first;
      json["last"] = difference->last;
    }
    print_json(json);
  } else if (difference) {
    print_line(difference->message);
  } else {
    print_line("equal: " + digest_text(first->digest()) + ", " +
               std::to_string(first->entries.size()) + " tensors");
  }
  return difference ? kExitFailed : kExitOk;
}

}  // namespace

void add_fingerprint_command(CLI::App& app, CommandLine& line) {
  CLI::App* command = app.add_subcommand(
      "fingerprint", "Digests of what a device computes in reproducible precision.");
  const auto options = std::make_shared<FingerprintCommandOptions>();
  command->add_option("MODEL", options->models,
                      "directories, or models of `bench models`, whose passes and generations are "
                      "added; or folders with model/ and inputs.safetensors");
  command->add_option("--filter", options->filters,
                      "only checks with this in their names; may be repeated");
  CLI::Option* json = command->add_option("--json", options->json,
                                          "write JSON to FILE, or print it where none is named");
  json->expected(0, 1)->type_name("[FILE]");
  command->parse_complete_callback(
      [json, options] { options->print_json = json->count() > 0 && options->json.empty(); });
  command->add_flag("-q,--quiet", line.common.quiet,
                    "no progress and no notes on stderr; errors remain");
  add_device_options(*command, line.common);
  add_examples(*command,
               "  vkformer fingerprint\n"
               "  vkformer fingerprint models/shakespeare --json mine.json\n"
               "  vkformer fingerprint diff mine.json yours.json\n");
  CLI::App* diff = command->add_subcommand("diff", "The first tensor in which two of them differ.");
  add_file_option(*diff, "FIRST", options->first, "fingerprint in JSON")->required();
  add_file_option(*diff, "SECOND", options->second, "fingerprint in JSON")->required();
  add_output_options(*diff, line.common);
  add_examples(*diff, "  vkformer fingerprint diff mine.json yours.json\n");
  diff->callback([&line, options] {
    line.run = [&line, options] { return run_diff_fingerprints(line.common, *options); };
  });
  command->callback([command, &line, options] {
    if (!command->get_subcommands().empty()) return;
    line.run = [&line, options] { return run_fingerprint(line.common, *options); };
  });
}

}  // namespace vkformer::cli
