// Adapters that each sequence of a generation chooses for itself: against the model that has them
// merged, and the same bits whatever else runs.
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>

#include "generate/batch_requests.h"
#include "support/golden.h"

namespace vkformer::testing {
namespace {

using Choices = std::vector<AdapterScale>;

// What the four sequences of a batch have of the adapters of adapter-two.
const Choices kChoices[] = {
    {}, {{"first", 0.5f}}, {{"second", -1.25f}}, {{"second", 0.75f}, {"first", 1.5f}}};

Result<Model> load_two(ModelOptions options = {}) {
  const GoldenCase golden = golden_case("adapter-two");
  options.request_adapters = {{"first", golden.path("first")}, {"second", golden.path("second")}};
  return Model::load(*test_device(), golden.path("base"), options);
}

Model must(Result<Model> model) {
  REQUIRE_MESSAGE(model.ok(), model.error().message);
  return std::move(*model);
}

// The model of which these adapters are a part.
Model merged_two(const Choices& choices, ModelOptions options = {}) {
  const GoldenCase golden = golden_case("adapter-two");
  for (const AdapterScale& choice : choices) {
    options.adapters.push_back({golden.path(choice.adapter), choice.scale});
  }
  return must(Model::load(*test_device(), golden.path("base"), options));
}

// The same ids, each as likely as far as sums in another order allow.
void check_near(const Generation& found, const Generation& expected, double bound = 5e-5) {
  REQUIRE(found.size() == expected.size());
  for (size_t i = 0; i < found.size(); ++i) {
    CAPTURE(i);
    REQUIRE(found[i].size() == expected[i].size());
    for (size_t k = 0; k < found[i].size(); ++k) {
      const Hypothesis &a = found[i][k], &b = expected[i][k];
      CHECK(a.ids == b.ids);
      CHECK(std::abs(a.score - b.score) <= bound * (1 + std::abs(b.score)));
      REQUIRE(a.log_probabilities.size() == b.log_probabilities.size());
      for (size_t t = 0; t < a.log_probabilities.size(); ++t) {
        CHECK(std::abs(a.log_probabilities[t] - b.log_probabilities[t]) <=
              bound * (1 + std::abs(b.log_probabilities[t])));
      }
    }
  }
}

Generation generate_with(const Model& model, const Rows& rows, int beams, const Choices& choices) {
  Session session = make_session(model);
  GenerateOptions options = options_for(session, beams, 10, {});
  options.forced_bos = -1;
  options.adapters = choices;
  return generate(session, rows, options);
}

// Of two rows of one length.
Generation in_slices(Session& session, const Rows& rows, const GenerateOptions& options) {
  const auto tokens = static_cast<int64_t>(rows[0].size());
  std::vector<int64_t> ids;
  for (const auto& row : rows) ids.insert(ids.end(), row.begin(), row.end());
  const TensorMap inputs = {
      {"input_ids", Tensor::from_ints({2, tokens}, ids)},
      {"attention_mask", Tensor::from_ints({2, tokens}, std::vector<int64_t>(ids.size(), 1))}};
  REQUIRE(session.start_generation(inputs, options).ok());
  for (bool more = true; more;) {
    const auto advance = session.advance(std::numeric_limits<double>::infinity());
    REQUIRE_MESSAGE(advance.ok(), advance.error().message);
    more = advance->more_to_submit();
  }
  auto found = session.finish_generation();
  REQUIRE_MESSAGE(found.ok(), found.error().message);
  return std::move(*found);
}

// A directory with a LoRA adapter of random numbers.
struct MadeAdapter {
  struct Layer {
    std::string module;
    int64_t inputs, outputs;
  };
  MadeAdapter(const std::string& name, const std::vector<Layer>& layers, uint32_t seed,
              const std::string& more = "")
      : directory(std::filesystem::temp_directory_path() /
                  ("vkformer-adapter-" + name + "-" + std::to_string(seed))) {
    std::filesystem::create_directories(directory);
    std::ofstream(directory / "adapter_config.json")
        << R"({"peft_type": "LORA", "r": 3, "lora_alpha": 6)" << more << "}";
    std::mt19937 engine(seed);
    std::uniform_real_distribution<float> value(-0.4f, 0.4f);
    Json header;
    std::vector<float> values;
    const auto add = [&](const std::string& tensor, int64_t rows, int64_t columns) {
      const size_t begin = values.size() * 4;
      for (int64_t i = 0; i < rows * columns; ++i) values.push_back(value(engine));
      header["base_model.model." + tensor] = {{"dtype", "F32"},
                                              {"shape", {rows, columns}},
                                              {"data_offsets", {begin, values.size() * 4}}};
    };
    for (const Layer& layer : layers) {
      add(layer.module + ".lora_A.weight", 3, layer.inputs);
      add(layer.module + ".lora_B.weight", layer.outputs, 3);
    }
    const std::string text = header.dump();
    const uint64_t size = text.size();
    std::ofstream file(directory / "adapter_model.safetensors", std::ios::binary);
    file.write(reinterpret_cast<const char*>(&size), 8);
    file.write(text.data(), static_cast<std::streamsize>(text.size()));
    file.write(reinterpret_cast<const char*>(values.data()),
               static_cast<std::streamsize>(values.size() * 4));
  }
  ~MadeAdapter() { std::filesystem::remove_all(directory); }
  MadeAdapter(const MadeAdapter&) = delete;
  MadeAdapter& operator=(const MadeAdapter&) = delete;
  std::string path() const { return directory.string(); }

