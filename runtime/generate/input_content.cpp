#include "generate/input_content.h"

#include "base/sha256.h"

namespace vkformer {

std::string input_content(const TensorMap& tensors, std::span<const int64_t> tokens) {
  Sha256 digest;
  // Each with its length in front, so that none can be a part of another.
  const auto add = [&digest](std::span<const std::byte> bytes) {
    const uint64_t size = bytes.size();
    digest.add(std::as_bytes(std::span(&size, 1)));
    digest.add(bytes);
  };
  for (const auto& [name, tensor] : tensors) {
    add(std::as_bytes(std::span(name)));
    add(std::as_bytes(std::span(&tensor.dtype, 1)));
    add(std::as_bytes(std::span(tensor.shape)));
    add(tensor.bytes);
  }
  add(std::as_bytes(tokens));
  const std::array<std::byte, 32> content = digest.digest();
  return {reinterpret_cast<const char*>(content.data()), content.size()};
}

}  // namespace vkformer
