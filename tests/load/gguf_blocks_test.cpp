// GGUF files whose blocks stay as they are on the device.
#include "base/half.h"
#include "checkpoint/ggml_types.h"
#include "checkpoint/gguf_samples.h"
#include "checkpoint/temp_dir.h"
#include "support/golden.h"
#include "support/test_device.h"
#include "vkformer/session.h"

namespace vkformer::testing {
namespace {

using test::GgufSample;

constexpr uint64_t kWidth = 256, kKeys = 64, kHidden = 512, kVocabulary = 96;

// Where the halves of a block lie, which random bytes could make infinite.
std::vector<size_t> halves_of(GgmlType type) {
  switch (type) {
    case GgmlType::kQ4_1:
    case GgmlType::kQ5_1:
    case GgmlType::kQ4K:
    case GgmlType::kQ5K:
      return {0, 2};
    case GgmlType::kQ2K:
      return {80, 82};
    case GgmlType::kQ3K:
      return {108};
    case GgmlType::kQ6K:
      return {208};
    default:
      return {0};
  }
}

// Random blocks of small weights.
std::string random_blocks(GgmlType type, uint64_t count, uint32_t seed) {
  const GgmlTypeFacts& facts = *ggml_type_facts(static_cast<uint32_t>(type));
  std::string bytes(count / facts.weights * facts.bytes, '\0');
  for (char& byte : bytes) {
    seed = seed * 1664525u + 1013904223u;
    byte = static_cast<char>(seed >> 24u);
  }
  // The largest value of a block times its scale is near 0.1.
  const bool supers = facts.weights == 256 && type != GgmlType::kIq4Xs;
  const float scale = type == GgmlType::kQ8_0 || type == GgmlType::kIq4Nl ? 8e-4f
                      : type == GgmlType::kIq4Xs                          ? 3e-5f
                      : supers                                            ? 1e-4f
                                                                          : 6e-3f;
  for (size_t block = 0; block < bytes.size(); block += facts.bytes) {
    if (type == GgmlType::kMxfp4) {
      bytes[block] = 121;
      continue;
    }
    for (const size_t at : halves_of(type)) {
      const uint16_t half = half_from_float(scale);
      std::memcpy(bytes.data() + block + at, &half, 2);
    }
  }
  return bytes;
}

struct LayerTypes {
  GgmlType q, k, v, output, gate, up, down;
};

// A LLaMA of a layer for each of `layers`, as the public tool mixes types.
std::string mixed_llama(const std::vector<LayerTypes>& layers, GgmlType embedding) {
  GgufSample sample;
  sample.put_text("general.architecture", "llama");
  sample.put_number("llama.block_count", static_cast<uint32_t>(layers.size()));
  for (const auto& [key, value] :
       {std::pair{"embedding_length", uint32_t{kWidth}}, std::pair{"attention.head_count", 4u},
        std::pair{"attention.head_count_kv", 1u},
        std::pair{"feed_forward_length", uint32_t{kHidden}}, std::pair{"context_length", 64u},
        std::pair{"vocab_size", uint32_t{kVocabulary}}}) {
    sample.put_number(std::string("llama.") + key, value);
  }
  sample.put_float("llama.attention.layer_norm_rms_epsilon", 1e-6f);
  uint32_t seed = 1;
  const auto put = [&](const std::string& name, uint64_t k, uint64_t n, GgmlType type) {
    sample.put_tensor(name + ".weight", {k, n}, static_cast<uint32_t>(type),
                      random_blocks(type, k * n, seed++));
  };
  put("token_embd", kWidth, kVocabulary, embedding);
  sample.put_floats("output_norm.weight", {kWidth});
  for (size_t i = 0; i < layers.size(); ++i) {
    const std::string block = "blk." + std::to_string(i) + ".";
    const LayerTypes& of = layers[i];
    for (const char* norm : {"attn_norm", "ffn_norm"}) {
      sample.put_floats(block + norm + ".weight", {kWidth});
    }
    put(block + "attn_q", kWidth, kWidth, of.q);
    put(block + "attn_k", kWidth, kKeys, of.k);
    put(block + "attn_v", kWidth, kKeys, of.v);
    put(block + "attn_output", kWidth, kWidth, of.output);
    put(block + "ffn_gate", kWidth, kHidden, of.gate);
    put(block + "ffn_up", kWidth, kHidden, of.up);
    put(block + "ffn_down", kHidden, kWidth, of.down);
  }
  return sample.text();
}

struct Loaded {
  std::vector<float> logits;
  uint64_t bytes = 0;
};

Loaded outputs_of_file(const std::string& path, WeightFormat weights, Precision precision) {
  ModelOptions options;
  options.weights = weights;
  options.precision = precision;
  const auto model = Model::load(*test_device(), path, options);
  REQUIRE_MESSAGE(model.ok(), model.error().message);
  auto session = Session::create(*model);
  REQUIRE(session.ok());
  const auto outputs =
      session->run({{"input_ids", Tensor::from_ints({2, 5}, {1, 5, 9, 2, 80, 7, 3, 3, 95, 0})}});
  REQUIRE_MESSAGE(outputs.ok(), outputs.error().message);
  return {outputs->at("logits").to_floats().value(), model->weight_bytes()};
}

void check_same_logits(const Loaded& got, const Loaded& wanted) {
  REQUIRE(got.logits.size() == wanted.logits.size());
  float most = 0;
  for (const float value : wanted.logits) most = std::max(most, std::fabs(value));
  REQUIRE(most > 0.01f);
  for (size_t i = 0; i < wanted.logits.size(); ++i) {
    CHECK(std::fabs(got.logits[i] - wanted.logits[i]) <= 2e-5f * most);
  }
}

// The root of the mean square of the differences, as a share of that of the wanted values.
double distance_of(const std::vector<float>& got, const std::vector<float>& wanted) {
  REQUIRE(got.size() == wanted.size());
  double differences = 0, squares = 0;
  for (size_t i = 0; i < wanted.size(); ++i) {
    differences += std::pow(double{got[i]} - double{wanted[i]}, 2);
    squares += std::pow(double{wanted[i]}, 2);
  }
  return std::sqrt(differences / squares);
}

// Of logits after a layer: seven products in a row and the head, each with rows rounded to bytes.
constexpr double kMostInt8Distance = 0.02;

constexpr GgmlType kQ4K = GgmlType::kQ4K, kQ6K = GgmlType::kQ6K;

}  // namespace

TEST_SUITE("gpu") {
  TEST_CASE("gguf blocks: a model in blocks computes what it does with the same weights in f32") {
    if (!have_test_device()) return;
    const test::TempDir dir;
    // Q4_K_M; what it takes where rows are no multiples of 256; mixtures that occur in no published
    // file.
    const std::vector<LayerTypes> layers = {
        {kQ4K, kQ4K, kQ6K, kQ4K, kQ4K, kQ4K, kQ6K},
        {GgmlType::kQ5_0, GgmlType::kQ5_0, GgmlType::kQ8_0, GgmlType::kQ5_1, GgmlType::kQ5_0,
         GgmlType::kQ5_0, GgmlType::kQ8_0},
        {GgmlType::kQ5K, GgmlType::kQ3K, kQ6K, GgmlType::kQ4_0, GgmlType::kQ4_1, GgmlType::kQ4_1,
         GgmlType::kMxfp4},
        {GgmlType::kIq4Nl, GgmlType::kQ2K, GgmlType::kQ4_0, GgmlType::kQ5K, GgmlType::kQ5K, kQ6K,
         GgmlType::kQ2K}};
    for (const LayerTypes& layer : layers) {
      const std::string path = dir.write("mixed.gguf", mixed_llama({layer}, kQ6K));
      CAPTURE(&layer - layers.data());
      const Loaded wide = outputs_of_file(path, WeightFormat::kF32, Precision::kF32);
      const Loaded stored = outputs_of_file(path, WeightFormat::kAsStored, Precision::kF32);
      check_same_logits(stored, wide);
      // Gates of another type than what they are paired with are f32.
      CHECK(stored.bytes < wide.bytes);
    }
  }

  TEST_CASE("gguf blocks: device memory is what the file's matrices take") {
    if (!have_test_device()) return;
    const test::TempDir dir;
    for (const auto& [type, bits] : std::map<GgmlType, double>{{GgmlType::kQ8_0, 8.5},
                                                               {GgmlType::kQ4_0, 4.5},
                                                               {GgmlType::kQ5_0, 5.5},
                                                               {kQ4K, 4.5},
                                                               {GgmlType::kQ5K, 5.5},
                                                               {GgmlType::kQ2K, 2.625},
                                                               {GgmlType::kQ3K, 3.5625},
                                                               {GgmlType::kIq4Nl, 4.5},
                                                               {GgmlType::kIq4Xs, 4.3125},
                                                               {kQ6K, 6.5625},
                                                               {GgmlType::kMxfp4, 4.25}}) {
      CAPTURE(ggml_type_facts(static_cast<uint32_t>(type))->name);
      const std::string path =
          dir.write("one.gguf", mixed_llama({{type, type, type, type, type, type, type}}, type));
      const Loaded stored = outputs_of_file(path, WeightFormat::kAsStored, Precision::kF32);
      // The table's 96 rows fill two panels of 64.
      const uint64_t weights = kWidth * (128 + 2 * kWidth + 2 * kKeys + 3 * kHidden);
      const double matrices = static_cast<double>(weights) * bits / 8;
      const double norms = 3.0 * 2 * kWidth * 4;
      CHECK(static_cast<double>(stored.bytes) >= matrices + norms);
      CHECK(static_cast<double>(stored.bytes) < matrices + norms + 4096);  // of alignment
      check_same_logits(stored, outputs_of_file(path, WeightFormat::kF32, Precision::kF32));
    }
  }

  TEST_CASE("gguf blocks: products of integers give logits near those of f32 in every type") {
    if (!have_test_device()) return;
    const test::TempDir dir;
    for (const GgmlType type :
         {GgmlType::kQ8_0, GgmlType::kQ4_0, GgmlType::kQ4_1, GgmlType::kQ5_0, GgmlType::kQ5_1, kQ4K,
          GgmlType::kQ5K, GgmlType::kQ2K, GgmlType::kQ3K, GgmlType::kIq4Nl, GgmlType::kIq4Xs, kQ6K,
          GgmlType::kMxfp4}) {
      CAPTURE(ggml_type_facts(static_cast<uint32_t>(type))->name);
      const std::string path =
          dir.write("one.gguf", mixed_llama({{type, type, type, type, type, type, type}}, type));
      const Loaded stored = outputs_of_file(path, WeightFormat::kAsStored, Precision::kF32);
      const Loaded bytes = outputs_of_file(path, WeightFormat::kAsStored, Precision::kInt8);
      const double share = distance_of(bytes.logits, stored.logits);
      CHECK(share > 0);  // integers were multiplied
      CHECK(share < kMostInt8Distance);
    }
  }

  TEST_CASE("precision int8 of a model without quantized matrices is an error") {
    if (!have_test_device()) return;
    const test::TempDir dir;
    const std::string path =
        dir.write("one.gguf", mixed_llama({{kQ4K, kQ4K, kQ4K, kQ4K, kQ4K, kQ4K, kQ4K}}, kQ6K));
    for (const WeightFormat weights :
         {WeightFormat::kF32, WeightFormat::kF16, WeightFormat::kBF16}) {
      const auto model =
          Model::load(*test_device(), path, {.weights = weights, .precision = Precision::kInt8});
      REQUIRE_FALSE(model.ok());
      CHECK(model.error().code == ErrorCode::kUnsupported);
      CHECK_MESSAGE(test::contains(model.error().message, "'int8' multiplies quantized matrices"),
                    model.error().message);
    }
  }

  TEST_CASE("gguf blocks: a scale that is not a number is refused by the weight's name") {
    if (!have_test_device()) return;
    const test::TempDir dir;
    std::string text = mixed_llama({{kQ4K, kQ4K, kQ4K, kQ4K, kQ4K, kQ4K, kQ4K}}, kQ6K);
    const uint16_t infinite = 0x7c00;  // of the last matrix's first block
    std::memcpy(text.data() + text.size() - kWidth * kHidden / 256 * 144, &infinite, 2);
    const auto model = Model::load(*test_device(), dir.write("bad.gguf", text));
    REQUIRE_FALSE(model.ok());
    CHECK(model.error().code == ErrorCode::kInvalidFile);
    CHECK_MESSAGE(test::contains(model.error().message, "whose scale is inf"),
                  model.error().message);
  }
}

}  // namespace vkformer::testing
