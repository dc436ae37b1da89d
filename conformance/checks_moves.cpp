// Checks of what moves, adds and looks up: rows, columns, embeddings, positions, pictures.
#include "base/check.h"
#include "base/narrow.h"
#include "conformance/content.h"
#include "conformance/matrix_rounding.h"
#include "image/picture_processor.h"
#include "image/picture_tables.h"
#include "ops/move_columns.h"
#include "ops/picture_values.h"
#include "reference/combine.h"
#include "reference/concat_columns.h"
#include "reference/embedding.h"
#include "reference/gather_rows.h"
#include "reference/layer_norm.h"

#include <cmath>

namespace vkformer::conformance {
namespace {

constexpr std::pair<int64_t, int64_t> kRows[] = {{1, 1},   {3, 7},   {5, 32},  {7, 33},   {9, 64},
                                                 {2, 127}, {4, 129}, {6, 257}, {1500, 3}, {3, 768}};

bool is_quick(const std::pair<int64_t, int64_t>& rows) {
  return rows.second == 1 || rows.second == 33 || rows.first == 1500;
}

Result<CheckCase> combine_case(const Shape& shape, Content content) {
  const Array a = random_array(shape, 1, content), b = random_array(shape, 2, content);
  VKF_ASSIGN(Array y, reference::combine(a, 0.75, b, -1.5));
  return call_case(
      {"combine", R"({"alpha": 0.75, "beta": -1.5})", {{"A", floats(a)}, {"B", floats(b)}}},
      {{"Y", {std::move(y), terms(2), magnitude_of(a)}}});
}

Result<CheckCase> concat_case(const Shape& shape, Content content) {
  const Array a = random_array(shape, 1, content);
  const Array b = random_array({shape[0], shape[1] + 3}, 2, content);
  VKF_ASSIGN(Array y, reference::concat_columns(a, b));
  return call_case({"concat_columns", "{}", {{"A", floats(a)}, {"B", floats(b)}}},
                   {{"Y", {std::move(y)}}});
}

// Indices that are no rows give zeros.
Result<CheckCase> gather_case(const Shape& shape, bool added, Content content) {
  const Array x = random_array(shape, 1, content);
  const Array indices = random_ids({2 * shape[0] + 2}, 3, shape[0] + shape[0] / 4 + 1);
  const Array addend = random_array({2, shape[1]}, 4);
  TensorMap inputs{{"X", floats(x)}, {"indices", integers(indices)}};
  if (added) inputs.emplace("addend", floats(addend));
  VKF_ASSIGN(Array y, reference::gather_rows(x, indices, added ? &addend : nullptr));
  return call_case({"gather_rows", "{}", std::move(inputs)},
                   {{"Y", {std::move(y), added ? terms(1) : Tolerance{}, magnitude_of(x)}}});
}

enum class Extras : uint8_t { kNone, kPositions, kNorm };

Result<CheckCase> embedding_case(const Shape& shape, MatrixFormat format, Extras extras) {
  const Array given = random_array({shape[0] + 5, shape[1]}, 1);
  const Array table = round_to_format(given, format, MatrixOrder::kOutIn);
  const Array ids = random_ids({3, shape[0]}, 2, shape[0] + 5);
  const Array places = random_array({shape[0] + 2, shape[1]}, 3);
  reference::EmbeddingOptions options;
  options.scale = 1.25;
  TensorMap inputs{{"ids", integers(ids)}, {"table", floats(given)}};
  if (extras != Extras::kNone) {
    options.position_table = &places;
    options.position_offset = 2;
    inputs.emplace("positions", floats(places));
  }
  VKF_ASSIGN(Array y, reference::embedding(table, ids, options));
  const bool placed = extras != Extras::kNone, normed = extras == Extras::kNorm;
  if (normed) {
    const Array gain = random_array({shape[1]}, 4), bias = random_array({shape[1]}, 5);
    inputs.emplace("norm_weight", floats(gain));
    inputs.emplace("norm_bias", floats(bias));
    VKF_ASSIGN(y, reference::layer_norm(y, {.gain = &gain, .bias = &bias}));
  }
  return call_case(
      {"embedding", placed ? R"({"scale": 1.25, "position_offset": 2})" : R"({"scale": 1.25})",
       std::move(inputs), format_name(format)},
      {{"Y", {std::move(y), terms(normed ? shape[1] : 1), 4}}});
}

// Angles in double, as the table's are made.
Result<CheckCase> rotary_case(const Shape& shape, int64_t turned, bool interleaved) {
  const Array x = random_array(shape, 1);
  Array y = x;
  const int64_t width = shape[3], tokens = shape[2];
  for (int64_t row = 0; row < x.size() / width; ++row) {
    for (int64_t i = 0; i < turned / 2; ++i) {
      const double angle =
          static_cast<double>(row % tokens) *
          std::pow(10000.0, -2.0 * static_cast<double>(i) / static_cast<double>(turned));
      const int64_t u = row * width + (interleaved ? 2 * i : i);
      const int64_t v = interleaved ? u + 1 : u + turned / 2;
      y[u] = x[u] * std::cos(angle) - x[v] * std::sin(angle);
      y[v] = x[v] * std::cos(angle) + x[u] * std::sin(angle);
    }
  }
  const std::string attributes = R"({"rotary_dim": )" + std::to_string(turned) +
                                 R"(, "layout": ")" + (interleaved ? "interleaved" : "half") +
                                 "\"}";
  return call_case({"rotary", attributes, {{"X", floats(x)}}},
                   {{"Y", {std::move(y), terms(2), 4}}});
}

// A picture through its tables, against the processor on the host, to the bit.
Result<CheckCase> picture_case(PictureSize size, int side) {
  const PictureSettings settings{.width = side, .height = side};
  VKF_ASSIGN(const PictureTables tables, make_picture_tables({&size, 1}, settings));
  Noise noise(21);
  std::vector<uint32_t> pixels(static_cast<size_t>(size.width * size.height));
  RgbPicture picture;
  picture.width = static_cast<int>(size.width);
  picture.height = static_cast<int>(size.height);
  for (uint32_t& pixel : pixels) {
    pixel = static_cast<uint32_t>(noise.bits());
    for (int byte = 0; byte < 3; ++byte) {
      picture.pixels.push_back(static_cast<uint8_t>(pixel >> (8 * byte)));
    }
  }
  const RgbPicture* pictures[] = {&picture};
  VKF_ASSIGN(const Tensor expected, make_pixel_values(pictures, settings));
  VKF_ASSIGN(Array values, reference::from_tensor(expected));
  CheckCase made;
  const TensorId x = made.op.bind("pixels", words(pixels));
  const TensorId t = made.op.bind("tables", words(tables.words));
  const PictureTapPlace& place = tables.places[0];
  const PictureValuesAttrs attrs{u32(side),
                                 u32(side),
                                 {{.width = u32(size.width),
                                   .height = u32(size.height),
                                   .columns = place.columns,
                                   .rows = place.rows,
                                   .same_columns = place.same_columns}}};
  VKF_ASSIGN(const TensorId y, add_picture_values(made.op.graph, x, t, attrs));
  made.op.name_output(y, "Y");
  made.expected.emplace("Y", Expected{std::move(values)});
  return made;
}

// Columns [first, first + width) of every row, and zeros beside them.
Result<CheckCase> columns_case(const Shape& shape, int64_t first, int64_t width) {
  const Array x = random_array(shape, 1, Content::kSpecial);
  Array y = reference::filled({shape[0], width}, 0.0);
  for (int64_t i = 0; i < y.size(); ++i) y[i] = x[i / width * shape[1] + first + i % width];
  CheckCase made;
  const TensorId from = made.op.bind("x", floats(x));
  VKF_ASSIGN(const TensorId to,
             add_columns(made.op.graph, from, {u32(first), u32(shape[1])}, {shape[0], width}));
  made.op.name_output(to, "Y");
  made.expected.emplace("Y", Expected{std::move(y)});
  return made;
}

}  // namespace

