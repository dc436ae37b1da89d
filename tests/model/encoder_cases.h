// Short forms for the tests of encoder families: loading a configuration, refusals, weight tables
// and graphs of changed golden models.
#pragma once

#include <algorithm>
#include <limits>

#include "checkpoint/temp_dir.h"
#include "model/model.h"
#include "support/golden_graphs.h"
#include "vkformer/model.h"

namespace vkformer::testing {

inline Result<std::unique_ptr<ModelFamily>> load_config(const Json& config) {
  const test::TempDir directory;
  directory.write("config.json", config.dump());
  return load_family(*make_directory_store(directory.path()));
}

inline Json with(Json config, const char* key, Json value) {
  config[key] = std::move(value);
  return config;
}

// The same of a key of the configuration nested under `part`.
inline Json with(Json config, const char* part, const char* key, Json value) {
  config[part] = with(config[part], key, std::move(value));
  return config;
}

inline ModelFacts facts_of(const Json& config) {
  const auto family = load_config(config);
  REQUIRE_MESSAGE(family.ok(), family.error().message);
  return (*family)->facts();
}

inline void check_refused(const Json& config, ErrorCode code,
                          const std::vector<std::string>& parts) {
  const auto family = load_config(config);
  REQUIRE_FALSE(family.ok());
  CAPTURE(family.error().message);
  CHECK(family.error().code == code);
  for (const std::string& part : parts) {
    CHECK_MESSAGE(test::contains(family.error().message, part), part);
  }
}

// Sizes that no model has are refused, with the key and the value in the message.
inline void check_sizes(const Json& config, const std::vector<const char*>& keys) {
  for (const char* key : keys) {
    for (int64_t value : {int64_t{0}, int64_t{-1}, INT64_MIN, INT64_MAX, int64_t{1} << 40}) {
      check_refused(with(config, key, value), ErrorCode::kInvalidFile,
                    {"[" + std::string(key) + "]", std::to_string(value)});
    }
    for (const Json& value : {Json("24"), Json(1.5), Json::array({1, 2}), Json(1e300)}) {
      const auto family = load_config(with(config, key, value));
      REQUIRE_FALSE(family.ok());
      CHECK(test::contains(family.error().message, key));
    }
  }
}

// A golden model's directory whose configuration and tensors a test changes.
struct ChangedModel {
  Json config;
  Json generation;  // generation_config.json; null: none
  TensorMap tensors;

  explicit ChangedModel(const std::string& name)
      : config(read_json(golden_case(name).path("model/config.json"))),
        tensors(golden_case(name).tensors("model/model.safetensors")) {}

  void rename(const std::string& from, const std::string& to) {
    TensorMap renamed;
    for (auto& [name, tensor] : tensors) {
      std::string now = name;
      const size_t at = now.find(from);
      if (at != std::string::npos) now.replace(at, from.size(), to);
      renamed.emplace(std::move(now), std::move(tensor));
    }
    tensors = std::move(renamed);
  }

  // The weights as this build would load them, with the family ready to build graphs.
  Result<GoldenGraphs> resolve() const {
    const test::TempDir directory;
    directory.write("config.json", config.dump());
    VKF_CHECK(write_tensor_file(directory.file("model.safetensors"), tensors));
    VKF_ASSIGN(auto family, load_family(*make_directory_store(directory.path())));
    VKF_ASSIGN(Checkpoint checkpoint, Checkpoint::open(directory.path()));
    VKF_CHECK(family->prepare(checkpoint));
    VKF_ASSIGN(WeightTable table, family->weight_table(checkpoint));
    VKF_ASSIGN(auto weights, resolve_weights(table, checkpoint, WeightFormat::kAsStored));
    return GoldenGraphs{std::move(family), std::move(weights)};
  }
  // The model itself.
  Model load(const Device& device) const {
    const test::TempDir directory;
    directory.write("config.json", config.dump());
    if (!generation.is_null()) directory.write("generation_config.json", generation.dump());
    const Status written = write_tensor_file(directory.file("model.safetensors"), tensors);
    REQUIRE_MESSAGE(written.ok(), written.error().message);
    auto model = Model::load(device, directory.path());
    REQUIRE_MESSAGE(model.ok(), model.error().message);
    return std::move(model).value();
  }
  // Row `index` of a matrix becomes NaN.
  void spoil_row(const std::string& name, size_t index) {
    Tensor& tensor = tensors.at(name);
    std::vector<float> values = tensor.to_floats().value();
    const auto width = static_cast<size_t>(tensor.shape.back());
    std::fill_n(values.begin() + static_cast<ptrdiff_t>(index * width), width,
                std::numeric_limits<float>::quiet_NaN());
    tensor = Tensor::from_floats(tensor.shape, values);
  }
  void check_resolves() const {
    const auto model = resolve();
    CHECK_MESSAGE(model.ok(), model.error().message);
  }
  void check_refused(const std::string& part) const {
    const auto model = resolve();
    REQUIRE_FALSE(model.ok());
    CHECK_MESSAGE(test::contains(model.error().message, part), model.error().message);
  }
};

// The row of that name, or null.
inline const WeightRow* row_of(const GoldenGraphs& model, const std::string& name) {
  for (const PackedWeight& weight : model.weights) {
    if (weight.row.name == name) return &weight.row;
  }
  return nullptr;
}

// The shape of an output of a pass over (B, S) tokens; empty where it has no such output.
inline Shape output_shape(const GoldenGraphs& model, const std::string& name, int64_t batch,
                          int64_t tokens) {
  ForwardTaps taps;
  taps.attentions = taps.hidden_states = ForwardTaps::Tap::kOn;
  const Graph graph = model.forward({.batch = batch, .source = tokens}, taps);
  const TensorId id = graph.find_external(name);
  return id == kNoTensor ? Shape{} : graph.tensor(id).shape;
}

}  // namespace vkformer::testing
