#include "operators/operator_scores.h"

#include <algorithm>

#include "base/check.h"

namespace vkformer {
namespace {

using Dims = std::array<int64_t, 4>;

constexpr int64_t kMaxReach = int64_t{1} << 30;  // tokens

// What causal and windows say.
struct Reach {
  bool causal = false;
  std::optional<int64_t> left;
  std::optional<int64_t> right;
  int64_t offset = 0;
};

Result<Reach> read_reach(const OperatorArguments& arguments) {
  const JsonConfig& attributes = arguments.attributes();
  Reach reach;
  VKF_ASSIGN(reach.causal, attributes.get_bool_or("causal", false));
  VKF_ASSIGN(reach.offset, arguments.integer_or("causal_offset", 0, -kMaxReach, kMaxReach));
  if (attributes.has("window_left")) {
    VKF_ASSIGN(reach.left, arguments.integer_or("window_left", 0, 0, kMaxReach));
  }
  if (attributes.has("window_right")) {
    VKF_ASSIGN(reach.right, arguments.integer_or("window_right", 0, 0, kMaxReach));
  }
  return reach;
}

void set_reach(const Reach& reach, ScoreTermsParams& params) {
  params.causal_offset = static_cast<int32_t>(reach.offset);
  params.window_left = static_cast<int32_t>(reach.left.value_or(0));
  params.window_right = static_cast<int32_t>(reach.right.value_or(0));
  if (reach.causal) params.flags |= VKF_TERM_CAUSAL;
  if (reach.left) params.flags |= VKF_TERM_WINDOW_LEFT;
  if (reach.right) params.flags |= VKF_TERM_WINDOW_RIGHT;
}

// The prefix of every item, from the input or the attribute of that name, which is the same for
// all.
Result<std::optional<Tensor>> read_prefix(const OperatorArguments& arguments, const Dims& dims) {
  std::optional<Tensor> prefix;
  if (const Tensor* given = arguments.find("prefix")) prefix = *given;
  if (prefix || !arguments.attributes().has("prefix")) return prefix;
  VKF_ASSIGN(const int64_t tokens, arguments.integer_or("prefix", 0, 0, kMaxReach));
  const std::vector<int64_t> all(static_cast<size_t>(dims[0]), tokens);
  prefix = Tensor::from_ints({dims[0]}, all);
  return prefix;
}

Status read_block_map(const OperatorArguments& arguments, ScoreTermsInput& input) {
  const Tensor* map = arguments.find("block_map");
  const bool sized = arguments.attributes().has("block_size");
  if (map == nullptr && !sized) return {};
  if (map == nullptr || !sized) {
    return arguments.error(std::string("the ") +
                           (sized ? "attribute block_size is given without the input block_map"
                                  : "input block_map is given without the attribute block_size") +
                           "; give both or neither.");
  }
  VKF_ASSIGN(input.block_size, arguments.integer_or("block_size", 1, 1, kMaxReach));
  input.block_map = *map;
  input.block_map->shape = padded_shape(map->shape, 4);
  return {};
}

// The slopes of ALiBi, from the attribute or the input of that name; none where both are absent.
Result<std::vector<float>> read_slopes(const OperatorArguments& arguments) {
  if (arguments.find("alibi_slopes") != nullptr) {
    VKF_ASSIGN(const Tensor slopes, arguments.floats("alibi_slopes"));
    return slopes.to_floats();
  }
  VKF_ASSIGN(const std::vector<double> slopes,
             arguments.attributes().get_double_list_or("alibi_slopes", {}));
  return std::vector<float>(slopes.begin(), slopes.end());
}

}  // namespace

Result<std::vector<uint32_t>> packed_mask(const OperatorArguments& arguments,
                                          const std::string& name, const Shape& shape) {
  VKF_ASSIGN(const Tensor* given, arguments.require(name));
  if (given->shape != shape) {
    return arguments.error(name + " has shape " + shape_text(given->shape) + ", but must be " +
                           shape_text(shape) + ", one value per token.");
  }
  auto values = given->to_ints();
  if (!values) return values.error().with_context("[" + name + "]");
  std::vector<uint8_t> kept(values->size());
  std::transform(values->begin(), values->end(), kept.begin(),
                 [](int64_t value) { return static_cast<uint8_t>(value != 0); });
  return pack_key_mask(kept, shape[0], shape[1]);
}

uint32_t visited_keys(const ScoreTerms& terms) {
  if (terms.keys_of_blocks > 0) return terms.keys_of_blocks;
  const ScoreTermsParams& t = terms.params;
  const uint32_t needed = VKF_TERM_WINDOW_LEFT;
  const uint32_t more = VKF_TERM_PREFIX | VKF_TERM_DOCUMENTS;
  const bool ends = (t.flags & (VKF_TERM_CAUSAL | VKF_TERM_WINDOW_RIGHT)) != 0;
  if ((t.flags & needed) == 0 || !ends || (t.flags & more) != 0) return 0;
  const bool causal = (t.flags & VKF_TERM_CAUSAL) != 0;
  const int64_t keys = int64_t{1} + t.window_left + (causal ? 0 : t.window_right);
  // A global query visits every key, which is as much as one more key for every query.
  return static_cast<uint32_t>(keys + 2 * int64_t{terms.most_global});
}

Shape padded_shape(Shape shape, size_t rank) {
  if (shape.size() < rank) shape.insert(shape.begin(), rank - shape.size(), 1);
  return shape;
}

Result<ScoreTerms> pack_call_terms(const OperatorArguments& arguments, const Dims& dims) {
  ScoreTermsInput input;
  if (const Tensor* key_mask = arguments.find("key_mask")) input.key_mask = *key_mask;
  if (const Tensor* mask = arguments.find("mask")) {
    input.mask = *mask;
    input.mask->shape = padded_shape(mask->shape, 4);
  }
  if (arguments.find("bias") != nullptr) {
    VKF_ASSIGN(input.bias, arguments.floats("bias"));
    input.bias->shape = padded_shape(input.bias->shape, 4);
  }
  VKF_ASSIGN(input.alibi_slopes, read_slopes(arguments));
  if (arguments.find("sink_scores") != nullptr) {
    VKF_ASSIGN(const Tensor scores, arguments.floats("sink_scores"));
    VKF_ASSIGN(input.sink_scores, scores.to_floats());
  }
  VKF_ASSIGN(const Reach reach, read_reach(arguments));
  if (const Tensor* global = arguments.find("global")) input.global = *global;
  if (const Tensor* documents = arguments.find("documents")) input.documents = *documents;
  VKF_ASSIGN(input.prefix, read_prefix(arguments, dims));
  VKF_CHECK(read_block_map(arguments, input));
  if (reach.left) input.least_distance = reach.offset - *reach.left;
  if (reach.right) input.most_distance = reach.offset + *reach.right;
  if (reach.causal) {
    input.most_distance = std::min(reach.offset, input.most_distance.value_or(reach.offset));
  }
  VKF_ASSIGN(ScoreTerms terms, pack_score_terms(input, dims));
  set_reach(reach, terms.params);
  return terms;
}

}  // namespace vkformer
