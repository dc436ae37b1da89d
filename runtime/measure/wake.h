// Brings a GPU to its clock before it is measured.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "measure/timed_plan.h"
#include "vulkan/device.h"

namespace vkformer {

// How long a device is kept busy, in milliseconds of wall clock.
struct WakeTimes {
  double least = 300;
  double most = 2000;
};

// Keeps a GPU busy until its clock has stopped to rise. A GPU without load falls to a fraction of
// its clock, and takes some tenths of a second to come back. Runs multiply-adds for `times.least`,
// and on until they get no faster, but not beyond `times.most`. Each dispatch and submit is as
// short as a watchdog allows. Nothing is done on a software device: the host's clock is its clock.
Status wake(const std::shared_ptr<VulkanDevice>& device, const WakeTimes& times = {});

// `repeats` runs on a device that is awake, after one that makes pipelines.
Result<std::vector<RunTime>> run_awake(const std::shared_ptr<VulkanDevice>& device,
                                       const TimedPlan& plan, int repeats);

// Whether the last runs were no faster than those before them, by the time that each took for the
// same work. Then the clock no longer rises.
bool is_steady(std::span<const double> times);

}  // namespace vkformer
