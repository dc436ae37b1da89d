// SHA-256 (FIPS 180-4): what a packed model's files are checked with. None of the libraries that
// vkformer links has it, and an application should not need another one for it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace vkformer {

class Sha256 {
 public:
  // kPortable: without instructions that only some processors have; four times as slow.
  enum class Way : uint8_t { kFastest, kPortable };
  explicit Sha256(Way way = Way::kFastest) : way_(way) {}
  // Adds bytes to the message.
  void add(std::span<const std::byte> bytes);
  // The digest of all bytes; nothing may be added after it.
  std::array<std::byte, 32> digest();

 private:
  void mix(const std::byte* blocks, size_t count);  // of 64 bytes each

  Way way_;
  std::array<uint32_t, 8> state_ = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                    0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<std::byte, 64> rest_{};  // what does not fill a block yet
  size_t held_ = 0;                   // bytes of rest_
  uint64_t total_ = 0;                // bytes of the message
};

std::array<std::byte, 32> sha256(std::span<const std::byte> bytes);
// Two digits of each byte, in lower case.
std::string hexadecimal(std::span<const std::byte> bytes);

}  // namespace vkformer
