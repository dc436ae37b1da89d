// Generation whose caches roll: sliding windows, and contexts with attention sinks (Xiao et al.
// 2023), against a model in double that trims its cache and turns every kept key anew.
#include <cmath>
#include <random>

#include "checkpoint/checkpoint.h"
#include "reference/array.h"
#include "support/golden_generation.h"
#include "support/test_device.h"

namespace vkformer::testing {
namespace {

using Rows = std::vector<std::vector<int64_t>>;
using Vector = std::vector<double>;

// llama-gqa's own sizes; the other models are not compared with the one in double.
constexpr size_t kWidth = 32;  // D
constexpr size_t kHeads = 4;
constexpr size_t kKvHeads = 2;
constexpr size_t kHead = 8;  // E

Vector read_tensor(const Checkpoint& checkpoint, const std::string& name) {
  const TensorView* view = checkpoint.find(name);
  REQUIRE(view != nullptr);
  REQUIRE(view->dtype == DType::kF32);
  Vector values(view->bytes.size() / 4);
  for (size_t i = 0; i < values.size(); ++i) {
    float value = 0;
    std::memcpy(&value, view->bytes.data() + 4 * i, 4);
    values[i] = static_cast<double>(value);
  }
  return values;
}

// w (N, K), x (K) -> (N).
Vector product(const Vector& w, const Vector& x) {
  Vector y(w.size() / x.size(), 0.0);
  for (size_t i = 0; i < w.size(); ++i) y[i / x.size()] += w[i] * x[i % x.size()];
  return y;
}

Vector normed(const Vector& x, const Vector& gain) {
  double square = 0;
  for (double value : x) square += value * value;
  Vector y(x.size());
  const double scale = 1.0 / std::sqrt(square / static_cast<double>(x.size()) + 1e-6);
  for (size_t i = 0; i < x.size(); ++i) y[i] = x[i] * scale * gain[i];
  return y;
}

void add(Vector& x, const Vector& y) {
  for (size_t i = 0; i < x.size(); ++i) x[i] += y[i];
}

// A head at x[at] turned by `position`, pairs (i, i + E/2) (Su et al. 2021).
Vector turned(const Vector& x, size_t at, size_t position) {
  Vector y(kHead);
  for (size_t i = 0; i < kHead / 2; ++i) {
    const double angle = static_cast<double>(position) *
                         std::pow(10000.0, -2.0 * static_cast<double>(i) / double{kHead});
    const double u = x[at + i];
    const double v = x[at + i + kHead / 2];
    y[i] = u * std::cos(angle) - v * std::sin(angle);
    y[i + kHead / 2] = v * std::cos(angle) + u * std::sin(angle);
  }
  return y;
}

// A LLaMA that is fed token by token and keeps its keys unturned. Beyond `context` keys the first
// `sinks` stay and the oldest other goes, and all are turned by where they stand in what is left.
class StreamingLlama {
 public:
  StreamingLlama(const Checkpoint& checkpoint, size_t context, size_t sinks)
      : context_(context), sinks_(sinks) {
    for (const std::string& name : checkpoint.names()) w_[name] = read_tensor(checkpoint, name);
  }

  // Log-probabilities of the token after this one.
  Vector step(int64_t token) {
    const Vector& words = w_.at("model.embed_tokens.weight");
    const auto row = words.begin() + token * static_cast<ptrdiff_t>(kWidth);
    Vector x(row, row + kWidth);
    for (size_t l = 0; l < 2; ++l) add_layer("model.layers." + std::to_string(l) + ".", l, x);
    Vector logits = product(w_.at("lm_head.weight"), normed(x, w_.at("model.norm.weight")));
    double sum = 0;
    for (double value : logits) sum += std::exp(value);
    for (double& value : logits) value -= std::log(sum);
    return logits;
  }

 private:
  struct Line {
    Vector k, v;
  };

