// How well slices keep to a budget of GPU time, and what they cost the calling thread. It runs a
// pass and a generation, frame by frame. A fixed reference pass between the frames shows how steady
// the machine itself is.
//
//   vkformer_frame_budget MODEL REFERENCE_MODEL [FRAMES] [TOKENS] [NEW_TOKENS] > report.json
//
// Both models read tokens, TOKENS of them (32); MODEL's pass is measured, and with NEW_TOKENS (24)
// above 0 its generation. The reference should take about a millisecond. "first" is of a device
// that has kept nothing. It has the longest calls until the first result, and frames until slices
// fill 0.6 of their budget. A median is of the slices that had work left after them: the last one
// of a result has only the rest of its work.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "must.h"
#include "vkformer/benchmark.h"
#include "vkformer/session.h"

namespace {

using vkformer::Advance;
using vkformer::TensorMap;
using vkformer::bench::fail;
using vkformer::bench::value_or_exit;

constexpr double kBudgets[] = {1000, 2000, 4000, 8000};  // microseconds

void check(const vkformer::Status& status) {
  if (!status) fail(status.error());
}

double percentile(std::vector<double> values, double share) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const auto last = static_cast<double>(values.size() - 1);
  return values[static_cast<size_t>(share * last + 0.5)];
}

double microseconds_of(const std::function<void()>& call) {
  const auto begin = std::chrono::steady_clock::now();
  call();
  const std::chrono::duration<double, std::micro> taken = std::chrono::steady_clock::now() - begin;
  return taken.count();
}

// What the machine does to a thread that does nothing: microseconds of a loop that lasts some 20.
double idle_loop() {
  return microseconds_of([] {
    volatile int count = 0;
    while (count < 20000) count = count + 1;
  });
}

TensorMap tokens(const vkformer::Model& model, int64_t count) {
  std::vector<int64_t> ids(static_cast<size_t>(count));
  const int64_t vocab = std::max<int64_t>(2, model.info().source_vocab);
  for (size_t i = 0; i < ids.size(); ++i) ids[i] = 1 + static_cast<int64_t>(i * 7919) % (vocab - 1);
  return {{"input_ids", vkformer::Tensor::from_ints({1, count}, ids)}};
}

TensorMap pass_inputs_of(const vkformer::Model& model, int64_t count) {
  TensorMap inputs = tokens(model, count);
  if (model.info().kind == vkformer::ModelKind::kEncoderDecoder) {
    inputs["decoder_input_ids"] = inputs.at("input_ids");
  }
  return inputs;
}

// Work that is carried out in slices, again and again.
struct Work {
  const char* name;
  std::function<vkformer::Status(vkformer::Session&)> start;
  std::function<bool(vkformer::Session&)> finish;  // whether its result is that of one go
};

struct Reference {
  vkformer::Device device;
  vkformer::Session session;
  TensorMap inputs;

  // GPU microseconds of one whole pass.
  double time() {
    (void)value_or_exit(session.run(inputs));
    double sum = 0;
    for (const auto& one : value_or_exit(vkformer::take_profile(device)).dispatches) {
      sum += one.microseconds;
    }
    return sum;
  }
};

struct Frames {
  std::vector<double> slices;     // microseconds of our GPU time in each frame
  std::vector<double> full;       // of those after which work was left
  std::vector<double> reference;  // of the reference pass in each frame
  std::vector<double> calls;      // microseconds of the calling thread
  std::vector<double> idle;       // of a loop beside them
  int results = 0;
  bool same = true;  // as in one go
};

Frames run_frames(vkformer::Session& session, const Work& work, Reference* reference, double budget,
                  int frames) {
  Frames result;
  bool running = false;
  Advance before;  // what the call before this one submitted
  while (static_cast<int>(result.slices.size()) < frames) {
    result.idle.push_back(idle_loop());
    if (!running) {
      result.calls.push_back(microseconds_of([&] { check(work.start(session)); }));
      running = true;
    }
    Advance advance;
    result.calls.push_back(
        microseconds_of([&] { advance = value_or_exit(session.advance(budget)); }));
    if (advance.progress == Advance::Progress::kDone) {
      result.same = work.finish(session) && result.same;
      ++result.results;
      running = false;
    }
    if (reference != nullptr) {
      result.reference.push_back(reference->time());
    } else {
      std::this_thread::sleep_for(std::chrono::milliseconds(8));
    }
    // The reference pass ran after the slice, so the slice's time is known by now. Calls without a
    // slice before them tell the time of an older one again.
    if (before.expected_microseconds > 0) {
      result.slices.push_back(advance.last_microseconds);
      if (before.more_to_submit()) result.full.push_back(advance.last_microseconds);
    }
    before = advance;
  }
  check(session.cancel());
  return result;
}

// Of calls, those above a millisecond that the machine's own pauses do not explain.
int above_a_millisecond(const Frames& frames) {
  const auto count = [](const std::vector<double>& values) {
    return static_cast<int>(
        std::count_if(values.begin(), values.end(), [](double us) { return us > 1000; }));
  };
  return std::max(0, count(frames.calls) - count(frames.idle));
}

