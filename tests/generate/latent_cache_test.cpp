// Caches of latents (multi-head latent attention): steps attend to latents, and full passes to the
// keys and values that they expand to. Both must say the same.
#include "checkpoint/temp_dir.h"
#include "generate/batch_requests.h"
#include "model/encoder_cases.h"
#include "support/operator_check.h"

namespace vkformer::testing {
namespace {

constexpr int kNewTokens = 10;

// The golden model with other sizes of its latents and heads, and random weights there.
struct Sizes {
  int64_t rank, rotary, own, values;
};

Model resized_model(const Sizes& s, const ModelOptions& options) {
  ChangedModel model("deepseek_v3-base");
  constexpr int64_t width = 16, heads = 3, query_rank = 9;
  model.config["kv_lora_rank"] = s.rank;
  model.config["qk_rope_head_dim"] = model.config["head_dim"] = s.rotary;
  model.config["qk_nope_head_dim"] = s.own;
  model.config["qk_head_dim"] = s.own + s.rotary;
  model.config["v_head_dim"] = s.values;
  for (int layer = 0; layer < 2; ++layer) {
    const std::string name = "model.layers." + std::to_string(layer) + ".self_attn.";
    const auto seed = static_cast<uint32_t>(10 * layer);
    const auto put = [&](const char* tensor, const Shape& shape, uint32_t own, double scale) {
      model.tensors[name + tensor] = reference::to_tensor(random_array(shape, seed + own, scale));
    };
    put("q_b_proj.weight", {heads * (s.own + s.rotary), query_rank}, 1, 0.3);
    put("kv_a_proj_with_mqa.weight", {s.rank + s.rotary, width}, 2, 0.3);
    put("kv_a_proj_with_mqa.bias", {s.rank + s.rotary}, 3, 0.1);
    put("kv_a_layernorm.weight", {s.rank}, 4, 1.0);
    put("kv_b_proj.weight", {heads * (s.own + s.values), s.rank}, 5, 0.1);
    put("o_proj.weight", {width, heads * s.values}, 6, 0.2);
  }
  const test::TempDir directory;
  directory.write("config.json", model.config.dump());
  REQUIRE(write_tensor_file(directory.file("model.safetensors"), model.tensors).ok());
  const auto loaded = Model::load(*test_device(), directory.path(), options);
  REQUIRE_MESSAGE(loaded.ok(), loaded.error().message);
  return *loaded;
}

// Log-probabilities of the tokens after the prompt, as full passes give them.
std::vector<double> pass_scores(Session& session, const Tokens& ids, size_t prompt) {
  std::vector<double> scores;
  for (size_t end = prompt; end < ids.size(); ++end) {
    const std::vector<double> logits =
        logits_after(session, Tokens(ids.begin(), ids.begin() + static_cast<ptrdiff_t>(end)));
    double sum = 0;
    for (const double value : logits) sum += std::exp(value);
    scores.push_back(logits[static_cast<size_t>(ids[end])] - std::log(sum));
  }
  return scores;
}

// A text and the log-probabilities of its tokens after the prompt.
struct Scored {
  Tokens ids;
  std::vector<double> scores;
};

// A generation, whose prompt is read at once.
Scored generated(Session& session, const Tokens& prompt, const GenerateOptions& options) {
  const Generation found = generate(session, {prompt}, options);
  const Hypothesis& h = found.at(0).at(0);
  return {h.ids, {h.log_probabilities.begin(), h.log_probabilities.end()}};
}

// A batch's, whose prompt steps read.
Scored batched(const Model& model, const Tokens& prompt, const GenerateOptions& options) {
  GenerationBatch batch = make_batch(model, {.rows = 2, .step_tokens = 4});
  BatchRequest request{.prompt = prompt, .options = options};
  Scored text{prompt, {}};
  request.options.on_token = [&](const NewToken& token) {
    text.ids.push_back(token.id);
    text.scores.push_back(token.log_probability);
    return TokenVerdict::kGoOn;
  };
  CHECK(run_alone(batch, request).state == State::kFinished);
  return text;
}

void check_against_passes(Session& session, const Scored& text, size_t prompt, double tolerance) {
  const std::vector<double> wanted = pass_scores(session, text.ids, prompt);
  REQUIRE(text.scores.size() == wanted.size());
  for (size_t i = 0; i < wanted.size(); ++i) {
    CHECK(std::abs(text.scores[i] - wanted[i]) < tolerance);
  }
}

double distance(const std::vector<double>& a, const std::vector<double>& b) {
  REQUIRE(a.size() == b.size());
  double square = 0;
  for (size_t i = 0; i < a.size(); ++i) square += (a[i] - b[i]) * (a[i] - b[i]);
  return std::sqrt(square);
}

}  // namespace

TEST_SUITE("model") {
  TEST_CASE("steps that attend to latents say what full passes say") {
    if (!have_test_device()) return;
    // DeepSeek-V3's widths; odd ones; a latent too wide for a step, whose keys are cached.
    for (const Sizes& s : {Sizes{512, 64, 128, 128}, Sizes{33, 6, 5, 70}, Sizes{580, 4, 6, 7}}) {
      CAPTURE(s.rank);
      const Model model = resized_model(s, {});
      const Tokens prompt = random_tokens(model, 9, 5);
      for (const auto& [cache, tolerance] :
           {std::pair{CacheFormat::kF32, 2e-5}, {CacheFormat::kF16, 2e-2}}) {
        auto session = Session::create(model, {.cache = cache});
        REQUIRE_MESSAGE(session.ok(), session.error().message);
        const GenerateOptions options = options_for(*session, 1, kNewTokens, {});
        const Scored text = generated(*session, prompt, options);
        check_against_passes(*session, text, prompt.size(), tolerance);
        if (cache != CacheFormat::kF32) continue;
        check_against_passes(*session, batched(model, prompt, options), prompt.size(), tolerance);
      }
    }
  }

  // The matrices of steps are rounded apart from those of full passes. So both are compared with
  // unrounded ones.
  TEST_CASE("steps that attend to latents are as exact as full passes, in every kind of weights") {
    if (!have_test_device()) return;
    const Sizes s{64, 8, 32, 32};
    const Model whole = resized_model(s, {});
    Session exact = make_session(whole);
    const Tokens prompt = random_tokens(whole, 9, 5);
    for (const WeightFormat weights : {WeightFormat::kF16, WeightFormat::kQ8, WeightFormat::kQ4}) {
      CAPTURE(choice_name(weights));
      const Model model = resized_model(s, {.weights = weights});
      Session session = make_session(model);
      const Scored text = batched(model, prompt, options_for(session, 1, kNewTokens, {}));
      const std::vector<double> wanted = pass_scores(exact, text.ids, prompt.size());
      const double of_passes = distance(pass_scores(session, text.ids, prompt.size()), wanted);
      CHECK(of_passes > 0);
      CHECK(distance(text.scores, wanted) < 2 * of_passes);
    }
  }

  TEST_CASE("a cache of latents has a line of the latent and the shared key's columns") {
    if (!have_test_device()) return;
    const Model model = resized_model({512, 64, 128, 128}, {});
    Session session = make_session(model);
    const GenerateOptions options = options_for(session, 1, 7, {});
    generate(session, {random_tokens(model, 9, 5)}, options);
    const int64_t latents = session.counters().cache_bytes;
    const Model wide = resized_model({580, 64, 128, 128}, {});
    Session expanded = make_session(wide);
    generate(expanded, {random_tokens(wide, 9, 5)}, options);
    // Keys of 192 columns and values of 128, by 3 heads.
    CHECK(expanded.counters().cache_bytes * 576 == latents * 3 * (192 + 128));
  }

  TEST_CASE("beams and contexts with sinks give the same over latents, whatever shares a batch") {
    if (!have_test_device()) return;
    const Model& model = golden_model("deepseek_v3-base");
    Session session = make_session(model);
    Rows rows;
    for (const size_t tokens : {3u, 16u, 1u, 9u}) {
      rows.push_back(random_tokens(model, tokens, static_cast<uint32_t>(tokens)));
    }
    for (const int beams : {1, 3}) {
      CAPTURE(beams);
      GenerateOptions options = options_for(session, beams, 30, {});
      options.context = 13;
      options.sinks = 3;
      const Generation together = generate(session, rows, options);
      for (size_t i = 0; i < rows.size(); ++i) {
        check_same({together[i]}, generate(session, {rows[i]}, options));
      }
      check_same(generate(session, rows, options), together);
    }
  }
}

}  // namespace vkformer::testing
