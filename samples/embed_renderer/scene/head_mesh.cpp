#include "scene/head_mesh.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <glm/gtc/constants.hpp>

#include "scene/hair.h"
#include "scene/head_shape.h"
#include "scene/mouth.h"

namespace sample {

namespace {

constexpr int kCavityRings = 5;  // inside the slit

// Sizes of the grid around the mouth.
struct FaceGrid {
  int around = 0;                     // vertices of a ring
  int lip_rings = 0, face_rings = 0;  // outside the slit
};
FaceGrid face_grid(float detail) {
  return {2 * thinned(36, detail), thinned(8, 0.4F + 0.6F * detail), thinned(37, detail)};
}

float part(int index, int count) {
  return static_cast<float>(index) / static_cast<float>(count - 1);
}

glm::vec4 tint(Material material, float sky, float u, float v) {
  return {static_cast<float>(material), sky, u, v};
}

// Something that moves with the mouth: a grid at rest, and its offsets by shape.
struct Moving {
  Grid grid;
  std::vector<Vertex> rest;
  std::array<std::vector<glm::vec3>, kMouthShapes> offsets;

  void add(const Vertex& vertex, const std::array<glm::vec3, kMouthShapes>& moves) {
    rest.push_back(vertex);
    for (size_t shape = 0; shape < moves.size(); ++shape) offsets[shape].push_back(moves[shape]);
  }
};

// Appends it, and what each shape adds to positions and normals.
void append(HeadMesh& head, const Moving& moving) {
  add_grid(head.mesh, moving.grid, [&](int row, int column) {
    return moving.rest[static_cast<size_t>(row * moving.grid.columns + column)];
  });
  std::vector<glm::vec3> positions;
  for (const Vertex& vertex : moving.rest) positions.push_back(vertex.position);
  const std::vector<glm::vec3> normals = grid_normals(moving.grid, positions);
  const float sign = turned_round(moving.grid, positions, normals) ? -1.0F : 1.0F;
  std::array<std::vector<glm::vec3>, kMouthShapes> shaped_normals;
  for (size_t shape = 0; shape < kMouthShapes; ++shape) {
    std::vector<glm::vec3> shaped = positions;
    for (size_t i = 0; i < shaped.size(); ++i) shaped[i] += moving.offsets[shape][i];
    shaped_normals[shape] = grid_normals(moving.grid, shaped);
  }
  for (size_t i = 0; i < positions.size(); ++i) {
    for (size_t shape = 0; shape < kMouthShapes; ++shape) {
      head.deltas.emplace_back(moving.offsets[shape][i], 0.0F);
      head.deltas.emplace_back(sign * (shaped_normals[shape][i] - normals[i]), 0.0F);
    }
  }
}

std::array<glm::vec3, kMouthShapes> face_moves(const FacePlace& place, const glm::vec3& rest) {
  std::array<glm::vec3, kMouthShapes> moves;
  for (int shape = 0; shape < kMouthShapes; ++shape) {
    moves[static_cast<size_t>(shape)] = shape_offset(static_cast<MouthShape>(shape), place, rest);
  }
  return moves;
}

FacePlace face_place(const FaceGrid& grid, int ring, int column) {
  const float theta =
      2.0F * glm::pi<float>() * static_cast<float>(column) / static_cast<float>(grid.around);
  const float edge = 1.25F * lip_edge(theta);
  const float mu = ring < grid.lip_rings
                       ? edge * part(ring, grid.lip_rings)
                       : edge + (last_ring() - edge) *
                                    static_cast<float>(ring - grid.lip_rings + 1) /
                                    static_cast<float>(grid.face_rings);
  return {mu, theta};
}

// Ring by ring from the slit to the back of the head. No ring beyond the cheeks moves, but it is
// simpler to say so by zeros.
void add_face(HeadMesh& head, const FaceGrid& grid) {
  Moving face{{grid.lip_rings + grid.face_rings, grid.around, Grid::Columns::kClosed}, {}, {}};
  for (int ring = 0; ring < face.grid.rows; ++ring) {
    for (int column = 0; column < grid.around; ++column) {
      const FacePlace place = face_place(grid, ring, column);
      const glm::vec3 rest = rest_position(place);
      const float red = place.mu / lip_edge(place.theta);
      const float lip = std::clamp((1.06F - red) / 0.12F, 0.0F, 1.0F);
      const glm::vec3 out = glm::normalize(rest - kHeadMiddle);
      const float sky = sky_share(&head_distance, rest, out);
      face.add({rest, {}, tint(Material::kSkin, sky, lip, 0.0F)}, face_moves(place, rest));
    }
  }
  append(head, face);
}

// What one sees between the lips: a pocket whose lower wall goes down with the jaw.
void add_cavity(HeadMesh& head, const FaceGrid& grid) {
  Moving cavity{
      {kCavityRings, grid.around, Grid::Columns::kClosed, Grid::Facing::kInwards}, {}, {}};
  for (int ring = 0; ring < kCavityRings; ++ring) {
    const float depth = part(ring, kCavityRings);
    for (int column = 0; column < grid.around; ++column) {
      const FacePlace slit = face_place(grid, 0, column);
      const glm::vec3 edge = rest_position(slit);
      const float wider = 0.10F * std::sin(slit.theta) * std::min(2.0F * depth, 1.0F);
      const glm::vec3 rest(edge.x * (1.0F - 0.3F * depth), edge.y + wider, edge.z - 0.5F * depth);
      cavity.add({rest, {}, tint(Material::kCavity, 0.6F, 0.0F, std::sqrt(depth))},
                 face_moves(slit, edge));
    }
  }
  append(head, cavity);
}

// A row of teeth: a band that follows the lips from inside. The lower one goes with the jaw.
void add_teeth(HeadMesh& head, bool upper) {
  Moving teeth{{4, 17}, {}, {}};
  const glm::vec3 middle = rest_position({0.0F, 0.5F * glm::pi<float>()});
  for (int row = 0; row < 4; ++row) {
    for (int column = 0; column < 17; ++column) {
      const float x = 2.0F * part(column, 17) - 1.0F, y = part(row, 4);
      const float top = upper ? 0.065F : 0.0F;
      const float bottom = upper ? -0.050F + 0.02F * x * x : -0.07F;
      // Roundness, so that the light tells it from paper.
      const float bulge = 0.012F * std::sin(glm::pi<float>() * y);
      const glm::vec3 rest(0.205F * x, middle.y + top + (bottom - top) * y,
                           middle.z - 0.062F - 0.075F * x * x + bulge);
      std::array<glm::vec3, kMouthShapes> moves{};
      if (!upper) moves[static_cast<size_t>(MouthShape::kJaw)] = jaw_offset(rest);
      moves[static_cast<size_t>(MouthShape::kRound)] = {-0.25F * rest.x, 0.0F, 0.0F};
      const float sky = upper ? 0.55F + 0.45F * y : 0.85F - 0.4F * y;
      teeth.add({rest, {}, tint(Material::kTeeth, sky, 0.0F, 0.0F)}, moves);
    }
  }
  // A band has no inside: its light side is the front.
  teeth.grid.facing = Grid::Facing::kOutwards;
  append(head, teeth);
}

void add_tongue(HeadMesh& head) {
  Moving tongue{{8, 14, Grid::Columns::kClosed}, {}, {}};
  const glm::vec3 middle = rest_position({0.0F, 0.5F * glm::pi<float>()});
  for (int row = 0; row < 8; ++row) {
    for (int column = 0; column < 14; ++column) {
      const float a = glm::pi<float>() * part(row, 8),
                  b = 2.0F * glm::pi<float>() * static_cast<float>(column) / 14.0F;
      const glm::vec3 ball(std::sin(a) * std::cos(b), std::sin(a) * std::sin(b), std::cos(a));
      const glm::vec3 rest = glm::vec3(0.0F, middle.y - 0.085F, middle.z - 0.24F) +
                             ball * glm::vec3(0.145F, 0.05F, 0.17F);
      std::array<glm::vec3, kMouthShapes> moves{};
      moves[static_cast<size_t>(MouthShape::kJaw)] = 0.9F * jaw_offset(rest);
      const float tip = 0.5F + 0.5F * ball.z;
      moves[static_cast<size_t>(MouthShape::kTongue)] = {0.0F, 0.075F * tip, 0.07F * tip};
      tongue.add({rest, {}, tint(Material::kTongue, 0.7F, 0.0F, 0.0F)}, moves);
    }
  }
  append(head, tongue);
}

void add_eyes(Mesh& mesh, float detail) {
  const int rows = thinned(10, detail), columns = thinned(20, detail);
  for (const float side : {1.0F, -1.0F}) {
    add_grid(mesh, {rows, columns, Grid::Columns::kClosed}, [&](int row, int column) {
      // Its front half: nobody sees the other.
      const float a = 0.6F * glm::pi<float>() * part(row, rows);
      const float b =
          2.0F * glm::pi<float>() * static_cast<float>(column) / static_cast<float>(columns);
      // A unit sphere with its pole to the front; the vertex shader puts it in its place.
      const glm::vec3 ball(std::sin(a) * std::cos(b), std::sin(a) * std::sin(b), std::cos(a));
      return Vertex{ball, {}, tint(Material::kEye, 1.0F, side, 0.0F)};
    });
  }
}

void add_lids(Mesh& mesh, float detail) {
  const int rows = thinned(6, detail), columns = thinned(14, detail);
  for (const float side : {1.0F, -1.0F}) {
    for (const bool upper : {true, false}) {
      // Placed by the vertex shader from u and v, but for the triangles' winding: a real shell.
      const auto first = add_grid(mesh, {rows, columns}, [&](int row, int column) {
        const float a = glm::pi<float>() * part(column, columns);
        const float b = glm::pi<float>() *
                        (upper ? -0.25F + 0.7F * part(row, rows) : 1.2F - 0.4F * part(row, rows));
        const glm::vec3 shell(std::cos(a), std::sin(a) * std::cos(b), std::sin(a) * std::sin(b));
        return Vertex{
            kEye + shell, {}, tint(Material::kLid, 1.0F, part(column, columns), part(row, rows))};
      });
      for (size_t i = first; i < mesh.vertices.size(); ++i) {
        mesh.vertices[i].position = {-side, upper ? 1.0F : 0.0F, 0.0F};
      }
    }
  }
}

void add_brows(Mesh& mesh) {
  for (const float side : {1.0F, -1.0F}) {
    add_grid(mesh, {9, 8, Grid::Columns::kClosed}, [&](int row, int column) {
      const float t = part(row, 9), b = 2.0F * glm::pi<float>() * static_cast<float>(column) / 8.0F;
      const glm::vec3 target(side * (0.12F + 0.40F * t),
                             0.365F + 0.095F * std::sin(glm::pi<float>() * (0.22F + 0.68F * t)),
                             0.75F - 0.22F * t * t);
      const glm::vec3 ray = glm::normalize(target - kHeadMiddle);
      const glm::vec3 at = surface_point(&head_distance, kHeadMiddle, ray);
      const float thick =
          0.036F * std::sqrt(std::max(std::sin(glm::pi<float>() * (0.08F + 0.90F * t)), 0.0F));
      const glm::vec3 round(0.0F, std::cos(b) * thick, std::sin(b) * thick);
      return Vertex{at + 0.006F * ray + round, {}, tint(Material::kBrow, 0.9F, t, 0.0F)};
    });
  }
}

void add_ears(Mesh& mesh, float detail) {
  const int rows = thinned(12, detail), columns = thinned(16, detail);
  for (const float side : {1.0F, -1.0F}) {
    add_grid(mesh, {rows, columns, Grid::Columns::kClosed}, [&](int row, int column) {
      const float a = glm::pi<float>() * part(row, rows);
      const float b =
          2.0F * glm::pi<float>() * static_cast<float>(column) / static_cast<float>(columns);
      const glm::vec3 ball(std::cos(a), std::sin(a) * std::cos(b), std::sin(a) * std::sin(b));
      // A shell with a hollow on its outer side, broader above than below.
      const float rim = std::sin(a), hollow = ball.x > 0.0F ? 0.5F * (1.0F - rim) : 0.0F;
      const float broad = 1.0F + 0.25F * ball.y;
      const glm::vec3 at(0.765F + 0.085F * (ball.x - 1.6F * hollow) + 0.05F * rim,
                         0.0F + 0.215F * ball.y, -0.08F + 0.135F * broad * ball.z - 0.05F * rim);
      return Vertex{
          {side * at.x, at.y, at.z}, {}, tint(Material::kSkin, 1.0F - 0.8F * hollow, 0.0F, 0.0F)};
    });
  }
}

// Half axes of the bust's cross-sections, from the neck inside the head down to the floor.
struct Section {
  float y, x, z;
};
constexpr std::array<Section, 12> kSections = {{{-0.45F, 0.30F, 0.30F},
                                                {-0.80F, 0.325F, 0.32F},
                                                {-1.02F, 0.345F, 0.34F},
                                                {-1.13F, 0.40F, 0.385F},
                                                {-1.21F, 0.45F, 0.42F},
                                                {-1.26F, 0.56F, 0.46F},
                                                {-1.36F, 0.80F, 0.52F},
                                                {-1.52F, 0.98F, 0.57F},
                                                {-1.75F, 1.06F, 0.60F},
                                                {-2.10F, 1.08F, 0.62F},
                                                {-2.60F, 1.05F, 0.62F},
                                                {-6.50F, 1.02F, 0.62F}}};

// A smooth curve through the sections (Catmull and Rom 1974), at a place from 0 to 1.
Section section_at(float place) {
  const float at = place * static_cast<float>(kSections.size() - 1);
  const int last = static_cast<int>(kSections.size()) - 1;
  const int i = std::min(static_cast<int>(at), last - 1);
  const float t = at - static_cast<float>(i);
  const auto point = [last](int index) {
    const Section& s = kSections[static_cast<size_t>(std::clamp(index, 0, last))];
    return glm::vec3(s.y, s.x, s.z);
  };
  const glm::vec3 a = point(i - 1), b = point(i), c = point(i + 1), d = point(i + 2);
  const glm::vec3 p =
      b +
      0.5F * t * (c - a + t * (2.0F * a - 5.0F * b + 4.0F * c - d + t * (3.0F * (b - c) + d - a)));
  return {p.x, p.y, p.z};
}

void add_bust(Mesh& mesh, float detail) {
  const int rows = thinned(24, detail), columns = thinned(40, detail);
  add_grid(mesh, {rows, columns, Grid::Columns::kClosed}, [&](int row, int column) {
    const Section section = section_at(part(row, rows));
    const float b =
        2.0F * glm::pi<float>() * static_cast<float>(column) / static_cast<float>(columns);
    const float drop = section.y < -1.0F ? -0.07F * std::cos(b) * std::cos(b) : 0.0F;
    const glm::vec3 at(section.x * std::cos(b), section.y + drop * (section.x - 0.4F),
                       section.z * std::sin(b) - 0.12F);
    const float under_chin = std::clamp((-0.75F - section.y) / 0.5F, 0.0F, 1.0F);
    return Vertex{at, {}, tint(Material::kBust, 0.35F + 0.65F * under_chin, 0.0F, 0.0F)};
  });
}

}  // namespace

HeadMesh make_head_mesh(float detail) {
  HeadMesh head;
  const FaceGrid grid = face_grid(detail);
  // Indices that were added since the last call.
  uint32_t first = 0;
  const auto take = [&] {
    const auto end = static_cast<uint32_t>(head.mesh.indices.size());
    const IndexRange range{first, end - first};
    first = end;
    return range;
  };
  const auto group = [&](PartGroup which) -> IndexRange& {
    return head.groups[static_cast<size_t>(which)];
  };
  // What moves with the mouth comes first: see HeadMesh::moving.
  add_cavity(head, grid);
  add_teeth(head, true);
  add_teeth(head, false);
  add_tongue(head);
  group(PartGroup::kMouth) = take();
  add_face(head, grid);
  head.moving = static_cast<uint32_t>(head.mesh.vertices.size());
  add_lids(head.mesh, detail);
  add_brows(head.mesh);
  add_ears(head.mesh, detail);
  group(PartGroup::kSkin) = take();
  add_eyes(head.mesh, detail);
  group(PartGroup::kEyes) = take();
  add_bust(head.mesh, detail);
  group(PartGroup::kBust) = take();
  for (int style = 0; style < kHairStyles; ++style) {
    add_hair(head.mesh, static_cast<HairStyle>(style), detail);
    head.hair.push_back(take());
  }
  return head;
}

}  // namespace sample
