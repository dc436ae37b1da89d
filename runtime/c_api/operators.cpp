#include <iterator>
#include <optional>

#include "base/message.h"
#include "c_api/enums.h"
#include "c_api/interop.h"
#include "vkformer/attention.h"
#include "vkformer/operators.h"
#include "vkformer/vulkan_interop.h"

struct vkf_strings {
  std::vector<std::string> texts;
};

struct vkf_recorded_operator {
  vkformer::RecordedOperator recorded;
};

struct vkf_attention {
  vkformer::MultiHeadAttention block;
};

namespace vkformer {
namespace {

OperatorCall operator_call(const vkf_operator_call* call) {
  const vkf_operator_call given = read_needed(call, "operator call");
  need_all({{given.name, "name"}, {given.inputs, "inputs"}});
  return OperatorCall{given.name, text_or(given.attributes_json, "{}"), given.inputs->map};
}

OperatorOptions operator_options(const vkf_operator_options* options) {
  const vkf_operator_options given = read_struct(options, "operator options");
  OperatorOptions made;
  made.precision = choice_or(given.precision, Precision::kF32);
  made.weights = choice_or(given.weights, WeightFormat::kF32);
  if (given.repeats != 0) made.repeats = given.repeats;
  made.poison = given.poison != 0;
  return made;
}

void write_costs(vkf_operator_costs* out, const OperatorResult& from) {
  if (out == nullptr) return;
  vkf_operator_costs c{};
  c.dispatches = from.dispatches;
  c.scratch_bytes = from.scratch_bytes;
  c.milliseconds = from.milliseconds;
  c.flops = from.flops;
  c.bytes = from.bytes;
  return write_struct(out, c, "operator costs");
}

const std::map<std::string, OperatorTensor>& side_of(const vkf_recorded_operator& recorded,
                                                     int32_t side) {
  return side == VKF_OPERATOR_OUTPUTS ? recorded.recorded.outputs() : recorded.recorded.inputs();
}

MultiHeadAttentionOptions attention_options(const vkf_attention_options* options) {
  const vkf_attention_options given = read_needed(options, "attention options");
  MultiHeadAttentionOptions made;
  made.d_model = given.d_model;
  if (given.heads != 0) made.heads = given.heads;
  made.projection = value_of<MultiHeadAttentionOptions::Projection>(given.projection, "projection");
  made.causal = given.causal != 0;
  made.keep_weights = given.drop_weights == 0;
  return made;
}

}  // namespace
}  // namespace vkformer

using namespace vkformer;

size_t vkf_strings_count(const vkf_strings* strings) {
  return strings != nullptr ? strings->texts.size() : 0;
}

const char* vkf_strings_get(const vkf_strings* strings, size_t index) {
  if (strings == nullptr || index >= strings->texts.size()) return nullptr;
  return strings->texts[index].c_str();
}

void vkf_strings_free(vkf_strings* strings) {
  delete strings;
}

vkf_status vkf_operator_names(vkf_strings** names, vkf_error* error) {
  return make_handle(names, error, [] { return handle(vkf_strings{operator_names()}); });
}

vkf_status vkf_operator_run(const vkf_device* device, const vkf_operator_call* call,
                            const vkf_operator_options* options, vkf_tensors** outputs,
                            vkf_operator_costs* costs, vkf_error* error) {
  return make_handle(outputs, error, [&] {
    need(device, "device");
    const OperatorCall read = operator_call(call);
    const OperatorOptions how = operator_options(options);
    OperatorResult made = take(run_operator(device->device, read, how));
    write_costs(costs, made);
    return tensors_of(std::move(made.outputs));
  });
}

vkf_status vkf_recorded_operator_create(const vkf_device* device, const vkf_operator_call* call,
                                        vkf_recorded_operator** recorded, vkf_error* error) {
  return make_handle(recorded, error, [&] {
    need(device, "device");
    const OperatorCall read = operator_call(call);
    RecordedOperator made = take(RecordedOperator::create(device->device, read));
    return handle(vkf_recorded_operator{std::move(made)});
  });
}

void vkf_recorded_operator_free(vkf_recorded_operator* recorded) {
  delete recorded;
}

size_t vkf_recorded_operator_count(const vkf_recorded_operator* recorded, int32_t side) {
  return recorded != nullptr ? side_of(*recorded, side).size() : 0;
}

vkf_status vkf_recorded_operator_get(const vkf_recorded_operator* recorded, int32_t side,
                                     size_t index, vkf_operator_tensor* tensor, vkf_error* error) {
  return guard(error, [&] {
    need(recorded, "recorded operator");
    const auto& tensors = side_of(*recorded, side);
    check_index(index, tensors.size(), "tensor");
    const auto found = std::next(tensors.begin(), static_cast<std::ptrdiff_t>(index));
    vkf_operator_tensor c{};
    c.dtype = dtype_to(found->second.dtype);
    c.name = found->first.c_str();
    c.shape = found->second.shape.data();
    c.rank = found->second.shape.size();
    c.bytes = found->second.bytes;
    return write_struct(tensor, c, "operator tensor");
  });
}

vkf_status vkf_recorded_operator_bind(vkf_recorded_operator* recorded,
                                      const vkf_buffer_range* ranges, size_t count,
                                      vkf_error* error) {
  return guard(error, [&] {
    need(recorded, "recorded operator");
    take(recorded->recorded.bind(buffer_ranges(ranges, count)));
  });
}

vkf_status vkf_recorded_operator_record(vkf_recorded_operator* recorded, void* command_buffer,
                                        vkf_error* error) {
  return guard(error, [&] {
    need_all({{recorded, "recorded operator"}, {command_buffer, "command buffer"}});
    take(recorded->recorded.record(static_cast<VkCommandBuffer>(command_buffer)));
  });
}

vkf_status vkf_attention_create(const vkf_device* device, const vkf_attention_options* options,
                                const vkf_tensors* weights, vkf_attention** attention,
                                vkf_error* error) {
  return make_handle(attention, error, [&] {
    need_all({{device, "device"}, {weights, "weights"}});
    const MultiHeadAttentionOptions read = attention_options(options);
    MultiHeadAttention made = take(MultiHeadAttention::create(device->device, read, weights->map));
    return handle(vkf_attention{std::move(made)});
  });
}

vkf_status vkf_attention_run(const vkf_attention* attention, const vkf_tensors* inputs,
                             vkf_tensors** outputs, vkf_error* error) {
  return make_handle(outputs, error, [&] {
    need_all({{attention, "attention"}, {inputs, "inputs"}});
    const auto x = inputs->map.find("x");
    const auto mask = inputs->map.find("key_mask");
    if (x == inputs->map.end()) {
      refuse(not_found("[x] is not among the inputs of the attention; set it (B, T, D)."));
    }
    const Tensor* key_mask = mask != inputs->map.end() ? &mask->second : nullptr;
    AttentionResult made = take(attention->block.run(x->second, key_mask));
    TensorMap map;
    if (!made.weights.bytes.empty()) map["weights"] = std::move(made.weights);
    map["output"] = std::move(made.output);
    return tensors_of(std::move(map));
  });
}

void vkf_attention_free(vkf_attention* attention) {
  delete attention;
}