  void add_layer(const std::string& name, size_t l, Vector& x) {
    Vector h = normed(x, w_.at(name + "input_layernorm.weight"));
    const auto part = [&](const char* which) { return product(w_.at(name + which), h); };
    std::vector<Line>& kept = kept_[l];
    kept.push_back({part("self_attn.k_proj.weight"), part("self_attn.v_proj.weight")});
    if (kept.size() > context_) kept.erase(kept.begin() + static_cast<ptrdiff_t>(sinks_));
    const Vector attended = attend(part("self_attn.q_proj.weight"), kept);
    add(x, product(w_.at(name + "self_attn.o_proj.weight"), attended));
    h = normed(x, w_.at(name + "post_attention_layernorm.weight"));
    Vector up = part("mlp.up_proj.weight");
    const Vector gate = part("mlp.gate_proj.weight");
    for (size_t i = 0; i < up.size(); ++i) up[i] *= gate[i] / (1.0 + std::exp(-gate[i]));
    add(x, product(w_.at(name + "mlp.down_proj.weight"), up));
  }

  static Vector attend(const Vector& q, const std::vector<Line>& kept) {
    Vector y(kWidth, 0.0);
    for (size_t head = 0; head < kHeads; ++head) {
      const size_t at = head / (kHeads / kKvHeads) * kHead;
      const Vector query = turned(q, head * kHead, kept.size() - 1);
      double total = 0;
      for (size_t n = 0; n < kept.size(); ++n) {
        const Vector key = turned(kept[n].k, at, n);
        double score = 0;
        for (size_t e = 0; e < kHead; ++e) score += query[e] * key[e];
        const double weight = std::exp(score / std::sqrt(double{kHead}));
        total += weight;
        for (size_t e = 0; e < kHead; ++e) y[head * kHead + e] += weight * kept[n].v[at + e];
      }
      for (size_t e = 0; e < kHead; ++e) y[head * kHead + e] /= total;
    }
    return y;
  }

