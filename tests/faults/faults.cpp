// Every n-th call of Vulkan fails, with every error that the specification lists for it. Meanwhile
// a model is loaded, run, generated with, run in slices and recorded. Each time there is an error
// value that fits, and no object is left over. The stage succeeds when it is tried again; after a
// lost device everything is made again. The bits are always those of an undisturbed run.
//
//   vkformer_faults GOLDEN_CASE [--every N] [--only vkCall] [--fences] [--staged]
//
// --every N tries each N-th fault only. The device is that of the other tests:
// VKFORMER_TEST_DEVICE, _TIER, _LIMITS.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "faults/world.h"
#include "support/fault_entry_points.h"
#include "support/test_options.h"

using namespace vkformer;
using namespace vkformer::testing;

namespace {

struct Fault {
  Call call;
  uint64_t nth;
  VkResult code;
};

struct Tally {
  uint64_t injected = 0;  // faults that a call gave
  uint64_t errors = 0;    // of them, those that a stage reported; it went on despite the others
  uint64_t lost = 0;      // devices
  uint64_t failures = 0;
};

bool makes_pipelines(Call call) {
  return call == Call::kCreateShaderModule || call == Call::kCreateDescriptorSetLayout ||
         call == Call::kCreatePipelineLayout || call == Call::kCreateComputePipelines;
}

// Whether an error of vkformer's is what that VkResult should become.
bool fits(VkResult code, const Error& error) {
  if (error.message.find('[') == std::string::npos || error.message.size() < 20) return false;
  switch (code) {
    case VK_ERROR_DEVICE_LOST:
      return error.code == ErrorCode::kDeviceLost;
    case VK_ERROR_OUT_OF_HOST_MEMORY:
    case VK_ERROR_OUT_OF_DEVICE_MEMORY:
    case VK_ERROR_OUT_OF_POOL_MEMORY:
    case VK_ERROR_TOO_MANY_OBJECTS:
      return error.code == ErrorCode::kOutOfMemory;
    case VK_ERROR_INCOMPATIBLE_DRIVER:
      return error.code == ErrorCode::kNotFound;
    default:
      return error.code == ErrorCode::kDriver;
  }
}

// Objects but for blocks of memory: after an allocation that failed they are smaller and more.
std::string without_blocks(std::string live) {
  const size_t at = live.find("AllocateMemory ");
  if (at == live.npos) return live;
  return live.erase(at, live.find(' ', live.find(' ', at) + 1) + 1 - at);
}

// The same without fences, if these are no more than the timeline keeps. After a wait that failed,
// a submit takes another fence. The first one's work may still go on.
std::string without_fences(std::string live) {
  constexpr int kMostFences = 16;
  constexpr std::string_view kName = "CreateFence ";
  const size_t at = live.find(kName);
  if (at == live.npos || std::atoi(live.c_str() + at + kName.size()) > kMostFences) return live;
  return live.erase(at, live.find(' ', at + kName.size()) + 1 - at);
}

class Sweep {
 public:
  Sweep(const Settings& settings, uint64_t every) : world_(settings), every_(every) {}

  // The undisturbed run; false where there is no usable device.
  bool learn();
  void faults_of(Call call);
  // Ends everything, which must leave nothing.
  void finish();
  const Tally& tally() const { return tally_; }
  uint64_t calls_of(Call call) const { return cold_[static_cast<size_t>(call)]; }

 private:
  enum class Begin : uint8_t { kCold, kWarm };
  // Carries out the stages under a fault.
  void survive(const Fault& fault, Begin begin);
  void recover(const Fault& fault, const Error& error, int& stage);
  void fail(const Fault& fault, const std::string& what);

