#include "measure/timed_plan.h"

#include <algorithm>
#include <chrono>

#include "base/check.h"
#include "base/fnv.h"

namespace vkformer {
namespace {

constexpr double kWarmUpMs = 30;
constexpr int kMostWarmUps = 50;
Status check_memory(const Plan& plan, uint64_t available) {
  uint64_t needed = plan.arena_bytes;
  for (const PlanBuffer& b : plan.buffers) {
    if (b.source == BufferSource::kExternal) needed += b.bytes;
  }
  if (needed <= available) return {};
  return Error{ErrorCode::kOutOfMemory, "[benchmark] These sizes need " + std::to_string(needed) +
                                            " bytes of device memory, but the largest heap has " +
                                            std::to_string(available) + "; choose smaller ones."};
}

}  // namespace

Result<TimedPlan> TimedPlan::create(std::shared_ptr<VulkanDevice> device, Plan plan,
                                    RecordingInputs::Profile profile) {
  VKF_CHECK(check_memory(plan, device->info().memory_bytes));
  TimedPlan self(std::move(device), std::move(plan));
  VKF_ASSIGN(self.graph_,
             RecordedGraph::from_plan(*self.memory_, self.plan_, {.profile = profile}));
  return self;
}

Status TimedPlan::upload(uint32_t buffer, std::span<const std::byte> bytes) {
  return device_->upload(this->buffer(buffer), 0, bytes);
}

Status TimedPlan::hash_into(uint32_t buffer, uint64_t bytes, uint64_t& state) const {
  std::vector<std::byte> content(bytes);
  VKF_CHECK(device_->download(this->buffer(buffer), 0, content));
  state = fnv1a(content.data(), content.size(), state);
  return {};
}

Result<std::string> TimedPlan::hash(uint32_t buffer, uint64_t bytes) const {
  uint64_t state = kFnvStart;
  VKF_CHECK(hash_into(buffer, bytes, state));
  return hex_text(state);
}

Result<std::string> TimedPlan::hash_outputs() const {
  uint64_t state = kFnvStart;
  for (uint32_t buffer : outputs()) {
    VKF_CHECK(hash_into(buffer, plan_.buffers[buffer].bytes / 4 * 4, state));
  }
  return hex_text(state);
}

std::vector<uint32_t> TimedPlan::outputs() const {
  std::vector<uint32_t> list;
  for (uint32_t i = 0; i < plan_.buffers.size(); ++i) {
    if (plan_.buffers[i].source != BufferSource::kExternal) continue;
    const bool written =
        std::any_of(plan_.dispatches.begin(), plan_.dispatches.end(), [i](const Dispatch& d) {
          return std::any_of(d.bindings.begin(), d.bindings.end(), [i](const BoundBuffer& b) {
            return b.buffer == i && b.access != Access::kRead;
          });
        });
    if (written) list.push_back(i);
  }
  return list;
}

Result<std::vector<float>> TimedPlan::read_floats(uint32_t buffer, uint64_t count) const {
  std::vector<float> values(count);
  VKF_CHECK(device_->download(this->buffer(buffer), 0, std::as_writable_bytes(std::span(values))));
  return values;
}

Result<RunTime> TimedPlan::run() const {
  const RecordingRange all[] = {graph_->all()};
  const auto begin = std::chrono::steady_clock::now();
  VKF_CHECK(memory_->submit(all, {}));
  VKF_CHECK(memory_->wait());
  const std::chrono::duration<double, std::milli> wall = std::chrono::steady_clock::now() - begin;
  VKF_ASSIGN(const std::vector<double> times, graph_->recording().dispatch_times());
  double device = 0;
  for (double nanoseconds : times) device += nanoseconds * 1e-6;
  // Some clocks are too coarse to see a short dispatch.
  return RunTime{wall.count(), device > 0 ? device : wall.count()};
}

Result<std::vector<RunTime>> TimedPlan::run_warm(int repeats) const {
  double spent = 0;
  for (int i = 0; i < kMostWarmUps && spent < kWarmUpMs; ++i) {
    VKF_ASSIGN(const RunTime time, run());
    spent += time.wall;
  }
  std::vector<RunTime> times;
  for (int i = 0; i < std::max(1, repeats); ++i) {
    VKF_ASSIGN(const RunTime time, run());
    times.push_back(time);
  }
  return times;
}

double median_time(std::span<const RunTime> times, double RunTime::*field) {
  std::vector<double> values;
  for (const RunTime& time : times) values.push_back(time.*field);
  std::sort(values.begin(), values.end());
  const size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

double least_time(std::span<const RunTime> times, double RunTime::*field) {
  double least = times.front().*field;
  for (const RunTime& time : times) least = std::min(least, time.*field);
  return least;
}

}  // namespace vkformer
