#include "c_api/support.h"
#include "vkformer/model_pack.h"
#include "vkformer/quantize.h"

namespace vkformer {
namespace {

vkf_quantize_report c_report(const QuantizeReport& made) {
  vkf_quantize_report c{};
  c.tensors = made.tensors;
  c.matrices = made.matrices;
  c.bytes_before = made.bytes_before;
  c.bytes_after = made.bytes_after;
  return c;
}

// The bytes of 64 hexadecimal digits.
void put_digest(const std::string& digits, uint8_t (&bytes)[32]) {
  const auto value = [](char digit) { return digit <= '9' ? digit - '0' : digit - 'a' + 10; };
  for (size_t i = 0; i < 32 && 2 * i + 1 < digits.size(); ++i) {
    bytes[i] = static_cast<uint8_t>(16 * value(digits[2 * i]) + value(digits[2 * i + 1]));
  }
}

}  // namespace
}  // namespace vkformer

using namespace vkformer;

vkf_status vkf_quantize_model(const char* model, const char* target,
                              const vkf_quantize_options* options, vkf_quantize_report* report,
                              vkf_error* error) {
  return guard(error, [&] {
    need_all({{model, "model"}, {target, "target"}});
    const vkf_quantize_options given = read_struct(options, "quantize options");
    QuantizeOptions read;
    read.weights = choice_or(given.weights, WeightFormat::kQ8);
    const QuantizeReport made = take(quantize_model(model, target, read));
    if (report == nullptr) return;
    write_struct(report, c_report(made), "quantize report");
  });
}

vkf_status vkf_write_gguf(const char* model, const char* target, const vkf_gguf_options* options,
                          vkf_quantize_report* report, vkf_error* error) {
  return guard(error, [&] {
    need_all({{model, "model"}, {target, "target"}});
    const vkf_gguf_options given = read_struct(options, "gguf options");
    GgufOptions read;
    read.weights = choice_or(given.weights, WeightFormat::kQ8_0);
    read.adapters = adapters_of(given);
    const QuantizeReport made = take(write_gguf(model, target, read));
    if (report != nullptr) write_struct(report, c_report(made), "quantize report");
  });
}

vkf_status vkf_pack_model(const char* model, const char* target, const vkf_pack_options* options,
                          vkf_pack_report* report, vkf_error* error) {
  return guard(error, [&] {
    need_all({{model, "model"}, {target, "target"}});
    const vkf_pack_options given = read_struct(options, "pack options");
    PackOptions read;
    if (given.weights != nullptr && *given.weights != '\0') {
      read.weights = take(choice_from_name<WeightFormat>(given.weights));
    }
    read.adapters = adapters_of(given);
    read.device_layout = given.device_layout != 0;
    const PackInfo made = take(pack_model(model, target, read));
    if (report == nullptr) return;
    vkf_pack_report c{};
    c.size = made.size;
    c.files = made.files.size();
    put_digest(made.sha256, c.sha256);
    write_struct(report, c, "pack report");
  });
}
