// Matrices that other libraries quantized: the golden checkpoints weight by weight, and files that
// do not fit.
#include "checkpoint/coded_tensors.h"

#include <cmath>
#include <map>

#include "checkpoint/checkpoint.h"
#include "checkpoint/temp_dir.h"
#include "support/golden.h"
#include "weights/read_floats.h"

namespace vkformer::testing {
namespace {

std::string format_of_matrix(const std::string& name) {
  const auto checkpoint = Checkpoint::open(golden_case(name).path("model"));
  REQUIRE_MESSAGE(checkpoint.ok(), name << ": " << checkpoint.error().message);
  std::string format;
  for (const std::string& tensor : checkpoint->names()) {
    const TensorView& view = *checkpoint->find(tensor);
    if (view.blocks == nullptr) continue;
    REQUIRE(view.shape.size() == 2);
    format = format_name(view.blocks->format);
    const QuantizedSize size = quantized_size(view);
    std::vector<float> row(size.k);
    for (size_t n = 0; n < size.n; ++n) {
      read_elements(view, n * size.k, 1, row);
      for (size_t k = 0; k < size.k; ++k) {
        CHECK(element_as_float(view, n * size.k + k) == row[k]);
        if (!is_quantized(view.blocks->format)) continue;
        const WeightBlock block = quantized_block(view, n, k / kBlockSteps * kBlockSteps);
        CHECK(block_weight(block, k % kBlockSteps, view.blocks->format) == row[k]);
      }
    }
  }
  return format;
}

// A checkpoint of one matrix, 8 x 32, that GPTQ made; `change` may spoil it.
TensorMap gptq_tensors() {
  return {{"m.qweight", Tensor::zeros(DType::kI32, {4, 8})},
          {"m.qzeros", Tensor::zeros(DType::kI32, {1, 1})},
          {"m.scales", Tensor::zeros(DType::kF16, {1, 8})},
          {"m.g_idx", Tensor::zeros(DType::kI32, {32})}};
}

Result<Checkpoint> opened(const std::string& quantization, const TensorMap& tensors) {
  const test::TempDir directory;
  directory.write("config.json", "{\"quantization_config\": " + quantization + "}");
  REQUIRE(write_tensor_file(directory.file("model.safetensors"), tensors).ok());
  return Checkpoint::open(directory.path());
}

void check_refused(const std::string& quantization, const TensorMap& tensors, ErrorCode code,
                   const std::string& part) {
  const auto checkpoint = opened(quantization, tensors);
  REQUIRE_FALSE(checkpoint.ok());
  CHECK(checkpoint.error().code == code);
  CHECK_MESSAGE(test::contains(checkpoint.error().message, part), checkpoint.error().message);
}

constexpr const char* kGptq = R"({"quant_method": "gptq", "bits": 4, "group_size": 32})";

}  // namespace

TEST_SUITE("cpu") {
  TEST_CASE("coded tensors: what scales and groups allow is held exactly by a smaller format") {
    const std::map<std::string, std::string> expected = {
        {"quantized-gptq", "q8_0"},         {"quantized-awq-experts", "q8"},
        {"quantized-ct-int4", "q4"},        {"quantized-ct-int4-order", "f32"},
        {"quantized-ct-packed8", "q8"},     {"quantized-ct-int8", "q8"},
        {"quantized-ct-int8-zeros", "f32"}, {"quantized-ct-mxfp4", "mxfp4"},
        {"quantized-fp8-powers", "bf16"},   {"quantized-fp8-block", "f32"},
        {"quantized-bnb-nf4", "f32"}};
    for (const auto& [name, format] : expected) {
      CAPTURE(name);
      CHECK(format_of_matrix(name) == format);
    }
  }

  TEST_CASE("coded tensors: a zero point of GPTQ is one more than its code, but not in version 2") {
    TensorMap tensors = gptq_tensors();
    const uint16_t one = 0x3c00;
    for (size_t i = 0; i < 8; ++i) std::memcpy(&tensors["m.scales"].bytes[2 * i], &one, 2);
    tensors["m.qweight"].bytes[0] = std::byte{0x93};  // rows 0 and 1 of column 0
    const auto first = opened(kGptq, tensors);
    REQUIRE_MESSAGE(first.ok(), first.error().message);
    CHECK(first->names() == std::vector<std::string>{"m.weight"});
    const TensorView& weight = *first->find("m.weight");
    CHECK(weight.shape == Shape{8, 32});
    CHECK(element_as_float(weight, 0) == 2.0f);
    CHECK(element_as_float(weight, 1) == 8.0f);
    CHECK(element_as_float(weight, 32) == -1.0f);
    const auto second = opened(
        R"({"quant_method": "gptq", "bits": 4, "group_size": 32, "checkpoint_format": "gptq_v2"})",
        tensors);
    REQUIRE(second.ok());
    CHECK(element_as_float(*second->find("m.weight"), 0) == 3.0f);
  }

  TEST_CASE("coded tensors: a method or a value that is not read is refused by name") {
    const TensorMap plain = {{"w", Tensor::from_floats({1}, {1})}};
    const auto unsupported = ErrorCode::kUnsupported;
    check_refused(R"({"quant_method": "aqlm"})", plain, unsupported, "[aqlm]");
    check_refused("{}", plain, unsupported, "an unnamed method");
    check_refused(R"({"quant_method": "gptq", "bits": 5})", plain, unsupported, "[bits] 5");
    check_refused(R"({"quant_method": "gptq", "bits": 4, "is_marlin_format": true})", plain,
                  unsupported, "Marlin");
    check_refused(R"({"quant_method": "awq", "bits": 4, "version": "gemv"})", plain, unsupported,
                  "[gemv]");
    check_refused(R"({"quant_method": "compressed-tensors", "format": "marlin-24"})", plain,
                  unsupported, "[marlin-24]");
    check_refused(R"({"quant_method": "fp8", "fmt": "e5m2"})", plain, unsupported, "[e5m2]");
    check_refused(R"({"quant_method": "gptq", "bits": 4, "group_size": 0})", plain,
                  ErrorCode::kInvalidFile, "[group_size] 0");
    check_refused(R"({"quant_method": "fp8", "weight_block_size": [0, 1]})", plain,
                  ErrorCode::kInvalidFile, "blocks of scales");
  }

  TEST_CASE("coded tensors: parts that are missing or do not fit are refused by name") {
    const auto invalid = ErrorCode::kInvalidFile;
    for (const char* part : {"m.qzeros", "m.scales"}) {
      TensorMap tensors = gptq_tensors();
      tensors.erase(part);
      check_refused(kGptq, tensors, invalid, "[" + std::string(part) + "] is missing");
    }
    TensorMap tensors = gptq_tensors();
    tensors["m.qzeros"] = Tensor::zeros(DType::kI32, {1, 2});
    check_refused(kGptq, tensors, invalid, "[bits]");
    tensors = gptq_tensors();
    tensors["m.scales"] = Tensor::zeros(DType::kF16, {1, 9});
    check_refused(kGptq, tensors, invalid, "(groups, 8)");
    tensors = gptq_tensors();
    tensors["m.g_idx"].bytes[5] = std::byte{1};
    check_refused(kGptq, tensors, invalid, "256, but there are 1 groups");
    tensors = gptq_tensors();
    tensors["m.qweight"] = Tensor::zeros(DType::kI32, {0, 8});
    check_refused(kGptq, tensors, invalid, "not matrices of I32");
    tensors = {{"m.weight_packed", Tensor::zeros(DType::kI32, {8, 4})},
               {"m.weight_scale", Tensor::zeros(DType::kBF16, {8, 1})},
               {"m.weight_shape", Tensor::zeros(DType::kI64, {2})}};
    check_refused(R"({"quant_method": "compressed-tensors", "format": "pack-quantized",
                      "config_groups": {"a": {"weights": {"num_bits": 4}}}})",
                  tensors, invalid, "its shape has the size 0");
    tensors = {{"m.weight", Tensor::zeros(DType::kI8, {8, 4})},
               {"m.SCB", Tensor::zeros(DType::kF32, {7})}};
    check_refused(R"({"quant_method": "bitsandbytes"})", tensors, invalid, "F32 (N)");
  }
}

}  // namespace vkformer::testing
