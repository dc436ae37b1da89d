// The cases of picture_values: its checks, and what the benchmark times.
#include "ops/picture_values.h"
#include "base/check.h"
#include "base/narrow.h"
#include "conformance/cases.h"
#include "conformance/step_graph.h"
#include "image/picture_processor.h"
#include "image/picture_tables.h"

namespace vkformer::conformance {
namespace {

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

Status picture_values_graph(StepGraph& in) {
  const PictureSize size{in.number("width"), in.number("height")};
  const auto side = static_cast<int>(in.number("size"));
  VKF_ASSIGN(const PictureTables tables,
             make_picture_tables({&size, 1}, PictureSettings{.width = side, .height = side}));
  std::vector<uint32_t> pixels(static_cast<size_t>(size.width * size.height));
  for (size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<uint32_t>(i * 2654435761u);
  const PictureValuesAttrs attrs{u32(side),
                                 u32(side),
                                 {{.width = u32(size.width),
                                   .height = u32(size.height),
                                   .columns = tables.places[0].columns,
                                   .rows = tables.places[0].rows}}};
  const auto count = static_cast<int64_t>(pixels.size());
  const auto words = static_cast<int64_t>(tables.words.size());
  const TensorId x = in.words("pixels", {count}, pixels);
  const TensorId t = in.words("tables", {words}, tables.words);
  VKF_ASSIGN(const TensorId y, add_picture_values(in.graph(), x, t, attrs));
  in.graph().tensor(y).kind = TensorKind::kExternal;
  return {};
}

}  // namespace

void picture_values_cases(OperatorCases& cases) {
  for (const auto& [size, side] :
       {std::pair{PictureSize{1, 1}, 7}, std::pair{PictureSize{33, 17}, 16},
        std::pair{PictureSize{64, 64}, 64}, std::pair{PictureSize{131, 127}, 45}}) {
    cases.check(std::to_string(size.width) + "x" + std::to_string(size.height) + "-to-" +
                    std::to_string(side),
                size.width == 33, [size = size, side = side] { return picture_case(size, side); });
  }
  cases.time_graph("vit-base of 1080p", "width=1920 height=1080 size=224", picture_values_graph);
  cases.limited_by(
      "a filter along lines, then one along columns: several pixels read for each one written");
}

}  // namespace vkformer::conformance
