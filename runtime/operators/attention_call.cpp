#include "operators/attention_call.h"

#include <memory>

#include "base/check.h"
#include "operators/operator_scores.h"

namespace vkformer {
namespace {

Status check_operands(const OperatorArguments& arguments, const Tensor& q, const Tensor& k,
                      const Tensor& v) {
  const Shape &a = q.shape, &b = k.shape, &c = v.shape;
  const bool fit = a.size() == 4 && b.size() == 4 && c.size() == 4 && a[0] == b[0] &&
                   a[0] == c[0] && a[3] == b[3] && b[1] == c[1] && b[2] == c[2];
  if (fit) return {};
  return arguments.error("Q " + shape_text(a) + ", K " + shape_text(b) + " and V " + shape_text(c) +
                         " must be (B, H, T, E), (B, Hkv, S, E) and (B, Hkv, S, Ev).");
}

// Tensors one after the other (elements); what is added begins at a multiple of four.
class Joined {
 public:
  // Where it begins.
  int64_t add(const Tensor& tensor) {
    bytes_.resize((bytes_.size() + 15) / 16 * 16, std::byte{0});
    const int64_t begin = count();
    append(tensor);
    return begin;
  }
  // Without a gap.
  void append(const Tensor& tensor) {
    bytes_.insert(bytes_.end(), tensor.bytes.begin(), tensor.bytes.end());
  }
  int64_t count() const { return static_cast<int64_t>(bytes_.size() / 4); }
  Tensor take() {
    Tensor tensor = Tensor::zeros(DType::kF32, {count()});
    tensor.bytes = std::move(bytes_);
    return tensor;
  }

