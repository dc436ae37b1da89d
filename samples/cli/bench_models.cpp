// Whole models: full passes, prompts, decoding, loading, the first result and memory.
#include "bench_models.h"

#include <algorithm>
#include <chrono>
#include <cinttypes>
#include <fstream>
#include <random>

#include "child_process.h"
#include "energy.h"
#include "files.h"
#include "model_path.h"
#include "suggestion.h"

namespace vkformer::cli {

namespace {

using Clock = std::chrono::steady_clock;

constexpr double kLongEnoughMs = 20000;  // of all rounds of a run; after that fewer do

double ms_since(Clock::time_point begin) {
  return std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
}

// A field of /proc/self/status, in MB; 0 where there is none.
double process_megabytes(const std::string& field) {
  std::ifstream file("/proc/self/status");
  for (std::string line; std::getline(file, line);) {
    if (line.rfind(field + ":", 0) != 0) continue;
    return std::strtod(line.c_str() + field.size() + 1, nullptr) * 1024 / 1e6;
  }
  return 0;
}

// Forgets the peak of resident memory so far, which loading left.
void reset_memory_peak() {
  std::ofstream file("/proc/self/clear_refs");
  file << "5";
}

// FNV-1a of everything a pass handed out, by name.
class Hash {
 public:
  void add(const void* data, size_t bytes) {
    const auto* at = static_cast<const unsigned char*>(data);
    for (size_t i = 0; i < bytes; ++i) state_ = (state_ ^ at[i]) * 0x100000001b3u;
  }
  std::string text() const {
    char text[17];
    std::snprintf(text, sizeof text, "%016" PRIx64, state_);
    return text;
  }

 private:
  uint64_t state_ = 0xcbf29ce484222325u;
};

// What the benchmark of one model collects.
class ModelBench {
 public:
  ModelBench(const Device& device, const Roofline& roofline, BenchModel model, int rounds,
             std::vector<BenchRow>& rows)
      : device_(device),
        roofline_(roofline),
        model_(std::move(model)),
        rounds_(rounds),
        rows_(rows) {}

  Status measure(const ModelOptions& load) {
    const auto begin = Clock::now();
    const Result<Model> loaded = Model::load_from(device_, model_.source, load);
    if (!loaded) return loaded.error();
    add("load", ms_since(begin), "ms", "weights made, packed and uploaded");
    reset_memory_peak();
    info_ = loaded->info();
    for (const ModelRun& run : model_.runs) {
      Result<Session> session = Session::create(*loaded, {.cache = model_.cache});
      if (!session) return session.error();
      const Status measured =
          run.new_tokens > 0 ? measure_generation(*session, run) : measure_pass(*session, run);
      if (!measured) return measured.error();
      device_bytes_ = std::max(device_bytes_, device_.memory_in_use());
    }
    add("device memory", static_cast<double>(device_bytes_) / 1e6, "MB",
        "weights " + fixed(static_cast<double>(loaded->weight_bytes()) / 1e6, 0) + " MB");
    add("process memory, peak while running", process_megabytes("VmHWM"), "MB",
        "a software device's memory is part of it");
    return {};
  }

 private:
  struct Work {
    double flops = 0;
    double bytes = 0;
  };

  BenchRow& add(const std::string& name, double value, const char* unit, const std::string& note) {
    BenchRow row;
    row.section = "models";
    row.name = model_.name + " " + name;
    row.value = value;
    row.unit = unit;
    row.note = note;
    rows_.push_back(std::move(row));
    return rows_.back();
  }

  void add_timed(const std::string& name, double ms, const Work& work, const std::string& hash,
                 const std::string& note) {
    BenchRow& row = add(name, ms, "ms", note);
    row.flops = work.flops;
    row.bytes = work.bytes;
    row.hash = hash;
    set_roofline_share(roofline_, row);
  }

