#include "ops/score_terms.h"

#include <cstring>

namespace vkformer {
namespace {

using Dims = std::span<const int64_t, 4>;

// Shape of a term with every leading dimension 1 or full, the last one full after expansion.
Result<Shape> term_shape(const char* name, const Tensor& t, Dims dims) {
  bool fits = t.shape.size() == 4;
  for (size_t i = 0; fits && i < 4; ++i) fits = t.shape[i] == 1 || t.shape[i] == dims[i];
  if (!fits) {
    return invalid_argument("[" + std::string(name) + "] has shape " + shape_text(t.shape) +
                            ", which does not broadcast to (B, H, T, S) = " +
                            shape_text({dims[0], dims[1], dims[2], dims[3]}));
  }
  return t.shape;
}

uint32_t broadcast_flags(const Shape& shape, Dims dims, uint32_t one_batch) {
  uint32_t flags = 0;
  for (uint32_t axis = 0; axis < 3; ++axis) {
    if (shape[axis] == 1 && dims[axis] != 1) flags |= one_batch << axis;
  }
  return flags;
}

void append_bit_rows(std::vector<uint32_t>& words, const std::vector<int64_t>& values,
                     int64_t columns, int64_t keys) {
  const size_t row_words = static_cast<size_t>((keys + 31) / 32);
  const size_t rows = columns == 0 ? 0 : values.size() / static_cast<size_t>(columns);
  for (size_t r = 0; r < rows; ++r) {
    const size_t begin = words.size();
    words.resize(begin + row_words, 0u);
    for (int64_t j = 0; j < keys; ++j) {
      const int64_t value =
          values[r * static_cast<size_t>(columns) + static_cast<size_t>(columns == 1 ? 0 : j)];
      if (value != 0) words[begin + static_cast<size_t>(j / 32)] |= 1u << (j % 32);
    }
  }
}

void append_float(std::vector<uint32_t>& words, float value) {
  uint32_t bits = 0;
  std::memcpy(&bits, &value, 4);
  words.push_back(bits);
}

Status add_key_mask(const Tensor& key_mask, Dims dims, std::vector<uint32_t>& words,
                    ScoreTermsParams& params) {
  if (key_mask.shape != Shape{dims[0], dims[3]}) {
    return invalid_argument("[key_mask] has shape " + shape_text(key_mask.shape) +
                            ", but must be (B, S) = " + shape_text({dims[0], dims[3]}));
  }
  VKF_ASSIGN(std::vector<int64_t> values, key_mask.to_ints());
  params.key_mask_offset = static_cast<uint32_t>(words.size());
  append_bit_rows(words, values, dims[3], dims[3]);
  return {};
}

Status add_mask(const Tensor& mask, Dims dims, std::vector<uint32_t>& words,
                ScoreTermsParams& params) {
  VKF_ASSIGN(Shape shape, term_shape("mask", mask, dims));
  VKF_ASSIGN(std::vector<int64_t> values, mask.to_ints());
  params.mask_offset = static_cast<uint32_t>(words.size());
  params.flags |= broadcast_flags(shape, dims, VKF_TERM_MASK_ONE_BATCH);
  append_bit_rows(words, values, shape[3], dims[3]);
  return {};
}

Status add_bias(const Tensor& bias, Dims dims, std::vector<uint32_t>& words,
                ScoreTermsParams& params) {
  VKF_ASSIGN(Shape shape, term_shape("bias", bias, dims));
  VKF_ASSIGN(std::vector<float> values, bias.to_floats());
  params.bias_offset = static_cast<uint32_t>(words.size());
  params.flags |= broadcast_flags(shape, dims, VKF_TERM_BIAS_ONE_BATCH);
  const int64_t repeat = shape[3] == dims[3] ? 1 : dims[3];
  for (float value : values) {
    for (int64_t i = 0; i < repeat; ++i) append_float(words, value);
  }
  return {};
}

}  // namespace

Result<ScoreTerms> pack_score_terms(const ScoreTermsInput& input, Dims dims) {
  std::vector<uint32_t> words;
  ScoreTermsParams params = no_score_terms();
  if (input.key_mask) VKF_CHECK(add_key_mask(*input.key_mask, dims, words, params));
  if (input.mask) VKF_CHECK(add_mask(*input.mask, dims, words, params));
  if (input.bias) VKF_CHECK(add_bias(*input.bias, dims, words, params));
  if (!input.alibi_slopes.empty()) {
    if (static_cast<int64_t>(input.alibi_slopes.size()) != dims[1]) {
      return invalid_argument("[alibi_slopes] has " + std::to_string(input.alibi_slopes.size()) +
                              " values, but there are " + std::to_string(dims[1]) + " heads");
    }
    params.slopes_offset = static_cast<uint32_t>(words.size());
    for (float slope : input.alibi_slopes) append_float(words, slope);
  }
  if (words.empty()) words.push_back(0);
  ScoreTerms terms{Tensor::zeros(DType::kU32, {static_cast<int64_t>(words.size())}), params};
  std::memcpy(terms.words.bytes.data(), words.data(), words.size() * 4);
  return terms;
}

std::vector<uint32_t> pack_key_mask(std::span<const uint8_t> allowed, int64_t batch, int64_t keys) {
  const size_t row_words = static_cast<size_t>((keys + 31) / 32);
  std::vector<uint32_t> words(static_cast<size_t>(batch) * row_words, 0u);
  for (int64_t b = 0; b < batch; ++b) {
    for (int64_t j = 0; j < keys; ++j) {
      if (allowed[static_cast<size_t>(b * keys + j)] == 0) continue;
      words[static_cast<size_t>(b) * row_words + static_cast<size_t>(j / 32)] |= 1u << (j % 32);
    }
  }
  return words;
}

}  // namespace vkformer