 private:
  decltype(Tensor::bytes) bytes_;
};

// Rows by distance: (2R + 1, width), or (2R + 1, H, width) with rows of each head.
Result<Tensor> read_rows(const OperatorArguments& arguments, const char* name, int64_t heads,
                         int64_t width) {
  VKF_ASSIGN(Tensor rows, arguments.floats(name));
  const Shape& s = rows.shape;
  const bool per_head = s.size() == 3;
  const bool fits = (s.size() == 2 || (per_head && s[1] == heads)) && s[0] % 2 == 1 &&
                    s[0] < (1 << 24) && s.back() == width;
  if (fits) return rows;
  const std::string columns = std::to_string(width) + ")";
  return arguments.error(std::string(name) + " has shape " + shape_text(s) +
                         ", but must be (2R + 1, " + columns + " or (2R + 1, " +
                         std::to_string(heads) + ", " + columns + ", an odd number of distances.");
}

// The bias of that name (H, E); zeros where it is absent.
Result<Tensor> read_head_bias(const OperatorArguments& arguments, const char* name, Shape shape) {
  if (arguments.find(name) == nullptr) return Tensor::zeros(DType::kF32, std::move(shape));
  VKF_ASSIGN(Tensor bias, arguments.floats(name));
  if (bias.shape == shape) return bias;
  return arguments.error(std::string(name) + " has shape " + shape_text(bias.shape) +
                         ", but must be (H, E) = " + shape_text(shape) + ".");
}

// Puts the relative positions after K and V.
Status read_relative(const OperatorArguments& arguments, const Shape& q, int64_t value_width,
                     AttentionAttrs& attrs, Joined& kv) {
  const bool biased =
      arguments.find("content_bias") != nullptr || arguments.find("position_bias") != nullptr;
  const bool valued = arguments.find("relative_values") != nullptr;
  const bool queried = arguments.find("relative_queries") != nullptr;
  const bool multiplied = arguments.find("relative_products") != nullptr;
  RelativePositions& relative = attrs.relative;
  if (arguments.find("relative_keys") == nullptr) {
    if (!biased && !valued && !queried && !multiplied) return {};
    return arguments.error(
        "relative_queries, relative_products, relative_values, content_bias or position_bias is "
        "given without relative_keys; give it too.");
  }
  VKF_ASSIGN(const Tensor keys, read_rows(arguments, "relative_keys", q[1], q[3]));
  relative.kinds = VKF_RELATIVE_KEYS;
  if (keys.shape.size() == 2) relative.kinds |= VKF_RELATIVE_ONE_HEAD;
  relative.reach = static_cast<uint32_t>(keys.shape[0] / 2);
  relative.offset = static_cast<uint32_t>(kv.add(keys));
  if (queried) {
    VKF_ASSIGN(const Tensor queries, read_rows(arguments, "relative_queries", q[1], q[3]));
    if (queries.shape != keys.shape) {
      return arguments.error("relative_keys " + shape_text(keys.shape) + " and relative_queries " +
                             shape_text(queries.shape) + " must have the same shape.");
    }
    relative.kinds |= VKF_RELATIVE_QUERIES;
    kv.append(queries);
  }
  if (biased) {
    VKF_ASSIGN(const Tensor content, read_head_bias(arguments, "content_bias", {q[1], q[3]}));
    VKF_ASSIGN(const Tensor position, read_head_bias(arguments, "position_bias", {q[1], q[3]}));
    relative.kinds |= VKF_RELATIVE_BIASES;
    kv.append(content);
    kv.append(position);
  }
  if (multiplied) {
    VKF_ASSIGN(const Tensor products, arguments.floats("relative_products"));
    const Shape wanted = {q[0], q[1], attrs.keys, keys.shape[0]};
    if (products.shape != wanted) {
      return arguments.error("relative_products has shape " + shape_text(products.shape) +
                             ", but must be (B, H, S, 2R + 1) = " + shape_text(wanted) + ".");
    }
    relative.kinds |= VKF_RELATIVE_PRODUCTS;
    kv.append(products);
  }
  if (!valued) return {};
  VKF_ASSIGN(const Tensor values, read_rows(arguments, "relative_values", q[1], value_width));
  if (values.shape[0] != keys.shape[0] || values.shape.size() != keys.shape.size()) {
    return arguments.error("relative_keys " + shape_text(keys.shape) + " and relative_values " +
                           shape_text(values.shape) +
                           " must have the same distances, and both or neither rows of each head.");
  }
  relative.kinds |= VKF_RELATIVE_VALUES;
  kv.append(values);
  return {};
}

Result<AttentionAttrs> read_attrs(const OperatorArguments& arguments, const Shape& q,
                                  const Shape& k, const Shape& v) {
  AttentionAttrs a;
  const int64_t sizes[] = {q[0], q[1], k[1], q[2], k[2], q[3], v[3]};
  for (int64_t size : sizes) {
    if (size > 0 && size < (1 << 24)) continue;
    return arguments.error("a dimension of Q, K or V is " + std::to_string(size) +
                           ", but must be from 1 to 16777215.");
  }
  const auto u = [](int64_t size) { return static_cast<uint32_t>(size); };
  a.batch = u(q[0]);
  a.heads = u(q[1]);
  a.kv_heads = u(k[1]);
  a.queries = u(q[2]);
  a.keys = u(k[2]);
  a.head_width = u(q[3]);
  a.value_width = u(v[3]);
  a.q = separate_heads(a.heads, a.queries, a.head_width, 0);
  a.k = separate_heads(a.kv_heads, a.keys, a.head_width, 0);
  a.y = separate_heads(a.heads, a.queries, a.value_width, 0);
  a.y_shape = {q[0], q[1], q[2], v[3]};
  if (arguments.attributes().has("scale")) {
    VKF_ASSIGN(a.scale, arguments.number_or("scale", 1.0));
  }
  VKF_ASSIGN(a.temperature, arguments.number_or("temperature", 1.0));
  VKF_ASSIGN(a.softcap, arguments.number_or("softcap", 0.0));
  if (arguments.attributes().has("softcap") && !(a.softcap > 0)) {
    return arguments.error("softcap is " + std::to_string(a.softcap) +
                           ", but must be above 0; leave it out for none.");
  }
  return a;
}

}  // namespace

Result<AttentionCall> prepare_attention_call(const OperatorArguments& arguments) {
  VKF_CHECK(arguments.check_names(
      {"Q", "K", "V", "key_mask", "mask", "bias", "global", "alibi_slopes", "documents", "prefix",
       "block_map", "relative_keys", "relative_queries", "relative_products", "relative_values",
       "content_bias", "position_bias", "sink_scores"},
      {"scale", "temperature", "softcap", "causal", "causal_offset", "window_left", "window_right",
       "alibi_slopes", "prefix", "block_size", "count_keys"}));
  VKF_ASSIGN(Tensor q, arguments.floats("Q"));
  VKF_ASSIGN(const Tensor k, arguments.floats("K"));
  VKF_ASSIGN(const Tensor v, arguments.floats("V"));
  VKF_CHECK(check_operands(arguments, q, k, v));
  AttentionCall call;
  VKF_ASSIGN(call.attrs, read_attrs(arguments, q.shape, k.shape, v.shape));
  VKF_ASSIGN(ScoreTerms terms,
             pack_call_terms(arguments, {q.shape[0], q.shape[1], q.shape[2], k.shape[2]}));
  call.attrs.terms = terms.params;
  call.attrs.visited = visited_keys(terms);
  call.attrs.most_visited = terms.most_of_blocks;
  call.attrs.known_terms = std::make_shared<const std::vector<uint32_t>>(tensor_words(terms.words));
  Joined kv;
  kv.append(k);
  call.attrs.v = separate_heads(call.attrs.kv_heads, call.attrs.keys, call.attrs.value_width,
                                static_cast<uint32_t>(kv.count()));
  kv.append(v);
  VKF_CHECK(read_relative(arguments, q.shape, v.shape[3], call.attrs, kv));
  call.inputs.q = call.op.bind("Q", std::move(q));
  call.inputs.kv = call.op.bind("KV", kv.take());
  call.inputs.terms = call.op.bind("terms", std::move(terms.words));
  return call;
}

Status add_attention_output(AttentionCall& call) {
  VKF_ASSIGN(const TensorId y, add_attention(call.op.graph, call.inputs, call.attrs));
  call.op.name_output(y, "output");
  return {};
}

}  // namespace vkformer
