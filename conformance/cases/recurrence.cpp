// The cases of recurrence: its checks, and what the benchmark times.
#include <cmath>

#include "base/check.h"
#include "conformance/cases.h"
#include "conformance/matrix_rounding.h"
#include "conformance/step_cases.h"
#include "ops/recurrent_cell.h"
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
                    weight_format_of(format)},
                   std::move(expected));
}

}  // namespace

void recurrence_cases(OperatorCases& cases) {
  for (const Shape& s : kLayers) {
    for (const bool lstm : {false, true}) {
      for (const MatrixFormat format : kMatrixFormats) {
        const std::string stored =
            format == MatrixFormat::kF32 ? "" : std::string("-") + format_name(format);
        cases.check((lstm ? "lstm" : "gru") + stored + "/" + size_text(s), s[3] == 31,
                    [=] { return layer_case(s, lstm, format); });
      }
    }
  }
  cases.time("gru 256 8x50", {"gru", "{}"},
             "X=8,50,256 weight_ih=768,256 weight_hh=768,256 bias_ih=768 bias_hh=768");
  cases.limited_by("every token waits for the one before");
}

}  // namespace vkformer::conformance
