// Meshes as grids: every part of a head is rows of vertices, so that one function makes triangles
// and normals of them all.
#pragma once

#include <cstdint>
#include <functional>
#include <glm/glm.hpp>
#include <vector>

namespace sample {

// What the fragment shader paints; shaders/scene.glsl has the same numbers.
enum class Material : uint8_t { kSkin, kEye, kLid, kBrow, kBust, kHair, kTeeth, kTongue, kCavity };

// As the vertex shader reads it.
struct Vertex {
  glm::vec3 position;
  glm::vec3 normal;
  glm::vec4 tint;  // material; share of the sky that reaches the vertex; u and v of the material
};

struct Mesh {
  std::vector<Vertex> vertices;
  std::vector<uint32_t> indices;
};

// A count of rows or columns at some detail, at least 4.
int thinned(int count, float detail);

// How a grid of vertices hangs together.
struct Grid {
  int rows = 0;                                                             // at least 2
  int columns = 0;                                                          // at least 2
  enum class Columns : uint8_t { kOpen, kClosed } closed = Columns::kOpen;  // a tube's are closed
  enum class Facing : uint8_t { kOutwards, kInwards } facing = Facing::kOutwards;

  int next_column(int column) const {
    return closed == Columns::kClosed ? (column + 1) % columns : column + 1;
  }
  int quads_across() const { return closed == Columns::kClosed ? columns : columns - 1; }
};

// Unit normals of a grid's positions, row by row, on one side of it: the same for every shape of
// the grid.
std::vector<glm::vec3> grid_normals(const Grid& grid, const std::vector<glm::vec3>& positions);

// Appends a grid. `make` gives position and tint. Normals come from the grid. Their side is the one
// that points away from the middle of the vertices, or to it. Returns the index of the first
// vertex.
uint32_t add_grid(Mesh& mesh, const Grid& grid,
                  const std::function<Vertex(int row, int column)>& make);

// Whether the normals of grid_normals() must be turned round for the grid's facing.
bool turned_round(const Grid& grid, const std::vector<glm::vec3>& positions,
                  const std::vector<glm::vec3>& normals);

}  // namespace sample
