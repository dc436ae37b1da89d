// How well slices keep to a budget of GPU time: a pass in slices, frame by frame, with a fixed
// reference pass between the frames that shows how steady the machine itself is.
//
//   vkformer_frame_budget MODEL INPUTS REFERENCE_MODEL REFERENCE_INPUTS [FRAMES] > report.json
//
// Inputs are safetensors files; the reference should take about a millisecond.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "must.h"
#include "vkformer/benchmark.h"
#include "vkformer/session.h"

namespace {

using vkformer::Advance;
using vkformer::bench::fail;
using vkformer::bench::value_or_exit;

void check(const vkformer::Status& status) {
  if (!status) fail(status.error());
}

double percentile(std::vector<double> values, double share) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const auto last = static_cast<double>(values.size() - 1);
  return values[static_cast<size_t>(share * last + 0.5)];
}

bool same_bits(const vkformer::TensorMap& a, const vkformer::TensorMap& b) {
  if (a.size() != b.size()) return false;
  for (const auto& [name, tensor] : a) {
    const auto other = b.find(name);
    if (other == b.end() || other->second.bytes != tensor.bytes) return false;
  }
  return true;
}

struct Frames {
  std::vector<double> slices;     // microseconds of our GPU time in each frame
  std::vector<double> reference;  // of the reference pass in each frame
  int passes = 0;
  bool same = true;  // as the pass in one go
};

struct Passes {
  vkformer::Device device;
  vkformer::Session sliced;
  vkformer::Session reference;
  vkformer::TensorMap inputs;
  vkformer::TensorMap reference_inputs;
  vkformer::TensorMap whole;
};

// GPU microseconds of one whole pass.
double reference_time(Passes& p) {
  (void)value_or_exit(p.reference.run(p.reference_inputs));
  double sum = 0;
  const vkformer::Profile profile = value_or_exit(vkformer::take_profile(p.device));
  for (const vkformer::ProfiledDispatch& one : profile.dispatches) sum += one.microseconds;
  return sum;
}

Frames run_frames(Passes& p, double budget, int frames) {
  Frames result;
  bool running = false;
  while (static_cast<int>(result.slices.size()) < frames) {
    if (!running) check(p.sliced.start(p.inputs));
    running = true;
    Advance advance = value_or_exit(p.sliced.advance(budget));
    const bool all = advance.progress != Advance::Progress::kRunning;
    if (all) {
      // finish waits for the GPU; what the last slice took is known at the next advance.
      result.same = result.same && same_bits(p.whole, value_or_exit(p.sliced.finish()));
      ++result.passes;
      running = false;
    }
    result.reference.push_back(reference_time(p));
    // The reference pass ran behind the slice, so the slice's time is known by now.
    if (advance.last_microseconds > 0) result.slices.push_back(advance.last_microseconds);
  }
  check(p.sliced.cancel());
  return result;
}

void print_row(double budget, const Frames& frames, const char* comma) {
  const double p50 = percentile(frames.slices, 0.5), p99 = percentile(frames.slices, 0.99);
  const double r50 = percentile(frames.reference, 0.5), r99 = percentile(frames.reference, 0.99);
  std::printf("  {\"budget_us\": %.0f, \"frames\": %zu, \"passes\": %d, \"same_bits\": %s,\n",
              budget, frames.slices.size(), frames.passes, frames.same ? "true" : "false");
  std::printf("   \"p50_us\": %.0f, \"p90_us\": %.0f, \"p99_us\": %.0f, \"max_us\": %.0f,\n", p50,
              percentile(frames.slices, 0.9), p99, percentile(frames.slices, 1));
  std::printf("   \"p99_of_budget\": %.3f, \"reference_p99_of_p50\": %.3f}%s\n", p99 / budget,
              r50 > 0 ? r99 / r50 : 0, comma);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 5) {
    std::fprintf(stderr, "usage: %s MODEL INPUTS REFERENCE_MODEL REFERENCE_INPUTS [FRAMES]\n",
                 argv[0]);
    return 2;
  }
  const int frames = argc > 5 ? std::max(1, std::atoi(argv[5])) : 1000;
  const auto device = value_or_exit(vkformer::Device::create());
  const auto model = value_or_exit(vkformer::Model::load(device, argv[1]));
  const auto small = value_or_exit(vkformer::Model::load(device, argv[3]));
  // Slices have timestamps of their own; the profile is of the reference pass.
  check(vkformer::start_profile(device));
  Passes passes{device,
                value_or_exit(vkformer::Session::create(model)),
                value_or_exit(vkformer::Session::create(small)),
                value_or_exit(vkformer::read_tensor_file(argv[2])),
                value_or_exit(vkformer::read_tensor_file(argv[4])),
                {}};
  passes.whole = value_or_exit(passes.sliced.run(passes.inputs));
  // What slices cost is learned in the first frames; those are not counted.
  run_frames(passes, 2000, 100);
  std::printf("{\"device\": \"%s\", \"driver\": \"%s\", \"model\": \"%s\", \"rows\": [\n",
              device.info().name.c_str(), device.info().driver.c_str(), argv[1]);
  for (double budget : {2000.0, 4000.0, 8000.0}) {
    print_row(budget, run_frames(passes, budget, frames), budget < 8000 ? "," : "");
  }
  std::printf("]}\n");
  return 0;
}
