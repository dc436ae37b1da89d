#include "command_line.h"

#include <cmath>
#include <cstdlib>
#include <sstream>

#include "model_path.h"
#include "ranks.h"
#include "vkformer/conformance.h"

namespace vkformer::cli {

void add_check(CLI::Option& option, CommandLine& line, Status (*check)(const std::string& value)) {
  option.each([&line, check](const std::string& value) {
    line.checks.emplace_back([check, value] { return check(value); });
  });
}

void add_model_check(CLI::Option& option, CommandLine& line, std::string& model,
                     Status (*check)(std::string& model)) {
  option.each([&line, &model, check](const std::string&) {
    line.checks.emplace_back([&model, check] { return check(model); });
  });
}

CLI::Option* add_model_argument(CLI::App& command, CommandLine& line, std::string& model) {
  CLI::Option* option = command.add_option("MODEL", model, kModelHelp)->required();
  add_model_check(*option, line, model, resolve_model_path);
  return option;
}

void add_output_options(CLI::App& command, CommonOptions& common) {
  command.add_flag("--json", common.json, "print JSON");
  command.add_flag("-q,--quiet", common.quiet, "no progress and no notes on stderr; errors remain");
}

CLI::Option* add_tier_option(CLI::App& command, const std::string& flag, Tier& tier,
                             const std::string& help) {
  std::vector<std::string> names = names_of<Tier>();
  names.insert(names.begin(), "best");
  return add_choice<Tier>(command, flag, tier, help, names)->default_str("best");
}

void add_device_options(CLI::App& command, CommonOptions& common) {
  command
      .add_option("--device", common.device.device,
                  "best, an index of `vkformer devices`, or a part of a name")
      ->group("Device");
  add_tier_option(command, "--tier", common.device.tier, "highest tier to use")->group("Device");
  add_choice<LimitProfile>(command, "--limits", common.device.limits,
                           "clamp the device's limits to a profile")
      ->group("Device");
  command
      .add_flag("--validation", common.validation,
                "check Vulkan calls with the Khronos validation layer")
      ->group("Device");
  add_folder_option(command, "--cache-dir", common.device.cache_directory,
                    "directory of the pipeline cache, or none")
      ->group("Device");
  command.add_flag("--tuned", common.tuned, "choose kernels as `vkformer tune` found them")
      ->group("Device");
}

void add_group_options(CLI::App& command, CommonOptions& common) {
  command
      .add_option("--devices", common.devices,
                  "devices that hold the model together, in the order of its layers, as --device "
                  "names them: 0,1")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->excludes("--device")
      ->group("Device");
  command
      .add_option("--shares", common.shares,
                  "how much of the work each of --devices gets, or each process of mpirun: 3,1; "
                  "without it, by the time of a step on each")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->group("Device");
  command
      .add_option("--prompt-part", common.prompt_part,
                  "tokens of the parts that a longer prompt is read in, so that --devices work on "
                  "it at the same time: 64; 0: one pass")
      ->group("Device");
  add_choice<GroupSplit>(command, "--split", common.split,
                         "what each of --devices has, or each process of mpirun: some layers, or "
                         "some heads and feed-forward columns of every layer; fastest: what an "
                         "estimate says")
      ->group("Device");
}

void add_model_options(CLI::App& command, ModelOptions& options) {
  add_choice<WeightFormat>(command, "--weights", options.weights,
                           "how weights are stored in device memory");
  add_choice<Precision>(command, "--precision", options.precision,
                        "arithmetic of products; with f32 and f16 sums are f32");
  command
      .add_option("--device-memory", options.device_memory,
                  "bytes of weights in device memory at most, such as 4G; the others lie in host "
                  "memory, experts first, then the last layers; 0: as many as fit")
      ->transform(CLI::AsSizeValue(false))
      ->type_name("BYTES");
  command.add_flag("--copy-weights", options.copy_weights,
                   "copy weights of a pack made with --device-layout, even if the device could "
                   "read them in place");
  add_adapter_option(command, options.adapters);
}

void add_request_adapter_option(CLI::App& command, std::vector<RequestAdapter>& adapters) {
  const auto read = [&adapters](const std::vector<std::string>& texts) {
    for (const std::string& text : texts) {
      const size_t equals = text.find('=');
      if (equals == std::string::npos || equals == 0 || equals + 1 == text.size()) {
        throw CLI::ValidationError("--request-adapter", "[" + text + "] must be NAME=DIR.");
      }
      adapters.push_back({text.substr(0, equals), text.substr(equals + 1)});
    }
    return true;
  };
  command
      .add_option("--request-adapter", read,
                  "a LoRA adapter that requests choose by its name (\"adapters\"), beside the "
                  "weights; may be repeated")
      ->type_name("NAME=DIR")
      ->expected(1)
      ->take_all()
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

void add_adapter_option(CLI::App& command, std::vector<AdapterChoice>& adapters) {
  const auto read = [&adapters](const std::vector<std::string>& texts) {
    for (const std::string& text : texts) {
      AdapterChoice choice{.directory = text};
      const size_t equals = text.rfind('=');
      if (equals != std::string::npos) {
        char* end = nullptr;
        choice.scale = std::strtof(text.c_str() + equals + 1, &end);
        if (end == text.c_str() + equals + 1 || *end != '\0' || !std::isfinite(choice.scale)) {
          throw CLI::ValidationError(
              "--adapter", "[" + text + "] must be PATH or PATH=SCALE, with a finite number.");
        }
        choice.directory.resize(equals);
      }
      adapters.push_back(std::move(choice));
    }
    return true;
  };
  command
      .add_option("--adapter", read,
                  "LoRA or DoRA adapter, a directory (PEFT) or a GGUF file, with =SCALE (1); may "
                  "be repeated")
      ->type_name("PATH[=SCALE]")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

void add_cache_option(CLI::App& command, CacheFormat& cache) {
  add_choice<CacheFormat>(command, "--cache", cache, "how a generation stores keys and values");
}

void add_old_name(CLI::App& command, const std::string& old_name, CLI::Option& option) {
  const auto give = [old_name, &option](const std::string& value) {
    print_message("[" + old_name + "] is now " + option.get_name() +
                  "; the old name goes with the next release.");
    option.clear();
    option.add_result(value);
    option.run_callback();
  };
  if (option.get_items_expected_max() > 0) {
    command.add_option_function<std::string>(old_name, give)->group("");
  } else {
    command.add_flag_callback(old_name, [give] { give("true"); })->group("");
  }
}

void add_examples(CLI::App& command, const std::string& examples) {
  command.footer("Examples:\n" + examples + "\nExit codes: see vkformer --help.");
}

namespace {

Result<Device> open_named_device(const CommonOptions& common, const std::string& name) {
  DeviceOptions options = common.device;
  options.device = name;
  options.validation = common.validation;
  options.tuning = common.tuned;
  if (!options.log && !common.quiet) {
    options.log = [](LogLevel level, const std::string& message) {
      if (level == LogLevel::kWarning) print_message(message);
    };
  }
  const Progress progress("opening the device", common.progress());
  return Device::create(options);
}

void print_plan(const GroupPlan& plan) {
  std::istringstream lines(group_plan_text(plan));
  for (std::string line; std::getline(lines, line);) print_message(line);
}

Status set_group(const Result<DeviceGroup>& group, const CommonOptions& common,
                 ModelOptions& options) {
  if (!group) return group.error();
  options.group = *group;
  if (!common.quiet) options.planned = print_plan;
  return {};
}

DeviceGroupOptions group_options(const CommonOptions& common) {
  DeviceGroupOptions options{.shares = common.shares, .split = common.split};
  if (common.prompt_part) options.prompt_part = *common.prompt_part;
  return options;
}

}  // namespace

std::string device_of_rank(const CommonOptions& common) {
  // Listing devices starts every driver, which commands without a device need not wait for.
  if (!rank_link() || common.device.device != DeviceOptions().device) return common.device.device;
  const Result<std::vector<DeviceInfo>> devices = list_devices();
  const Result<Device> device = Device::create(common.device);
  if (!devices || !device) return common.device.device;
  std::vector<int> alike;
  for (const DeviceInfo& info : *devices) {
    if (info.kind == device->info().kind) alike.push_back(info.index);
  }
  return alike.empty() ? common.device.device : std::to_string(alike[local_rank() % alike.size()]);
}

Result<Device> open_device(const CommonOptions& common) {
  return open_named_device(common,
                           common.devices.empty() ? common.device.device : common.devices.front());
}

Status add_group(const CommonOptions& common, ModelOptions& options) {
  if (rank_link()) {
    const Result<Device> own = open_device(common);
    if (!own) return own.error();
    return set_group(DeviceGroup::create_linked(*own, rank_link(), group_options(common)), common,
                     options);
  }
  if (common.devices.empty()) {
    if (common.split != GroupSplit::kLayers) {
      return Error{ErrorCode::kInvalidArgument,
                   "[--split] divides a model among several devices; name them with --devices."};
    }
    if (common.prompt_part) {
      return Error{ErrorCode::kInvalidArgument,
                   "[--prompt-part] cuts prompts for several devices; name them with --devices."};
    }
    if (common.shares.empty()) return {};
    return Error{ErrorCode::kInvalidArgument,
                 "[--shares] share out a model among several devices; name them with --devices."};
  }
  std::vector<Device> devices;
  for (const std::string& name : common.devices) {
    const Result<Device> device = open_named_device(common, name);
    if (!device) return device.error();
    devices.push_back(*device);
  }
  return set_group(DeviceGroup::create(devices, group_options(common)), common, options);
}

Result<Model> load_model(const CommonOptions& common, const Device& device,
                         const std::string& directory, const ModelOptions& options) {
  return with_progress(common, directory, options, [&](const ModelOptions& watched) {
    return Model::load(device, directory, watched);
  });
}

void add_nan_check(CLI::App& command, bool& wanted) {
  command.add_flag("--nan-check", wanted,
                   "check the output of every operator, and name the first one with a NaN");
}

Status run_nan_check(const Device& device, const std::function<Status()>& work) {
  const Result<NanOrigin> found = find_nan(device, work);
  if (!found) return found.error();
  if (found->op.empty()) return {};
  return Error{ErrorCode::kInvalidArgument,
               "[" + (found->label.empty() ? found->op : found->label) + "] The operator " +
                   found->op + " wrote the first NaN: element " + std::to_string(found->element) +
                   " of " + found->tensor + ", by the kernel " + found->kernel +
                   "; look at its weights and inputs."};
}

}  // namespace vkformer::cli
