// Decoding at batch 1: CPU time of the calling thread, speed, and time to the first token.
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>

#include "bench.h"
#include "child_process.h"
#include "text_inputs.h"
#include "vkformer/session.h"

namespace vkformer::cli {

namespace {

using Clock = std::chrono::steady_clock;

// CPU time this thread has used, in microseconds.
double thread_cpu_us() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e6 + static_cast<double>(now.tv_nsec) * 1e-3;
}

Result<std::vector<std::vector<TokenId>>> token_rows(const DecodeOptions& options,
                                                     const Model& model) {
  const Result<Tokenizer> tokenizer = Tokenizer::load(options.model);
  if (!tokenizer) return tokenizer.error();
  std::vector<std::vector<TokenId>> rows;
  for (const std::string& text : options.texts) {
    const Result<Encoding> encoding =
        encode_input(*tokenizer, {text, "TEXT"}, model.info().max_source, LongInput::kError);
    if (!encoding) return encoding.error();
    if (!encoding->ids.empty()) rows.push_back(encoding->ids);
  }
  if (rows.empty()) {
    return Error{ErrorCode::kInvalidArgument, "[TEXT] has no tokens; give some text."};
  }
  return rows;
}

// Generates every row by itself; gives the number of tokens.
Result<int64_t> generate_each(Session& session, const std::vector<std::vector<TokenId>>& rows,
                              const GenerateOptions& settings) {
  int64_t tokens = 0;
  for (const std::vector<TokenId>& row : rows) {
    const Result<Generation> generation = session.generate({row}, settings);
    if (!generation) return generation.error();
    tokens += static_cast<int64_t>(generation->front().front().ids.size()) - 1;
  }
  return tokens;
}

// A fresh process that generates one token with the pipeline cache in `cache`.
Result<double> start_time(const CommonOptions& common, const DecodeOptions& options,
                          const std::string& cache) {
  std::vector<std::string> arguments = {"bench",        "decode",
                                        options.model,  options.texts.front(),
                                        "--start-only", "--quiet",
                                        "--cache-dir",  cache,
                                        "--device",     common.device.device,
                                        "--tier",       choice_name(common.device.tier),
                                        "--weights",    choice_name(options.load.weights),
                                        "--precision",  choice_name(options.load.precision),
                                        "--limits",     choice_name(common.device.limits)};
  const Result<std::string> output = run_self(arguments);
  if (!output) return output.error();
  return std::strtod(output->c_str(), nullptr);
}

Status add_start_times(const CommonOptions& common, const DecodeOptions& options,
                       DecodeTime& time) {
  std::error_code failure;
  std::string cache = std::filesystem::temp_directory_path(failure) / "vkformer-start-XXXXXX";
  if (failure || mkdtemp(cache.data()) == nullptr) {
    return Error{ErrorCode::kInvalidFile, "[" + cache + "] could not be made."};
  }
  const Result<double> cold = start_time(common, options, cache);
  const Result<double> warm = cold ? start_time(common, options, cache) : cold;
  std::filesystem::remove_all(cache, failure);
  if (!warm) return warm.error();
  time.start_cold_ms = *cold;
  time.start_warm_ms = *warm;
  return {};
}

// The child's part: opens everything, generates one token, prints the process's age.
Status print_start(const Device& device, const DecodeOptions& options) {
  const Result<Model> model = Model::load(device, options.model, options.load);
  if (!model) return model.error();
  Result<Session> session = Session::create(*model);
  if (!session) return session.error();
  const Result<std::vector<std::vector<TokenId>>> rows = token_rows(options, *model);
  if (!rows) return rows.error();
  GenerateOptions settings = session->generation_defaults();
  settings.beams = settings.return_sequences = 1;
  settings.max_new_tokens = 1;
  const Result<int64_t> tokens = generate_each(*session, {rows->front()}, settings);
  if (!tokens) return tokens.error();
  print_line(fixed(process_age_ms(), 1));
  return {};
}

}  // namespace

Result<DecodeTime> measure_decode(const CommonOptions& common, const Device& device,
                                  const DecodeOptions& options) {
  const Result<Model> model = Model::load(device, options.model, options.load);
  if (!model) return model.error();
  Result<Session> session = Session::create(*model);
  if (!session) return session.error();
  const Result<std::vector<std::vector<TokenId>>> rows = token_rows(options, *model);
  if (!rows) return rows.error();
  GenerateOptions settings = session->generation_defaults();
  settings.beams = settings.return_sequences = 1;
  for (int warm_up = 0; warm_up < 2; ++warm_up) {
    const Result<int64_t> tokens = generate_each(*session, *rows, settings);
    if (!tokens) return tokens.error();
  }
  const Status awake = wake_device(device);
  if (!awake) return awake.error();
  DecodeTime time;
  const auto begin = Clock::now();
  const double cpu_begin = thread_cpu_us();
  std::chrono::duration<double> wall{};
  while (wall.count() < options.seconds) {
    const Result<int64_t> tokens = generate_each(*session, *rows, settings);
    if (!tokens) return tokens.error();
    time.tokens += *tokens;
    wall = Clock::now() - begin;
  }
  const auto tokens = static_cast<double>(std::max<int64_t>(1, time.tokens));
  time.cpu_us_per_token = (thread_cpu_us() - cpu_begin) / tokens;
  time.tokens_per_second = tokens / wall.count();
  const Status started = add_start_times(common, options, time);
  if (!started) return started.error();
  return time;
}

int run_bench_decode(const CommonOptions& common, const DecodeOptions& options) {
  const Result<Device> device = open_device(common);
  if (!device) return report_device(device.error());
  if (options.start_only) {
    const Status printed = print_start(*device, options);
    return printed ? kExitOk : report(printed.error());
  }
  const Progress progress("measuring", common.progress());
  const Result<DecodeTime> time = measure_decode(common, *device, options);
  if (!time) return report(time.error());
  if (common.json) {
    Json json;
    json["model"] = options.model;
    json["weights"] = options.load.weights;
    json["cpu_us_per_token"] = time->cpu_us_per_token;
    json["tokens_per_second"] = time->tokens_per_second;
    json["tokens"] = time->tokens;
    json["start_cold_ms"] = time->start_cold_ms;
    json["start_warm_ms"] = time->start_warm_ms;
    json["device"] = device->info().name;
    json["driver"] = device->info().driver;
    json["tier"] = choice_name(device->tier());
    print_json(json);
    return kExitOk;
  }
  print_line("caller's thread   " + fixed(time->cpu_us_per_token, 1) + " us of CPU per token");
  print_line("speed             " + fixed(time->tokens_per_second, 0) + " tokens/s at batch 1");
  print_line("first token       " + fixed(time->start_cold_ms, 0) + " ms cold, " +
             fixed(time->start_warm_ms, 0) + " ms with a filled pipeline cache");
  print_line("on " + device->info().name + ", " + std::to_string(time->tokens) + " tokens");
  return kExitOk;
}

}  // namespace vkformer::cli
