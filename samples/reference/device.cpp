// Examples of devices.
#include <vkformer/benchmark.h>
#include <vkformer/device.h>
#include <vkformer/operators.h>

#include <cstdio>

#include "examples.h"

namespace {

vkformer::Status show_profile(const vkformer::Device& device) {
  vkformer::OperatorCall call;
  call.name = "softmax";
  call.inputs = {{"X", vkformer::Tensor::from_floats({1, 2}, {1, 2})}};
  //! [start_profile take_profile stop_profile]
  // Prints what each dispatch takes, here of one operator.
  const auto started = vkformer::start_profile(device);
  if (!started) return started.error();
  const auto ran = vkformer::run_operator(device, call);
  const auto profile = vkformer::take_profile(device);
  const auto stopped = vkformer::stop_profile(device);
  if (!ran) return ran.error();
  if (!profile) return profile.error();
  if (!stopped) return stopped.error();
  for (const vkformer::ProfiledDispatch& dispatch : profile->dispatches) {
    std::printf("%s: %.1f us\n", dispatch.kernel.c_str(), dispatch.microseconds);
  }
  //! [end]
  return {};
}

vkformer::Status show_statistics() {
  //! [kernel_statistics]
  // Prints what the driver's compiler says of each kernel, where it says anything.
  vkformer::DeviceOptions options;
  options.statistics = true;
  const auto device = vkformer::Device::create(options);
  if (!device) return device.error();
  const auto kernels = vkformer::kernel_statistics(*device);
  if (!kernels && kernels.error().code != vkformer::ErrorCode::kUnsupported) return kernels.error();
  if (!kernels) return {};
  for (const vkformer::KernelStatistics& kernel : *kernels) {
    std::printf("%s: %.1f ms to compile\n", kernel.kernel.c_str(), kernel.compile_ms);
  }
  //! [end]
  return {};
}

}  // namespace

vkformer::Status show_device(const Setting&) {
  //! [list_devices]
  // Lists the Vulkan devices of this machine.
  const auto devices = vkformer::list_devices();
  if (!devices) return devices.error();
  for (const vkformer::DeviceInfo& found : *devices) {
    std::printf("%d: %s, driver %s\n", found.index, found.name.c_str(), found.driver.c_str());
  }
  //! [end]

  //! [Device::create Device::info Device::tier]
  // Opens the best device, with messages on stderr, and says which one it is.
  vkformer::DeviceOptions options;
  options.log = [](vkformer::LogLevel, const std::string& message) {
    std::fprintf(stderr, "%s\n", message.c_str());
  };
  const auto device = vkformer::Device::create(options);
  if (!device) return device.error();
  std::printf("%s, tier %s\n", device->info().name.c_str(), vkformer::choice_name(device->tier()));
  //! [end]

  //! [Device::memory_in_use Device::memory_allocated]
  // How much device memory vkformer holds, in bytes.
  std::printf("%llu of %llu bytes allocated are in use\n",
              static_cast<unsigned long long>(device->memory_in_use()),
              static_cast<unsigned long long>(device->memory_allocated()));
  //! [end]
  const auto held =
      expect(device->memory_in_use() <= device->memory_allocated(), "blocks for all memory");
  if (!held) return held;
  const auto profiled = show_profile(*device);
  if (!profiled) return profiled;
  return show_statistics();
}
