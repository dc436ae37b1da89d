// The cases of head_linear: its checks, and what the benchmark times.
#include "ops/head_linear.h"

#include <cmath>

#include "base/check.h"
#include "base/narrow.h"
#include "conformance/cases.h"
#include "conformance/matrix_rounding.h"
#include "conformance/step_graph.h"
#include "conformance/weights_by_expert.h"
#include "params/matmul.h"
#include "reference/head_linear.h"

namespace vkformer::conformance {
namespace {

struct HeadProduct {
  int64_t rows, heads, k, n;
  int64_t first = 0, apart = 0;  // columns before the first head, and after each
  bool step = false;
  int64_t slice_panels = 0;  // 0: the weight is whole
  bool shared = false;       // whether heads share one matrix
};

// One row and few, a step's slots, and tiles of many. Odd widths and whole panels. Heads of several
// panels, which slices of the weight cut. Heads that share a matrix, as those of adapters do.
constexpr HeadProduct kHeadProducts[] = {{1, 1, 1, 1},
                                         {3, 5, 33, 21, 2, 3},
                                         {4, 3, 64, 64},
                                         {2, 16, 128, 512, 64, 64, true},
                                         {7, 3, 10, 7, 0, 1, true},
                                         {5, 4, 16, 130, 4, 8, true, 2},
                                         {9, 3, 20, 65, 0, 0, false, 1},
                                         {37, 3, 33, 129, 1, 2, false, 5},
                                         {65, 4, 512, 128, 0, 0, true},
                                         {100, 2, 31, 63},
                                         {3, 5, 33, 21, 2, 3, false, 0, true},
                                         {2, 16, 512, 6, 0, 0, true, 0, true},
                                         {7, 3, 6, 65, 0, 1, true, 0, true},
                                         {5, 4, 16, 130, 4, 8, true, 2, true},
                                         {37, 3, 33, 129, 1, 2, false, 1, true}};

// (H, K, N) of a matrix (1, K, N) that heads share.
Array repeated(const Array& matrix, int64_t heads) {
  Array all;
  all.shape = {heads, matrix.dim(1), matrix.dim(2)};
  for (int64_t h = 0; h < heads; ++h) {
    all.data.insert(all.data.end(), matrix.data.begin(), matrix.data.end());
  }
  return all;
}

Result<CheckCase> head_product_case(const HeadProduct& c, MatrixFormat format, Content content) {
  const int64_t stride = c.k + c.apart;
  const Array x = random_array({c.rows, c.first + c.heads * stride}, 1, content);
  const int64_t matrices = c.shared ? 1 : c.heads;
  Array w = scaled(random_array({matrices, c.k, c.n}, 2), 1 / std::sqrt(static_cast<double>(c.k)));
  CheckCase made;
  if (c.step) {
    made.op.graph.set_step(u32(c.rows));
    made.live_slots = u32(c.rows);
  }
  const TensorId input = made.op.bind("x", floats(x));
  VKF_ASSIGN(const ExpertWeight weight, bind_experts(made, "w", w, {}, format, c.slice_panels));
  VKF_ASSIGN(const TensorId y, add_head_linear(made.op.graph, input, weight,
                                               {.first = u32(c.first),
                                                .stride = u32(stride),
                                                .sharing = c.shared ? u32(c.heads) : 0u}));
  made.op.name_output(y, "y");
  w = round_to_format(std::move(w), format);
  if (c.shared) w = repeated(w, c.heads);
  VKF_ASSIGN(Array expected, reference::head_linear(x, w, c.first, stride));
  const double magnitude = magnitude_of(expected);
  made.expected.emplace("y", Expected{std::move(expected), terms(c.k), magnitude});
  return made;
}

Status head_product_graph(StepGraph& in) {
  const int64_t rows = in.number("rows"), heads = in.number("heads");
  const int64_t k = in.number("k"), n = in.number("n");
  if (in.number("step", 0) != 0) in.graph().set_step(u32(rows));
  const int64_t columns = heads * ((n + kPanelColumns - 1) / kPanelColumns) * kPanelColumns;
  const ExpertWeight weight{
      {.tensor = in.floats("w", {k, columns}), .n = u32(columns), .k = u32(k)}, u32(heads), u32(n)};
  VKF_ASSIGN(const TensorId y, add_head_linear(in.graph(), in.floats("x", {rows, heads * k}),
                                               weight, {.stride = u32(k)}));
  in.graph().tensor(y).kind = TensorKind::kExternal;
  return {};
}

}  // namespace

void head_linear_cases(OperatorCases& cases) {
  for (const HeadProduct& c : kHeadProducts) {
    std::string size = size_text({c.rows, c.heads, c.k, c.n});
    if (c.step) size += "-step";
    if (c.slice_panels > 0) size += "-slices";
    if (c.shared) size += "-shared";
    for (const MatrixFormat format : kMatrixFormats) {
      // Each is a pipeline of its shape: those of GGUF files are checked for few rows and for many.
      if (is_gguf_format(format) && c.rows != 4 && c.rows != 37) continue;
      const bool common = format == MatrixFormat::kF32 || format == MatrixFormat::kF16 ||
                          format == MatrixFormat::kQ8;
      cases.check(std::string(format_name(format)) + "/" + size, common && c.k < 100,
                  [=] { return head_product_case(c, format, Content::kNormal); });
    }
    cases.check("special/" + size, c.rows == 37,
                [=] { return head_product_case(c, MatrixFormat::kF32, Content::kSpecial); });
  }
  cases.time_graph("deepseek-v3 queries 1 token", "rows=1 step=1 heads=128 k=128 n=512",
                   head_product_graph);
  cases.time_graph("deepseek-v3 values 1 token", "rows=1 step=1 heads=128 k=512 n=128",
                   head_product_graph);
}

}  // namespace vkformer::conformance
