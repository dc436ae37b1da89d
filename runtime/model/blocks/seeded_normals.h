// Standard normal numbers by a seed, the ones that PyTorch's CPU generator draws in float32 after
// torch.manual_seed(seed): models whose random numbers are part of what was trained (a Reformer's
// hash_seed) expect those and no others.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace vkformer {

// `count` numbers. The generator is the Mersenne Twister (Matsumoto and Nishimura 1998), the
// normals Box and Muller's (1958), sixteen at a time.
std::vector<float> seeded_normals(uint64_t seed, size_t count);

}  // namespace vkformer
