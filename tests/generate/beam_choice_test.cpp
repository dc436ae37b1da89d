// Beams in groups, beams that sample, and contrastive search, through whole generations on small
// golden models. They are compared with searches in double over the model's own logits and states.
#include "generate/generation_case.h"
#include "reference/beam_search.h"
#include "reference/contrastive_search.h"

namespace vkformer::testing {
namespace {

reference::PrefixStates states_behind(Session& session, const std::vector<int64_t>& ids) {
  return {logits_after(session, ids), pass_output(session, ids, "last_hidden_state")};
}

}  // namespace

TEST_SUITE("model") {
  TEST_CASE("beam groups find what the reference finds, for several groups and costs") {
    if (!have_test_device()) return;
    for (const char* name : {"gpt2-base", "llama-gqa"}) {
      CAPTURE(name);
      Session session = make_session(golden_model(name));
      const auto next = [&](const std::vector<int64_t>& prefix) -> Result<std::vector<double>> {
        return logits_after(session, prefix);
      };
      for (const auto& [bound_beams, bound_groups, diversity] :
           {std::tuple{4, 2, 1.5}, {4, 4, 0.7}, {6, 3, 4.0}, {4, 2, 0.0}}) {
        const auto& beams = bound_beams;
        const auto& groups = bound_groups;
        CAPTURE(beams);
        CAPTURE(groups);
        reference::SearchOptions wanted;
        wanted.num_beams = beams;
        wanted.groups = groups;
        wanted.diversity = diversity;
        wanted.max_new_tokens = 10;
        wanted.eos_token_ids = {4, 11};
        GenerateOptions options = options_for(session, beams, 10, {4, 11});
        options.beam_groups = groups;
        options.diversity = diversity;
        options.return_sequences = beams;
        const Rows prompts = {{5, 17, 42, 9}, {7, 7}};
        const Generation found = generate(session, prompts, options);
        for (size_t i = 0; i < prompts.size(); ++i) {
          const auto best = reference::diverse_beam_search(prompts[i], next, wanted);
          REQUIRE_MESSAGE(best.ok(), best.error().message);
          REQUIRE(found[i].size() == std::min(best->size(), static_cast<size_t>(beams)));
          for (size_t k = 0; k < found[i].size(); ++k) {
            CHECK(found[i][k].score == doctest::Approx((*best)[k].score).epsilon(1e-4));
          }
          CHECK(found[i][0].ids == best->front().ids);
        }
        check_same({found[1]}, generate(session, {prompts[1]}, options));
      }
    }
  }

  TEST_CASE("beams that draw have the exact probabilities, and a seed repeats them") {
    if (!have_test_device()) return;
    Session session = make_session(golden_model("gpt2-base"));
    const std::vector<int64_t> prompt = {5, 17, 42, 9};
    GenerateOptions options = options_for(session, 2, 1, {});
    options.choice = TokenChoice::kSampled;
    options.sampling = {.temperature = 6, .top_k = 6};
    // Of the four tokens sampled the first two end here, and the likelier one is the result.
    const std::vector<double> p =
        reference::draw_probabilities(logits_after(session, prompt), {6, 6, 1, 0, 1});
    std::vector<double> wanted(p.size());
    for (size_t a = 0; a < p.size(); ++a) {
      for (size_t b = 0; b < p.size(); ++b) {
        if (p[b] == 0 || p[b] >= p[a]) continue;
        wanted[a] += p[a] * p[b] / (1 - p[a]) + p[b] * p[a] / (1 - p[b]);
      }
    }
    std::vector<uint64_t> counts(p.size());
    for (uint64_t seed = 0; seed < 3000; ++seed) {
      options.sampling.seed = seed * 0x9E3779B97F4A7C15u;
      ++counts[static_cast<size_t>(generate(session, {prompt}, options)[0][0].ids.back())];
    }
    check_distribution(counts, wanted);
    options.max_new_tokens = 12;
    options.beams = 4;
    options.eos = {4};
    const Generation once = generate(session, {prompt, {6, 6}}, options);
    check_same(once, generate(session, {prompt, {6, 6}}, options));
    check_same({once[1]}, generate(session, {{6, 6}}, options));
    options.sampling.seed += 1;
    CHECK(generate(session, {prompt}, options)[0][0].ids != once[0][0].ids);
  }

  TEST_CASE("contrastive search chooses what the reference chooses") {
    if (!have_test_device()) return;
    for (const char* name : {"gpt2-base", "llama-gqa"}) {
      CAPTURE(name);
      Session session = make_session(golden_model(name));
      const auto states =
          [&](const std::vector<int64_t>& prefix) -> Result<reference::PrefixStates> {
        return states_behind(session, prefix);
      };
      const Rows prompts = {{5, 17, 42, 9}, {7, 7}};
      for (const auto& [bound_k, contrast] : {std::pair{4, 0.6}, {2, 0.9}, {7, 0.3}}) {
        const auto& k = bound_k;
        CAPTURE(k);
        GenerateOptions options = options_for(session, 1, 8, {4, 11});
        options.contrastive_tokens = k;
        options.contrast = contrast;
        const Generation found = generate(session, prompts, options);
        for (size_t i = 0; i < prompts.size(); ++i) {
          const auto wanted =
              reference::contrastive_search(prompts[i], states, {8, k, contrast, {4, 11}});
          REQUIRE_MESSAGE(wanted.ok(), wanted.error().message);
          CHECK(found[i][0].ids == *wanted);
          CHECK(found[i][0].log_probabilities.size() == wanted->size() - prompts[i].size());
        }
      }
      // Without contrast it is greedy.
      GenerateOptions options = options_for(session, 1, 8, {});
      const Generation greedy = generate(session, prompts, options);
      options.contrastive_tokens = 4;
      options.contrast = 0;
      const Generation found = generate(session, prompts, options);
      CHECK(found[0][0].ids == greedy[0][0].ids);
      CHECK(found[1][0].ids == greedy[1][0].ids);
    }
  }

  TEST_CASE("contrastive search behind an encoder") {
    if (!have_test_device()) return;
    Session session = make_session(golden_model("marian-base"));
    const Rows rows = random_rows(golden_model("marian-base"), 3, 12);
    GenerateOptions options = options_for(session, 1, 6, {});
    const Generation greedy = generate(session, rows, options);
    options.contrastive_tokens = 3;
    options.contrast = 0;
    const Generation found = generate(session, rows, options);
    for (size_t i = 0; i < rows.size(); ++i) CHECK(found[i][0].ids == greedy[i][0].ids);
  }

  TEST_CASE("groups and contrast that make no sense are refused") {
    if (!have_test_device()) return;
    Session session = make_session(golden_model("gpt2-base"));
    const auto refused = [&](const std::string& part, auto change) {
      GenerateOptions options = options_for(session, 4, 4, {});
      change(options);
      check_refused(session, options, part);
    };
    refused("[beam_groups]", [](GenerateOptions& o) { o.beam_groups = 3; });
    refused("[beam_groups]", [](GenerateOptions& o) { o.beam_groups = 0; });
    refused("[beam_groups]", [](GenerateOptions& o) {
      o.beam_groups = 2;
      o.choice = TokenChoice::kSampled;
    });
    refused("[diversity]", [](GenerateOptions& o) { o.diversity = 1; });
    refused("[diversity]", [](GenerateOptions& o) {
      o.beam_groups = 2;
      o.diversity = -1;
    });
    refused("[contrastive_tokens]", [](GenerateOptions& o) { o.contrastive_tokens = 4; });
    refused("[contrastive_tokens]", [](GenerateOptions& o) {
      o.beams = 1;
      o.contrastive_tokens = 1;
    });
    refused("penalties", [](GenerateOptions& o) {
      o.beams = 1;
      o.contrastive_tokens = 4;
      o.penalties.repetition = 1.2;
    });
    refused("contrast", [](GenerateOptions& o) {
      o.beams = 1;
      o.contrastive_tokens = 4;
      o.contrast = 1.5;
    });
  }
}

}  // namespace vkformer::testing