  std::filesystem::path directory;
};

// Modules of the linear layers of a golden model whose names end so.
std::vector<MadeAdapter::Layer> layers_of(const std::string& golden,
                                          const std::vector<std::string>& endings, bool in_out) {
  const auto info = inspect_model(golden_case(golden).path("model"));
  REQUIRE(info.ok());
  std::vector<MadeAdapter::Layer> layers;
  for (const TensorInfo& tensor : info->tensors) {
    for (const std::string& ending : endings) {
      const std::string whole = "." + ending + ".weight";
      if (!tensor.name.ends_with(whole) || tensor.shape.size() != 2) continue;
      layers.push_back({tensor.name.substr(0, tensor.name.size() - 7), tensor.shape[in_out ? 0 : 1],
                        tensor.shape[in_out ? 1 : 0]});
    }
  }
  REQUIRE(layers.size() >= 2);
  return layers;
}

void check_load_refused(const ModelOptions& options, const std::string& directory,
                        const std::vector<std::string>& parts) {
  const auto refused = Model::load(*test_device(), directory, options);
  REQUIRE_FALSE(refused.ok());
  for (const std::string& part : parts) {
    CHECK_MESSAGE(refused.error().message.find(part) != std::string::npos, refused.error().message);
  }
}

}  // namespace

TEST_SUITE("model") {
  TEST_CASE("adapters of requests generate what the model with them merged does") {
    if (!have_test_device()) return;
    const Model model = must(load_two());
    const Rows rows = random_rows(model, 3, 11);
    for (const Choices& choices : kChoices) {
      CAPTURE(choices.size());
      const Model merged = merged_two(choices);
      for (const int beams : {1, 3}) {
        CAPTURE(beams);
        check_near(generate_with(model, rows, beams, choices),
                   generate_with(merged, rows, beams, {}));
      }
    }
    // They are something else than the model.
    CHECK(generate_with(model, rows, 1, kChoices[3])[0][0].score !=
          generate_with(model, rows, 1, {})[0][0].score);
  }

  TEST_CASE("adapters of requests in GGUF files give the bits of those in directories") {
    if (!have_test_device()) return;
    const GoldenCase golden = golden_case("adapter-two");
    ModelOptions options;
    options.request_adapters = {{"first", golden.path("first.gguf")},
                                {"second", golden.path("second.gguf")}};
    const Model files = must(Model::load(*test_device(), golden.path("base"), options));
    const Model folders = must(load_two());
    const Rows rows = {{5, 9, 3, 7}};
    for (const Choices& choices : kChoices) {
      const Generation found = generate_with(files, rows, 1, choices);
      const Generation expected = generate_with(folders, rows, 1, choices);
      check_near(found, expected, 0);
    }
  }

  TEST_CASE("sequences of one batch have adapters of their own, and the bits of each alone") {
    if (!have_test_device()) return;
    const Model model = must(load_two());
    const BatchOptions options{.rows = 4, .capacity = 32, .step_tokens = 9};
    GenerationBatch together = make_batch(model, options);
    GenerationBatch alone = make_forgetting_batch(model, options);
    // All with the same prompt, so that nothing but adapters tells them apart.
    std::vector<BatchRequest> requests;
    Stories stories;
    for (int turn = 0; turn < 2; ++turn) {
      for (const Choices& choices : kChoices) {
        requests.push_back(request_for(together, random_tokens(model, 9, 5), 12));
        requests.back().options.adapters = choices;
        submit(together, requests.back());
        if (turn == 1) take_step(together, stories);
      }
    }
    while (!together.idle()) take_step(together, stories);
    for (size_t i = 0; i < requests.size(); ++i) {
      CAPTURE(i);
      const Told lonely = run_alone(alone, requests[i]);
      check_same(stories.at(i + 1), lonely);
      const Model merged = merged_two(requests[i].options.adapters);
      BatchRequest plain = requests[i];
      plain.options.adapters.clear();
      GenerationBatch expected = make_batch(merged, options);
      const Told told = run_alone(expected, plain);
      CHECK(told.tokens == lonely.tokens);
      CHECK(std::abs(told.score - lonely.score) <= 1e-4 * (1 + std::abs(told.score)));
    }
    // What is told apart in the scores, though the text may be the same.
    for (size_t i = 1; i < 4; ++i) CHECK(stories.at(i + 1).score != stories.at(1).score);
  }

  TEST_CASE("keys of one adapter are not reused for another") {
    if (!have_test_device()) return;
    const Model model = must(load_two());
    // One row: whoever comes next finds the keys of the one before.
    const BatchOptions options{.rows = 1, .capacity = 32, .step_tokens = 4};
    GenerationBatch keeps = make_batch(model, options);
    GenerationBatch forgets = make_forgetting_batch(model, options);
    BatchRequest request = request_for(keeps, random_tokens(model, 12, 6), 6);
    for (const Choices& choices : kChoices) {
      request.options.adapters = choices;
      const Told first = run_alone(keeps, request);
      CHECK(first.work.reused_tokens == 0);
      check_same(first, run_alone(forgets, request));
      const Told second = run_alone(keeps, request);
      CHECK(second.work.reused_tokens == 11);
      check_same(second, first);
    }
    // The same adapters in another order are the same.
    std::swap(request.options.adapters[0], request.options.adapters[1]);
    CHECK(run_alone(keeps, request).work.reused_tokens == 11);
    // A session's cached prefixes likewise.
    auto session = Session::create(model, {.prefix_reuse = true});
    REQUIRE(session.ok());
    GenerateOptions o = options_for(*session, 1, 6, {});
    const Rows rows = {request.prompt};
    const Generation plain = generate(*session, rows, o);
    CHECK(session->counters().reused_tokens == 0);
    o.adapters = kChoices[1];
    const Generation first = generate(*session, rows, o);
    CHECK(session->counters().reused_tokens == 0);
    CHECK(first[0][0].score != plain[0][0].score);
    o.adapters.clear();
    const Model merged = merged_two(kChoices[1]);
    Session whole = make_session(merged);
    check_near(first, generate(whole, rows, o));
    check_same(generate(*session, rows, o), plain);
  }

  TEST_CASE("a draft without adapters changes no bit of a request with them") {
    if (!have_test_device()) return;
    const Model model = must(load_two());
    BatchOptions options{.rows = 2, .capacity = 32, .step_tokens = 9};
    GenerationBatch plain = make_batch(model, options);
    options.draft = model;
    GenerationBatch drafts = make_batch(model, options);
    for (const Choices& choices : kChoices) {
      BatchRequest request = request_for(plain, random_tokens(model, 7, 3), 20);
      request.options.adapters = choices;
      check_same(run_alone(drafts, request), run_alone(plain, request));
    }
    CHECK(drafts.counters().work.draft_tokens > 0);
  }

  TEST_CASE("adapters of requests stand beside weights in blocks and merged adapters") {
    if (!have_test_device()) return;
    const GoldenCase golden = golden_case("adapter-two");
    for (const WeightFormat format : {WeightFormat::kQ8, WeightFormat::kQ4, WeightFormat::kF16}) {
      ModelOptions options;
      options.weights = format;
      const Model plain = must(Model::load(*test_device(), golden.path("base"), options));
      const Model model = must(load_two(options));
      const Rows rows = random_rows(model, 2, 4);
      // Without adapters, it is the model in that format.
      check_near(generate_with(model, rows, 1, {}), generate_with(plain, rows, 1, {}));
      // Theirs are all that is added to its memory.
      CHECK(model.weight_bytes() > plain.weight_bytes());
      CHECK(generate_with(model, rows, 1, kChoices[1])[0][0].score !=
            generate_with(model, rows, 1, {})[0][0].score);
    }
    ModelOptions both;
    both.adapters = {{golden.path("first"), 0.5f}};
    const Rows rows = {{3, 9, 4, 7}};
    check_near(generate_with(must(load_two(both)), rows, 1, kChoices[2]),
               generate_with(merged_two({{"first", 0.5f}, {"second", -1.25f}}), rows, 1, {}));
  }

  TEST_CASE("adapters of requests change merged projections, biased and transposed layers") {
    if (!have_test_device()) return;
    struct Case {
      const char* model;
      std::vector<std::string> endings;
      bool in_out;
    };
    const Case cases[] = {
        {"gpt2-base", {"c_attn", "c_fc", "c_proj"}, true},
        {"gptneox-parallel", {"query_key_value", "dense_4h_to_h"}, false},
        {"marian-base", {"q_proj", "v_proj", "out_proj", "fc1"}, false},
        {"mt5-base", {"q", "k", "wi_0", "wo"}, false},
        {"led-base", {"query", "value_global", "q_proj", "fc2"}, false},
        // Steps multiply queries and sums of latents with what expands latents.
        {"deepseek_v3-base", {"kv_b_proj"}, false},
        {"deepseek_v3-base", {"q_b_proj", "kv_a_proj_with_mqa", "kv_b_proj", "o_proj"}, false},
    };
    for (const Case& c : cases) {
      CAPTURE(c.model);
      const std::vector<MadeAdapter::Layer> layers = layers_of(c.model, c.endings, c.in_out);
      const MadeAdapter a(c.model, layers, 1), b(c.model, layers, 2, R"(, "use_rslora": true)");
      const std::string base = golden_case(c.model).path("model");
      const Choices choices = {{"a", 0.5f}, {"b", -0.75f}};
      ModelOptions options, merging;
      options.request_adapters = {{"a", a.path()}, {"b", b.path()}};
      merging.adapters = {{a.path(), 0.5f}, {b.path(), -0.75f}};
      const Model model = must(Model::load(*test_device(), base, options));
      const Model merged = must(Model::load(*test_device(), base, merging));
      const Rows rows = random_rows(model, 3, 21, 9);
      for (const int beams : {1, 2}) {
        check_near(generate_with(model, rows, beams, choices),
                   generate_with(merged, rows, beams, {}));
      }
      // In a batch, beside one without.
      const BatchOptions sizes{.rows = 2, .capacity = 24, .step_tokens = 5};
      GenerationBatch together = make_batch(model, sizes), alone = make_batch(merged, sizes);
      BatchRequest request = request_for(together, rows[1], 8);
      request.options.forced_bos = -1;
      BatchRequest adapted = request;
      adapted.options.adapters = choices;
      const uint64_t with = submit(together, adapted), without = submit(together, request);
      Stories stories;
      while (!together.idle()) take_step(together, stories);
      const Told expected = run_alone(alone, request);
      CHECK(stories.at(with).tokens == expected.tokens);
      CHECK(std::abs(stories.at(with).score - expected.score) <=
            1e-4 * (1 + std::abs(expected.score)));
      CHECK(stories.at(without).score != expected.score);
      // The same text with other adapters is encoded anew.
      check_same(run_alone(together, adapted), stories.at(with));
      check_same(run_alone(together, request), stories.at(without));
    }
  }

  TEST_CASE("adapters of requests on what expands latents leave other sequences their bits") {
    if (!have_test_device()) return;
    const MadeAdapter a("latents", layers_of("deepseek_v3-base", {"kv_b_proj"}, false), 7);
    const std::string base = golden_case("deepseek_v3-base").path("model");
    for (const WeightFormat format : {WeightFormat::kF32, WeightFormat::kQ8, WeightFormat::kF16}) {
      ModelOptions options;
      options.weights = format;
      const Model plain = must(Model::load(*test_device(), base, options));
      options.request_adapters = {{"a", a.path()}};
      const Model model = must(Model::load(*test_device(), base, options));
      const Rows rows = random_rows(model, 3, 5, 9);
      const Generation without = generate_with(plain, rows, 2, {});
      check_near(generate_with(model, rows, 2, {}), without, 0);
      check_near(generate_with(model, rows, 2, {{"a", 0.0f}}), without, 0);
      const Generation with = generate_with(model, rows, 2, {{"a", 1.5f}});
      CHECK(with[0][0].score != without[0][0].score);
      check_same(generate_with(model, rows, 2, {{"a", 1.5f}}), with);
    }
  }

  TEST_CASE("memory_needs counts adapters of requests") {
    if (!have_test_device()) return;
    const GoldenCase golden = golden_case("adapter-two");
    const auto device = make_test_device(test_device_options(), test_device_tweaks());
    REQUIRE_MESSAGE(device.ok(), device.error().message);
    ModelOptions options;
    options.request_adapters = {{"first", golden.path("first")}, {"second", golden.path("second")}};
    const SessionSizes sizes{.batch = 2, .tokens = 9, .new_tokens = 7, .beams = 2};
    const auto needs =
        memory_needs(*device, ModelSource::directory(golden.path("base")), options, sizes);
    REQUIRE_MESSAGE(needs.ok(), needs.error().message);
    const Model model = must(Model::load(*device, golden.path("base"), options));
    Session session = make_session(model);
    GenerateOptions settings = options_for(session, 2, 7, {});
    settings.adapters = kChoices[3];
    const std::vector<int64_t> row(9, 3);
    generate(session, {row, row}, settings);
    CHECK(device->memory_in_use() == needs->total);
  }

  TEST_CASE("a generation in slices has its adapters") {
    if (!have_test_device()) return;
    const Model model = must(load_two());
    Session session = make_session(model);
    GenerateOptions options = options_for(session, 1, 8, {});
    options.adapters = kChoices[3];
    const Rows rows = {{3, 9, 4, 7}, {8, 3, 5, 6}};
    const Generation expected = generate(session, rows, options);
    check_same(in_slices(session, rows, options), expected);
  }

  TEST_CASE("adapters of requests on what expands latents differ by sequence, and run in slices") {
    if (!have_test_device()) return;
    const std::string base = golden_case("deepseek_v3-base").path("model");
    const std::vector<MadeAdapter::Layer> layers =
        layers_of("deepseek_v3-base", {"kv_b_proj"}, false);
    const MadeAdapter a("own", layers, 3), b("own", layers, 4);
    ModelOptions options;
    options.request_adapters = {{"a", a.path()}, {"b", b.path()}};
    const Model model = must(Model::load(*test_device(), base, options));
    const Choices choices[] = {{}, {{"a", 1.0f}}, {{"b", -0.5f}}, {{"a", 0.5f}, {"b", 0.75f}}};
    const BatchOptions sizes{.rows = 4, .capacity = 32, .step_tokens = 9};
    GenerationBatch together = make_batch(model, sizes);
    GenerationBatch alone = make_forgetting_batch(model, sizes);
    // All with the same prompt, so that nothing but adapters tells them apart.
    std::vector<BatchRequest> requests;
    Stories stories;
    for (const Choices& chosen : choices) {
      requests.push_back(request_for(together, random_tokens(model, 9, 5), 12));
      requests.back().options.adapters = chosen;
      submit(together, requests.back());
      if (requests.size() == 2) take_step(together, stories);
    }
    while (!together.idle()) take_step(together, stories);
    for (size_t i = 0; i < requests.size(); ++i) {
      CAPTURE(i);
      const Told lonely = run_alone(alone, requests[i]);
      check_same(stories.at(i + 1), lonely);
      ModelOptions merging;
      for (const AdapterScale& choice : choices[i]) {
        merging.adapters.push_back({choice.adapter == "a" ? a.path() : b.path(), choice.scale});
      }
      const Model merged = must(Model::load(*test_device(), base, merging));
      GenerationBatch expected = make_batch(merged, sizes);
      BatchRequest plain = requests[i];
      plain.options.adapters.clear();
      const Told told = run_alone(expected, plain);
      CHECK(told.tokens == lonely.tokens);
      CHECK(std::abs(told.score - lonely.score) <= 1e-4 * (1 + std::abs(told.score)));
      if (i > 0) CHECK(stories.at(i + 1).score != stories.at(1).score);

      Session session = make_session(model);
      GenerateOptions settings = options_for(session, 1, 8, {});
      settings.adapters = choices[i];
      const Rows rows = {{3, 9, 4, 7}, {8, 3, 5, 6}};
      const Generation whole = generate(session, rows, settings);
      check_same(in_slices(session, rows, settings), whole);
    }
  }

  TEST_CASE("names and scales of adapters that a request cannot have are refused") {
    if (!have_test_device()) return;
    const Model model = must(load_two());
    GenerationBatch batch = make_batch(model, {.rows = 1, .capacity = 16, .step_tokens = 2});
    Session session = make_session(model);
    const auto refused = [&](const Choices& choices, const std::string& part) {
      BatchRequest request = request_for(batch, {3, 4}, 4);
      request.options.adapters = choices;
      check_refused(batch, request, part);
      GenerateOptions options = options_for(session, 1, 4, {});
      options.adapters = choices;
      check_refused(session, options, part);
    };
    refused({{"third", 1.0f}}, "'third' for requests: it was loaded with 'first', 'second'");
    refused({{"", 1.0f}}, "no adapter ''");
    refused({{"first", 1.0f}, {"first", 2.0f}}, "'first' is given twice");
    refused({{"first", std::numeric_limits<float>::quiet_NaN()}}, "must be a finite number");
    refused({{"second", std::numeric_limits<float>::infinity()}}, "must be a finite number");
    Session plain = make_session(golden_model("llama-gqa"));
    GenerateOptions options = options_for(plain, 1, 4, {});
    options.adapters = {{"first", 1.0f}};
    check_refused(plain, options, "loaded with none for requests");
    GenerateOptions contrastive = options_for(session, 1, 4, {});
    contrastive.contrastive_tokens = 3;
    contrastive.adapters = {{"first", 1.0f}};
    check_refused(session, contrastive, "contrastive");
  }

  TEST_CASE("adapters that are more than products beside the weights are refused with the reason") {
    if (!have_test_device()) return;
    const GoldenCase two = golden_case("adapter-two"), bert = golden_case("adapter-bert");
    const GoldenCase dora = golden_case("adapter-dora");
    const auto with = [](const std::string& path) {
      ModelOptions options;
      options.request_adapters = {{"x", path}};
      return options;
    };
    check_load_refused(with(two.path("unused")), two.path("base"),
                       {"self_attn.o_proj", "adapter [x]", "magnitudes (DoRA)", "load it merged"});
    check_load_refused(with(dora.path("adapter")), dora.path("base"), {"magnitudes (DoRA)"});
    check_load_refused(with(bert.path("adapter")), bert.path("base"), {"load it merged"});
    // Of another model.
    check_load_refused(with(dora.path("other")), golden_case("gpt2-base").path("model"),
                       {"the adapter is of another model"});
    ModelOptions twice;
    twice.request_adapters = {{"x", two.path("first")}, {"x", two.path("second")}};
    check_load_refused(twice, two.path("base"), {"Two adapters are called 'x'"});
    ModelOptions nameless;
    nameless.request_adapters = {{"", two.path("first")}};
    check_load_refused(nameless, two.path("base"), {"has no name"});
    check_load_refused(with("/nowhere"), two.path("base"), {"adapter_model.safetensors"});
    // A table of tokens is no linear layer, nor are experts.
    const MadeAdapter table("words", layers_of("gpt2-base", {"wpe", "wte"}, false), 3);
    check_load_refused(with(table.path()), golden_case("gpt2-base").path("model"),
                       {"load it merged"});
    // A model that generates nothing.
    const MadeAdapter query("bert", layers_of("bert-mlm", {"query"}, false), 4);
    check_load_refused(with(query.path()), golden_case("bert-mlm").path("model"),
                       {"[request_adapters]", "does not generate"});
  }
}

}  // namespace vkformer::testing
