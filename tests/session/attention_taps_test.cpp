// Attention of one chosen layer and head, and raw scores, against the full maps of the same run.
#include <doctest/doctest.h>

#include <cmath>
#include <string>
#include <vector>

#include "support/test_device.h"
#include "vkformer/session.h"

namespace vkformer {
namespace {

const std::string kCase = VKFORMER_SOURCE_DIR "/tests/golden/marian-base";
const std::string kMasks = VKFORMER_SOURCE_DIR "/tests/golden/sam-points";

std::vector<float> floats(const TensorMap& outputs, const std::string& name) {
  REQUIRE(outputs.count(name) == 1);
  auto values = outputs.at(name).to_floats();
  REQUIRE(values);
  return *values;
}

Session open_session(const Device& device, const std::string& golden = kCase) {
  const auto model = Model::load(device, golden + "/model");
  REQUIRE(model);
  auto session = Session::create(*model);
  REQUIRE(session);
  return std::move(*session);
}

// Of each map of `outputs`, whose rows are softmaxes of `scores`.
void check_softmax(const TensorMap& outputs, const TensorMap& scores, const std::string& name) {
  CAPTURE(name);
  const std::vector<float> map = floats(outputs, name), raw = floats(scores, name);
  const auto keys = static_cast<size_t>(outputs.at(name).shape.back());
  REQUIRE(map.size() == raw.size());
  for (size_t row = 0; row < map.size(); row += keys) {
    double total = 0;
    for (size_t j = 0; j < keys; ++j) total += std::exp(double{raw[row + j]});
    for (size_t j = 0; j < keys; ++j) {
      CHECK(std::exp(double{raw[row + j]}) / total == doctest::Approx(map[row + j]).epsilon(1e-4));
    }
  }
}

}  // namespace

TEST_SUITE("model") {
  TEST_CASE("attention taps: one layer and head, probabilities and raw scores") {
    VKF_TEST_DEVICE(device);
    Session session = open_session(device_of(device));
    const auto inputs = read_tensor_file(kCase + "/inputs.safetensors");
    REQUIRE(inputs);
    RunOptions options{.attentions = true};
    const auto all = session.run(*inputs, options);
    REQUIRE(all);
    options.attention_layer = 1;
    options.attention_head = 2;
    const auto one = session.run(*inputs, options);
    REQUIRE(one);
    options.attention_values = RunOptions::AttentionValues::kScores;
    const auto raw = session.run(*inputs, options);
    REQUIRE(raw);
    CHECK(one->count("cross_attentions.0") == 0);

    const std::vector<float> full = floats(*all, "cross_attentions.1");
    const std::vector<float> map = floats(*one, "cross_attentions.1");
    const std::vector<float> scores = floats(*raw, "cross_attentions.1");
    const Shape shape = all->at("cross_attentions.1").shape;  // (B, H, T, S)
    REQUIRE(one->at("cross_attentions.1").shape == Shape{shape[0], 1, shape[2], shape[3]});
    const auto tile = static_cast<size_t>(shape[2] * shape[3]);
    const auto heads = static_cast<size_t>(shape[1]);
    for (size_t b = 0; b < static_cast<size_t>(shape[0]); ++b) {
      for (size_t row = 0; row < static_cast<size_t>(shape[2]); ++row) {
        double total = 0;
        const size_t at = b * tile + row * static_cast<size_t>(shape[3]);
        for (size_t j = 0; j < static_cast<size_t>(shape[3]); ++j)
          total += std::exp(scores[at + j]);
        for (size_t j = 0; j < static_cast<size_t>(shape[3]); ++j) {
          const size_t in_full = (b * heads + 2) * tile + row * static_cast<size_t>(shape[3]) + j;
          CHECK(map[at + j] == full[in_full]);
          CHECK(std::exp(scores[at + j]) / total == doctest::Approx(map[at + j]).epsilon(1e-4));
        }
      }
    }
  }

  TEST_CASE("attention taps: a layer or head that is not there is an error") {
    VKF_TEST_DEVICE(device);
    Session session = open_session(device_of(device));
    const auto inputs = read_tensor_file(kCase + "/inputs.safetensors");
    REQUIRE(inputs);
    RunOptions options{.attentions = true};
    options.attention_layer = 2;
    const auto layer = session.run(*inputs, options);
    REQUIRE(!layer);
    CHECK(layer.error().code == ErrorCode::kInvalidArgument);
    options.attention_layer = 0;
    options.attention_head = 4;
    CHECK(!session.run(*inputs, options));
  }

  TEST_CASE("attention taps: maps of SAM by number and head, scores, entropies and temperatures") {
    VKF_TEST_DEVICE(device);
    Session session = open_session(device_of(device), kMasks);
    const auto inputs = read_tensor_file(kMasks + "/inputs.safetensors");
    REQUIRE(inputs);
    RunOptions options{.attentions = true};
    const auto all = session.run(*inputs, options);
    REQUIRE(all);
    const auto again = session.run(*inputs, options);
    REQUIRE(again);
    for (const auto& [name, tensor] : *all) CHECK(tensor.bytes == again->at(name).bytes);
    options.attention_values = RunOptions::AttentionValues::kScores;
    const auto raw = session.run(*inputs, options);
    REQUIRE(raw);
    // A window with relative positions, all of a picture, tokens, and both ways between them.
    for (const char* name : {"encoder_attentions.0", "encoder_attentions.1", "decoder_attentions.1",
                             "cross_attentions.1", "cross_attentions.4"}) {
      check_softmax(*all, *raw, name);
    }
    options.attention_values = RunOptions::AttentionValues::kProbabilities;
    options.attention_layer = 1;
    options.attention_head = 1;
    const auto one = session.run(*inputs, options);
    REQUIRE(one);
    CHECK(one->count("cross_attentions.4") == 0);
    for (const char* name :
         {"encoder_attentions.1", "decoder_attentions.1", "cross_attentions.1"}) {
      CAPTURE(name);
      const Shape shape = all->at(name).shape;
      CHECK(one->at(name).shape == Shape{shape[0], 1, shape[2], shape[3]});
      const std::vector<float> whole = floats(*all, name), head = floats(*one, name);
      const auto tile = static_cast<size_t>(shape[2] * shape[3]);
      for (size_t i = 0; i < head.size(); ++i) {
        CHECK(head[i] == whole[(i / tile * 2 + 1) * tile + i % tile]);
      }
    }
    options.attention_layer = 2;
    const auto beyond = session.run(*inputs, options);
    REQUIRE(!beyond);
    CHECK(beyond.error().message.find("2 layers") != std::string::npos);

    const auto hot = session.run(*inputs, {.attentions = true, .entropy = true, .temperature = 4});
    REQUIRE(hot);
    const std::vector<float> entropy = floats(*hot, "encoder_attention_entropy.0");
    const std::vector<float> map = floats(*hot, "encoder_attentions.0");
    const size_t keys = map.size() / entropy.size();
    CHECK(keys == 9);
    for (size_t row = 0; row < entropy.size(); ++row) {
      double sum = 0;
      for (size_t j = 0; j < keys; ++j) {
        const double p = map[row * keys + j];
        sum -= p * std::log(p);
      }
      CHECK(entropy[row] == doctest::Approx(sum).epsilon(1e-4));
    }
  }
}

}  // namespace vkformer