  size_t context_, sinks_;
  std::map<std::string, Vector> w_;
  std::map<size_t, std::vector<Line>> kept_;
};

struct Loaded {
  Model model;
  Session session;
};

Loaded load_golden(const std::string& name) {
  auto model = Model::load(*test_device(), golden_case(name).path("model"));
  REQUIRE_MESSAGE(model.ok(), model.error().message);
  auto session = Session::create(*model);
  REQUIRE_MESSAGE(session.ok(), session.error().message);
  return {std::move(model).value(), std::move(session).value()};
}

GenerateOptions rolling_options(int beams, int max_new_tokens, std::optional<int> context,
                                int sinks) {
  GenerateOptions options;
  options.beams = beams;
  options.max_new_tokens = max_new_tokens;
  options.context = context;
  options.sinks = sinks;
  return options;
}

Generation generate_rolled(Session& session, const Rows& rows, const GenerateOptions& options) {
  auto generation = session.generate(rows, options);
  REQUIRE_MESSAGE(generation.ok(), generation.error().message);
  REQUIRE(generation->size() == rows.size());
  return std::move(generation).value();
}

std::vector<int64_t> random_prompt(size_t tokens, uint32_t seed) {
  std::mt19937 engine(seed);
  std::vector<int64_t> row(tokens);
  for (int64_t& id : row) id = std::uniform_int_distribution<int64_t>(3, 60)(engine);
  return row;
}

// Every token that was chosen is the likeliest, as far as f32 can tell, and the score is their sum.
void check_greedy(const Checkpoint& checkpoint, const Hypothesis& found, size_t prompt,
                  const GenerateOptions& options) {
  StreamingLlama llama(checkpoint, static_cast<size_t>(*options.context),
                       static_cast<size_t>(options.sinks));
  double score = 0;
  size_t worse = 0;
  REQUIRE(found.ids.size() == prompt + static_cast<size_t>(options.max_new_tokens));
  for (size_t t = 0; t + 1 < found.ids.size(); ++t) {
    const Vector next = llama.step(found.ids[t]);
    if (t + 1 < prompt) continue;
    const double chosen = next[static_cast<size_t>(found.ids[t + 1])];
    score += chosen;
    if (*std::max_element(next.begin(), next.end()) - chosen > 1e-4) ++worse;
  }
  CHECK(worse == 0);
  CHECK(found.score == doctest::Approx(score).epsilon(2e-6));
}

void check_same_rolled(const Generation& a, const Generation& b) {
  REQUIRE(a.size() == b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    CAPTURE(i);
    REQUIRE(a[i].size() == b[i].size());
    CHECK(a[i][0].ids == b[i][0].ids);
    CHECK(a[i][0].score == b[i][0].score);
  }
}

// Sum of the log-probabilities that one full pass gives the tokens after the prompt.
double full_pass_score(Session& session, const std::vector<int64_t>& ids, size_t prompt) {
  const Tensor row = Tensor::from_ints({1, static_cast<int64_t>(ids.size())}, ids);
  const auto outputs = session.run({{"input_ids", row}});
  REQUIRE_MESSAGE(outputs.ok(), outputs.error().message);
  const std::vector<float> logits = outputs->at("logits").to_floats().value();
  const size_t vocab = logits.size() / ids.size();
  double score = 0;
  for (size_t t = prompt; t < ids.size(); ++t) {
    double sum = 0;
    const float* line = &logits[(t - 1) * vocab];
    for (size_t v = 0; v < vocab; ++v) sum += std::exp(static_cast<double>(line[v]));
    score += static_cast<double>(line[ids[t]]) - std::log(sum);
  }
  return score;
}

}  // namespace

TEST_SUITE("model") {
  TEST_CASE("a context with sinks generates what a trimmed cache turned anew would") {
    if (!have_test_device()) return;
    Loaded on = load_golden("llama-gqa");
    const auto checkpoint = Checkpoint::open(golden_case("llama-gqa").path("model"));
    REQUIRE(checkpoint.ok());
    struct Setting {
      int context, sinks, tokens;
      size_t prompt;
    };
    // A prompt of 31, 32 and 33 tokens ends below, at and beyond its context; one of 200 is longer
    // than the model's positions.
    for (const Setting& s : {Setting{32, 4, 60, 3}, Setting{32, 0, 40, 31}, Setting{32, 4, 40, 32},
                             Setting{32, 1, 40, 33}, Setting{13, 12, 30, 20}, Setting{1, 0, 8, 3},
                             Setting{40, 5, 20, 200}}) {
      CAPTURE(s.context);
      CAPTURE(s.prompt);
      const GenerateOptions options = rolling_options(1, s.tokens, s.context, s.sinks);
      const Rows rows = {random_prompt(s.prompt, 3)};
      const Generation found = generate_rolled(on.session, rows, options);
      check_greedy(*checkpoint, found[0][0], s.prompt, options);
    }
  }

  TEST_CASE("a generation far beyond the positions keeps its cache, and its bits") {
    if (!have_test_device()) return;
    Loaded on = load_golden("llama-gqa");
    const auto checkpoint = Checkpoint::open(golden_case("llama-gqa").path("model"));
    REQUIRE(checkpoint.ok());
    const Rows rows = {random_prompt(5, 4)};
    const GenerateOptions options = rolling_options(1, 1100, 32, 4);
    const Generation first = generate_rolled(on.session, rows, options);
    check_greedy(*checkpoint, first[0][0], 5, options);
    const int64_t line = 2 * kKvHeads * kHead * 4;  // bytes
    CHECK(on.session.counters().cache_bytes == 2 * 32 * line);
    check_same_rolled(generate_rolled(on.session, rows, options), first);
    CHECK(on.session.counters().recordings == 0);
    // The same bits until the first key gives way as with all keys kept, which take more memory.
    const Generation all =
        generate_rolled(on.session, rows, rolling_options(1, 60, std::nullopt, 0));
    const Generation shorter = generate_rolled(on.session, rows, rolling_options(1, 27, 32, 4));
    CHECK(std::equal(shorter[0][0].ids.begin(), shorter[0][0].ids.end(), all[0][0].ids.begin()));
    CHECK(std::equal(shorter[0][0].ids.begin(), shorter[0][0].ids.end(), first[0][0].ids.begin()));
    generate_rolled(on.session, rows, rolling_options(1, 110, std::nullopt, 0));
    CHECK(on.session.counters().cache_bytes > 2 * 32 * line);
  }

  TEST_CASE("rows of any length give what each gives alone while their caches roll") {
    if (!have_test_device()) return;
    for (const char* name : {"llama-gqa", "bloom-alibi", "qwen2-window", "gptneox-parallel"}) {
      CAPTURE(name);
      Loaded on = load_golden(name);
      Rows rows;
      for (size_t tokens : {3u, 16u, 40u, 1u, 40u, 17u, 25u}) {
        rows.push_back(random_prompt(tokens, static_cast<uint32_t>(rows.size())));
      }
      for (int beams : {1, 3}) {
        const GenerateOptions options = rolling_options(beams, 30, 17, 3);
        const Generation together = generate_rolled(on.session, rows, options);
        for (size_t i = 0; i < rows.size(); ++i) {
          check_same_rolled({together[i]}, generate_rolled(on.session, {rows[i]}, options));
        }
        check_same_rolled(generate_rolled(on.session, rows, options), together);
      }
    }
  }

  TEST_CASE("a context that nothing fills changes no bit") {
    if (!have_test_device()) return;
    Loaded on = load_golden("bloom-alibi");
    const Rows rows = {random_prompt(9, 1), random_prompt(4, 2)};
    for (int beams : {1, 4}) {
      const Generation all =
          generate_rolled(on.session, rows, rolling_options(beams, 20, std::nullopt, 4));
      check_same_rolled(generate_rolled(on.session, rows, rolling_options(beams, 20, 64, 4)), all);
      // Of the longer row one key gives way.
      const Generation fewer = generate_rolled(on.session, rows, rolling_options(beams, 20, 28, 4));
      check_same_rolled({fewer[1]}, {all[1]});
    }
  }

  TEST_CASE("a sliding window generates with a line a key, as full passes say") {
    if (!have_test_device()) return;
    Loaded on = load_golden("mistral-window");  // 6 keys
    const int64_t line = 2 * kKvHeads * kHead * 4;
    Rows rows = {random_prompt(40, 5), random_prompt(2, 6), random_prompt(6, 7),
                 random_prompt(21, 8)};
    for (int beams : {1, 3}) {
      const GenerateOptions options = rolling_options(beams, 50, std::nullopt, 4);
      const Generation together = generate_rolled(on.session, rows, options);
      CHECK(on.session.counters().cache_bytes == 4 * beams * 2 * 6 * line);
      for (size_t i = 0; i < rows.size(); ++i) {
        CAPTURE(i);
        const std::vector<int64_t>& ids = together[i][0].ids;
        const double score = full_pass_score(on.session, ids, rows[i].size());
        const double divisor = beams == 1 ? 1 : 50;
        CHECK(together[i][0].score == doctest::Approx(score / divisor).epsilon(1e-4));
        check_same_rolled({together[i]}, generate_rolled(on.session, {rows[i]}, options));
      }
    }
  }

  TEST_CASE("a context that cannot be is refused with both numbers") {
    if (!have_test_device()) return;
    struct Wrong {
      const char* model;
      int context, sinks, tokens;
      std::vector<const char*> parts;
    };
    for (const Wrong& w :
         {Wrong{"llama-gqa", 0, 4, 8, {"[context] is 0", "sinks 4"}},
          Wrong{"llama-gqa", 4, 4, 8, {"[context] is 4", "sinks 4"}},
          Wrong{"llama-gqa", 4, -1, 8, {"sinks -1"}}, Wrong{"llama-gqa", 129, 4, 8, {"129", "128"}},
          Wrong{"llama-gqa", 8, 4, 1 << 21, {"2097152", "1048576"}},
          Wrong{"llama-longrope", 60, 4, 80, {"60", "beyond"}},
          Wrong{"gpt2-base", 8, 4, 4096, {"4096", "positions"}},
          Wrong{"bart-base", 8, 4, 8, {"no decoder alone"}},
          Wrong{"bert-base", 8, 4, 8, {"generates nothing"}},
          Wrong{"performer-steps", 8, 4, 8, {"constant size"}}}) {
      CAPTURE(w.model);
      Loaded on = load_golden(w.model);
      const auto refused =
          on.session.generate({{3, 4, 5}}, rolling_options(1, w.tokens, w.context, w.sinks));
      REQUIRE_FALSE(refused.ok());
      for (const char* part : w.parts) {
        CHECK_MESSAGE(refused.error().message.find(part) != std::string::npos,
                      refused.error().message);
      }
    }
  }
}

}  // namespace vkformer::testing
