// Takes the way to a storage buffer out of the access chains that go on inside it, for compilers
// that look a descriptor up anew for every load.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace vkformer {

// The same module, in which every block of code has one chain for each buffer that it reads or
// writes, up to the buffer's member (and, of an array of buffers, one for each index), and the
// other chains start there. spirv-opt, which a driver may run, would put them together again
// (combine-access-chains), but leaves those alone whose pointer type has an ArrayStride.
// Precondition: `words` is a module that reflect_spirv takes.
std::vector<uint32_t> share_buffer_chains(std::span<const uint32_t> words);

}  // namespace vkformer
