#include "ops/additive_attention.h"

#include "ops/score_terms.h"
#include "ops/step_run.h"
#include "reference/additive_attention.h"

namespace vkformer::testing {
namespace {

using Attrs = AdditiveAttentionAttrs;

struct AdditiveAttentionCase {
  Attrs::Score score = Attrs::Score::kAdditive;
  Attrs::Window window = Attrs::Window::kNone;
  Attrs::Result result = Attrs::Result::kWeights;
  int64_t batch = 2;    // B
  int64_t queries = 3;  // T
  int64_t keys = 11;    // S
  int64_t width = 7;    // A
  int64_t values = 5;   // C
  int64_t reach = 2;    // D
  int64_t first = 0;
  bool masked = true;
  float temperature = 1.0f;

  int64_t columns() const { return width + (window == Attrs::Window::kPredictive ? 1 : 0); }
  int64_t line() const { return values + (score == Attrs::Score::kLocation ? 0 : width); }
};

struct AdditiveAttentionProblem {
  Array q;
  Array kv;
  Array v;
  Tensor mask;
};

AdditiveAttentionProblem make_additive_attention_problem(const AdditiveAttentionCase& c,
                                                         uint32_t seed) {
  AdditiveAttentionProblem p;
  p.q = random_array({c.batch, c.queries, c.columns()}, seed);
  p.kv = random_array({c.batch, c.keys, c.line()}, seed + 1);
  p.v = random_array({c.width}, seed + 2);
  p.mask = random_mask({c.batch, c.keys}, seed + 3, 0.7);
  if (c.window != Attrs::Window::kPredictive) return p;
  for (int64_t i = 0; i < c.batch * c.queries; ++i) {  // a share of the sentence
    double& center = p.q[(i + 1) * c.columns() - 1];
    center = static_cast<double>(static_cast<float>(1 / (1 + std::exp(-center))));
  }
  return p;
}

Attrs attrs_of_case(const AdditiveAttentionCase& c, size_t mask_words) {
  return {.score = c.score,
          .window = c.window,
          .result = c.result,
          .width = static_cast<uint32_t>(c.width),
          .value_width = static_cast<uint32_t>(c.values),
          .reach = static_cast<uint32_t>(c.reach),
          .queries = static_cast<uint32_t>(c.queries),
          .first = static_cast<uint32_t>(c.first),
          .v_offset = static_cast<uint32_t>(mask_words),
          .masked = c.masked,
          .temperature = c.temperature};
}

// Mask bits and v; `mask_words` gets the place of v.
Tensor words_of_case(const AdditiveAttentionCase& c, const AdditiveAttentionProblem& p,
                     size_t& mask_words) {
  std::vector<uint32_t> words;
  if (c.masked) {
    std::vector<uint8_t> kept(p.mask.bytes.size());
    std::memcpy(kept.data(), p.mask.bytes.data(), kept.size());
    words = pack_key_mask(kept, c.batch, c.keys);
  }
  mask_words = words.size();
  const Tensor v = reference::to_tensor(p.v);
  words.resize(mask_words + p.v.data.size());
  std::memcpy(words.data() + mask_words, v.bytes.data(), v.bytes.size());
  const auto count = static_cast<int64_t>(words.size());
  return word_tensor(words, {count});
}

PreparedOperator prepare_additive_attention(const AdditiveAttentionCase& c,
                                            const AdditiveAttentionProblem& p) {
  PreparedOperator op;
  size_t mask_words = 0;
  AdditiveAttentionInputs inputs;
  inputs.aux = op.bind("aux", words_of_case(c, p, mask_words));
  inputs.q = op.bind("q", reference::to_tensor(p.q));
  inputs.kv = op.bind("kv", reference::to_tensor(p.kv));
  const auto y = add_additive_attention(op.graph, inputs, attrs_of_case(c, mask_words));
  REQUIRE_MESSAGE(y.ok(), y.error().message);
  op.name_output(*y, "y");
  return op;
}

Array expected_additive_attention(const AdditiveAttentionCase& c,
                                  const AdditiveAttentionProblem& p) {
  const Array mask = reference::from_tensor(p.mask).value();
  return reference::additive_attention(
             {.q = p.q, .kv = p.kv, .mask = c.masked ? &mask : nullptr, .v = &p.v},
             {.score = static_cast<reference::AlignmentOptions::Score>(c.score),
              .window = static_cast<reference::AlignmentOptions::Window>(c.window),
              .raw_scores = c.result == Attrs::Result::kScores,
              .width = c.width,
              .value_width = c.values,
              .reach = c.reach,
              .first = c.first,
              .temperature = c.temperature})
      .value();
}

// Of raw scores only the columns after the context are promised.
Tensor promised(const AdditiveAttentionCase& c, Tensor y) {
  if (c.result == Attrs::Result::kWeights) return y;
  const auto line = static_cast<size_t>(c.values + c.keys) * 4;
  for (size_t at = 0; at < y.bytes.size(); at += line) {
    std::fill_n(y.bytes.begin() + static_cast<ptrdiff_t>(at), c.values * 4, std::byte{0});
  }
  return y;
}

void check_additive_attention_problem(const AdditiveAttentionCase& c,
                                      const AdditiveAttentionProblem& p) {
  const Array expected = expected_additive_attention(c, p);
  for (const TierDevice& device : tier_devices()) {
    CAPTURE(device.tier);
    check_close(promised(c, run_poisoned(device, prepare_additive_attention(c, p)).at("y")),
                expected, tolerance_for(DType::kF32, std::max(c.keys, 64 * c.width)));
  }
}

void check_additive_attention_case(const AdditiveAttentionCase& c, uint32_t seed = 1) {
  CAPTURE(c.keys);
  CAPTURE(c.width);
  check_additive_attention_problem(c, make_additive_attention_problem(c, seed));
}

constexpr Attrs::Score kScores[] = {Attrs::Score::kAdditive, Attrs::Score::kDot,
                                    Attrs::Score::kLocation};

}  // namespace

TEST_SUITE("gpu") {
  TEST_CASE("additive_attention agrees with the reference for every score, length and width") {
    for (Attrs::Score score : kScores) {
      for (int64_t size : {1, 7, 31, 32, 33, 127, 128, 129}) {
        check_additive_attention_case({.score = score, .keys = size, .values = 9},
                                      static_cast<uint32_t>(size));
        check_additive_attention_case({.score = score, .width = size, .values = 3});
        check_additive_attention_case(
            {.score = score, .batch = 1, .values = size, .masked = false});
        check_additive_attention_case({.score = score, .keys = size, .temperature = 0.25f});
      }
    }
  }

  TEST_CASE("additive_attention keeps to its window, in tokens of the sentence") {
    for (Attrs::Score score : kScores) {
      for (Attrs::Window window : {Attrs::Window::kMonotonic, Attrs::Window::kPredictive}) {
        for (int64_t keys : {1, 12, 70}) {
          check_additive_attention_case(
              {.score = score, .window = window, .keys = keys, .reach = 1});
          check_additive_attention_case(
              {.score = score, .window = window, .keys = keys, .reach = 5, .first = 3});
          check_additive_attention_case(
              {.score = score, .window = window, .keys = keys, .masked = false}, 5);
        }
      }
    }
  }

  TEST_CASE("additive_attention hands out scores, -inf where masked") {
    for (Attrs::Score score : kScores) {
      AdditiveAttentionCase c{.score = score, .result = Attrs::Result::kScores};
      check_additive_attention_case(c);
      c.window = Attrs::Window::kMonotonic;
      check_additive_attention_case(c);
    }
  }

  TEST_CASE("additive_attention gives zeros without keys, and passes NaN on where it is read") {
    for (Attrs::Score score : kScores) {
      const AdditiveAttentionCase c{.score = score};
      AdditiveAttentionProblem p = make_additive_attention_problem(c, 3);
      for (size_t j = 0; j < 11; ++j) p.mask.bytes[j] = std::byte{0};
      for (size_t j = 11; j < 22; ++j) p.mask.bytes[j] = std::byte{j != 14};
      for (int64_t i = 0; i < c.line(); ++i) p.kv[i] = p.kv[14 * c.line() + i] = kNan;
      check_additive_attention_problem(c, p);
      p.kv[15 * c.line() + c.line() - 1] = kNan;  // a value that counts
      p.q[4 * c.columns()] = kNan;                // and a query
      check_additive_attention_problem(c, p);
    }
  }

  TEST_CASE("additive_attention in a step reads its item's keys at its own position") {
    for (Attrs::Window window : {Attrs::Window::kNone, Attrs::Window::kMonotonic}) {
      const AdditiveAttentionCase c{.window = window, .queries = 2, .reach = 1};
      const AdditiveAttentionProblem p = make_additive_attention_problem(c, 4);
      Graph graph;
      graph.set_step(4);
      size_t mask_words = 0;
      TensorMap given;
      given["aux"] = words_of_case(c, p, mask_words);
      given["q"] = reference::to_tensor(p.q);
      given["q"].shape = {4, c.columns()};
      given["kv"] = reference::to_tensor(p.kv);
      given["decode_state"] = make_state({3, 1, 2}, 4);
      const auto external = [&](const char* name) {
        return graph.add_external(name, given[name].dtype, given[name].shape);
      };
      const AdditiveAttentionInputs inputs{external("q"), external("kv"), external("aux"),
                                           external("decode_state")};
      const auto y = add_additive_attention(graph, inputs, attrs_of_case(c, mask_words));
      REQUIRE_MESSAGE(y.ok(), y.error().message);
      graph.tensor(*y).kind = TensorKind::kExternal;
      graph.tensor(*y).name = "y";
      for (const TierDevice& device : tier_devices()) {
        const std::vector<float> actual =
            run_step(device, graph, given, 3).at("y").to_floats().value();
        const int64_t line = c.values + c.keys;
        for (int64_t slot = 0; slot < 3; ++slot) {
          const int64_t item = slot == 1 ? 0 : 1;  // of rows 3, 1, 2
          AdditiveAttentionCase one = c;
          one.batch = one.queries = 1;
          one.first = 4;
          AdditiveAttentionProblem part = make_additive_attention_problem(one, 4);
          part.v = p.v;
          for (int64_t i = 0; i < c.columns(); ++i) part.q[i] = p.q[slot * c.columns() + i];
          for (int64_t i = 0; i < part.kv.size(); ++i) part.kv[i] = p.kv[item * part.kv.size() + i];
          for (int64_t j = 0; j < c.keys; ++j) {
            part.mask.bytes[static_cast<size_t>(j)] =
                p.mask.bytes[static_cast<size_t>(item * c.keys + j)];
          }
          const Array wanted = expected_additive_attention(one, part);
          const std::vector<float> row(actual.begin() + slot * line,
                                       actual.begin() + (slot + 1) * line);
          check_close(Tensor::from_floats({1, 1, line}, row), wanted,
                      tolerance_for(DType::kF32, 1024));
        }
      }
    }
  }
}

TEST_SUITE("cpu") {
  TEST_CASE("additive_attention refuses inputs that do not fit") {
    const TensorDesc q = floats_desc({2, 3, 7});
    const TensorDesc kv = floats_desc({2, 40, 12});
    const TensorDesc aux{"aux", DType::kU32, {11}};
    Attrs a{.width = 7, .value_width = 5, .queries = 3, .v_offset = 4, .masked = true};
    CHECK(check_additive_attention(q, kv, &aux, a).ok());
    const std::string name = "additive_attention";
    check_error(check_additive_attention(floats_desc({2, 3, 8}), kv, &aux, a), name, "7 columns");
    check_error(check_additive_attention(q, floats_desc({2, 40, 6}), &aux, a), name, "(2, 40, 6)");
    check_error(check_additive_attention(q, kv, nullptr, a), name, "absent");
    const TensorDesc few{"aux", DType::kU32, {10}};
    check_error(check_additive_attention(q, kv, &few, a), name, "at least 11 words");
    a.window = Attrs::Window::kMonotonic;
    check_error(check_additive_attention(q, kv, &aux, a), name, "reaches 0 tokens");
    a.temperature = kNan;
    check_error(check_additive_attention(q, kv, &aux, a), name, "temperature");
    a.width = 3000;
    check_error(check_additive_attention(q, kv, &aux, a), name, "2048");
  }

  TEST_CASE("additive_attention plans one dispatch, without aliasing, and says what is too long") {
    const PreparedOperator op =
        prepare_additive_attention({}, make_additive_attention_problem({}, 1));
    const Plan plan =
        plan_with_kernel(op.graph, Tier::kBaseline, "additive_attention_row__f32_f32_f32");
    CHECK(plan.dispatches.size() == 1);
    check_no_aliasing(plan);
    Graph graph;
    const TensorId q = graph.add_external("q", DType::kF32, {1, 1, 1000});
    const TensorId kv = graph.add_external("kv", DType::kF32, {1, 30000, 1000});
    REQUIRE(
        add_additive_attention(graph, {.q = q, .kv = kv},
                               {.score = Attrs::Score::kDot, .width = 1000, .value_width = 1000})
            .ok());
    DeviceCaps caps = caps_of_tier(Tier::kBaseline);
    CHECK(make_plan(graph, caps, Precision::kF32).ok());
    caps.device_class = DeviceClass::kSoftware;
    const auto too_long = make_plan(graph, caps, Precision::kF32);
    check_error(too_long, "additive_attention", "30000 keys");
  }
}

}  // namespace vkformer::testing
