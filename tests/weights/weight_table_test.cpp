#include "weights/weight_table.h"

#include <cstring>
#include <limits>
#include <optional>

#include "base/half.h"
#include "base/job_threads.h"
#include "base/sha256.h"
#include "checkpoint/temp_dir.h"
#include "model/weight_rows.h"
#include "vkformer/tensor.h"
#include "weights/pack_matrix.h"

namespace vkformer::testing {
namespace {

using test::contains;
using test::TempDir;

// Elements first, first + 1, ... in the dtype; exact in all of them while below 256.
Tensor counting(DType dtype, Shape shape, float first = 1) {
  Tensor tensor = Tensor::zeros(dtype, std::move(shape));
  for (int64_t i = 0; i < tensor.count(); ++i) {
    const float value = first + static_cast<float>(i);
    const double wide = value;
    const uint16_t half = dtype == DType::kF16 ? half_from_float(value) : bfloat_from_float(value);
    const void* from = &value;
    if (dtype == DType::kF64) from = &wide;
    if (dtype_size(dtype) == 2) from = &half;
    const size_t size = dtype_size(dtype);
    std::memcpy(tensor.bytes.data() + static_cast<size_t>(i) * size, from, size);
  }
  return tensor;
}

struct Opened {
  TempDir directory;
  std::optional<Checkpoint> checkpoint;
};

void open(Opened& opened, const TensorMap& tensors) {
  REQUIRE(write_tensor_file(opened.directory.file("model.safetensors"), tensors).ok());
  auto checkpoint = Checkpoint::open(opened.directory.path());
  REQUIRE_MESSAGE(checkpoint.ok(), checkpoint.error().message);
  opened.checkpoint.emplace(std::move(checkpoint).value());
}

std::vector<PackedWeight> resolve(const Opened& opened, const WeightTable& table,
                                  WeightFormat format = WeightFormat::kAsStored) {
  auto resolved = resolve_weights(table, *opened.checkpoint, format);
  REQUIRE_MESSAGE(resolved.ok(), resolved.error().message);
  return std::move(resolved).value();
}

// What does not fit, with the file and the tensor in the message.
void check_refused(const TensorMap& tensors, const WeightTable& table, const std::string& tensor,
                   const std::string& part) {
  Opened opened;
  open(opened, tensors);
  const auto resolved = resolve_weights(table, *opened.checkpoint, WeightFormat::kAsStored);
  REQUIRE_FALSE(resolved.ok());
  const std::string& message = resolved.error().message;
  CHECK(resolved.error().code == ErrorCode::kInvalidFile);
  CHECK_MESSAGE(contains(message, "[" + tensor + "]"), message);
  CHECK_MESSAGE(contains(message, part), message);
  CHECK_MESSAGE(contains(message, opened.directory.path()), message);
}

std::vector<std::byte> packed_bytes(const Opened& opened, const PackedWeight& weight) {
  std::vector<std::byte> bytes(weight.bytes, std::byte{0xcd});
  const Status packed = pack_weight(weight, *opened.checkpoint, bytes);
  REQUIRE_MESSAGE(packed.ok(), packed.error().message);
  JobThreads threads(3);
  const Helpers helpers{[&](std::function<void()> job) { threads.run(std::move(job)); }, 3};
  std::vector<std::byte> shared(weight.bytes, std::byte{0xab});
  REQUIRE(pack_weight(weight, *opened.checkpoint, shared, helpers).ok());
  REQUIRE(shared == bytes);
  return bytes;
}

float float_at(const std::vector<std::byte>& bytes, size_t word) {
  float value = 0;
  REQUIRE(4 * word + 4 <= bytes.size());
  std::memcpy(&value, bytes.data() + 4 * word, 4);
  return value;
}

// Element (k, n) of a packed matrix.
float matrix_at(const PackedWeight& weight, const std::vector<std::byte>& bytes, size_t k,
                size_t n) {
  const size_t index = packed_index(k, n, static_cast<size_t>(weight.row.width));
  if (weight.format == MatrixFormat::kF32) return float_at(bytes, index);
  uint16_t bits = 0;
  REQUIRE(2 * index + 2 <= bytes.size());
  std::memcpy(&bits, bytes.data() + 2 * index, 2);
  return float_from_half(bits);
}

WeightRow linear(int64_t rows, int64_t width, std::vector<std::string> sources,
                 std::vector<std::string> biases = {}) {
  return {.name = "layer",
          .sources = std::move(sources),
          .biases = std::move(biases),
          .rows = rows,
          .width = width};
}

}  // namespace

TEST_SUITE("cpu") {
  TEST_CASE("weights: a part of the rows of a matrix has their values and biases") {
    Opened opened;
    open(opened, {{"w", counting(DType::kF32, {6, 3})}, {"b", counting(DType::kF32, {6}, 100)}});
    WeightRow row = linear(2, 3, {"w"}, {"b"});
    row.row_order = {5, 4, 3, 2, 1, 0};
    row.part = MatrixPart{.whole_rows = 6, .whole_width = 3, .rows = {1, 3}};
    const auto weights = resolve(opened, {.rows = {row}});
    REQUIRE(weights.size() == 1);
    CHECK(weights[0].columns == 2);
    const auto bytes = packed_bytes(opened, weights[0]);
    for (size_t k = 0; k < 3; ++k) {
      CHECK(matrix_at(weights[0], bytes, k, 0) == static_cast<float>(4 * 3 + k + 1));
      CHECK(matrix_at(weights[0], bytes, k, 1) == static_cast<float>(2 * 3 + k + 1));
      CHECK(matrix_at(weights[0], bytes, k, 2) == 0);
    }
    CHECK(float_at(bytes, weights[0].bias_offset) == 104);
    CHECK(float_at(bytes, weights[0].bias_offset + 1) == 102);
  }

  TEST_CASE("weights: a part of the inputs of a matrix is what a matrix of them alone is") {
    Tensor whole = counting(DType::kF32, {70, 512}), part = Tensor::zeros(DType::kF32, {70, 256});
    Tensor turned = Tensor::zeros(DType::kF32, {512, 70});
    for (size_t n = 0; n < 70; ++n) {
      std::memcpy(part.bytes.data() + 4 * n * 256, whole.bytes.data() + 4 * (n * 512 + 256), 1024);
      for (size_t k = 0; k < 512; ++k) {
        std::memcpy(turned.bytes.data() + 4 * (k * 70 + n), whole.bytes.data() + 4 * (n * 512 + k),
                    4);
      }
    }
    Opened opened;
    open(opened, {{"whole", whole}, {"part", part}, {"turned", turned}});
    WeightRow divided = linear(70, 256, {"whole"});
    divided.part = MatrixPart{.whole_rows = 70, .whole_width = 512, .rows = {}, .first_input = 256};
    for (uint32_t i = 0; i < 70; ++i) divided.part->rows.push_back(i);
    WeightRow columns = divided;
    columns.sources = {"turned"};
    columns.axes = WeightRow::Axes::kInOut;
    const WeightTable table{.rows = {divided, columns, linear(70, 256, {"part"})}};
    for (WeightFormat format : {WeightFormat::kF32, WeightFormat::kQ8, WeightFormat::kQ4K}) {
      CAPTURE(choice_name(format));
      const auto weights = resolve(opened, table, format);
      REQUIRE(weights.size() == 3);
      const auto alone = packed_bytes(opened, weights[2]);
      CHECK(packed_bytes(opened, weights[0]) == alone);
      CHECK(packed_bytes(opened, weights[1]) == alone);
    }
  }

  TEST_CASE("weights: a part that begins within a quantization block is refused") {
    Opened opened;
    open(opened, {{"w", counting(DType::kF32, {64, 96})}});
    WeightRow row = linear(64, 48, {"w"});
    row.part = MatrixPart{.whole_rows = 64, .whole_width = 96, .rows = {}, .first_input = 48};
    for (uint32_t i = 0; i < 64; ++i) row.part->rows.push_back(i);
    const auto resolved = resolve_weights({.rows = {row}}, *opened.checkpoint, WeightFormat::kQ8);
    REQUIRE_FALSE(resolved.ok());
    CHECK(resolved.error().code == ErrorCode::kUnsupported);
    CHECK_MESSAGE(contains(resolved.error().message, "quantizes 32 together"),
                  resolved.error().message);
    CHECK(resolve(opened, {.rows = {row}}, WeightFormat::kF16)[0].format == MatrixFormat::kF16);
  }

  TEST_CASE("weights: matrices are transposed into panels, widened from every float type") {
    for (DType dtype : {DType::kF32, DType::kF16, DType::kBF16, DType::kF64}) {
      for (WeightFormat format :
           {WeightFormat::kAsStored, WeightFormat::kF32, WeightFormat::kF16}) {
        CAPTURE(dtype_name(dtype));
        Opened opened;
        open(opened, {{"w", counting(dtype, {70, 3})}, {"b", counting(dtype, {70}, 100)}});
        const auto weights = resolve(opened, {.rows = {linear(70, 3, {"w"}, {"b"})}}, format);
        REQUIRE(weights.size() == 1);
        const bool half = format == WeightFormat::kF16 ||
                          (format == WeightFormat::kAsStored && dtype == DType::kF16);
        CHECK(weights[0].format == (half ? MatrixFormat::kF16 : MatrixFormat::kF32));
        const auto bytes = packed_bytes(opened, weights[0]);
        for (size_t n = 0; n < 70; ++n) {
          for (size_t k = 0; k < 3; ++k) {
            CHECK(matrix_at(weights[0], bytes, k, n) == static_cast<float>(n * 3 + k + 1));
          }
          CHECK(float_at(bytes, weights[0].bias_offset + n) == static_cast<float>(100 + n));
        }
        for (size_t n = 70; n < 128; ++n) CHECK(matrix_at(weights[0], bytes, 2, n) == 0);
        CHECK(weights[0].bytes % 4 == 0);
      }
    }
  }

  TEST_CASE("weights: slices of a matrix hold its columns, each with its bias") {
    Opened opened;
    open(opened,
         {{"w", counting(DType::kF32, {150, 3})}, {"b", counting(DType::kF32, {150}, 100)}});
    const WeightTable table{.rows = {linear(150, 3, {"w"}, {"b"})}};
    // Room for two panels of 64 columns with their bias, and a byte short of it all.
    const uint64_t whole = resolve(opened, table).front().bytes;
    for (uint64_t most : {uint64_t{2 * 4 * 64 * (3 + 1)}, whole - 1}) {
      const auto weights =
          resolve_weights(table, *opened.checkpoint, WeightFormat::kAsStored, most).value();
      REQUIRE(weights.size() == 2);
      CHECK(weights[1].first_column == 128);
      CHECK(weights[1].columns == 22);
      for (const PackedWeight& weight : weights) {
        CHECK(weight.bytes <= most);
        const auto bytes = packed_bytes(opened, weight);
        for (size_t n = 0; n < static_cast<size_t>(weight.columns); ++n) {
          const size_t column = static_cast<size_t>(weight.first_column) + n;
          CHECK(matrix_at(weight, bytes, 2, n) == static_cast<float>(column * 3 + 3));
          CHECK(float_at(bytes, weight.bias_offset + n) == static_cast<float>(100 + column));
        }
      }
    }
    CHECK(resolve(opened, table).size() == 1);
  }

  TEST_CASE("weights: the packed form is the one that pack_matrix makes") {
    Opened opened;
    open(opened, {{"w", counting(DType::kF32, {9, 5})}, {"b", counting(DType::kF32, {9}, 7)}});
    for (WeightFormat format : {WeightFormat::kF32, WeightFormat::kF16}) {
      const auto weights = resolve(opened, {.rows = {linear(9, 5, {"w"}, {"b"})}}, format);
      const auto bytes = packed_bytes(opened, weights[0]);
      std::vector<float> values(45), bias(9);
      for (size_t i = 0; i < 45; ++i) values[i] = static_cast<float>(i + 1);
      for (size_t i = 0; i < 9; ++i) bias[i] = static_cast<float>(i + 7);
      const auto packed = pack_matrix(values, {9, 5, MatrixOrder::kOutIn}, bias, weights[0].format);
      REQUIRE(packed.ok());
      CHECK(packed->bias_offset == weights[0].bias_offset);
      REQUIRE(packed->words.size() * 4 <= bytes.size());
      CHECK(std::memcmp(packed->words.data(), bytes.data(), packed->words.size() * 4) == 0);
    }
  }

  TEST_CASE("weights: several sources lie side by side, each with its bias") {
    Opened opened;
    open(opened, {{"q.w", counting(DType::kF32, {2, 4}, 1)},
                  {"k.w", counting(DType::kF32, {3, 4}, 50)},
                  {"q.b", counting(DType::kF32, {2}, 200)},
                  {"k.b", counting(DType::kF32, {3}, 300)}});
    WeightRow row = linear(5, 4, {"q.w", "k.w"}, {"q.b", "k.b"});
    row.source_rows = {2, 3};
    const auto weights = resolve(opened, {.rows = {row}});
    const auto bytes = packed_bytes(opened, weights[0]);
    CHECK(matrix_at(weights[0], bytes, 0, 0) == 1);
    CHECK(matrix_at(weights[0], bytes, 3, 1) == 8);
    CHECK(matrix_at(weights[0], bytes, 0, 2) == 50);
    CHECK(matrix_at(weights[0], bytes, 3, 4) == 61);
    const float biases[] = {200, 201, 300, 301, 302};
    for (size_t i = 0; i < 5; ++i) CHECK(float_at(bytes, weights[0].bias_offset + i) == biases[i]);
  }

  TEST_CASE("weights: rows of a merged matrix and of its bias") {
    Opened opened;
    open(opened,
         {{"in_proj", counting(DType::kF32, {6, 2})}, {"b", counting(DType::kF32, {6}, 50)}});
    WeightRow q = linear(2, 2, {"in_proj"}, {"b"});
    q.first_row = 0;
    q.source_rows = {6};
    WeightRow kv = linear(4, 2, {"in_proj"}, {"b"});
    kv.first_row = 2;
    kv.source_rows = {6};
    const auto weights = resolve(opened, {.rows = {q, kv}});
    const auto first = packed_bytes(opened, weights[0]);
    const auto second = packed_bytes(opened, weights[1]);
    CHECK(matrix_at(weights[0], first, 1, 1) == 4);
    CHECK(float_at(first, weights[0].bias_offset + 1) == 51);
    CHECK(matrix_at(weights[1], second, 0, 0) == 5);
    CHECK(matrix_at(weights[1], second, 1, 3) == 12);
    CHECK(float_at(second, weights[1].bias_offset) == 52);
    CHECK(float_at(second, weights[1].bias_offset + 3) == 55);
  }

  TEST_CASE("weights: norms are gain and bias, tables are as computed") {
    Opened opened;
    open(opened, {{"g", counting(DType::kBF16, {3})}, {"b", counting(DType::kF16, {3}, 9)}});
    const WeightRow norm{.name = "norm",
                         .layout = WeightLayout::kNorm,
                         .sources = {"g"},
                         .biases = {"b"},
                         .width = 3};
    WeightRow plain = norm;
    plain.biases.clear();
    const WeightRow positions{.name = "positions",
                              .layout = WeightLayout::kTable,
                              .rows = 2,
                              .width = 2,
                              .computed = {0.5f, 1, -2, 4}};
    const auto weights = resolve(opened, {.rows = {norm, plain, positions}});
    const auto both = packed_bytes(opened, weights[0]);
    const auto gain = packed_bytes(opened, weights[1]);
    const auto table = packed_bytes(opened, weights[2]);
    for (size_t i = 0; i < 3; ++i) {
      CHECK(float_at(both, i) == static_cast<float>(i + 1));
      CHECK(float_at(both, 3 + i) == static_cast<float>(i + 9));
      CHECK(float_at(gain, 3 + i) == 0);
    }
    CHECK(weights[0].format == MatrixFormat::kF32);
    for (size_t i = 0; i < 4; ++i) CHECK(float_at(table, i) == positions.computed[i]);
  }

  TEST_CASE("weights: a batch norm is folded into its convolution") {
    const auto vector = [](std::vector<float> values) {
      return Tensor::from_floats({static_cast<int64_t>(values.size())}, values);
    };
    const TensorMap tensors = {{"conv.weight", counting(DType::kF32, {2, 1, 1, 2})},
                               {"bn.weight", vector({2, 3})},
                               {"bn.bias", vector({10, 20})},
                               {"bn.running_mean", vector({1, 2})},
                               {"bn.running_var", vector({4, 9})}};
    WeightTable table;
    table.rows = {conv_norm_row("conv", "conv", "bn", 2, 2)};
    table.rows[0].batch_norm_epsilon = 0.0f;
    {
      Opened opened;
      open(opened, tensors);
      const auto weights = resolve(opened, table);
      const auto bytes = packed_bytes(opened, weights[0]);
      // Scales of 2 / 2 and 3 / 3.
      CHECK(float_at(bytes, packed_index(1, 0, 2)) == 2.0f);
      CHECK(float_at(bytes, packed_index(1, 1, 2)) == 4.0f);
      CHECK(float_at(bytes, weights[0].bias_offset) == 9.0f);
      CHECK(float_at(bytes, weights[0].bias_offset + 1) == 18.0f);
    }
    TensorMap damaged = tensors;
    damaged["bn.running_var"] = vector({4, 9, 1});
    check_refused(damaged, table, "bn.running_var", "(3)");
    damaged["bn.running_var"] = vector({4, -9});
    Opened opened;
    open(opened, damaged);
    const auto weights = resolve(opened, table);
    std::vector<std::byte> bytes(weights[0].bytes);
    const Status packed = pack_weight(weights[0], *opened.checkpoint, bytes);
    REQUIRE_FALSE(packed.ok());
    CHECK_MESSAGE(contains(packed.error().message, "-9"), packed.error().message);
  }

  TEST_CASE("weights: the packed bytes are those of the layout that packs on disk have") {
    // Packs store these bytes (weights/device_weights.h). Where this digest has to change, raise
    // kLayoutVersion, so that older packs are refused.
    Tensor w = Tensor::zeros(DType::kF32, {70, 320});
    for (size_t i = 0; i < w.bytes.size() / 4; ++i) {
      const float value = static_cast<float>(static_cast<int>(i * 37 % 31) - 15) / 16.0f;
      std::memcpy(w.bytes.data() + 4 * i, &value, 4);
    }
    Opened opened;
    open(opened, {{"w", w}, {"b", counting(DType::kF32, {70})}});
    std::vector<std::byte> all;
    for (const MatrixFormat format : kMatrixFormats) {
      const auto weights =
          resolve(opened, {.rows = {linear(70, 320, {"w"}, {"b"})}}, weight_format_of(format));
      const auto bytes = packed_bytes(opened, weights[0]);
      all.insert(all.end(), bytes.begin(), bytes.end());
    }
    CHECK(hexadecimal(sha256(all)) ==
          "087cf933d5d87b48891cc4c4514858237605b6a2159e0ef320f71052277df2df");
  }

  TEST_CASE("weights: missing, misshaped, misnamed and mistyped tensors are refused by name") {
    const Tensor w = counting(DType::kF32, {4, 3});
    const Tensor b = counting(DType::kF32, {4});
    const WeightTable table{.rows = {linear(4, 3, {"w"}, {"b"})}};
    check_refused({{"b", b}}, table, "w", "missing");
    check_refused({{"w", w}}, table, "b", "missing");
    check_refused({{"w", counting(DType::kF32, {3, 4})}, {"b", b}}, table, "w", "(3, 4)");
    check_refused({{"w", counting(DType::kF32, {5, 3})}, {"b", b}}, table, "w", "(5, 3)");
    check_refused({{"w", counting(DType::kF32, {12})}, {"b", b}}, table, "w", "(12)");
    check_refused({{"w", w}, {"b", counting(DType::kF32, {3})}}, table, "b", "(3)");
    check_refused({{"w", w}, {"b", b}, {"extra", b}}, table, "extra", "not a tensor");
    check_refused({{"w", Tensor::zeros(DType::kI8, {4, 3})}, {"b", b}}, table, "w", "I8");
    check_refused({{"w", w}, {"b", Tensor::zeros(DType::kI64, {4})}}, table, "b", "I64");
  }

  TEST_CASE("weights: misfits of stacked sources, slices and norms are refused by name") {
    const Tensor part = counting(DType::kF32, {2, 3});
    const Tensor bias = counting(DType::kF32, {2});
    const WeightTable stack{.rows = {linear(4, 3, {"q", "k"}, {"qb", "kb"})}};
    check_refused({{"q", part}, {"k", part}, {"qb", bias}, {"kb", counting(DType::kF32, {3})}},
                  stack, "kb", "(3)");
    check_refused({{"q", part}, {"qb", bias}, {"kb", bias}}, stack, "k", "missing");
    WeightRow slice = linear(2, 3, {"q"}, {"qb"});
    slice.first_row = 1;
    slice.source_rows = {3};
    check_refused({{"q", part}, {"qb", bias}}, {.rows = {slice}}, "q", "(2, 3)");
    check_refused({{"q", counting(DType::kF32, {3, 3})}, {"qb", bias}}, {.rows = {slice}}, "qb",
                  "(2)");
    // Too many rows are as wrong as too few.
    check_refused({{"q", counting(DType::kF32, {4, 3})}, {"qb", bias}}, {.rows = {slice}}, "q",
                  "(4, 3)");
    const Tensor bias5 = counting(DType::kF32, {5});
    check_refused({{"q", counting(DType::kF32, {5, 3})}, {"qb", bias5}, {"k", part}, {"kb", bias}},
                  stack, "q", "(5, 3)");
    const WeightRow norm{
        .name = "n", .layout = WeightLayout::kNorm, .sources = {"g"}, .biases = {"b"}, .width = 3};
    check_refused({{"g", bias}, {"b", bias}}, {.rows = {norm}}, "g", "(2)");
    check_refused({{"g", counting(DType::kF32, {3})}, {"b", bias}}, {.rows = {norm}}, "b", "(2)");
  }

  TEST_CASE("weights: ignored names may end with anything after a star") {
    const Tensor w = counting(DType::kF32, {4, 3});
    Opened opened;
    open(opened, {{"w", w}, {"old.table", w}, {"old.more", w}, {"copy", w}});
    resolve(opened, {.rows = {linear(4, 3, {"w"})}, .ignored = {"old.*", "copy"}});
    check_refused({{"w", w}, {"copies", w}}, {.rows = {linear(4, 3, {"w"})}, .ignored = {"copy"}},
                  "copies", "not a tensor");
  }

  TEST_CASE("weights: halves refuse what they cannot hold, and keep infinities and NaN") {
    const float values[] = {70000, 1, 2, 3};
    Opened opened;
    open(opened, {{"w", Tensor::from_floats({2, 2}, values)}});
    const auto weights = resolve(opened, {.rows = {linear(2, 2, {"w"})}}, WeightFormat::kF16);
    std::vector<std::byte> bytes(weights[0].bytes);
    const Status packed = pack_weight(weights[0], *opened.checkpoint, bytes);
    REQUIRE_FALSE(packed.ok());
    CHECK(packed.error().code == ErrorCode::kUnsupported);
    CHECK(contains(packed.error().message, "[layer]"));
    CHECK(contains(packed.error().message, "70000"));
    CHECK_FALSE(pack_matrix(values, {2, 2, MatrixOrder::kOutIn}, {}, MatrixFormat::kF16).ok());
    CHECK(pack_matrix(values, {2, 2, MatrixOrder::kOutIn}, {}, MatrixFormat::kF32).ok());
    const float special[] = {std::numeric_limits<float>::infinity(), 65504, -65504,
                             std::numeric_limits<float>::quiet_NaN()};
    const auto kept = pack_matrix(special, {4, 1, MatrixOrder::kOutIn}, {}, MatrixFormat::kF16);
    REQUIRE(kept.ok());
    const auto half_at = [&](size_t n) {
      return kept->words[packed_index(0, n, 1) / 2] >> (n % 2 * 16) & 0xffff;
    };
    CHECK(half_at(0) == 0x7c00);
    CHECK(half_at(1) == 0x7bff);
    CHECK(half_at(2) == 0xfbff);
    CHECK((half_at(3) & 0x7fff) > 0x7c00);
  }

  TEST_CASE("weights: both orders of a matrix pack to the same words") {
    std::vector<float> out_in(15), in_out(15);
    for (size_t n = 0; n < 5; ++n) {
      for (size_t k = 0; k < 3; ++k) {
        out_in[n * 3 + k] = in_out[k * 5 + n] = static_cast<float>(n * 10 + k);
      }
    }
    const auto a = pack_matrix(out_in, {5, 3, MatrixOrder::kOutIn}, {}, MatrixFormat::kF32);
    const auto b = pack_matrix(in_out, {5, 3, MatrixOrder::kInOut}, {}, MatrixFormat::kF32);
    REQUIRE(a.ok());
    REQUIRE(b.ok());
    CHECK(a->words == b->words);
    CHECK(a->bias_offset == ~0u);
    CHECK(a->words.size() == packed_elements(5, 3));
  }
}

}  // namespace vkformer::testing