void add_move_checks(CheckList& list) {
  for (const auto& rows : kRows) {
    const Shape shape{rows.first, rows.second};
    const std::string at = size_text(shape);
    const bool quick = is_quick(rows);
    list.add("combine", "normal/" + at, quick,
             [=] { return combine_case(shape, Content::kNormal); });
    list.add("concat_columns", "normal/" + at, quick,
             [=] { return concat_case(shape, Content::kNormal); });
    list.add("gather_rows", "plain/" + at, quick,
             [=] { return gather_case(shape, false, Content::kNormal); });
    list.add("gather_rows", "addend/" + at, quick,
             [=] { return gather_case(shape, true, Content::kNormal); });
    list.add("move_columns", "plain/" + at, quick, [=] {
      return columns_case({shape[0], shape[1] + 5}, 3, shape[1]);
    });
    for (const MatrixFormat format : kMatrixFormats) {
      for (const auto& [extras, what] : {std::pair{Extras::kNone, "/"},
                                         {Extras::kPositions, "-positions/"},
                                         {Extras::kNorm, "-norm/"}}) {
        list.add("embedding", std::string(format_name(format)) + what + at, quick,
                 [=, e = extras] { return embedding_case(shape, format, e); });
      }
    }
  }
  for (const Content content : {Content::kWide, Content::kTiny, Content::kSpecial}) {
    const std::string name = content_name(content);
    list.add("combine", name + "/5x129", true, [=] { return combine_case({5, 129}, content); });
    list.add("concat_columns", name + "/5x129", true, [=] {
      return concat_case({5, 129}, content);
    });
    list.add("gather_rows", name + "/5x129", true, [=] {
      return gather_case({5, 129}, false, content);
    });
  }
  for (const Shape& shape :
       {Shape{1, 1, 1, 4}, Shape{2, 3, 9, 32}, Shape{1, 2, 33, 66}, Shape{1, 1, 1500, 128}}) {
    for (const bool interleaved : {false, true}) {
      list.add("rotary", (interleaved ? "interleaved/" : "half/") + size_text(shape),
               shape[2] == 33, [=] { return rotary_case(shape, shape[3] / 4 * 2, interleaved); });
      list.add("rotary", (interleaved ? "interleaved-all/" : "half-all/") + size_text(shape),
               shape[2] == 9, [=] { return rotary_case(shape, shape[3], interleaved); });
    }
  }
  for (const auto& [size, side] :
       {std::pair{PictureSize{1, 1}, 7}, std::pair{PictureSize{33, 17}, 16},
        std::pair{PictureSize{64, 64}, 64}, std::pair{PictureSize{131, 127}, 45}}) {
    list.add("picture_values",
             std::to_string(size.width) + "x" + std::to_string(size.height) + "-to-" +
                 std::to_string(side),
             size.width == 33, [size = size, side = side] { return picture_case(size, side); });
  }
}

}  // namespace vkformer::conformance
