// Examples of devices.
#include <vkformer/device.h>

#include <cstdio>

#include "examples.h"

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
  return expect(device->memory_in_use() <= device->memory_allocated(), "blocks for all memory");
}
