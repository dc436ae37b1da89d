// Every golden case through the public API, on the test device (support/test_device.h).
#include "support/golden.h"

#include <map>

#include "checkpoint/temp_dir.h"
#include "support/golden_generation.h"
#include "support/test_device.h"
#include "vkformer/operators.h"
#include "vkformer/quantize.h"

namespace vkformer::testing {
namespace {

// What a case derives from outputs: sentence-transformers' names.
bool is_derived_output(const std::string& name) {
  return name == "cosine_similarity" || name == "token_embeddings";
}

void check_all(const GoldenCase& golden, const TensorMap& expected, const TensorMap& actual) {
  for (const auto& [bound_name, tensor] : expected) {
    const auto& name = bound_name;
    if (name.rfind("mask.", 0) == 0 || is_generation_output(name)) continue;
    if (is_derived_output(name)) continue;
    const auto found = actual.find(name);
    REQUIRE_MESSAGE(found != actual.end(), golden.name << " lacks " << name);
    const auto mask = expected.find("mask." + name);
    if (tensor.dtype == DType::kF32) {
      check_golden_floats(golden, name, tensor, mask == expected.end() ? nullptr : &mask->second,
                          found->second);
    } else {
      check_golden_ints(golden, name, tensor, found->second);
    }
  }
}

void run_operator_case(const Device& device, const GoldenCase& golden) {
  const Json op = read_json(golden.path("op.json"));
  OperatorCall call;
  call.name = op.at("op").get<std::string>();
  call.attributes_json = op.at("attributes").dump();
  call.inputs = golden.tensors("inputs.safetensors");
  OperatorOptions options;
  options.repeats = 2;
  options.poison = true;
  const auto result = run_operator(device, call, options);
  REQUIRE_MESSAGE(result.ok(), golden.name << ": " << result.error().message);
  check_all(golden, golden.tensors("expected.safetensors"), result->outputs);
}

void check_ids(const GoldenCase& golden, const std::string& name, const Tensor& expected,
               const Generation& generation) {
  INFO(golden.name << ": " << name);
  std::vector<std::vector<int64_t>> wanted = golden_rows(golden, expected);
  const TensorMap sources = golden_sources(golden);
  if (golden.tensors("inputs.safetensors").count("generate.input_ids") != 0) {
    const std::vector<size_t> padding = golden_padding(sources, wanted.size());
    for (size_t i = 0; i < wanted.size(); ++i) {
      wanted[i].erase(wanted[i].begin(), wanted[i].begin() + static_cast<ptrdiff_t>(padding[i]));
    }
  }
  REQUIRE(generation.size() == wanted.size());
  for (size_t i = 0; i < wanted.size(); ++i) {
    CAPTURE(i);
    REQUIRE(generation[i].size() == 1);
    CHECK(generation[i][0].ids == wanted[i]);
  }
}

void run_generation_case(const GoldenCase& golden, const TensorMap& expected, Session& session) {
  const TensorMap inputs = golden_sources(golden);
  const GenerateOptions base = golden_generate_options(golden, session);
  GenerateOptions greedy = base;
  greedy.beams = 1;
  const auto rows = session.generate_masked(inputs, greedy);
  REQUIRE_MESSAGE(rows.ok(), golden.name << ": " << rows.error().message);
  check_ids(golden, "greedy_ids", expected.at("greedy_ids"), *rows);
  const auto beams = session.generate_masked(inputs, base);
  REQUIRE_MESSAGE(beams.ok(), golden.name << ": " << beams.error().message);
  check_ids(golden, "beam4_ids", expected.at("beam4_ids"), *beams);
  Tensor scores = Tensor::zeros(DType::kF32, {static_cast<int64_t>(beams->size())});
  for (size_t i = 0; i < beams->size(); ++i) {
    const auto score = static_cast<float>((*beams)[i][0].score);
    std::memcpy(scores.bytes.data() + 4 * i, &score, 4);
  }
  if (expected.count("beam4_scores") == 0) return;
  check_golden_floats(golden, "beam4_scores", expected.at("beam4_scores"), nullptr, scores);
}

// The adapters that a case was computed with.
std::vector<AdapterChoice> adapters_of(const GoldenCase& golden) {
  std::vector<AdapterChoice> adapters;
  for (const Json& one : golden.facts.value("adapters", Json::array())) {
    adapters.push_back({golden.path(one.at("folder").get<std::string>()), one.at("scale")});
  }
  return adapters;
}

// `path`: of a model that stands for the case's own; or empty.
void run_model_case(const Device& device, const GoldenCase& golden, const std::string& path = {}) {
  const std::vector<AdapterChoice> adapters = adapters_of(golden);
  ModelOptions options;
  options.adapters = adapters;
  // Other scales first, so that the right ones are those of set_adapter_scales.
  for (AdapterChoice& adapter : options.adapters) adapter.scale = 0.25f - adapter.scale;
  const std::string own = golden.path(adapters.empty() ? "model" : "base");
  auto model = Model::load(device, path.empty() ? own : path, options);
  REQUIRE_MESSAGE(model.ok(), golden.name << ": " << model.error().message);
  auto session = Session::create(*model);
  REQUIRE(session.ok());
  if (!adapters.empty()) REQUIRE(session->run(golden.pass_inputs()).ok());
  std::vector<float> scales;
  for (const AdapterChoice& adapter : adapters) scales.push_back(adapter.scale);
  REQUIRE(model->set_adapter_scales(scales).ok());
  RunOptions taps;
  taps.attentions = true;
  taps.hidden_states = true;
  TensorMap expected = golden.tensors("expected.safetensors");
  // BERT's pooler has no place in a GGUF file.
  if (!path.empty()) expected.erase("pooler_output");
  const auto outputs = session->run(golden.pass_inputs(), taps);
  REQUIRE_MESSAGE(outputs.ok(), golden.name << ": " << outputs.error().message);
  check_all(golden, expected, *outputs);
  if (golden.facts.contains("generation")) run_generation_case(golden, expected, *session);
}

}  // namespace

TEST_SUITE("model") {
  TEST_CASE("operators give their golden outputs") {
    if (!have_test_device()) return;
    const std::vector<GoldenCase> cases = golden_cases_with("op.json");
    CHECK(cases.size() >= 80);
    for (const GoldenCase& golden : cases) run_operator_case(*test_device(), golden);
  }

  TEST_CASE("models give their golden outputs, attentions, hidden states and ids") {
    if (!have_test_device()) return;
    const std::vector<GoldenCase> cases = golden_cases_with("model/config.json");
    CHECK(cases.size() >= 6);
    for (const GoldenCase& golden : cases) run_model_case(*test_device(), golden);
  }

  // A family that sees padding has to say so (ModelFacts::padding).
  TEST_CASE("two models of every type give their golden outputs on rounded lengths") {
    if (!have_test_device()) return;
    std::map<std::string, int> tried;
    for (const GoldenCase& golden : golden_cases_with("model/config.json")) {
      const TensorMap inputs = golden.pass_inputs();
      if (inputs.count("input_ids") == 0 && inputs.count("decoder_input_ids") == 0) continue;
      const Json config = read_json(golden.path("model/config.json"));
      if (++tried[config.value("model_type", "")] > 2) continue;
      const auto model = Model::load(*test_device(), golden.path("model"));
      REQUIRE_MESSAGE(model.ok(), golden.name << ": " << model.error().message);
      auto session = Session::create(*model, {.round_lengths = true});
      REQUIRE(session.ok());
      RunOptions taps;
      taps.attentions = true;
      taps.hidden_states = true;
      const auto outputs = session->run(inputs, taps);
      REQUIRE_MESSAGE(outputs.ok(), golden.name << ": " << outputs.error().message);
      check_all(golden, golden.tensors("expected.safetensors"), *outputs);
    }
    CHECK(tried.size() >= 60);
  }

  TEST_CASE("models in GGUF files give their golden outputs and ids") {
    if (!have_test_device()) return;
    const std::vector<GoldenCase> cases = golden_cases_with("model/model.gguf");
    CHECK(cases.size() >= 30);
    for (const GoldenCase& golden : cases) run_model_case(*test_device(), golden);
  }

  TEST_CASE("models with adapters give their golden outputs and ids after a change of scales") {
    if (!have_test_device()) return;
    const std::vector<GoldenCase> cases = golden_cases_with("base/config.json");
    CHECK(cases.size() >= 5);
    for (const GoldenCase& golden : cases) run_model_case(*test_device(), golden);
  }

  TEST_CASE("models written to GGUF files give their golden outputs and ids") {
    if (!have_test_device()) return;
    const test::TempDir dir;
    std::map<std::string, int> written;
    for (const char* file : {"model/config.json", "model/model.gguf"}) {
      for (const GoldenCase& golden : golden_cases_with(file)) {
        const bool gguf = std::string_view(file) == "model/model.gguf";
        const std::string path = dir.file("written.gguf");
        const auto report =
            write_gguf(golden.path(gguf ? file : "model"), path, {.weights = WeightFormat::kF32});
        if (!report.ok()) {
          CHECK_MESSAGE((!gguf && report.error().code == ErrorCode::kUnsupported),
                        golden.name << ": " << report.error().message);
          continue;
        }
        ++written[gguf ? "gguf" : golden.facts.value("family", "")];
        run_model_case(*test_device(), golden, path);
      }
    }
    CHECK(written["gguf"] >= 15);
    for (const char* family : {"llama", "qwen2", "gemma", "phi3", "bert", "t5"}) {
      CHECK_MESSAGE(written[family] >= 1, family);
    }
  }

  TEST_CASE("models with adapters in GGUF files give the same golden outputs") {
    if (!have_test_device()) return;
    int tried = 0;
    for (GoldenCase& golden : golden_cases_with("base/config.json")) {
      bool changed = false;
      for (Json& one : golden.facts["adapters"]) {
        const std::string file = one.at("folder").get<std::string>() + ".gguf";
        if (!std::filesystem::exists(golden.path(file))) continue;
        one["folder"] = file;
        changed = true;
      }
      if (!changed) continue;
      ++tried;
      run_model_case(*test_device(), golden);
    }
    CHECK(tried >= 2);
  }

  TEST_CASE("a model packed as halves stays near its golden outputs") {
    if (!have_test_device()) return;
    GoldenCase golden = golden_case("transformer-paper");
    golden.facts["tolerance"] = {{"abs", 2e-2}, {"rel", 2e-2}};
    ModelOptions half;
    half.weights = WeightFormat::kF16;
    const auto model = Model::load(*test_device(), golden.path("model"), half);
    REQUIRE_MESSAGE(model.ok(), model.error().message);
    auto session = Session::create(*model);
    REQUIRE(session.ok());
    const auto outputs = session->run(golden.pass_inputs());
    REQUIRE_MESSAGE(outputs.ok(), outputs.error().message);
    const TensorMap expected = golden.tensors("expected.safetensors");
    check_golden_floats(golden, "logits", expected.at("logits"), nullptr, outputs->at("logits"));
  }
}

}  // namespace vkformer::testing
