// Hair: a shell around the scalp, thick where hair grows, and below the skin elsewhere.
#pragma once

#include <cstdint>

#include "scene/mesh.h"

namespace sample {

enum class HairStyle : uint8_t { kShort, kQuiff, kBob, kCurls, kBun, kFringe };

// `detail` as for make_head_mesh.
void add_hair(Mesh& mesh, HairStyle style, float detail);

}  // namespace sample
