#include "checkpoint/quantization_method.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/message.h"
#include "checkpoint/message_text.h"

namespace vkformer {
namespace {

constexpr const char* kKey = "quantization_config";
constexpr const char* kOlderKey = "compression_config";  // of compressed-tensors

Error refused(const JsonConfig& settings, const std::string& what) {
  return unsupported(
      message({"[", kKey, "] in ", settings.where(), " ", what,
               ", which is not supported; take the model as it was before, and make it small with "
               "`vkformer quantize` or --weights."}));
}

Result<std::string> lower_string(const JsonConfig& settings, const std::string& key,
                                 const std::string& fallback) {
  VKF_ASSIGN(std::string text, settings.get_string_or(key, fallback));
  for (char& c : text) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  return text;
}

// A key whose value must be one of those that vkformer reads.
Status check_choice(const JsonConfig& settings, const std::string& key,
                    const std::vector<std::string>& known) {
  VKF_ASSIGN(const std::string value, lower_string(settings, key, known.front()));
  if (std::find(known.begin(), known.end(), value) != known.end()) return {};
  return refused(settings, message({"has [", key, "] ", bracketed(value)}));
}

Status read_bits_and_groups(const JsonConfig& settings, const std::vector<int64_t>& known,
                            QuantizationMethod& method) {
  VKF_ASSIGN(const int64_t bits, settings.get_int("bits"));
  if (std::find(known.begin(), known.end(), bits) == known.end()) {
    return refused(settings, message({"has [bits] ", bits}));
  }
  VKF_ASSIGN(const int64_t group, settings.get_int_or("group_size", 128));
  if (group != -1 && (group < 1 || group > INT32_MAX)) {
    return invalid_file(message({"[", kKey, "] in ", settings.where(), " has [group_size] ", group,
                                 ", but it must be -1 or 1 to ", INT32_MAX, "."}));
  }
  method.bits = {bits};
  method.group_sizes = {group};
  return {};
}

Status read_gptq(const JsonConfig& settings, QuantizationMethod& method) {
  method.kind = QuantizationKind::kGptq;
  VKF_CHECK(read_bits_and_groups(settings, {2, 3, 4, 8}, method));
  VKF_CHECK(check_choice(settings, "checkpoint_format", {"gptq", "gptq_v2"}));
  VKF_CHECK(check_choice(settings, "pack_dtype", {"int32"}));
  VKF_ASSIGN(const std::string format, lower_string(settings, "checkpoint_format", "gptq"));
  VKF_ASSIGN(const bool marlin, settings.get_bool_or("is_marlin_format", false));
  if (marlin) return refused(settings, "says that GPTQ's weights are in Marlin's order");
  method.zeros_less_one = format == "gptq";
  method.bits_vary = settings.has("dynamic");
  return {};
}

Status read_awq(const JsonConfig& settings, QuantizationMethod& method) {
  method.kind = QuantizationKind::kAwq;
  VKF_CHECK(check_choice(settings, "version", {"gemm"}));
  VKF_CHECK(check_choice(settings, "format", {"gemm"}));
  return read_bits_and_groups(settings, {4}, method);
}

// "128x128", or a list of two.
Result<std::vector<int64_t>> block_structure(const JsonConfig& weights) {
  const std::string key = "block_structure";
  if (!weights.has(key)) return std::vector<int64_t>();
  auto list = weights.get_int_list_or(key, {});
  if (list) return list;
  VKF_ASSIGN(const std::string text, weights.get_string(key));
  const size_t by = text.find('x');
  std::vector<int64_t> sizes(2, 0);
  for (size_t i = 0; i < 2 && by != std::string::npos; ++i) {
    const std::string digits = i == 0 ? text.substr(0, by) : text.substr(by + 1);
    if (digits.empty() || digits.size() > 9) continue;
    if (digits.find_first_not_of("0123456789") == std::string::npos) sizes[i] = std::stoll(digits);
  }
  return sizes;
}

// Rows and columns of a block, which a file gives.
Status check_block(const JsonConfig& settings, const std::vector<int64_t>& block) {
  if (block.empty()) return {};
  const auto fits = [](int64_t size) { return size > 0 && size <= INT32_MAX; };
  if (block.size() == 2 && fits(block[0]) && fits(block[1])) return {};
  return invalid_file(
      message({"[", kKey, "] in ", settings.where(),
               " has blocks of scales that are not two sizes of 1 to ", INT32_MAX, "."}));
}

Status read_compressed_group(const JsonConfig& settings, const JsonConfig& group,
                             QuantizationMethod& method) {
  VKF_CHECK(group.status());
  if (!group.has("weights")) return {};
  const JsonConfig weights = group.object("weights");
  VKF_CHECK(weights.status());
  VKF_ASSIGN(const int64_t bits, weights.get_int_or("num_bits", 8));
  VKF_ASSIGN(const int64_t size, weights.get_int_or("group_size", -1));
  VKF_ASSIGN(const std::vector<int64_t> block, block_structure(weights));
  VKF_CHECK(check_block(settings, block));
  method.bits.push_back(bits);
  if (size == -1 || (size > 0 && size <= INT32_MAX)) method.group_sizes.push_back(size);
  if (!block.empty()) method.block = block;
  return {};
}

Status read_compressed_tensors(const JsonConfig& settings, QuantizationMethod& method) {
  method.kind = QuantizationKind::kCompressedTensors;
  const std::vector<std::string> formats = {
      "dense",           "pack-quantized",       "int-quantized",        "float-quantized",
      "naive-quantized", "nvfp4-pack-quantized", "mxfp4-pack-quantized", "mixed-precision"};
  VKF_CHECK(check_choice(settings, "format", formats));
  const JsonConfig sparsity = settings.object("sparsity_config");
  VKF_CHECK(sparsity.status());
  VKF_CHECK(check_choice(sparsity, "format", {"dense"}));
  const JsonConfig transforms = settings.object("transform_config");
  VKF_CHECK(transforms.status());
  const JsonConfig rotations = transforms.object("config_groups");
  VKF_CHECK(rotations.status());
  if (!rotations.keys().empty()) {
    return refused(settings, "rotates activations by [transform_config]");
  }
  const JsonConfig groups = settings.object("config_groups");
  VKF_CHECK(groups.status());
  for (const std::string& name : groups.keys()) {
    const JsonConfig group = groups.object(name);
    VKF_CHECK(group.status());
    VKF_CHECK(check_choice(group, "format", formats));
    VKF_CHECK(read_compressed_group(settings, group, method));
  }
  return {};
}

Status read_float8(const JsonConfig& settings, QuantizationMethod& method) {
  method.kind = QuantizationKind::kFloat8;
  VKF_CHECK(check_choice(settings, "fmt", {"e4m3", "float8_e4m3fn", "e4m3fn"}));
  VKF_ASSIGN(method.block, settings.get_int_list_or("weight_block_size", {128, 128}));
  return check_block(settings, method.block);
}

}  // namespace

Result<QuantizationMethod> read_quantization(const JsonConfig& config) {
  QuantizationMethod method;
  const char* key = config.has(kKey) ? kKey : kOlderKey;
  if (!config.has(key)) return method;
  const JsonConfig settings = config.object(key);
  VKF_CHECK(settings.status());
  VKF_ASSIGN(const std::string said, settings.get_string_or("quant_method", "an unnamed method"));
  method.name = said;
  if (said == "gptq") {
    VKF_CHECK(read_gptq(settings, method));
  } else if (said == "awq") {
    VKF_CHECK(read_awq(settings, method));
  } else if (said == "compressed-tensors") {
    VKF_CHECK(read_compressed_tensors(settings, method));
  } else if (said == "bitsandbytes") {
    method.kind = QuantizationKind::kBitsAndBytes;
  } else if (said == "fp8" || said == "fbgemm_fp8") {
    VKF_CHECK(read_float8(settings, method));
  } else if (said == "mxfp4") {
    method.kind = QuantizationKind::kMxfp4;
  } else {
    return refused(settings,
                   message({"says that the weights are quantized by ", bracketed(said),
                            " and not by gptq, awq, compressed-tensors, bitsandbytes, fp8, "
                            "fbgemm_fp8 or mxfp4"}));
  }
  return method;
}

std::vector<std::string> quantization_keys() {
  return {kKey, kOlderKey};
}

}  // namespace vkformer
