// Standard normal numbers by a seed, the ones that PyTorch's CPU generator gives in float32 after
// torch.manual_seed(seed). Models whose random numbers are part of what was trained (a Reformer's
// hash_seed) expect those and no others.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

namespace vkformer {

// Tensors of them, one after the other from one generator: the Mersenne Twister (Matsumoto and
// Nishimura 1998). The normals are Box and Muller's (1958), sixteen at a time.
class SeededNormals {
 public:
  // The generator takes the lower half of a seed.
  explicit SeededNormals(uint64_t seed) : engine_(static_cast<uint32_t>(seed)) {}

  // The next tensor's `count` numbers. Of tensors of fewer than 16 elements those after one of an
  // odd number differ from PyTorch's, which keeps the second of a pair.
  std::vector<float> next(size_t count);
  // The same of a tensor whose elements lie in memory in another order than its axes say (a
  // transposed one). Each number stands by itself, in the order of memory.
  std::vector<float> next_of_transposed(size_t count);

 private:
  std::mt19937 engine_;
};

// The first tensor's.
std::vector<float> seeded_normals(uint64_t seed, size_t count);

}  // namespace vkformer
