// Damaged and hostile model files, for every family: each value of a configuration and each tensor
// of a file is changed in turn. The answer is an error that says what is wrong, or a model whose
// graphs can be built. It is never a crash, and never memory out of proportion to the file.
#include <span>

#include "model/encoder_cases.h"

namespace vkformer::testing {
namespace {

// What a golden model may grow to, whatever its configuration says: bytes on the device, and words
// of one pass from the host. The largest golden has less than 2 MiB of weights.
constexpr uint64_t kMostWeightBytes = 160ull << 20;
constexpr uint64_t kMostHostWords = 16ull << 20;

// Every pass of a model over a little of everything.
Status build_passes(const ModelFamily& family, const std::vector<PackedWeight>& weights,
                    const Shape& picture) {
  const ModelFacts& facts = family.facts();
  const int64_t height =
      facts.grid.height > 0 ? std::min<int64_t>(facts.grid.height, 512) : picture[0];
  const int64_t width =
      facts.grid.width > 0 ? std::min<int64_t>(facts.grid.width, 4096) : picture[1];
  ForwardTaps taps;
  taps.attentions = taps.hidden_states = ForwardTaps::Tap::kOn;
  const auto built = [](const ModelBuilder& builder, Status status) -> Status {
    VKF_CHECK(status);
    uint64_t words = 0;
    for (const HostWords& host : builder.words()) words += host.values.size();
    CHECK_MESSAGE(words <= kMostHostWords, words);
    return {};
  };
  Graph forward;
  ModelBuilder forward_builder(forward, weights);
  VKF_CHECK(built(forward_builder,
                  family.build_forward(forward_builder, {2, 7, 5, height, width}, taps)));
  if (facts.kind == ModelKind::kEncoder || facts.head != HeadKind::kLanguage) return {};
  StepShape shape{.batch = 2, .beams = 2, .source = 16, .capacity = 32};
  shape.height = height;
  shape.width = width;
  shape.prompt = facts.kind == ModelKind::kDecoder ? 8 : 1;
  Graph prompt;
  ModelBuilder prompt_builder(prompt, weights);
  VKF_CHECK(built(prompt_builder, family.build_prompt(prompt_builder, shape)));
  Graph step;
  ModelBuilder step_builder(step, weights);
  const Result<StepResult> result = family.build_step(step_builder, shape);
  return built(step_builder, result ? Status{} : Status(result.error()));
}

// Loads a model as far as a device is not needed, and builds its passes.
Status try_model(const FileStore& files, const Shape& picture) {
  VKF_ASSIGN(auto family, load_family(files));
  VKF_ASSIGN(Checkpoint checkpoint, Checkpoint::open_store(files));
  VKF_CHECK(family->prepare(checkpoint));
  VKF_ASSIGN(WeightTable table, family->weight_table(checkpoint));
  uint64_t computed = 0;
  for (const WeightRow& row : table.rows) computed += row.computed.size() * sizeof(float);
  CHECK_MESSAGE(computed <= kMostWeightBytes, computed);
  VKF_ASSIGN(auto weights, resolve_weights(table, checkpoint, WeightFormat::kAsStored));
  uint64_t bytes = 0;
  for (const PackedWeight& weight : weights) bytes += weight.bytes;
  CHECK_MESSAGE(bytes <= kMostWeightBytes, bytes);
  return build_passes(*family, weights, picture);
}

// A golden model's files, whose configuration and weights a test changes.
class HostileFiles {
 public:
  explicit HostileFiles(const std::string& name) {
    const GoldenCase golden = golden_case(name);
    config = read_json(golden.path("model/config.json"));
    for (const auto& entry : std::filesystem::recursive_directory_iterator(golden.path("model"))) {
      if (!entry.is_regular_file()) continue;
      std::ifstream stream(entry.path(), std::ios::binary);
      content_[std::filesystem::relative(entry.path(), golden.path("model")).generic_string()] =
          std::string(std::istreambuf_iterator<char>(stream), {});
    }
  }

  void set(const std::string& name, std::string text) { content_[name] = std::move(text); }
  // What comes of loading the model with this text in place of config.json.
  Status attempt(const std::string& config_text) {
    content_["config.json"] = config_text;
    MemoryFiles files;
    for (const auto& [name, text] : content_) files[name] = std::as_bytes(std::span(text));
    return try_model(*make_memory_store(std::move(files), "hostile"), picture());
  }
  Status attempt() { return attempt(config.dump()); }

