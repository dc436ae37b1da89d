// Shares the part of access chains that leads to a storage buffer, for compilers that look a
// descriptor up again for every load.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace vkformer {

// The same module, in which every block of code has one chain for each buffer that it reads or
// writes, up to the buffer's member. An array of buffers has one for each index. The other chains
// start there. spirv-opt, which a driver may run, would put them together again
// (combine-access-chains). It does not touch those whose pointer type has an ArrayStride.
// Precondition: `words` is a module that reflect_spirv takes.
std::vector<uint32_t> share_buffer_chains(std::span<const uint32_t> words);

}  // namespace vkformer
