#include "software/compiler.h"

#include <cstdlib>

#include "software/buffer_chains.h"
#include "software/specialize.h"

namespace vkformer {

void describe_software_compiler(DeviceCaps& caps) {
  if (caps.device_class != DeviceClass::kSoftware) return;
  caps.compiler.wants_literals = caps.driver.find("SwiftShader") != std::string::npos;
  const size_t at = caps.driver.find("Mesa ");
  if (at == std::string::npos) return;
  const int version = std::atoi(caps.driver.c_str() + at + 5);
  // Mesa's lavapipe from 23 on keeps loads from uniform addresses scalar. At 25.0 each is still a
  // separate loop, at 26.2 it is not.
  caps.compiler.fast_uniform_loads = version >= 23;
  caps.compiler.streams_uniform_loads = version >= 26;
}

Result<std::vector<uint32_t>> literal_module(std::span<const uint32_t> words,
                                             std::span<const uint32_t> values) {
  VKF_ASSIGN(const std::vector<uint32_t> specialized, specialize_spirv(words, values));
  return share_buffer_chains(specialized);
}

}  // namespace vkformer