  Json config;

 private:
  // Height and width of a picture that the golden takes, perhaps the only ones.
  Shape picture() const {
    const Json anchors = config.value("anchor_image_size", Json());
    const Json size = anchors.is_null() ? config.value("image_size", Json(32)) : anchors;
    if (size.is_array()) return size.get<Shape>();
    return {size.get<int64_t>(), size.get<int64_t>()};
  }

  std::map<std::string, std::string> content_;
};

// A message is a sentence that names something in brackets, and no bug of ours.
void check_answer(const Status& answer) {
  if (answer) return;
  const std::string& message = answer.error().message;
  CAPTURE(message);
  CHECK(answer.error().code != ErrorCode::kInternal);
  CHECK(message.size() > 20);
  CHECK(message.find('[') != std::string::npos);
}

// Every value below `node`, from the outside in.
void collect(const Json& node, const Json::json_pointer& at, std::vector<Json::json_pointer>& out) {
  if (!node.is_structured()) return;
  size_t index = 0;
  for (const auto& [key, child] : node.items()) {
    // Of a list of names the first ones do for all.
    if (node.is_array() && index++ >= 3) break;
    const Json::json_pointer inner = node.is_array() ? at / (index - 1) : at / key;
    out.push_back(inner);
    collect(child, inner, out);
  }
}

const std::vector<Json>& hostile_values() {
  static const std::vector<Json> kValues = {nullptr,
                                            0,
                                            -1,
                                            1,
                                            3,
                                            1 << 20,
                                            1'000'000'000,
                                            INT64_MAX,
                                            INT64_MIN,
                                            0.5,
                                            -1e300,
                                            "",
                                            "absurd",
                                            true,
                                            false,
                                            Json::array(),
                                            Json::object(),
                                            Json::array({1, -1, INT64_MAX})};
  return kValues;
}

// One golden model for each model_type and class of model, in name order.
std::vector<std::string> one_of_each() {
  std::vector<std::string> names;
  std::vector<std::string> seen;
  for (const GoldenCase& golden : golden_cases_with("model/config.json")) {
    const Json config = read_json(golden.path("model/config.json"));
    const std::string kind =
        config.at("model_type").dump() + config.value("architectures", Json()).dump();
    if (std::find(seen.begin(), seen.end(), kind) != seen.end()) continue;
    seen.push_back(kind);
    names.push_back(golden.name);
  }
  return names;
}

// The tensors of a model whose weights lie in one file, which can be changed and written again.
std::string file_text(const TensorMap& tensors) {
  const test::TempDir directory;
  const std::string path = directory.file("model.safetensors");
  const Status written = write_tensor_file(path, tensors);
  REQUIRE_MESSAGE(written.ok(), written.error().message);
  std::ifstream stream(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(stream), {});
}

// One golden of each model_type, so that every tensor of a family is met once.
std::vector<std::string> one_of_each_type() {
  std::vector<std::string> names;
  std::vector<std::string> seen;
  for (const std::string& name : one_of_each()) {
    const GoldenCase golden = golden_case(name);
    const Json config = read_json(golden.path("model/config.json"));
    const std::string type = config.at("model_type");
    if (!golden.has("model/model.safetensors")) continue;
    if (std::find(seen.begin(), seen.end(), type) != seen.end()) continue;
    seen.push_back(type);
    names.push_back(name);
  }
  return names;
}

// A model without that tensor is refused, or does not need it.
void check_without(HostileFiles& files, TensorMap tensors, const std::string& name) {
  CAPTURE(name);
  tensors.erase(name);
  files.set("model.safetensors", file_text(tensors));
  const Status answer = files.attempt();
  check_answer(answer);
}

// A tensor of another shape over the same bytes is refused by name, or not used at all.
void check_reshaped(HostileFiles& files, TensorMap tensors, const std::string& name) {
  Tensor& tensor = tensors.at(name);
  Shape turned(tensor.shape.rbegin(), tensor.shape.rend());
  if (turned == tensor.shape) turned.push_back(1);
  tensor.shape = turned;
  CAPTURE(name);
  files.set("model.safetensors", file_text(tensors));
  const Status answer = files.attempt();
  check_answer(answer);
  if (!answer) CHECK(test::contains(answer.error().message, name));
}

}  // namespace

TEST_SUITE("cpu") {
  TEST_CASE("hostile models: every family has a golden model here") {
    std::vector<std::string> types;
    for (const std::string& name : one_of_each()) {
      types.push_back(read_json(golden_case(name).path("model/config.json")).at("model_type"));
    }
    for (const std::string& family : family_names()) {
      // mt5 is t5 under another name, and is made from its golden below.
      if (family == "mt5") continue;
      CHECK_MESSAGE(std::find(types.begin(), types.end(), family) != types.end(), family);
    }
  }

  TEST_CASE("hostile models: every value of a configuration is replaced by every other kind") {
    for (const std::string& name : one_of_each()) {
      CAPTURE(name);
      HostileFiles files(name);
      const Status golden = files.attempt();
      CHECK_MESSAGE(golden.ok(), golden.error().message);
      std::vector<Json::json_pointer> places;
      collect(files.config, Json::json_pointer(), places);
      for (const Json::json_pointer& place : places) {
        CAPTURE(place.to_string());
        for (const Json& value : hostile_values()) {
          CAPTURE(value.dump());
          Json changed = files.config;
          changed[place] = value;
          check_answer(files.attempt(changed.dump()));
        }
      }
    }
  }

  TEST_CASE("hostile models: every key of a configuration may be missing, or all but its type") {
    for (const std::string& name : one_of_each()) {
      CAPTURE(name);
      HostileFiles files(name);
      std::vector<Json::json_pointer> places;
      collect(files.config, Json::json_pointer(), places);
      for (const Json::json_pointer& place : places) {
        CAPTURE(place.to_string());
        Json changed = files.config;
        Json& parent = changed[place.parent_pointer()];
        if (!parent.is_object()) continue;
        parent.erase(place.back());
        check_answer(files.attempt(changed.dump()));
      }
      const Json type = {{"model_type", files.config.at("model_type")}};
      const Status bare = files.attempt(type.dump());
      check_answer(bare);
      CHECK_FALSE(bare.ok());
    }
  }

  TEST_CASE("hostile models: mt5 is refused or works as t5 does") {
    HostileFiles files("t5-gated");
    for (const char* key : {"d_model", "num_heads", "num_layers", "d_kv", "vocab_size"}) {
      for (const Json& value : hostile_values()) {
        Json changed = with(files.config, "model_type", "mt5");
        changed[key] = value;
        check_answer(files.attempt(changed.dump()));
      }
    }
    const Json renamed = with(files.config, "model_type", "mt5");
    const Status answer = files.attempt(renamed.dump());
    CHECK_MESSAGE(answer.ok(), answer.error().message);
  }

  TEST_CASE("hostile models: configurations cut short anywhere are errors") {
    HostileFiles files("bert-base");
    const std::string text = files.config.dump();
    for (size_t length = 0; length < text.size(); length += 7) {
      CAPTURE(length);
      const Status answer = files.attempt(text.substr(0, length));
      REQUIRE_FALSE(answer.ok());
      CHECK(test::contains(answer.error().message, "config.json"));
    }
  }

  TEST_CASE("hostile models: generation settings of every wrong kind") {
    for (const char* name : {"marian-base", "whisper-suppress", "gpt2-base", "t5-gated"}) {
      CAPTURE(name);
      HostileFiles files(name);
      const Json settings = read_json(golden_case(name).path("model/generation_config.json"));
      std::vector<Json::json_pointer> places;
      collect(settings, Json::json_pointer(), places);
      for (const Json::json_pointer& place : places) {
        CAPTURE(place.to_string());
        for (const Json& value : hostile_values()) {
          CAPTURE(value.dump());
          Json changed = settings;
          changed[place] = value;
          files.set("generation_config.json", changed.dump());
          check_answer(files.attempt());
        }
      }
    }
  }

  TEST_CASE("hostile models: a missing tensor is named, one of another shape too") {
    for (const std::string& name : one_of_each_type()) {
      CAPTURE(name);
      HostileFiles files(name);
      const TensorMap tensors = golden_case(name).tensors("model/model.safetensors");
      for (const auto& [tensor, value] : tensors) {
        check_without(files, tensors, tensor);
        check_reshaped(files, tensors, tensor);
      }
      files.set("model.safetensors", file_text({}));
      CHECK_FALSE(files.attempt().ok());
    }
  }
}

}  // namespace vkformer::testing