  World world_;
  uint64_t every_;
  uint64_t number_ = 0;
  Tally tally_;
  Outputs wanted_, got_;
  FaultTable::Counts loading_{}, cold_{}, warm_{};  // calls of the stages
  std::string kept_;                                // objects alive between two sessions
};

bool Sweep::learn() {
  FaultTable& table = FaultTable::get();
  table.clear();
  for (int stage = 0; stage < World::kStages; ++stage) {
    if (stage == World::kRun) loading_ = table.counts();
    const Status done = world_.carry_out(stage, wanted_);
    if (done) continue;
    std::fprintf(stderr, "faults: %s: %s\n", World::name_of(stage), done.error().message.c_str());
    return false;
  }
  world_.end_session();
  cold_ = table.counts();
  // A second session finds pipelines, blocks and slices as all later ones do.
  for (int round = 0; round < 2; ++round) {
    table.clear();
    for (int stage = World::kRun; stage < World::kStages; ++stage) {
      if (!world_.carry_out(stage, got_)) return false;
    }
    world_.end_session();
    warm_ = table.counts();
  }
  kept_ = without_fences(without_blocks(table.live()));
  if (!(got_ == wanted_)) std::fprintf(stderr, "faults: two undisturbed runs differ\n");
  return got_ == wanted_;
}

void Sweep::fail(const Fault& fault, const std::string& what) {
  ++tally_.failures;
  std::printf("FAILED %s call %llu gives %d: %s\n", kCallNames[static_cast<size_t>(fault.call)],
              static_cast<unsigned long long>(fault.nth), static_cast<int>(fault.code),
              what.c_str());
  std::fflush(stdout);
}

// After an error: says at which stage to go on.
void Sweep::recover(const Fault& fault, const Error& error, int& stage) {
  ++tally_.errors;
  if (!fits(fault.code, error)) fail(fault, "became " + error.message);
  if (error.code != ErrorCode::kDeviceLost) return;
  ++tally_.lost;
  world_.end();
  const std::string left = FaultTable::get().live();
  if (!left.empty()) fail(fault, "a lost device leaves " + left);
  FaultTable::get().clear();
  stage = World::kDevice;
}

void Sweep::survive(const Fault& fault, Begin begin) {
  FaultTable& table = FaultTable::get();
  if (begin == Begin::kCold) {
    world_.end();
    const std::string left = table.live();
    if (!left.empty()) fail(fault, "before it there is still " + left);
  }
  got_ = {};
  table.fail(fault.call, fault.nth, fault.code);
  int errors = 0;
  uint64_t injected = 0;
  for (int stage = begin == Begin::kCold ? World::kDevice : World::kRun; stage < World::kStages;) {
    const Status done = world_.carry_out(stage, got_);
    injected = std::max(injected, table.injected());
    if (world_.passed_over && !fits(fault.code, *world_.passed_over)) {
      fail(fault, "became " + world_.passed_over->message);
    }
    if (done) {
      ++stage;
      continue;
    }
    if (++errors > 1) {
      fail(fault,
           std::string("a second error at ") + World::name_of(stage) + ": " + done.error().message);
      world_.end();
      return;
    }
    recover(fault, done.error(), stage);
  }
  tally_.injected += injected;
  if (!(got_ == wanted_)) fail(fault, "other bits");
  world_.end_session();
  const std::string left = without_fences(without_blocks(table.live()));
  if (left != kept_) fail(fault, "between sessions there is " + left + "instead of " + kept_);
}

void Sweep::faults_of(Call call) {
  const auto at = static_cast<size_t>(call);
  // Pipelines are made once a device; what else happens in a session happens in a warm one too.
  const uint64_t cold = makes_pipelines(call) ? cold_[at] : loading_[at];
  const uint64_t warm = makes_pipelines(call) ? 0 : warm_[at];
  for (const VkResult code : errors_of(call)) {
    for (uint64_t n = 1; n <= cold + warm; ++n) {
      if (number_++ % every_ != 0) continue;
      if (n <= cold)
        survive({call, n, code}, Begin::kCold);
      else
        survive({call, n - cold, code}, Begin::kWarm);
    }
  }
}

void Sweep::finish() {
  FaultTable::get().clear();
  world_.end();
  const std::string left = FaultTable::get().live();
  if (!left.empty()) fail({Call::kCreateInstance, 0, VK_SUCCESS}, "in the end there is " + left);
}

struct Arguments {
  Settings settings;
  uint64_t every = 1;
  std::string only;
};

bool read_arguments(int count, char** list, Arguments& read) {
  if (count < 2) return false;
  Settings& settings = read.settings;
  settings.model = std::string(list[1]) + "/model";
  auto inputs = read_tensor_file(std::string(list[1]) + "/inputs.safetensors");
  if (!inputs) return false;
  std::erase_if(*inputs, [](const auto& item) { return item.first.starts_with("generate."); });
  settings.inputs = settings.prompts = std::move(inputs).value();
  settings.prompts.erase("decoder_input_ids");
  settings.prompts.erase("decoder_attention_mask");
  settings.device = test_device_options();
  // Which call is the n-th must not depend on threads.
  settings.device.compile_threads = 0;
  settings.tweaks.get_instance_proc_addr = FaultTable::get_instance_proc_addr;
  for (int i = 2; i < count; ++i) {
    const std::string word = list[i];
    if (word == "--fences") {
      settings.tweaks.timeline = DeviceTweaks::Timeline::kFences;
    } else if (word == "--staged") {
      settings.tweaks.device_memory = DeviceTweaks::DeviceMemory::kStaged;
    } else if (word == "--every" && i + 1 < count) {
      read.every = std::max(1ull, std::strtoull(list[++i], nullptr, 10));
    } else if (word == "--only" && i + 1 < count) {
      read.only = list[++i];
    } else {
      return false;
    }
  }
  return true;
}

}  // namespace

int main(int count, char** list) {
  Arguments arguments;
  if (!read_arguments(count, list, arguments)) {
    std::fprintf(stderr,
                 "usage: vkformer_faults GOLDEN_CASE [--every N] [--only vkCall] [--fences] "
                 "[--staged]\n");
    return 2;
  }
  Sweep sweep(arguments.settings, arguments.every);
  if (!sweep.learn()) return 1;
  for (size_t i = 0; i < kCalls; ++i) {
    if (!arguments.only.empty() && arguments.only != kCallNames[i]) continue;
    const Tally before = sweep.tally();
    sweep.faults_of(static_cast<Call>(i));
    const Tally& after = sweep.tally();
    if (sweep.calls_of(static_cast<Call>(i)) == 0) continue;
    std::printf("%-38s %5llu calls %6llu faults %6llu errors\n", kCallNames[i],
                static_cast<unsigned long long>(sweep.calls_of(static_cast<Call>(i))),
                static_cast<unsigned long long>(after.injected - before.injected),
                static_cast<unsigned long long>(after.errors - before.errors));
    std::fflush(stdout);
  }
  sweep.finish();
  const Tally& tally = sweep.tally();
  std::printf(
      "faults: %llu injected, %llu reported, %llu devices lost and made anew, %llu failed\n",
      static_cast<unsigned long long>(tally.injected),
      static_cast<unsigned long long>(tally.errors), static_cast<unsigned long long>(tally.lost),
      static_cast<unsigned long long>(tally.failures));
  return tally.failures == 0 && tally.injected > 0 ? 0 : 1;
}
