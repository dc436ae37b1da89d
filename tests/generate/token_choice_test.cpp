// Tokens chosen by chance, with penalties and under a grammar, through whole generations on small
// golden models. They are held against probabilities and searches in double, made of the model's
// own logits.
#include "generate/generation_case.h"
#include "reference/beam_search.h"

namespace vkformer::testing {
namespace {

const char* const kChoosingDecoders[] = {"gpt2-base", "llama-gqa"};

GenerateOptions drawn(const Session& session, int max_new_tokens) {
  GenerateOptions options = options_for(session, 1, max_new_tokens, {});
  options.choice = TokenChoice::kSampled;
  options.sampling = {};
  return options;
}

std::string text_of(const Hypothesis& found, size_t prompt, const std::vector<int64_t>& eos) {
  std::string text;
  for (size_t i = prompt; i < found.ids.size(); ++i) {
    if (std::find(eos.begin(), eos.end(), found.ids[i]) != eos.end()) break;
    text += static_cast<char>(' ' + found.ids[i]);
  }
  return text;
}

}  // namespace

TEST_SUITE("model") {
  TEST_CASE("100,000 tokens drawn by generations have the exact probabilities") {
    if (!have_test_device()) return;
    const Model& model = golden_model("gpt2-base");
    Session session = make_session(model);
    const std::vector<int64_t> prompt = {5, 17, 42, 9};
    const std::vector<double> logits = logits_after(session, prompt);
    for (const SamplingOptions& sampling :
         {SamplingOptions{.temperature = 6},
          SamplingOptions{.temperature = 4, .top_k = 12, .top_p = 0.9},
          SamplingOptions{.temperature = 5, .min_p = 0.1, .typical_p = 0.9}}) {
      GenerateOptions options = drawn(session, 1);
      options.sampling = sampling;
      options.return_sequences = 4000;
      std::vector<uint64_t> counts(logits.size());
      for (uint64_t seed = 0; seed < 25; ++seed) {
        options.sampling.seed = seed * 0x9E3779B97F4A7C15u;
        const Generation found = generate(session, {prompt}, options);
        REQUIRE(found[0].size() == 4000);
        for (const Hypothesis& one : found[0]) ++counts[static_cast<size_t>(one.ids.back())];
      }
      check_distribution(counts, reference::draw_probabilities(
                                     logits, {sampling.temperature, sampling.top_k, sampling.top_p,
                                              sampling.min_p, sampling.typical_p}));
    }
  }

  TEST_CASE("a seed gives the same text whatever the batch, the steps per submit and the order") {
    if (!have_test_device()) return;
    for (const char* name : {"gpt2-base", "marian-base"}) {
      CAPTURE(name);
      const Model& model = golden_model(name);
      Session session = make_session(model);
      GenerateOptions options = drawn(session, 12);
      options.sampling.seed = 99;
      options.return_sequences = 3;
      const Rows rows = random_rows(model, 7, 21);
      const Generation all = generate(session, rows, options);
      CHECK(all[0][0].ids != all[0][1].ids);
      Session one = make_session(model, 1);
      check_same(all, generate(one, rows, options));
      for (size_t i : {0u, 3u, 6u}) check_same({all[i]}, generate(session, {rows[i]}, options));
      options.return_sequences = 1;
      check_same({{all[2][0]}}, generate(session, {rows[2]}, options));
      options.sampling.seed = 100;
      CHECK(generate(session, {rows[2]}, options)[0][0].ids != all[2][0].ids);
    }
  }

  TEST_CASE("penalties: greedy and beam search are those of the reference") {
    if (!have_test_device()) return;
    for (const char* name : kChoosingDecoders) {
      CAPTURE(name);
      const Model& model = golden_model(name);
      Session session = make_session(model);
      reference::SearchOptions wanted;
      wanted.max_new_tokens = 14;
      wanted.eos_token_ids = {4, 11};
      PenaltyOptions penalties;
      penalties.repetition = wanted.penalties.repetition = 1.3;
      penalties.presence = wanted.penalties.presence = 0.2;
      penalties.frequency = wanted.penalties.frequency = 0.15;
      penalties.no_repeat_ngram = 2;
      wanted.penalties.no_repeat = 2;
      penalties.biases = {{{7}, 1.5}, {{3, 8}, -2.0}};
      penalties.bad_words = {{12}, {20, 21}};
      const double never = -std::numeric_limits<double>::infinity();
      wanted.penalties.rules = {{{7}, 1.5}, {{3, 8}, -2.0}, {{12}, never}, {{20, 21}, never}};
      const auto next = [&](const std::vector<int64_t>& prefix) -> Result<std::vector<double>> {
        return logits_after(session, prefix);
      };
      for (int beams : {1, 3}) {
        CAPTURE(beams);
        wanted.num_beams = beams;
        GenerateOptions options = options_for(session, beams, 14, {4, 11});
        options.penalties = penalties;
        const Rows prompts = {{5, 17, 42, 9}, {7, 7, 7}};
        const Generation found = generate(session, prompts, options);
        for (size_t i = 0; i < prompts.size(); ++i) {
          if (beams == 1) {
            CHECK(found[i][0].ids == *reference::greedy_search(prompts[i], next, wanted));
            continue;
          }
          const auto best = reference::beam_search(prompts[i], next, wanted);
          REQUIRE(best.ok());
          CHECK(found[i][0].ids == best->front().ids);
          CHECK(found[i][0].score == doctest::Approx(best->front().score).epsilon(1e-4));
        }
      }
    }
  }

  TEST_CASE("tokens come in order, can end a text, and can cancel the generation") {
    if (!have_test_device()) return;
    const Model& model = golden_model("gpt2-base");
    for (int steps : {1, 8}) {
      Session session = make_session(model, steps);
      const Rows rows = random_rows(model, 3, 8);
      GenerateOptions options = options_for(session, 1, 11, {4});
      const Generation plain = generate(session, rows, options);
      std::vector<std::vector<int64_t>> seen(3);
      options.on_token = [&](const NewToken& token) {
        CHECK(token.sequence == 0);
        seen[token.input].push_back(token.id);
        const auto& found = plain[token.input][0];
        CHECK(token.log_probability ==
              static_cast<double>(found.log_probabilities[seen[token.input].size() - 1]));
        return TokenVerdict::kGoOn;
      };
      check_same(plain, generate(session, rows, options));
      for (size_t i = 0; i < 3; ++i) {
        CHECK(seen[i] ==
              std::vector<int64_t>(plain[i][0].ids.begin() + static_cast<ptrdiff_t>(rows[i].size()),
                                   plain[i][0].ids.end()));
      }
      options.on_token = [&, n = 0](const NewToken& token) mutable {
        if (token.input != 1) return TokenVerdict::kGoOn;
        return ++n == 5 ? TokenVerdict::kEnd : TokenVerdict::kGoOn;
      };
      const Generation ended = generate(session, rows, options);
      CHECK(ended[0][0].ids == plain[0][0].ids);
      CHECK(ended[2][0].ids == plain[2][0].ids);
      CHECK(ended[1][0].ids.size() == std::min(rows[1].size() + 5, plain[1][0].ids.size()));
      options.on_token = [](const NewToken&) { return TokenVerdict::kCancel; };
      const auto cancelled = session.generate(rows, options);
      REQUIRE_FALSE(cancelled.ok());
      CHECK(cancelled.error().code == ErrorCode::kCancelled);
      options.on_token = nullptr;
      check_same(plain, generate(session, rows, options));
    }
  }

  TEST_CASE("log-probabilities of chosen tokens and of given continuations agree") {
    if (!have_test_device()) return;
    for (const char* name : {"gpt2-base", "marian-base"}) {
      CAPTURE(name);
      const Model& model = golden_model(name);
      Session session = make_session(model);
      const Rows rows = random_rows(model, 4, 31);
      GenerateOptions options = drawn(session, 9);
      options.decoder_start = session.generation_defaults().decoder_start;
      options.forced_bos = -1;
      const Generation found = generate(session, rows, options);
      Rows continuations;
      for (size_t i = 0; i < rows.size(); ++i) {
        const auto& ids = found[i][0].ids;
        continuations.emplace_back(ids.end() - 9, ids.end());
      }
      const auto scores = session.score(rows, continuations);
      REQUIRE_MESSAGE(scores.ok(), scores.error().message);
      for (size_t i = 0; i < rows.size(); ++i) {
        REQUIRE((*scores)[i].size() == 9);
        for (size_t t = 0; t < 9; ++t) {
          CHECK((*scores)[i][t] == doctest::Approx(found[i][0].log_probabilities[t]).epsilon(1e-3));
        }
      }
      CHECK_FALSE(session.score(rows, {{1}}).ok());
      continuations[0] = {model.info().target_vocab};
      CHECK_FALSE(session.score(rows, continuations).ok());
    }
  }

  TEST_CASE("texts keep to a grammar and are complete, with and without an end token") {
    if (!have_test_device()) return;
    const Model& model = golden_model("gpt2-base");
    Session session = make_session(model);
    const int64_t vocab = model.info().target_vocab;
    const std::string gbnf =
        "root ::= list\n"
        "list ::= \"(\" (item (\",\" item)*)? \")\"\n"
        "item ::= list | [0-9]+\n";
    const auto grammar = Grammar::from_gbnf(gbnf);
    REQUIRE(grammar.ok());
    for (const std::vector<int64_t>& eos : {std::vector<int64_t>{}, {1}, {1, 2}}) {
      for (int most : {2, 3, 9, 20}) {
        CAPTURE(most);
        GenerateOptions options = drawn(session, most);
        options.eos = eos;
        options.sampling.temperature = 3;
        options.return_sequences = 20;
        options.grammar = constraint_of(gbnf, vocab, eos);
        const Generation found = generate(session, {{5, 6}, {7}}, options);
        for (const auto& input : found) {
          for (const Hypothesis& one : input) {
            const std::string text = text_of(one, &input == &found[0] ? 2 : 1, eos);
            CHECK_MESSAGE(*grammar->matches(text), text);
          }
        }
      }
    }
  }

  TEST_CASE("settings that make no sense are refused") {
    if (!have_test_device()) return;
    const Model& model = golden_model("gpt2-base");
    Session session = make_session(model);
    const auto refused = [&](const std::string& part, auto change) {
      GenerateOptions options = drawn(session, 4);
      change(options);
      check_refused(session, options, part);
    };
    refused("[temperature]", [](GenerateOptions& o) { o.sampling.temperature = -1; });
    refused("[temperature]", [](GenerateOptions& o) { o.sampling.temperature = NAN; });
    refused("[top_k]", [](GenerateOptions& o) { o.sampling.top_k = -3; });
    refused("[top_p]", [](GenerateOptions& o) { o.sampling.top_p = 1.5; });
    refused("[min_p]", [](GenerateOptions& o) { o.sampling.min_p = -0.1; });
    refused("[typical_p]", [](GenerateOptions& o) { o.sampling.typical_p = 0; });
    refused("[repetition_penalty]", [](GenerateOptions& o) { o.penalties.repetition = 0; });
    refused("[presence_penalty]", [](GenerateOptions& o) { o.penalties.presence = INFINITY; });
    refused("[no_repeat_ngram]", [](GenerateOptions& o) { o.penalties.no_repeat_ngram = 33; });
    refused("[logit_bias]", [](GenerateOptions& o) { o.penalties.biases = {{{}, 1}}; });
    refused("[logit_bias]", [](GenerateOptions& o) { o.penalties.biases = {{{80}, 1}}; });
    refused("[bad_words]", [](GenerateOptions& o) { o.penalties.bad_words = {{3, -1}}; });
    refused("[return_sequences]", [](GenerateOptions& o) { o.return_sequences = 0; });
    refused("[return_sequences]", [](GenerateOptions& o) {
      o.choice = TokenChoice::kBest;
      o.return_sequences = 2;
    });
    refused("no token is allowed", [&](GenerateOptions& o) {
      for (int64_t id = 0; id < model.info().target_vocab; ++id) o.suppress.push_back(id);
    });
    refused("vocabulary",
            [&](GenerateOptions& o) { o.grammar = constraint_of("root ::= \"a\"", 32, {}); });
    refused("max_new_tokens", [&](GenerateOptions& o) {
      o.grammar = constraint_of("root ::= \"ABCDEFGH\"", model.info().target_vocab, {});
    });
    refused("one beam", [&](GenerateOptions& o) {
      o.beams = 2;
      o.on_token = [](const NewToken&) { return TokenVerdict::kGoOn; };
    });
    GenerateOptions options = options_for(session, 1, 4, {});
    options.contrastive_tokens = 4;
    TensorMap inputs;
    inputs["input_ids"] = Tensor::from_ints({1, 2}, std::vector<int64_t>{3, 4});
    CHECK_FALSE(session.start_generation(inputs, options).ok());
    CHECK_FALSE(session.generate({{}}, drawn(session, 4)).ok());
  }
}

}  // namespace vkformer::testing
