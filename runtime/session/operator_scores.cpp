#include "session/operator_scores.h"

#include "base/check.h"

namespace vkformer {
namespace {

using Dims = std::array<int64_t, 4>;

constexpr int64_t kMaxReach = int64_t{1} << 30;  // tokens

// Which pairs of positions causal and windows allow.
struct Reach {
  bool causal = false;
  std::optional<int64_t> left;
  std::optional<int64_t> right;
  int64_t offset = 0;

  bool restricts() const { return causal || left || right; }
  bool allows(int64_t query, int64_t key) const {
    const int64_t place = query + offset;
    if (causal && key > place) return false;
    if (left && key < place - *left) return false;
    return !right || key <= place + *right;
  }
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

// A mask (B, H or 1, T, S) of what reach, global tokens and the given mask allow together.
Result<Tensor> fold_global(const OperatorArguments& arguments, const Dims& dims, const Reach& reach,
                           const std::optional<Tensor>& mask) {
  VKF_ASSIGN(const Tensor* global, arguments.require("global"));
  if (dims[2] != dims[3] || global->shape != Shape{dims[0], dims[2]}) {
    return arguments.error("global has shape " + shape_text(global->shape) +
                           ", but must be (B, T) with T = S, and the scores are " +
                           shape_text({dims[0], dims[1], dims[2], dims[3]}) + ".");
  }
  VKF_ASSIGN(const std::vector<int64_t> is_global, global->to_ints());
  const int64_t heads = mask ? mask->shape[1] : 1;
  Tensor folded = Tensor::zeros(DType::kU8, {dims[0], heads, dims[2], dims[3]});
  std::vector<int64_t> given;
  if (mask) {
    VKF_ASSIGN(given, mask->to_ints());
  }
  size_t out = 0;
  for (int64_t b = 0; b < dims[0]; ++b) {
    for (int64_t h = 0; h < heads; ++h) {
      for (int64_t i = 0; i < dims[2]; ++i) {
        for (int64_t j = 0; j < dims[3]; ++j, ++out) {
          const auto flag = [&](int64_t at) {
            return is_global[static_cast<size_t>(b * dims[2] + at)] != 0;
          };
          bool allowed = flag(i) || flag(j) || reach.allows(i, j);
          if (allowed && mask) {
            const Shape& m = mask->shape;
            const int64_t row = ((m[0] == 1 ? 0 : b) * m[1] + h) * m[2] + (m[2] == 1 ? 0 : i);
            allowed = given[static_cast<size_t>(row * m[3] + (m[3] == 1 ? 0 : j))] != 0;
          }
          folded.bytes[out] = static_cast<std::byte>(allowed ? 1 : 0);
        }
      }
    }
  }
  return folded;
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

// Does a shape of four dimensions broadcast to dims?
bool fits(const Shape& shape, const Dims& dims) {
  if (shape.size() != 4) return false;
  for (size_t i = 0; i < 4; ++i) {
    if (shape[i] != 1 && shape[i] != dims[i]) return false;
  }
  return true;
}

}  // namespace

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
  VKF_ASSIGN(Reach reach, read_reach(arguments));
  if (arguments.find("global") != nullptr && reach.restricts()) {
    if (input.mask && !fits(input.mask->shape, dims)) {
      return arguments.error("mask has shape " + shape_text(input.mask->shape) +
                             ", which does not broadcast to (B, H, T, S) = " +
                             shape_text({dims[0], dims[1], dims[2], dims[3]}) + ".");
    }
    VKF_ASSIGN(input.mask, fold_global(arguments, dims, reach, input.mask));
    reach = Reach{.offset = reach.offset};
  }
  VKF_ASSIGN(ScoreTerms terms, pack_score_terms(input, dims));
  set_reach(reach, terms.params);
  return terms;
}

}  // namespace vkformer