void print_row(const char* work, double budget, const Frames& frames, const char* comma) {
  // Where every result is one slice, there is no other.
  const std::vector<double>& full = frames.full.empty() ? frames.slices : frames.full;
  const double p50 = percentile(full, 0.5), p99 = percentile(frames.slices, 0.99);
  const double r50 = percentile(frames.reference, 0.5), r99 = percentile(frames.reference, 0.99);
  std::printf("  {\"work\": \"%s\", \"budget_us\": %.0f, \"frames\": %zu, \"results\": %d,\n", work,
              budget, frames.slices.size(), frames.results);
  std::printf("   \"same_bits\": %s, \"p50_us\": %.0f, \"p90_us\": %.0f, \"p99_us\": %.0f,\n",
              frames.same ? "true" : "false", p50, percentile(frames.slices, 0.9), p99);
  std::printf("   \"max_us\": %.0f, \"p99_of_budget\": %.3f, \"reference_p99_of_p50\": %.3f,\n",
              percentile(frames.slices, 1), p99 / budget, r50 > 0 ? r99 / r50 : 0);
  std::printf("   \"call_p50_us\": %.0f, \"call_p99_us\": %.0f, \"call_max_us\": %.0f,\n",
              percentile(frames.calls, 0.5), percentile(frames.calls, 0.99),
              percentile(frames.calls, 1));
  std::printf("   \"idle_max_us\": %.0f, \"calls\": %zu, \"calls_above_1_ms\": %d}%s\n",
              percentile(frames.idle, 1), frames.calls.size(), above_a_millisecond(frames), comma);
}

// The first result of a session on a device that has kept nothing.
void print_first(const char* name, const Work& work, const vkformer::Model& model, double budget) {
  auto session = value_or_exit(vkformer::Session::create(model));
  const double start = microseconds_of([&] { check(work.start(session)); });
  std::vector<double> calls, idle;
  int preparing = 0, until_filled = 0, slices = 0;
  for (Advance advance; advance.progress != Advance::Progress::kDone;) {
    idle.push_back(idle_loop());
    calls.push_back(microseconds_of([&] { advance = value_or_exit(session.advance(budget)); }));
    preparing += advance.progress == Advance::Progress::kPreparing ? 1 : 0;
    if (advance.last_microseconds > 0) ++slices;
    if (until_filled == 0 && advance.last_microseconds > 0.6 * budget) until_filled = slices;
    std::this_thread::sleep_for(std::chrono::milliseconds(8));
  }
  (void)work.finish(session);
  std::printf(" \"%s\": {\"start_us\": %.0f, \"call_p50_us\": %.0f, \"call_max_us\": %.0f,\n", name,
              start, percentile(calls, 0.5), percentile(calls, 1));
  std::printf("  \"idle_max_us\": %.0f, \"preparing_frames\": %d, \"frames_until_0.6\": %d},\n",
              percentile(idle, 1), preparing, until_filled);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: %s MODEL REFERENCE_MODEL [FRAMES] [TOKENS] [NEW_TOKENS]\n",
                 argv[0]);
    return 2;
  }
  const auto number = [&](int at, int otherwise) {
    return argc > at ? std::max(0, std::atoi(argv[at])) : otherwise;
  };
  const int frames = std::max(1, number(3, 1000));
  const int new_tokens = number(5, 24);
  vkformer::DeviceOptions cold;
  cold.cache_directory = "none";
  const auto device = value_or_exit(vkformer::Device::create(cold));
  const auto model = value_or_exit(vkformer::Model::load(device, argv[1]));
  const auto small = value_or_exit(vkformer::Model::load(device, argv[2]));
  const int count = std::max(1, number(4, 32));
  const TensorMap inputs = tokens(model, count), pass_inputs = pass_inputs_of(model, count);
  TensorMap whole;
  const Work pass{"pass", [&](vkformer::Session& session) { return session.start(pass_inputs); },
                  [&](vkformer::Session& session) {
                    const TensorMap found = value_or_exit(session.finish());
                    if (whole.empty()) return true;
                    for (const auto& [name, tensor] : whole) {
                      if (found.at(name).bytes != tensor.bytes) return false;
                    }
                    return true;
                  }};
  vkformer::GenerateOptions options;
  std::vector<int64_t> ids;
  const Work generation{"generation",
                        [&](vkformer::Session& session) {
                          options = session.generation_defaults();
                          options.max_new_tokens = new_tokens;
                          options.min_new_tokens = new_tokens;
                          return session.start_generation(inputs, options);
                        },
                        [&](vkformer::Session& session) {
                          const auto found = value_or_exit(session.finish_generation());
                          return ids.empty() || found[0][0].ids == ids;
                        }};
  std::printf("{\"device\": \"%s\", \"driver\": \"%s\", \"model\": \"%s\",\n",
              device.info().name.c_str(), device.info().driver.c_str(), argv[1]);
  print_first("first_pass", pass, model, 2000);
  if (new_tokens > 0) print_first("first_generation", generation, model, 2000);

  auto session = value_or_exit(vkformer::Session::create(model));
  whole = value_or_exit(session.run(pass_inputs));
  if (new_tokens > 0) {
    options = session.generation_defaults();
    options.max_new_tokens = options.min_new_tokens = new_tokens;
    ids = value_or_exit(session.generate_masked(inputs, options))[0][0].ids;
  }
  // Slices have timestamps of their own; the profile is of the reference pass, whose recording is
  // made under it.
  check(vkformer::start_profile(device));
  Reference reference{device, value_or_exit(vkformer::Session::create(small)),
                      pass_inputs_of(small, count)};
  std::printf(" \"rows\": [\n");
  for (const Work* work : {&pass, &generation}) {
    if (work == &generation && new_tokens == 0) continue;
    for (const double budget : kBudgets) {
      const bool last = budget == kBudgets[3] && (work == &generation || new_tokens == 0);
      print_row(work->name, budget, run_frames(session, *work, &reference, budget, frames),
                last ? "" : ",");
    }
  }
  std::printf("]}\n");
  return 0;
}
