// Checks of recurrent layers and their alignment.
#include <cmath>

#include "base/check.h"
#include "conformance/content.h"
#include "conformance/matrix_rounding.h"
#include "ops/recurrent_cell.h"
#include "reference/additive_attention.h"
#include "reference/matmul.h"
#include "reference/recurrence.h"

namespace vkformer::conformance {
namespace {

// (B, T, in, Hd)
const Shape kLayers[] = {{1, 1, 1, 1},   {2, 7, 5, 8},    {3, 9, 33, 31}, {1, 20, 16, 33},
                         {9, 3, 64, 64}, {2, 5, 40, 129}, {1, 100, 8, 16}};

// The last state of every row.
Array last_of(const Array& y, int64_t width) {
  Array last = reference::filled({y.dim(0), width}, 0.0);
  for (int64_t i = 0; i < last.size(); ++i) {
    last[i] = y[((i / width + 1) * y.dim(1) - 1) * y.dim(2) + i % width];
  }
  return last;
}

Result<CheckCase> layer_case(const Shape& s, bool lstm, MatrixFormat format) {
  const int64_t width = s[3], gates = (lstm ? 4 : 3) * width;
  const double scale = 1 / std::sqrt(static_cast<double>(width));
  const Array x = random_array({s[0], s[1], s[2]}, 1);
  const Array given_ih = scaled(random_array({gates, s[2]}, 2), scale);
  const Array given_hh = scaled(random_array({gates, width}, 3), scale);
  const Array w_ih = round_to_format(given_ih, format, MatrixOrder::kOutIn);
  const Array w_hh = round_to_format(given_hh, format, MatrixOrder::kOutIn);
  const Array b_ih = random_array({gates}, 4), b_hh = random_array({gates}, 5);
  reference::MatmulOptions product;
  product.trans_b = true;
  product.bias = &b_ih;
  VKF_ASSIGN(const Array in, reference::matmul(x, w_ih, product));
  reference::RecurrenceInputs inputs{w_hh, &b_hh};
  VKF_ASSIGN(const Array states,
             reference::recurrence(in, inputs,
                                   lstm ? reference::CellKind::kLstm : reference::CellKind::kGru));
  Array y = reference::filled({s[0], s[1], width}, 0.0);
  for (int64_t i = 0; i < y.size(); ++i) y[i] = states[i / width * states.dim(2) + i % width];
  const Tolerance bound = terms(64 * width);
  std::map<std::string, Expected> expected;
  expected.emplace("h", Expected{last_of(states, width), bound});
  expected.emplace("Y", Expected{std::move(y), bound});
  return call_case({lstm ? "lstm" : "gru",
                    "{}",
                    {{"X", floats(x)},
                     {"weight_ih", floats(given_ih)},
                     {"weight_hh", floats(given_hh)},
                     {"bias_ih", floats(b_ih)},
                     {"bias_hh", floats(b_hh)}},
                    format_name(format)},
                   std::move(expected));
}

Result<CheckCase> cell_case(int64_t rows, int64_t width, bool lstm) {
  const int64_t gates = (lstm ? 4 : 3) * width;
  const Array in = random_array({rows, gates}, 1), states = random_array({rows, gates}, 2);
  const Array carry = random_array({rows, width}, 3);
  VKF_ASSIGN(const Array y,
             reference::recurrent_cell(
                 in, states, carry, lstm ? reference::CellKind::kLstm : reference::CellKind::kGru));
  CheckCase made;
  const RecurrentCellInputs inputs{.gates = made.op.bind("gates", floats(in)),
                                   .states = made.op.bind("states", floats(states)),
                                   .carry = made.op.bind("carry", floats(carry))};
  VKF_ASSIGN(
      const TensorId id,
      add_recurrent_cell(made.op.graph, inputs, {.cell = lstm ? CellKind::kLstm : CellKind::kGru}));
  made.op.name_output(id, "h");
  Array h = reference::filled(made.op.graph.tensor(id).shape, 0.0), after = carry;
  for (int64_t i = 0; i < h.size(); ++i) {
    h[i] = y[i / width * 2 * width + i % width];
    after[i] = y[i / width * 2 * width + width + i % width];
  }
  made.expected.emplace("h", Expected{std::move(h), terms(64)});
  made.expected.emplace("carry", Expected{std::move(after), terms(64)});
  return made;
}

// (B, T, S, A, C)
Result<CheckCase> alignment_case(const Shape& s, bool masked) {
  const int64_t width = s[3], value_width = s[4];
  const Array q = random_array({s[0], s[1], width}, 1), k = random_array({s[0], s[2], width}, 2);
  const Array values = random_array({s[0], s[2], value_width}, 3), v = random_array({width}, 4);
  const Array mask = random_mask({s[0], s[2]}, 5);
  reference::AlignmentInputs in{q, reference::filled({s[0], s[2], width + value_width}, 0.0)};
  for (int64_t row = 0; row < s[0] * s[2]; ++row) {
    for (int64_t i = 0; i < width + value_width; ++i) {
      in.kv[row * (width + value_width) + i] =
          i < width ? k[row * width + i] : values[row * value_width + i - width];
    }
  }
  in.v = &v;
  if (masked) in.mask = &mask;
  reference::AlignmentOptions options;
  options.width = width;
  options.value_width = value_width;
  VKF_ASSIGN(const Array y, reference::additive_attention(in, options));
  Array output = reference::filled({s[0], s[1], value_width}, 0.0);
  Array weights = reference::filled({s[0], s[1], s[2]}, 0.0);
  for (int64_t row = 0; row < s[0] * s[1]; ++row) {
    for (int64_t i = 0; i < y.dim(2); ++i) {
      const double value = y[row * y.dim(2) + i];
      if (i < value_width) output[row * value_width + i] = value;
      if (i >= value_width) weights[row * s[2] + i - value_width] = value;
    }
  }
  TensorMap inputs{{"Q", floats(q)}, {"K", floats(k)}, {"V", floats(values)}, {"v", floats(v)}};
  if (masked) inputs.emplace("key_mask", mask_bytes(mask));
  const Tolerance bound = terms(std::max(s[2], 64 * width));
  return call_case(
      {"additive_attention", "{}", std::move(inputs)},
      {{"output", {std::move(output), bound}}, {"weights", {std::move(weights), bound}}});
}

}  // namespace

void add_recurrent_checks(CheckList& list) {
  for (const Shape& s : kLayers) {
    for (const bool lstm : {false, true}) {
      for (const MatrixFormat format : kMatrixFormats) {
        const std::string stored =
            format == MatrixFormat::kF32 ? "" : std::string("-") + format_name(format);
        list.add("recurrence", (lstm ? "lstm" : "gru") + stored + "/" + size_text(s), s[3] == 31,
                 [=] { return layer_case(s, lstm, format); });
      }
      list.add("recurrent_cell", std::string(lstm ? "lstm/" : "gru/") + size_text({s[0], s[3]}),
               s[3] == 31, [=] { return cell_case(s[0], s[3], lstm); });
    }
  }
  for (const Shape& s : {Shape{1, 1, 1, 1, 1}, Shape{2, 3, 9, 33, 17}, Shape{3, 9, 33, 64, 129},
                         Shape{1, 2, 257, 31, 40}}) {
    for (const bool masked : {false, true}) {
      list.add("additive_attention", (masked ? "masked/" : "plain/") + size_text(s), s[2] == 9,
               [=] { return alignment_case(s, masked); });
    }
  }
}

}  // namespace vkformer::conformance
