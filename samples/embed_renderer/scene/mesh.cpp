#include "scene/mesh.h"

#include <algorithm>
#include <cmath>

namespace sample {

namespace {

size_t place(const Grid& grid, int row, int column) {
  return static_cast<size_t>(row) * static_cast<size_t>(grid.columns) + static_cast<size_t>(column);
}

}  // namespace

int thinned(int count, float detail) {
  return std::max(4, static_cast<int>(std::lround(static_cast<float>(count) * detail)));
}

std::vector<glm::vec3> grid_normals(const Grid& grid, const std::vector<glm::vec3>& positions) {
  std::vector<glm::vec3> normals(positions.size(), glm::vec3(0.0F));
  // Sums of the triangles' normals, which are as long as the triangles are large.
  const auto add = [&](size_t a, size_t b, size_t c) {
    const glm::vec3 n = glm::cross(positions[b] - positions[a], positions[c] - positions[a]);
    for (const size_t corner : {a, b, c}) normals[corner] += n;
  };
  for (int row = 0; row + 1 < grid.rows; ++row) {
    for (int column = 0; column < grid.quads_across(); ++column) {
      const int next = grid.next_column(column);
      const size_t a = place(grid, row, column), b = place(grid, row, next);
      const size_t c = place(grid, row + 1, column), d = place(grid, row + 1, next);
      add(a, b, d);
      add(a, d, c);
    }
  }
  for (glm::vec3& normal : normals) {
    const float length = glm::length(normal);
    normal = length > 1e-12F ? normal / length : glm::vec3(0.0F, 0.0F, 1.0F);
  }
  return normals;
}

bool turned_round(const Grid& grid, const std::vector<glm::vec3>& positions,
                  const std::vector<glm::vec3>& normals) {
  glm::vec3 middle(0.0F);
  for (const glm::vec3& position : positions) middle += position;
  middle /= static_cast<float>(positions.size());
  float outwards = 0.0F;
  for (size_t i = 0; i < positions.size(); ++i) {
    outwards += glm::dot(normals[i], positions[i] - middle);
  }
  return (outwards < 0.0F) == (grid.facing == Grid::Facing::kOutwards);
}

uint32_t add_grid(Mesh& mesh, const Grid& grid,
                  const std::function<Vertex(int row, int column)>& make) {
  const auto first = static_cast<uint32_t>(mesh.vertices.size());
  std::vector<glm::vec3> positions;
  for (int row = 0; row < grid.rows; ++row) {
    for (int column = 0; column < grid.columns; ++column) {
      mesh.vertices.push_back(make(row, column));
      positions.push_back(mesh.vertices.back().position);
    }
  }
  const std::vector<glm::vec3> normals = grid_normals(grid, positions);
  const bool turn = turned_round(grid, positions, normals);
  for (size_t i = 0; i < normals.size(); ++i) {
    mesh.vertices[first + i].normal = turn ? -normals[i] : normals[i];
  }
  for (int row = 0; row + 1 < grid.rows; ++row) {
    for (int column = 0; column < grid.quads_across(); ++column) {
      const int next = grid.next_column(column);
      const auto at = [&](int r, int c) {
        return first + static_cast<uint32_t>(place(grid, r, c));
      };
      uint32_t corners[6] = {at(row, column), at(row, next),     at(row + 1, next),
                             at(row, column), at(row + 1, next), at(row + 1, column)};
      if (turn) {
        std::swap(corners[1], corners[2]);
        std::swap(corners[4], corners[5]);
      }
      mesh.indices.insert(mesh.indices.end(), corners, corners + 6);
    }
  }
  return first;
}

}  // namespace sample
