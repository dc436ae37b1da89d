// Matrices too large for one binding: stored in slices of their columns, and nothing changes.
#include "conformance/host_twin.h"
#include "ops/embedding.h"
#include "ops/matmul.h"
#include "reference/embedding.h"
#include "reference/matmul.h"
#include "support/golden.h"
#include "support/matrix_rounding.h"
#include "support/operator_check.h"
#include "vkformer/session.h"
#include "weights/pack_matrix.h"

namespace vkformer::testing {
namespace {

std::vector<float> floats_of(const Array& array) {
  return {array.data.begin(), array.data.end()};
}

// Columns [first, first + count) of a (K, N) array.
Array columns_of(const Array& matrix, int64_t first, int64_t count) {
  Array part = reference::filled({matrix.dim(0), count}, 0.0);
  for (int64_t k = 0; k < matrix.dim(0); ++k) {
    for (int64_t n = 0; n < count; ++n) part[k * count + n] = matrix[k * matrix.dim(1) + first + n];
  }
  return part;
}

// A (K, N) matrix and its bias (N), or none, as slices of `step` columns.
LinearWeight bind_slices(PreparedOperator& op, const Array& matrix, const Array& bias,
                         MatrixFormat format, int64_t step, const std::string& name = "weight") {
  const int64_t k = matrix.dim(0);
  const int64_t n = matrix.dim(1);
  LinearWeight weight{
      .n = static_cast<uint32_t>(n), .k = static_cast<uint32_t>(k), .format = format};
  for (int64_t first = 0; first < n; first += step) {
    const int64_t count = std::min(step, n - first);
    std::vector<float> part_bias;
    if (!bias.data.empty()) {
      part_bias.assign(bias.data.begin() + first, bias.data.begin() + first + count);
    }
    const auto packed = pack_matrix(floats_of(columns_of(matrix, first, count)),
                                    {count, k, MatrixOrder::kInOut}, part_bias, format);
    REQUIRE(packed.ok());
    Tensor words = word_tensor(packed->words, {static_cast<int64_t>(packed->words.size())});
    if (!in_blocks(format)) words.dtype = DType::kF32;
    const TensorId tensor = op.bind(name + " " + std::to_string(first), std::move(words));
    weight.slices.push_back({tensor, static_cast<uint32_t>(first), static_cast<uint32_t>(count),
                             packed->bias_offset, format});
  }
  weight.tensor = weight.slices[0].tensor;
  weight.bias_offset = weight.slices[0].bias_offset;
  return weight;
}

TensorMap run_outputs(const GoldenCase& golden, uint64_t most_weight_bytes, Generation& beams) {
  ModelOptions options;
  options.most_weight_bytes = most_weight_bytes;
  const auto model = Model::load(*test_device(), golden.path("model"), options);
  REQUIRE_MESSAGE(model.ok(), model.error().message);
  auto session = Session::create(*model);
  REQUIRE(session.ok());
  auto outputs = session->run(golden.pass_inputs());
  REQUIRE_MESSAGE(outputs.ok(), outputs.error().message);
  GenerateOptions generate = session->generation_defaults();
  generate.beams = 3;
  generate.max_new_tokens = 6;
  auto generated = session->generate({{3, 5, 4, 6}, {7, 8}}, generate);
  REQUIRE_MESSAGE(generated.ok(), generated.error().message);
  beams = std::move(generated).value();
  return std::move(outputs).value();
}

}  // namespace

TEST_SUITE("gpu") {
  TEST_CASE("linear over slices agrees with the reference, for every strategy") {
    const int64_t k = 37;
    const int64_t n = 150;
    const Array given = random_array({k, n}, 1, 0.2);
    const Array bias = random_array({n}, 2);
    for (const TierDevice& device : tier_devices()) {
      for (MatrixFormat format : kMatrixFormats) {
        for (int64_t rows : {1, 5, 40}) {
          CAPTURE(device.tier);
          CAPTURE(rows);
          const Array matrix = round_to_format(given, format);
          const Array x = random_array({rows, k}, 3);
          const Array residual = random_array({rows, n}, 4);
          PreparedOperator op;
          LinearAttrs attrs{.activation = ActivationKind::kRelu};
          reference::MatmulOptions options{.bias = &bias};
          options.activation = reference::ActivationKind::kRelu;
          if (rows != 5) {
            attrs.residual = op.bind("residual", reference::to_tensor(residual));
            options.residual = &residual;
          }
          const LinearWeight weight = bind_slices(op, given, bias, format, 64);
          REQUIRE(weight.slices.size() == 3);
          const auto y = add_linear(op.graph, op.bind("x", reference::to_tensor(x)), weight, attrs);
          REQUIRE_MESSAGE(y.ok(), y.error().message);
          op.name_output(*y, "y");
          check_close(run_poisoned(device, op).at("y"),
                      reference::matmul(x, matrix, options).value(), tolerance_for(DType::kF32, k));
        }
      }
    }
  }

  TEST_CASE("linear over slices of several formats agrees with the reference") {
    const int64_t k = 300;
    const std::vector<MatrixFormat> formats = {MatrixFormat::kQ4K, MatrixFormat::kQ6K,
                                               MatrixFormat::kF16};
    const Array given = random_array({k, 180}, 1, 0.2);
    const Array bias = random_array({180}, 2);
    // Columns 64 s and on in formats[s].
    Array matrix = given;
    for (size_t s = 0; s < formats.size(); ++s) {
      const Array rounded = round_to_format(given, formats[s]);
      for (int64_t row = 0; row < k; ++row) {
        for (int64_t column = 64 * static_cast<int64_t>(s);
             column < std::min<int64_t>(180, 64 * static_cast<int64_t>(s) + 64); ++column) {
          matrix[row * 180 + column] = rounded[row * 180 + column];
        }
      }
    }
    for (const TierDevice& device : tier_devices()) {
      for (int64_t rows : {1, 40}) {
        CAPTURE(device.tier);
        CAPTURE(rows);
        const Array x = random_array({rows, k}, 3);
        PreparedOperator op;
        LinearWeight weight;
        for (size_t s = 0; s < formats.size(); ++s) {
          const LinearWeight all =
              bind_slices(op, given, bias, formats[s], 64, format_name(formats[s]));
          weight.slices.push_back(all.slices[s]);
        }
        weight.n = 180;
        weight.k = static_cast<uint32_t>(k);
        weight.tensor = weight.slices[0].tensor;
        weight.bias_offset = weight.slices[0].bias_offset;
        weight.format = formats[0];
        const auto y = add_linear(op.graph, op.bind("x", reference::to_tensor(x)), weight, {});
        REQUIRE_MESSAGE(y.ok(), y.error().message);
        op.name_output(*y, "y");
        check_close(run_poisoned(device, op).at("y"),
                    reference::matmul(x, matrix, {.bias = &bias}).value(),
                    tolerance_for(DType::kF32, k));
      }
    }
  }

  TEST_CASE("embedding reads a table in slices, and gives NaN once for ids without a row") {
    const int64_t width = 37;
    const int64_t vocabulary = 150;
    const std::vector<uint32_t> ids = {0, 63, 64, 127, 128, 149, 150, 0xffffffffu, 65, 3};
    for (MatrixFormat format : {MatrixFormat::kF32, MatrixFormat::kBF16, MatrixFormat::kQ8,
                                MatrixFormat::kQ4, MatrixFormat::kQ4M}) {
      CAPTURE(format_name(format));
      const Array given = random_array({width, vocabulary}, 5);
      const Array table = round_to_format(given, format);
      Array wanted = reference::filled({10, width}, std::numeric_limits<double>::quiet_NaN());
      for (int64_t d = 0; d < width; ++d) {
        for (size_t r = 0; r < ids.size(); ++r) {
          if (ids[r] >= vocabulary) continue;
          wanted[static_cast<int64_t>(r) * width + d] = table[d * vocabulary + ids[r]];
        }
      }
      PreparedOperator op;
      const LinearWeight weight = bind_slices(op, given, {}, format, 64);
      EmbeddingInputs inputs{.ids = op.bind("ids", word_tensor(ids, {10})), .table = weight.tensor};
      for (size_t s = 1; s < weight.slices.size(); ++s) {
        inputs.slices.push_back(weight.slices[s].tensor);
      }
      EmbeddingAttrs attrs{.vocabulary = weight.n,
                           .width = weight.k,
                           .row_stride = 1,
                           .col_stride = kPanelColumns,
                           .panel_stride = panel_stride(format, weight.k),
                           .format = format,
                           .slice_rows = 64};
      const auto y = add_embedding(op.graph, inputs, attrs);
      REQUIRE_MESSAGE(y.ok(), y.error().message);
      op.name_output(*y, "y");
      for (const TierDevice& device : tier_devices()) {
        check_close(run_poisoned(device, op).at("y"), wanted, tolerance_for(DType::kF32, 1));
      }
      const auto twin = conformance::twin_outputs(op.graph, op.inputs);
      REQUIRE(twin);
      check_close(twin->at("y"), wanted, tolerance_for(DType::kF32, 1));
      inputs.slices.pop_back();
      check_error(add_embedding(op.graph, inputs, attrs), "embedding", "2 tensors");
    }
  }
}

TEST_SUITE("model") {
  TEST_CASE("a model whose matrices are sliced gives the same bits") {
    if (!have_test_device()) return;
    for (const char* name : {"gpt2-batch", "marian-base"}) {
      CAPTURE(name);
      const GoldenCase golden = golden_case(name);
      Generation whole_beams;
      Generation sliced_beams;
      const TensorMap whole = run_outputs(golden, 0, whole_beams);
      // Less than one panel: every matrix is sliced as finely as it can be.
      const TensorMap sliced = run_outputs(golden, 1, sliced_beams);
      REQUIRE(whole.size() == sliced.size());
      for (const auto& [bound_output, tensor] : whole) {
        const auto& output = bound_output;
        CAPTURE(output);
        CHECK(sliced.at(output).bytes == tensor.bytes);
      }
      REQUIRE(whole_beams.size() == sliced_beams.size());
      for (size_t i = 0; i < whole_beams.size(); ++i) {
        CHECK(sliced_beams[i][0].ids == whole_beams[i][0].ids);
        CHECK(sliced_beams[i][0].score == whole_beams[i][0].score);
      }
    }
  }
}

}  // namespace vkformer::testing
