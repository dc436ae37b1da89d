// The cases of embedding: its checks, and what the benchmark times.
#include <algorithm>

#include "base/check.h"
#include "base/narrow.h"
#include "conformance/case_sizes.h"
#include "conformance/cases.h"
#include "conformance/matrix_rounding.h"
#include "conformance/packed_cache.h"
#include "conformance/step_cases.h"
#include "ops/additive_attention.h"
#include "ops/embedding.h"
#include "ops/layer_norm.h"
#include "reference/embedding.h"
#include "reference/layer_norm.h"

namespace vkformer::conformance {
namespace {

enum class Extras : uint8_t { kNone, kPositions, kNorm, kScales };

Result<CheckCase> embedding_case(const Shape& shape, MatrixFormat format, Extras extras) {
  const Array given = random_array({shape[0] + 5, shape[1]}, 1);
  const Array table = round_to_format(given, format, MatrixOrder::kOutIn);
  const Array ids = random_ids({3, shape[0]}, 2, shape[0] + 5);
  const Array places = random_array({shape[0] + 2, shape[1]}, 3);
  reference::EmbeddingOptions options;
  options.scale = 1.25;
  TensorMap inputs{{"ids", integers(ids)}, {"table", floats(given)}};
  const Array scales = random_array(ids.shape, 6);
  if (extras == Extras::kScales) {
    options.row_scales = &scales;
    inputs.emplace("row_scales", floats(scales));
  }
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
       std::move(inputs), weight_format_of(format)},
      {{"Y", {std::move(y), terms(normed ? shape[1] : 1), 4}}});
}

Result<CheckCase> embedding_step_case(int64_t width, MatrixFormat format, bool normed) {
  const Array given = random_array({11, width}, 1);
  const Array table = round_to_format(given, format, MatrixOrder::kOutIn);
  const Array places = random_array({40, width}, 2);
  const std::vector<uint32_t> ids = {3, 10, 0, 7, 7};
  CheckCase made = step_case();
  EmbeddingInputs in;
  in.ids = made.op.bind("ids", words(ids));
  EmbeddingAttrs attrs;
  attrs.vocabulary = 11;
  attrs.width = u32(width);
  attrs.scale = 0.5f;
  if (in_blocks(format)) {
    VKF_ASSIGN(const std::vector<float> values, floats(given).to_floats());
    VKF_ASSIGN(const PackedMatrix packed, pack_matrix(values, {11, width}, {}, format));
    in.table = made.op.bind("table", words(packed.words));
    attrs.format = format;
    attrs.panel_stride = panel_stride(format, attrs.width);
  } else {
    const OperatorCall call{"embedding", "{}", {{"table", floats(given)}}};
    OperatorOptions options;
    options.weights = weight_format_of(format);
    VKF_ASSIGN(const OperatorArguments arguments, OperatorArguments::parse(call, options));
    VKF_ASSIGN(Tensor stored, arguments.weights("table"));
    in.table = made.op.bind("table", std::move(stored));
  }
  in.positions = made.op.bind("positions", floats(places));
  in.state = made.op.bind("state", state_of(17));
  const Array gain = random_array({width}, 3), bias = random_array({width}, 4);
  VKF_ASSIGN(TensorId y, add_embedding(made.op.graph, in, attrs));
  if (normed) {
    const TensorId gain_bias = made.op.bind("gain_bias", floats(stacked_rows(gain, bias)));
    VKF_ASSIGN(y, add_layer_norm(made.op.graph, {.x = y, .gain_bias = gain_bias}, {}));
  }
  made.op.name_output(y, "y");
  Array expected = reference::filled(made.op.graph.tensor(y).shape, kUntouched);
  Array live = reference::filled({static_cast<int64_t>(kLiveRows.size()), width}, 0);
  for (int64_t i = 0; i < live.size(); ++i) {
    const int64_t id = ids[static_cast<size_t>(i / width)];
    live[i] = table[id * width + i % width] * 0.5 + places[17 * width + i % width];
  }
  if (normed) {
    VKF_ASSIGN(live, reference::layer_norm(live, {.gain = &gain, .bias = &bias}));
  }
  std::copy(live.data.begin(), live.data.end(), expected.data.begin());
  made.expected.emplace("y", Expected{std::move(expected), terms(normed ? width : 1), 4});
  return made;
}

}  // namespace

void embedding_cases(OperatorCases& cases) {
  for (const MatrixFormat format : kMatrixFormats) {
    const std::string stored = format_name(format);
    for (const RowSize& size : move_sizes()) {
      for (const auto& [extras, what] : {std::pair{Extras::kNone, "/"},
                                         {Extras::kPositions, "-positions/"},
                                         {Extras::kNorm, "-norm/"},
                                         {Extras::kScales, "-scales/"}}) {
        cases.check(stored + what + size.name, size.quick,
                    [=, e = extras] { return embedding_case(size.shape, format, e); });
      }
    }
    for (const int64_t width : {int64_t{1}, int64_t{31}, int64_t{33}, int64_t{768}}) {
      const int64_t even = format == MatrixFormat::kF16 ? width + width % 2 : width;
      for (const bool normed : {false, true}) {
        cases.check("step-" + stored + (normed ? "-norm/" : "/") + std::to_string(even),
                    width == 33, [=] { return embedding_step_case(even, format, normed); });
      }
    }
  }
  cases.time("bert-base 1x128", {"embedding", "{}"},
             "ids:below30522=1,128 table=30522,768 positions=512,768");
  cases.time("marian 32x40", {"embedding/f16", "{}"}, "ids:below32000=32,40 table=32000,512");
  cases.limited_by("single elements, which drivers on a CPU load lane by lane");
}

}  // namespace vkformer::conformance
