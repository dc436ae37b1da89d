// `vkformer profile`: the time of every dispatch of a model, as a Chrome trace and by operator.
#include <algorithm>
#include <map>
#include <memory>
#include <optional>

#include "bench_models.h"
#include "energy.h"
#include "files.h"
#include "text_inputs.h"

namespace vkformer::cli {

namespace {

struct ProfileOptions {
  std::string model;
  std::vector<std::string> texts;
  std::string inputs;
  std::string trace;
  ModelOptions load;
  int64_t batch = 0;
  int64_t tokens = 0;
  int64_t new_tokens = -1;  // below 0: as the inputs have it
  int rounds = 3;           // profiled; the median one by its whole time counts
  bool statistics = false;  // of the driver's compiler, by kernel
};

// What is profiled: a full pass, or a generation of `tokens` tokens.
struct Work {
  TensorMap inputs;
  int64_t new_tokens = 0;  // 0: a full pass
};

struct OperatorSum {
  std::string op;
  int count = 0;
  double us = 0;
  double flops = 0;
  double bytes = 0;
};

double whole_us(const Profile& profile) {
  double sum = 0;
  for (const ProfiledDispatch& dispatch : profile.dispatches) sum += dispatch.microseconds;
  return sum;
}

// By operator, the longest first.
std::vector<OperatorSum> sums_of(const Profile& profile) {
  std::map<std::string, OperatorSum> by_name;
  for (const ProfiledDispatch& dispatch : profile.dispatches) {
    OperatorSum& sum = by_name[dispatch.op];
    sum.op = dispatch.op;
    ++sum.count;
    sum.us += dispatch.microseconds;
    sum.flops += dispatch.flops;
    sum.bytes += dispatch.bytes;
  }
  std::vector<OperatorSum> sums;
  for (const auto& [name, sum] : by_name) sums.push_back(sum);
  std::stable_sort(sums.begin(), sums.end(),
                   [](const OperatorSum& a, const OperatorSum& b) { return a.us > b.us; });
  return sums;
}

Json event_args(const ProfiledDispatch& dispatch) {
  Json args;
  args["label"] = dispatch.label;
  args["kernel"] = dispatch.kernel;
  args["shapes"] = dispatch.shapes;
  args["flops"] = dispatch.flops;
  args["bytes"] = dispatch.bytes;
  if (dispatch.microseconds > 0) {
    args["gflops"] = dispatch.flops * 1e-3 / dispatch.microseconds;
    args["gbytes"] = dispatch.bytes * 1e-3 / dispatch.microseconds;
  }
  return args;
}

// The Trace Event Format of Chrome and Perfetto: complete events, microseconds. Dispatches are on
// the first line, the submits that hold them on the second.
Json trace_json(const Profile& profile, const Device& device) {
  Json events = Json::array();
  const auto name_line = [&events](int line, const std::string& name) {
    events.push_back({{"name", "thread_name"},
                      {"ph", "M"},
                      {"pid", 1},
                      {"tid", line},
                      {"args", {{"name", name}}}});
  };
  name_line(1, "dispatches");
  name_line(2, "submits");
  std::vector<std::pair<double, double>> submits(profile.submit_us.size(), {-1, 0});
  for (const ProfiledDispatch& dispatch : profile.dispatches) {
    Json event;
    event["name"] = dispatch.op;
    event["cat"] = "dispatch";
    event["ph"] = "X";
    event["ts"] = dispatch.start_us;
    event["dur"] = dispatch.microseconds;
    event["pid"] = 1;
    event["tid"] = 1;
    event["args"] = event_args(dispatch);
    events.push_back(std::move(event));
    auto& [begin, end] = submits[static_cast<size_t>(dispatch.submit)];
    if (begin < 0) begin = dispatch.start_us;
    end = std::max(end, dispatch.start_us + dispatch.microseconds);
  }
  for (size_t i = 0; i < submits.size(); ++i) {
    if (submits[i].first < 0) continue;
    events.push_back({{"name", "submit " + std::to_string(i)},
                      {"cat", "submit"},
                      {"ph", "X"},
                      {"ts", submits[i].first},
                      {"dur", submits[i].second - submits[i].first},
                      {"pid", 1},
                      {"tid", 2},
                      {"args", {{"host_us", profile.submit_us[i]}}}});
  }
  Json trace;
  trace["displayTimeUnit"] = "ms";
  trace["otherData"] = {{"device", device.info().name},
                        {"driver", device.info().driver},
                        {"tier", choice_name(device.tier())},
                        {"clock", profile.device_clock ? "device" : "host, shared out"}};
  trace["traceEvents"] = std::move(events);
  return trace;
}

Result<Work> text_work(const ProfileOptions& options, const ModelInfo& info, bool generates) {
  const Result<Tokenizer> tokenizer = Tokenizer::load(options.model);
  if (!tokenizer) return tokenizer.error();
  std::vector<std::vector<TokenId>> rows;
  size_t longest = 1;
  for (const std::string& text : options.texts) {
    const Result<Encoding> encoding =
        encode_input(*tokenizer, {text, "TEXT"}, info.max_source, LongInput::kError);
    if (!encoding) return encoding.error();
    rows.push_back(encoding->ids);
    longest = std::max(longest, rows.back().size());
  }
  std::vector<TokenId> ids, mask;
  for (const std::vector<TokenId>& row : rows) {
    for (size_t i = 0; i < longest; ++i) {
      ids.push_back(i < row.size() ? row[i] : 0);
      mask.push_back(i < row.size() ? 1 : 0);
    }
  }
  const Shape shape = {static_cast<int64_t>(rows.size()), static_cast<int64_t>(longest)};
  Work work;
  work.inputs["input_ids"] = Tensor::from_ints(shape, ids);
  work.inputs["attention_mask"] = Tensor::from_ints(shape, mask);
  constexpr int64_t kTokens = 16;
  if (generates) work.new_tokens = kTokens;
  return work;
}

bool can_generate(const ModelInfo& info) {
  return info.kind == ModelKind::kDecoder || info.kind == ModelKind::kEncoderDecoder;
}

Result<Work> make_work(const ProfileOptions& options, const BenchModel& model,
                       const ModelInfo& info) {
  Work work;
  if (!options.inputs.empty()) {
    Result<TensorMap> read = read_tensor_file(options.inputs);
    if (!read) return read.error();
    work.inputs = std::move(*read);
  } else if (!options.texts.empty()) {
    Result<Work> made = text_work(options, info, can_generate(info));
    if (!made) return made.error();
    work = std::move(*made);
  } else {
    ModelRun run = model.runs.front();
    if (options.batch > 0) run.batch = options.batch;
    if (options.tokens > 0) run.tokens = options.tokens;
    if (options.new_tokens >= 0) run.new_tokens = options.new_tokens;
    const auto decoder = run.new_tokens > 0 ? DecoderInput::kNo : DecoderInput::kYes;
    Result<TensorMap> made = bench_inputs(model, info, run, decoder);
    if (!made) return made.error();
    work.inputs = std::move(*made);
    work.new_tokens = run.new_tokens;
  }
  if (options.new_tokens >= 0) work.new_tokens = options.new_tokens;
  if (work.new_tokens == 0 && info.kind == ModelKind::kEncoderDecoder &&
      work.inputs.count("decoder_input_ids") == 0) {
    return Error{ErrorCode::kInvalidArgument,
                 "[inputs] A full pass of this model needs decoder_input_ids; add them or "
                 "generate with --new-tokens."};
  }
  return work;
}

Status run_once(Session& session, const Work& work) {
  if (work.new_tokens == 0) {
    const Result<TensorMap> outputs = session.run(work.inputs);
    return outputs ? Status() : Status(outputs.error());
  }
  const Result<Generation> generation =
      session.generate_masked(work.inputs, fixed_length(session, work.new_tokens));
  return generation ? Status() : Status(generation.error());
}

struct Measured {
  Profile profile;  // the median round
  std::optional<double> joules_per_token;
};

Result<Measured> measure(const Device& device, Session& session, const Work& work, int rounds) {
  const Status started = start_profile(device);
  if (!started) return started.error();
  // Pipelines are made and passes recorded here.
  Status ran = run_once(session, work);
  if (!ran) return ran.error();
  const Status awake = wake_device(device);
  if (!awake) return awake.error();
  const Result<Profile> warm_up = take_profile(device);
  if (!warm_up) return warm_up.error();
  const std::optional<double> joules = energy_joules();
  std::vector<Profile> profiles;
  for (int round = 0; round < rounds; ++round) {
    ran = run_once(session, work);
    if (!ran) return ran.error();
    Result<Profile> profile = take_profile(device);
    if (!profile) return profile.error();
    profiles.push_back(std::move(*profile));
  }
  const std::optional<double> after = energy_joules();
  const Status stopped = stop_profile(device);
  if (!stopped) return stopped.error();
  std::sort(profiles.begin(), profiles.end(),
            [](const Profile& a, const Profile& b) { return whole_us(a) < whole_us(b); });
  Measured measured{std::move(profiles[profiles.size() / 2]), std::nullopt};
  const auto tokens = work.inputs.find("input_ids");
  int64_t count = tokens == work.inputs.end() ? 1 : tokens->second.count();
  if (work.new_tokens > 0) {
    const Shape& shape = work.inputs.begin()->second.shape;
    count = work.new_tokens * (shape.empty() ? 1 : shape.front());
  }
  if (joules && after && *after > *joules) {
    measured.joules_per_token = (*after - *joules) / static_cast<double>(rounds * count);
  }
  return measured;
}

BenchRow row_of(const OperatorSum& sum, const Roofline& roofline) {
  BenchRow row;
  row.name = sum.op;
  row.value = sum.us * 1e-3;
  row.unit = "ms";
  row.flops = sum.flops;
  row.bytes = sum.bytes;
  set_roofline_share(roofline, row);
  return row;
}

double rate(double amount, double us) {
  return us > 0 ? amount * 1e-3 / us : 0;
}

// Microseconds by kernel.
std::map<std::string, double> kernel_times(const Profile& profile) {
  std::map<std::string, double> times;
  for (const ProfiledDispatch& dispatch : profile.dispatches) {
    times[dispatch.kernel] += dispatch.microseconds;
  }
  return times;
}

// What the compiler says of the kernels that were profiled, those that took longest first.
Result<std::vector<KernelStatistics>> profiled_statistics(const Device& device,
                                                          const Profile& profile) {
  Result<std::vector<KernelStatistics>> all = kernel_statistics(device);
  if (!all) return all.error();
  const std::map<std::string, double> times = kernel_times(profile);
  std::vector<KernelStatistics> list;
  for (KernelStatistics& one : *all) {
    if (times.count(one.kernel) > 0) list.push_back(std::move(one));
  }
  std::stable_sort(list.begin(), list.end(),
                   [&times](const KernelStatistics& a, const KernelStatistics& b) {
                     return times.at(a.kernel) > times.at(b.kernel);
                   });
  return list;
}

Json number_or_null(const std::optional<double>& value) {
  return value ? Json(*value) : Json();
}

Json statistics_json(const KernelStatistics& one) {
  const CompilerStatistics& s = one.statistics;
  Json json;
  json["kernel"] = one.kernel;
  json["constants"] = one.constants;
  json["executable"] = one.executable;
  json["subgroup_size"] = one.subgroup_size;
  json["compile_ms"] = one.compile_ms;
  json["instructions"] = number_or_null(s.instructions);
  json["registers"] = number_or_null(s.registers);
  json["register_unit"] = s.register_unit;
  json["spills"] = number_or_null(s.spills);
  json["fills"] = number_or_null(s.fills);
  json["scratch_bytes"] = number_or_null(s.scratch_bytes);
  json["shared_bytes"] = number_or_null(s.shared_bytes);
  json["occupancy"] = number_or_null(s.occupancy);
  json["occupancy_unit"] = s.occupancy_unit;
  json["cycles"] = number_or_null(s.cycles);
  json["code_bytes"] = number_or_null(s.code_bytes);
  json["raw"] = Json::object();
  for (const auto& [name, value] : one.raw) json["raw"][name] = value;
  return json;
}

void print_statistics(const std::vector<KernelStatistics>& list, const Profile& profile) {
  const std::map<std::string, double> times = kernel_times(profile);
  const auto cell = [](const std::optional<double>& value) {
    return value ? fixed(*value, 0) : "-";
  };
  // At least one space, however long a name or a number is.
  const auto column = [](const std::string& text, size_t width) {
    return padded(text, std::max(width, text.size() + 1));
  };
  print_line("");
  print_line(column("kernel", 44) + column("ms", 10) + column("subgroup", 10) + column("instr", 8) +
             column("regs", 6) + column("spills", 8) + column("scratch", 9) + column("shared", 8) +
             column("occup", 7) + column("cycles", 10) + "constants");
  std::string units;
  for (const KernelStatistics& one : list) {
    const CompilerStatistics& s = one.statistics;
    std::string constants;
    for (const uint32_t value : one.constants) constants += std::to_string(value) + " ";
    print_line(column(one.kernel, 44) + column(fixed(times.at(one.kernel) * 1e-3, 3), 10) +
               column(std::to_string(one.subgroup_size), 10) + column(cell(s.instructions), 8) +
               column(cell(s.registers), 6) + column(cell(s.spills), 8) +
               column(cell(s.scratch_bytes), 9) + column(cell(s.shared_bytes), 8) +
               column(cell(s.occupancy), 7) + column(cell(s.cycles), 10) + constants);
    if (units.empty()) units = s.register_unit + (s.occupancy ? "; " + s.occupancy_unit : "");
  }
  print_line("ms of a kernel with all its constants; registers and occupancy: " + units +
             "; scratch and shared memory in bytes; cycles as the compiler estimates them");
}

void print_profile_json(const ProfileOptions& options, const Device& device,
                        const Measured& measured, const Roofline& roofline) {
  Json json;
  json["model"] = options.model;
  json["device"] = device.info().name;
  json["driver"] = device.info().driver;
  json["tier"] = choice_name(device.tier());
  json["clock"] = measured.profile.device_clock ? "device" : "host";
  json["dispatches"] = measured.profile.dispatches.size();
  json["submits"] = measured.profile.submit_us.size();
  json["ms"] = whole_us(measured.profile) * 1e-3;
  json["joules_per_token"] = measured.joules_per_token ? Json(*measured.joules_per_token) : Json();
  json["operators"] = Json::array();
  for (const OperatorSum& sum : sums_of(measured.profile)) {
    const BenchRow row = row_of(sum, roofline);
    Json entry;
    entry["op"] = sum.op;
    entry["count"] = sum.count;
    entry["ms"] = row.value;
    entry["flops"] = sum.flops;
    entry["bytes"] = sum.bytes;
    entry["gflops"] = rate(sum.flops, sum.us);
    entry["gbytes"] = rate(sum.bytes, sum.us);
    entry["roofline_share"] = row.share;
    entry["bound"] = row.bound;
    json["operators"].push_back(std::move(entry));
  }
  if (options.statistics) {
    const auto statistics = profiled_statistics(device, measured.profile);
    json["kernels"] = statistics ? Json::array() : Json();
    if (statistics) {
      for (const KernelStatistics& one : *statistics)
        json["kernels"].push_back(statistics_json(one));
    } else {
      json["kernels_error"] = statistics.error().message;
    }
  }
  print_json(json);
}

void print_profile(const Device& device, const Measured& measured, const Roofline& roofline) {
  const Profile& profile = measured.profile;
  const double whole = whole_us(profile);
  print_line(device.info().name + ", " + device.info().driver + ", tier " +
             choice_name(device.tier()));
  print_line(padded("operator", 24) + padded("count", 8) + padded("ms", 11) + padded("share", 9) +
             padded("GFLOP/s", 10) + padded("GB/s", 9) + "of roofline");
  for (const OperatorSum& sum : sums_of(profile)) {
    const BenchRow row = row_of(sum, roofline);
    print_line(padded(sum.op, 24) + padded(std::to_string(sum.count), 8) +
               padded(fixed(row.value, 3), 11) +
               padded(fixed(whole > 0 ? sum.us / whole * 100 : 0, 1) + "%", 9) +
               padded(fixed(rate(sum.flops, sum.us), 2), 10) +
               padded(fixed(rate(sum.bytes, sum.us), 2), 9) + fixed(row.share * 100, 1) + "% " +
               row.bound);
  }
  print_line("");
  print_line(std::to_string(profile.dispatches.size()) + " dispatches in " +
             std::to_string(profile.submit_us.size()) + " submits, " + fixed(whole * 1e-3, 2) +
             " ms" +
             (profile.device_clock
                  ? " by the device's clock"
                  : ": no timestamps here; a submit's time is shared out by flops and bytes"));
  print_line(measured.joules_per_token
                 ? "energy: " + fixed(*measured.joules_per_token, 4) + " J per token"
                 : "energy: this machine has no counter that can be read (/sys/class/powercap)");
}

int run_profile(const CommonOptions& common, const ProfileOptions& options) {
  const Result<BenchModel> model = open_bench_model(options.model);
  if (!model) return report(model.error());
  CommonOptions opened = common;
  opened.device.statistics = options.statistics;
  const Result<Device> device = open_device(opened);
  if (!device) return report_device(device.error());
  Result<Measured> measured = Error{ErrorCode::kInternal, "[profile] was not taken."};
  Result<Roofline> roofline = Roofline{};
  {
    const Progress progress("profiling " + options.model, common.progress());
    roofline = measure_roofline(*device);
    if (!roofline) return report(roofline.error());
    const Result<Model> loaded = Model::load_from(*device, model->source, options.load);
    if (!loaded) return report(loaded.error());
    const Result<Work> work = make_work(options, *model, loaded->info());
    if (!work) return report(work.error());
    Result<Session> session = Session::create(*loaded);
    if (!session) return report(session.error());
    measured = measure(*device, *session, *work, options.rounds);
  }
  if (!measured) return report(measured.error());
  if (!options.trace.empty()) {
    const Status written =
        write_text_file(options.trace, json_text(trace_json(measured->profile, *device)) + "\n");
    if (!written) return report(written.error());
    if (!common.quiet) {
      print_message("wrote " + options.trace +
                    "; open it in chrome://tracing or https://ui.perfetto.dev.");
    }
  }
  if (common.json) {
    print_profile_json(options, *device, *measured, *roofline);
  } else {
    print_profile(*device, *measured, *roofline);
    if (options.statistics) {
      const auto statistics = profiled_statistics(*device, measured->profile);
      if (statistics) print_statistics(*statistics, measured->profile);
      if (!statistics) print_line(statistics.error().message);
    }
  }
  return kExitOk;
}

}  // namespace

void add_profile_command(CLI::App& app, CommandLine& line) {
  CLI::App* command = app.add_subcommand(
      "profile", "Time every dispatch of a model: a table by operator, and a Chrome trace.");
  const auto options = std::make_shared<ProfileOptions>();
  command
      ->add_option("MODEL", options->model,
                   "model directory, or a shape of `vkformer bench models` with random weights")
      ->required();
  command->add_option("TEXT", options->texts,
                      "inputs of a model that reads text; generates where "
                      "it can. None: random inputs");
  add_file_option(*command, "--inputs", options->inputs,
                  "safetensors file with the inputs of a pass, as `vkformer run` takes it");
  add_file_option(*command, "--trace", options->trace,
                  "JSON file to write for chrome://tracing or ui.perfetto.dev");
  command->add_option("--batch", options->batch, "random inputs at once")
      ->default_str("")
      ->check(CLI::Range(1, 65536));
  command->add_option("--tokens", options->tokens, "tokens of each random input")
      ->default_str("")
      ->check(CLI::Range(1, 1 << 20));
  command->add_option("--new-tokens", options->new_tokens, "tokens to generate; 0: a full pass")
      ->default_str("")
      ->check(CLI::Range(0, 1 << 20));
  command->add_option("--rounds", options->rounds, "times to run; the median one is shown")
      ->check(CLI::Range(1, 1000));
  command->add_flag("--statistics", options->statistics,
                    "what the driver's compiler says of each kernel: registers, spills, occupancy");
  add_model_options(*command, options->load);
  add_output_options(*command, line.common);
  add_device_options(*command, line.common);
  add_examples(*command,
               "  vkformer profile models/g2p-en attention --trace trace.json\n"
               "  vkformer profile bert-base --tokens 128 --json\n"
               "  vkformer profile llama-134m --tokens 256 --new-tokens 32\n"
               "  vkformer profile bert-base --tokens 128 --statistics\n"
               "  vkformer profile DIR --inputs in.safetensors --trace trace.json\n");
  command->callback([&line, options] {
    line.run = [&line, options] { return run_profile(line.common, *options); };
  });
}

}  // namespace vkformer::cli