  // Runs something for the first time: how long that took, and the work of all its dispatches and
  // of those of the last submit.
  template <class Function>
  Status first_time(const std::string& name, Work& all, Work& last, const Function& run) {
    const Status started = start_profile(device_);
    if (!started) return started;
    const auto begin = Clock::now();
    const Status ran = run();
    const double ms = ms_since(begin);
    const Result<Profile> profile = take_profile(device_);
    const Status stopped = stop_profile(device_);
    if (!ran) return ran;
    if (!profile) return profile.error();
    if (!stopped) return stopped;
    const int submits = static_cast<int>(profile->submit_us.size());
    for (const ProfiledDispatch& dispatch : profile->dispatches) {
      all.flops += dispatch.flops;
      all.bytes += dispatch.bytes;
      if (dispatch.submit != submits - 1) continue;
      last.flops += dispatch.flops;
      last.bytes += dispatch.bytes;
    }
    add(name + ", first run", ms, "ms", "pipelines made, recorded and run");
    return {};
  }

  Status measure_pass(Session& session, const ModelRun& run) {
    const Result<TensorMap> inputs = bench_inputs(model_, info_, run, DecoderInput::kYes);
    if (!inputs) return inputs.error();
    Work work, last;
    Hash hash;
    const auto once = [&](bool keep) -> Status {
      const Result<TensorMap> outputs = session.run(*inputs);
      if (!outputs) return outputs.error();
      for (const auto& [name, tensor] : *outputs) {
        if (keep) hash.add(tensor.bytes.data(), tensor.bytes.size());
      }
      return {};
    };
    const Status first = first_time(run.name, work, last, [&] { return once(true); });
    if (!first) return first;
    const Status awake = wake_device(device_);
    if (!awake) return awake;
    std::vector<double> times;
    const auto start = Clock::now();
    for (int round = 0; round < rounds_ && (round == 0 || ms_since(start) < kLongEnoughMs);
         ++round) {
      const auto begin = Clock::now();
      const Status ran = once(false);
      if (!ran) return ran;
      times.push_back(ms_since(begin));
    }
    const double ms = median(times);
    const double items = static_cast<double>(run.batch) * 1e3 / ms;
    add_timed(run.name, ms, work, hash.text(),
              info_.source == SourceKind::kTokens
                  ? fixed(items * static_cast<double>(run.tokens), 0) + " tokens/s"
                  : fixed(items, 2) + " inputs/s");
    return {};
  }

  // Prompt and one token against prompt and many: the difference is decoding.
  Status measure_generation(Session& session, const ModelRun& run) {
    const Result<TensorMap> inputs = bench_inputs(model_, info_, run, DecoderInput::kNo);
    if (!inputs) return inputs.error();
    Generation made;
    const auto generate = [&](int64_t new_tokens) -> Status {
      Result<Generation> generation =
          session.generate_masked(*inputs, fixed_length(session, new_tokens));
      if (!generation) return generation.error();
      made = std::move(*generation);
      return {};
    };
    const int64_t many = 1 + run.new_tokens;
    Work prompt, step;
    const Status first = first_time(run.name, prompt, step, [&] { return generate(1); });
    if (!first) return first;
    const Status warm = generate(many);
    if (!warm) return warm;
    const Status awake = wake_device(device_);
    if (!awake) return awake;
    std::vector<double> short_ms, long_ms;
    const std::optional<double> joules = energy_joules();
    const auto start = Clock::now();
    for (int round = 0; round < rounds_ && (round == 0 || ms_since(start) < kLongEnoughMs);
         ++round) {
      auto begin = Clock::now();
      Status ran = generate(1);
      if (!ran) return ran;
      short_ms.push_back(ms_since(begin));
      begin = Clock::now();
      ran = generate(many);
      if (!ran) return ran;
      long_ms.push_back(ms_since(begin));
    }
    const double prompt_ms = median(short_ms);
    const double token_ms =
        std::max(0.0, median(long_ms) - prompt_ms) / static_cast<double>(run.new_tokens);
    Hash hash;
    for (const auto& item : made) {
      hash.add(item.front().ids.data(), item.front().ids.size() * sizeof(int64_t));
    }
    const bool prompted = info_.kind == ModelKind::kDecoder;
    add_timed(std::string(run.name) + (prompted ? "" : ", 1 token"), prompt_ms, prompt, "",
              prompted ? fixed(static_cast<double>(run.batch * run.tokens) * 1e3 / prompt_ms, 1) +
                             " prompt tokens/s"
                       : "encoder and first token");
    add_timed(
        "decoding", token_ms, step, hash.text(),
        fixed(static_cast<double>(run.batch) * 1e3 / token_ms, 1) + " tokens/s after " + run.name);
    const auto rounds = static_cast<double>(long_ms.size());
    const std::optional<double> after = energy_joules();
    if (joules && after && *after > *joules) {
      add("energy", (*after - *joules) / (rounds * static_cast<double>(run.batch * (many + 1))),
          "J/token", "processor packages, prompts included");
    }
    return {};
  }

