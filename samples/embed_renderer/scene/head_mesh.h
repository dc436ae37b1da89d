// The mesh that all heads share, with its mouth shapes, and a mesh of hair for each style.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <glm/glm.hpp>
#include <vector>

#include "scene/mesh.h"

namespace sample {

// Indices of one part of the mesh's index list.
struct IndexRange {
  uint32_t first = 0;
  uint32_t count = 0;
};

// Parts that share a pipeline; shaders/head.frag has the same numbers.
enum class PartGroup : uint8_t { kSkin, kEyes, kBust, kMouth, kHair };
inline constexpr size_t kPartGroups = 5;

struct HeadMesh {
  Mesh mesh;
  std::array<IndexRange, kPartGroups> groups;  // by PartGroup; that of hair is empty
  std::vector<IndexRange> hair;                // one per style
  // The first vertices, this number of them, move with the mouth; for each of them, by shape, what
  // is added to position and normal.
  uint32_t moving = 0;
  std::vector<glm::vec4> deltas;  // (moving, kMouthShapes, 2)
};

inline constexpr int kHairStyles = 6;

// Builds everything; takes about a tenth of a second. `detail` from 0.3 to 1 thins out the grids:
// triangles smaller than a few pixels cost time and show nothing.
HeadMesh make_head_mesh(float detail);

}  // namespace sample
