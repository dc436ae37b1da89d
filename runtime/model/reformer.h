// Reformer (Kitaev, Kaiser and Levskaya 2020): reversible layers whose attention is local or among
// tokens that random rotations hash alike.
//
// Beside the tokens a pass takes lsh_rotations.l (H, E, R, half the buckets) of every LSH layer l.
// Without them they are drawn as the library draws them: by hash_seed, the same in every layer; a
// model without hash_seed, whose library hashes differently every time, uses the layer's number as
// its seed. Outputs are those of every encoder and buckets.l (B, H, R, padded S), U32.
#pragma once

#include "model/model.h"

namespace vkformer {

Result<std::unique_ptr<ModelFamily>> load_reformer(const ModelFiles& files);

}  // namespace vkformer