  const Device& device_;
  const Roofline& roofline_;
  BenchModel model_;
  int rounds_;
  std::vector<BenchRow>& rows_;
  ModelInfo info_;
  uint64_t device_bytes_ = 0;  // the most that was in use
};

// The same program with one model; its rows come back as JSON.
Status add_child_rows(const CommonOptions& common, const Roofline& roofline,
                      const ModelBenchOptions& options, const std::string& name,
                      std::vector<BenchRow>& rows) {
  std::vector<std::string> arguments = {"bench",        "models",
                                        name,           "--in-process",
                                        "--quiet",      "--json",
                                        "--device",     common.device.device,
                                        "--tier",       choice_name(common.device.tier),
                                        "--weights",    choice_name(options.load.weights),
                                        "--precision",  choice_name(options.load.precision),
                                        "--limits",     choice_name(common.device.limits),
                                        "--cache",      choice_name(options.cache),
                                        "--batch",      std::to_string(options.batch),
                                        "--tokens",     std::to_string(options.tokens),
                                        "--new-tokens", std::to_string(options.new_tokens),
                                        "--rounds",     std::to_string(options.rounds)};
  if (!common.device.cache_directory.empty()) {
    arguments.insert(arguments.end(), {"--cache-dir", common.device.cache_directory});
  }
  if (common.tuned) arguments.emplace_back("--tuned");
  const Result<std::string> output = run_self(arguments);
  if (!output) return output.error().with_context(name);
  const Json json = Json::parse(*output, nullptr, false);
  if (!json.is_object() || !json.contains("rows")) {
    return Error{ErrorCode::kInternal, "[" + name + "] gave no rows."};
  }
  for (const Json& row : json["rows"]) {
    if (row.value("section", "") != "models") continue;
    rows.push_back(row_from_json(row));
    if (rows.back().flops > 0) set_roofline_share(roofline, rows.back());
  }
  return {};
}

Status add_one_model(const Device& device, const Roofline& roofline,
                     const ModelBenchOptions& options, const std::string& name,
                     std::vector<BenchRow>& rows) {
  Result<BenchModel> model = open_bench_model(name, options);
  if (!model) return model.error();
  return ModelBench(device, roofline, std::move(*model), options.rounds, rows)
      .measure(options.load);
}

Tensor random_floats(const Shape& shape) {
  std::mt19937 engine(1);
  std::vector<float> values(static_cast<size_t>(element_count(shape)));
  for (float& value : values) {
    value = static_cast<float>(engine() >> 8) * 0x1p-23F - 1.0F;
  }
  return Tensor::from_floats(shape, values);
}

Tensor random_ids(const Shape& shape, int64_t vocab) {
  std::mt19937 engine(1);
  // The first ids of most vocabularies are special.
  const int64_t first = std::min<int64_t>(10, vocab - 1);
  std::vector<int64_t> ids(static_cast<size_t>(element_count(shape)));
  for (int64_t& id : ids) id = first + static_cast<int64_t>(engine()) % (vocab - first);
  return Tensor::from_ints(shape, ids);
}

}  // namespace

Result<BenchModel> open_bench_model(const std::string& name) {
  if (const ModelShape* shape = find_model_shape(name)) {
    return BenchModel{name, random_model(*shape), Json::parse(shape->config), shape->runs};
  }
  std::string path = name;
  if (const Status folder = resolve_model_path(path); !folder) {
    std::vector<std::string> shapes;
    for (const ModelShape& shape : model_shapes()) shapes.emplace_back(shape.name);
    const std::string nearest = nearest_name(name, shapes);
    std::string text = folder.error().message;
    if (!nearest.empty()) text = "[" + name + "] is not a model; did you mean " + nearest + "?";
    text += " Shapes with random weights are:";
    for (const std::string& shape : shapes) text += " " + shape;
    return Error{ErrorCode::kNotFound, text + "."};
  }
  Result<Json> config = read_json_file(model_config_file(path));
  if (!config) return config.error();
  return BenchModel{name, ModelSource::directory(path), std::move(*config), {{"1x32", 1, 32, 0}}};
}

Result<BenchModel> open_bench_model(const std::string& name, const ModelBenchOptions& options) {
  Result<BenchModel> model = open_bench_model(name);
  if (!model) return model.error();
  if (options.batch + options.tokens + options.new_tokens > 0) {
    model->runs = {{"given sizes", std::max<int64_t>(1, options.batch),
                    std::max<int64_t>(1, options.tokens), options.new_tokens}};
  }
  model->cache = options.cache;
  return model;
}

std::vector<std::string> bench_model_names(const ModelBenchOptions& options) {
  if (!options.names.empty()) return options.names;
  std::vector<std::string> names;
  for (const ModelShape& shape : model_shapes()) names.emplace_back(shape.name);
  return names;
}

namespace {

// Features of a Parakeet: frames of bands, as many as there are tokens, and no window of bands.
bool is_frames_first(const Json& config) {
  const auto type = config.find("model_type");
  return type != config.end() && type->is_string() &&
         type->get<std::string>().starts_with("parakeet");
}

}  // namespace

Result<TensorMap> bench_inputs(const BenchModel& model, const ModelInfo& info, const ModelRun& run,
                               DecoderInput decoder) {
  TensorMap inputs;
  if (info.source == SourceKind::kTokens) {
    const int64_t vocab = info.source_vocab > 0 ? info.source_vocab : info.target_vocab;
    inputs["input_ids"] = random_ids({run.batch, run.tokens}, std::max<int64_t>(2, vocab));
  } else if (info.source == SourceKind::kPictures) {
    const Result<int64_t> size = json_integer(model.config, "image_size", 224, model.name);
    if (!size) return size.error();
    inputs["pixel_values"] = random_floats({run.batch, 3, *size, *size});
  } else if (info.source == SourceKind::kFeatures && is_frames_first(model.config)) {
    const Json encoder = model.config.value("encoder_config", model.config);
    const Result<int64_t> mel = json_integer(encoder, "num_mel_bins", 80, model.name);
    if (!mel) return mel.error();
    inputs["input_features"] = random_floats({run.batch, run.tokens, *mel});
  } else if (info.source == SourceKind::kFeatures && model.config.contains("num_mel_bins")) {
    const Result<int64_t> mel = json_integer(model.config, "num_mel_bins", 80, model.name);
    const Result<int64_t> frames =
        json_integer(model.config, "max_source_positions", 1500, model.name);
    if (!mel || !frames) return mel ? frames.error() : mel.error();
    inputs["input_features"] = random_floats({run.batch, *mel, 2 * *frames});
  } else {
    return Error{ErrorCode::kUnsupported, "[" + model.name + "] reads " + choice_name(info.source) +
                                              ", which this command cannot make up; use "
                                              "`vkformer profile --inputs FILE`."};
  }
  if (decoder == DecoderInput::kYes && info.kind == ModelKind::kEncoderDecoder) {
    inputs["decoder_input_ids"] = random_ids(
        {run.batch, std::max<int64_t>(1, std::min<int64_t>(run.tokens, 32))}, info.target_vocab);
  }
  return inputs;
}

GenerateOptions fixed_length(const Session& session, int64_t new_tokens) {
  GenerateOptions options = session.generation_defaults();
  options.beams = options.return_sequences = 1;
  options.max_new_tokens = static_cast<int>(new_tokens);
  options.min_new_tokens = 0;
  options.eos.clear();
  options.forced_eos = -1;
  return options;
}

Status add_model_rows(const CommonOptions& common, const Device& device, const Roofline& roofline,
                      const ModelBenchOptions& options, std::vector<BenchRow>& rows) {
  for (const std::string& name : bench_model_names(options)) {
    const Status added = options.in_process ? add_one_model(device, roofline, options, name, rows)
                                            : add_child_rows(common, roofline, options, name, rows);
    if (!added) return added;
  }
  return {};
}

}  // namespace vkformer::cli
