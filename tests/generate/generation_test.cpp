// Generation through the public API on small golden models. It tests what must not depend on the
// batch, on the number of steps per submit or on what ran before.
#include "generate/generation_case.h"

namespace vkformer::testing {
namespace {

// A source, one that generates a token which the first never does, and that token as end token. The
// second one ends early. The first goes on to the last position.
struct EndsEarly {
  std::vector<int64_t> goes_on, ends;
  int64_t eos = -1;
};

EndsEarly find_ends_early(const Model& model, int max_new_tokens) {
  Session session = make_session(model);
  const Rows rows = random_rows(model, 16, 77);
  const Generation found = generate(session, rows, options_for(session, 1, max_new_tokens, {}));
  for (size_t a = 0; a < rows.size(); ++a) {
    for (size_t b = 0; b < rows.size(); ++b) {
      const std::vector<int64_t>& ids = found[a][0].ids;
      for (size_t t = 1; t <= 4; ++t) {
        const int64_t token = found[b][0].ids[t];
        if (std::find(ids.begin(), ids.end(), token) == ids.end()) return {rows[a], rows[b], token};
      }
    }
  }
  return {};
}

}  // namespace

TEST_SUITE("model") {
  TEST_CASE("64 inputs together give the ids of each alone") {
    if (!have_test_device()) return;
    for (const char* name : {"marian-base", "transformer-preln"}) {
      const Model& model = golden_model(name);
      Session session = make_session(model);
      const Rows rows = random_rows(model, 64, 5);
      for (int beams : {1, 3}) {
        const GenerateOptions options = options_for(session, beams, 12, {2, 5, 9});
        const Generation together = generate(session, rows, options);
        for (size_t i = 0; i < rows.size(); i += beams == 1 ? 1 : 7) {
          CAPTURE(i);
          const Generation alone = generate(session, {rows[i]}, options);
          CHECK(alone[0][0].ids == together[i][0].ids);
          CHECK(std::abs(alone[0][0].score - together[i][0].score) < 1e-3);
        }
      }
    }
  }

  TEST_CASE("a row's ids and scores keep their bits whatever shares its batch") {
    if (!have_test_device()) return;
    const Model& model = golden_model("marian-base");
    Session session = make_session(model);
    for (int beams : {1, 4}) {
      const GenerateOptions options = options_for(session, beams, 14, {1, 6});
      Rows first = random_rows(model, 12, 7);
      Rows second = random_rows(model, 12, 8);
      second[9] = first[2];
      second[0] = first[11];
      const Generation a = generate(session, first, options);
      const Generation b = generate(session, second, options);
      check_same({a[2], a[11]}, {b[9], b[0]});
    }
  }

  TEST_CASE("steps per submit change nothing but the number of submits") {
    if (!have_test_device()) return;
    const Model& model = golden_model("marian-base");
    for (int beams : {1, 4}) {
      Session one = make_session(model, 1);
      const GenerateOptions options = options_for(one, beams, 13, {1, 6});
      const Rows rows = random_rows(model, 9, 11);
      const Generation expected = generate(one, rows, options);
      const int64_t steps = one.counters().steps;
      CHECK(one.counters().submits == steps);
      CHECK(one.counters().step_workgroups.size() == static_cast<size_t>(steps));
      for (int many : {3, 8, 100}) {
        Session session = make_session(model, many);
        check_same(generate(session, rows, options), expected);
        CHECK(session.counters().steps == steps);
        CHECK(session.counters().submits == (steps + many - 1) / many);
        CHECK(session.counters().step_workgroups.empty());
      }
    }
  }

  TEST_CASE("a step launches what its live rows need: one of 64 is like one alone") {
    if (!have_test_device()) return;
    const Model& model = golden_model("marian-base");
    const int steps = 16;
    const EndsEarly sources = find_ends_early(model, steps);
    REQUIRE(sources.eos >= 0);
    Session session = make_session(model, 1);
    const GenerateOptions options = options_for(session, 1, steps, {sources.eos});
    const Generation alone = generate(session, {sources.goes_on}, options);
    const std::vector<int64_t> one = session.counters().step_workgroups;
    REQUIRE(one.size() == steps);
    Rows rows(64, sources.ends);
    rows[40] = sources.goes_on;
    const Generation together = generate(session, rows, options);
    const std::vector<int64_t> many = session.counters().step_workgroups;
    REQUIRE(many.size() == steps);
    CHECK(together[40][0].ids == alone[0][0].ids);
    CHECK(together[0][0].ids.back() == sources.eos);
    const size_t ended = together[0][0].ids.size() - 1;  // steps until 63 rows were done
    REQUIRE(ended < one.size());
    CHECK(many[0] > many[ended]);
    for (size_t i = ended; i < one.size(); ++i) {
      CAPTURE(i);
      CHECK(static_cast<double>(many[i]) <= 1.1 * static_cast<double>(one[i]));
    }
  }

  TEST_CASE("a second generation records nothing, also with other settings and lengths") {
    if (!have_test_device()) return;
    const Model& model = golden_model("transformer-preln");
    Session session = make_session(model);
    GenerateOptions options = options_for(session, 4, 10, {2});
    const Rows rows = random_rows(model, 3, 13, 8);
    const Generation first = generate(session, rows, options);
    CHECK(session.counters().recordings == 1);
    check_same(generate(session, rows, options), first);
    CHECK(session.counters().recordings == 0);
    options.length_penalty = 2;
    options.early_stopping = EarlyStopping::kNever;
    options.max_new_tokens = 7;
    options.suppress = {4};
    generate(session, random_rows(model, 3, 14, 12), options);
    CHECK(session.counters().recordings == 0);
    options.beams = 1;
    generate(session, rows, options);
    CHECK(session.counters().recordings == 1);
  }

  TEST_CASE("the best hypotheses come best first, different, and with the best one in front") {
    if (!have_test_device()) return;
    const Model& model = golden_model("marian-base");
    Session session = make_session(model);
    GenerateOptions options = options_for(session, 4, 9, {1});
    const Rows rows = random_rows(model, 4, 17);
    const Generation best = generate(session, rows, options);
    options.return_sequences = 4;
    const Generation all = generate(session, rows, options);
    for (size_t i = 0; i < rows.size(); ++i) {
      REQUIRE(all[i].size() == 4);
      CHECK(all[i][0].ids == best[i][0].ids);
      for (size_t k = 1; k < 4; ++k) {
        CHECK(all[i][k - 1].score >= all[i][k].score);
        CHECK(all[i][k - 1].ids != all[i][k].ids);
      }
    }
  }

  TEST_CASE("forced, suppressed and least tokens are kept to") {
    if (!have_test_device()) return;
    const Model& model = golden_model("marian-base");
    Session session = make_session(model);
    const Rows rows = random_rows(model, 5, 19);
    for (int beams : {1, 3}) {
      GenerateOptions options = options_for(session, beams, 8, {1});
      options.forced_bos = 7;
      options.forced_eos = 1;
      options.min_new_tokens = 5;
      options.suppress = {3, 4, 5, 6, 8};
      for (const auto& item : generate(session, rows, options)) {
        const std::vector<int64_t>& ids = item[0].ids;
        CHECK(ids[0] == options.decoder_start);
        CHECK(ids[1] == 7);
        CHECK(ids.back() == 1);
        CHECK(ids.size() >= 7);
        for (int64_t banned : options.suppress) {
          CHECK(std::find(ids.begin(), ids.end(), banned) == ids.end());
        }
      }
    }
  }

  TEST_CASE("masked and padded sources give what the shorter ones give") {
    if (!have_test_device()) return;
    const Model& model = golden_model("marian-base");
    Session session = make_session(model);
    const GenerateOptions options = options_for(session, 1, 10, {});
    const std::vector<int64_t> ids = {5, 6, 7, 0, 0, 9};
    const std::vector<int64_t> mask = {1, 1, 1, 0, 0, 0};
    const auto masked =
        session.generate_masked({{"input_ids", Tensor::from_ints({1, 6}, ids)},
                                 {"attention_mask", Tensor::from_ints({1, 6}, mask)}},
                                options);
    REQUIRE_MESSAGE(masked.ok(), masked.error().message);
    check_same(*masked, generate(session, {{5, 6, 7}}, options));
  }

  TEST_CASE("settings outside their range are refused by name, and the session lives on") {
    if (!have_test_device()) return;
    const Model& model = golden_model("marian-base");
    Session session = make_session(model);
    const GenerateOptions good = options_for(session, 2, 5, {1});
    const auto refused = [&](auto change, const std::string& part) {
      GenerateOptions options = good;
      change(options);
      check_refused(session, options, part);
    };
    refused([](auto& o) { o.beams = 0; }, "[beams]");
    refused([](auto& o) { o.beams = 17; }, "17");
    refused([](auto& o) { o.return_sequences = 3; }, "[return_sequences]");
    refused([](auto& o) { o.max_new_tokens = 64; }, "[max_new_tokens]");
    refused([](auto& o) { o.max_new_tokens = -1; }, "max_new_tokens");
    refused([](auto& o) { o.eos = {80}; }, "[eos]");
    refused([](auto& o) { o.eos = std::vector<int64_t>(9, 1); }, "[eos]");
    refused([](auto& o) { o.decoder_start = -1; }, "[decoder_start]");
    refused([](auto& o) { o.forced_bos = 80; }, "[forced_bos]");
    refused([](auto& o) { o.forced_eos = 1 << 30; }, "[forced_eos]");
    refused([](auto& o) { o.suppress = {-1}; }, "[suppress]");
    refused([](auto& o) { o.begin_suppress = {80}; }, "[begin_suppress]");
    refused([](auto& o) { o.length_penalty = std::nan(""); }, "length_penalty");
    for (const Rows& rows : {Rows{}, Rows{{}}, Rows{{3}, {}}, Rows{{80}}, Rows{{-1}},
                             Rows{std::vector<int64_t>(65, 3)}, Rows(4000, {3})}) {
      CHECK_FALSE(session.generate(rows, good).ok());
    }
    generate(session, {{3, 4}}, good);
    CHECK_FALSE(Session::create(model, {.recordings = 0}).ok());
    CHECK_FALSE(Session::create(model, {.steps_per_submit = 0}).ok());
  }
}

}  // namespace vkformer::testing
