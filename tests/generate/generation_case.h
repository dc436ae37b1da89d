// Generations on small golden models, for the tests of what they must not depend on.
#pragma once

#include <cmath>
#include <map>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "support/golden_generation.h"
#include "support/kept.h"
#include "support/test_device.h"
#include "vkformer/grammar.h"

namespace vkformer::testing {

using Rows = std::vector<std::vector<int64_t>>;

inline const Model& golden_model(const std::string& name) {
  static Kept<std::map<std::string, Model>> kept;
  auto& loaded = kept.get([] { return std::map<std::string, Model>(); });
  const auto known = loaded.find(name);
  if (known != loaded.end()) return known->second;
  auto model = Model::load(*test_device(), golden_case(name).path("model"));
  REQUIRE_MESSAGE(model.ok(), model.error().message);
  return loaded.emplace(name, std::move(model).value()).first->second;
}

inline Session make_session(const Model& model, int steps_per_submit = 8) {
  SessionOptions options;
  options.steps_per_submit = steps_per_submit;
  auto session = Session::create(model, options);
  REQUIRE_MESSAGE(session.ok(), session.error().message);
  return std::move(session).value();
}

inline Rows random_rows(const Model& model, size_t count, uint32_t seed, int64_t most = 12) {
  std::mt19937 engine(seed);
  Rows rows(count);
  for (std::vector<int64_t>& row : rows) {
    row.resize(std::uniform_int_distribution<size_t>(1, static_cast<size_t>(most))(engine));
    std::uniform_int_distribution<int64_t> token(3, model.info().source_vocab - 1);
    for (int64_t& id : row) id = token(engine);
  }
  return rows;
}

inline Generation generate(Session& session, const Rows& rows, const GenerateOptions& options) {
  auto generation = session.generate(rows, options);
  REQUIRE_MESSAGE(generation.ok(), generation.error().message);
  REQUIRE(generation->size() == rows.size());
  return std::move(generation).value();
}

inline GenerateOptions options_for(const Session& session, int beams, int max_new_tokens,
                                   std::vector<int64_t> eos) {
  GenerateOptions options = session.generation_defaults();
  options.beams = beams;
  options.max_new_tokens = max_new_tokens;
  options.eos = std::move(eos);
  options.forced_eos = -1;
  options.min_new_tokens = 0;
  return options;
}

// The same ids, and the same bits of every score.
inline void check_same(const Generation& a, const Generation& b) {
  REQUIRE(a.size() == b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    CAPTURE(i);
    REQUIRE(a[i].size() == b[i].size());
    for (size_t k = 0; k < a[i].size(); ++k) {
      CHECK(a[i][k].ids == b[i][k].ids);
      CHECK(a[i][k].score == b[i][k].score);
    }
  }
}

inline void check_refused(Session& session, const GenerateOptions& options,
                          const std::string& part) {
  const auto refused = session.generate({{3, 4}}, options);
  REQUIRE_FALSE(refused.ok());
  CHECK_MESSAGE(refused.error().message.find(part) != std::string::npos, refused.error().message);
}

// An output of the full pass over a prefix, token by token; padded, so that one recording does.
inline std::vector<std::vector<double>> pass_output(Session& session,
                                                    const std::vector<int64_t>& ids,
                                                    const std::string& name) {
  constexpr size_t kTokens = 24;
  REQUIRE(ids.size() <= kTokens);
  std::vector<int64_t> padded = ids, mask(ids.size(), 1);
  padded.resize(kTokens, 3);
  mask.resize(kTokens, 0);
  TensorMap inputs;
  inputs["input_ids"] = Tensor::from_ints({1, kTokens}, padded);
  inputs["attention_mask"] = Tensor::from_ints({1, kTokens}, mask);
  const auto outputs = session.run(inputs);
  REQUIRE_MESSAGE(outputs.ok(), outputs.error().message);
  const auto values = outputs->at(name).to_floats();
  REQUIRE(values.ok());
  const auto width = static_cast<ptrdiff_t>(outputs->at(name).shape.back());
  std::vector<std::vector<double>> rows;
  for (ptrdiff_t t = 0; t < static_cast<ptrdiff_t>(ids.size()); ++t) {
    const auto row = values->begin() + t * width;
    rows.emplace_back(row, row + width);
  }
  return rows;
}

// The logits after a prefix.
inline std::vector<double> logits_after(Session& session, const std::vector<int64_t>& ids) {
  return pass_output(session, ids, "logits").back();
}

// A text of one token or more under a constraint, by tokens that stand for one byte each.
inline std::shared_ptr<GrammarConstraint> constraint_of(const std::string& gbnf, int64_t vocab,
                                                        const std::vector<TokenId>& ends) {
  std::vector<std::string> bytes(static_cast<size_t>(vocab));
  for (size_t id = 0; id < bytes.size(); ++id)
    bytes[id] = std::string(1, static_cast<char>(' ' + id));
  auto grammar = Grammar::from_gbnf(gbnf);
  REQUIRE_MESSAGE(grammar.ok(), grammar.error().message);
  auto vocabulary = GrammarVocabulary::from_bytes(bytes, ends);
  REQUIRE_MESSAGE(vocabulary.ok(), vocabulary.error().message);
  auto made = GrammarConstraint::create(*grammar, *vocabulary);
  REQUIRE_MESSAGE(made.ok(), made.error().message);
  return std::make_shared<GrammarConstraint>(std::move(*made));
}

// Pearson's statistic against its value at one in a million (Wilson and Hilferty 1931); cells that
// expect fewer than five draws are taken together.
inline void check_distribution(const std::vector<uint64_t>& counts, const std::vector<double>& p) {
  const auto total = static_cast<double>(std::accumulate(counts.begin(), counts.end(), 0ull));
  double statistic = 0, rest_expected = 0, rest_found = 0;
  int cells = 0;
  const auto add = [&](double found, double expected) {
    statistic += (found - expected) * (found - expected) / expected;
    ++cells;
  };
  for (size_t t = 0; t < p.size(); ++t) {
    const auto found = static_cast<double>(counts[t]);
    if (p[t] == 0) CHECK(counts[t] == 0);
    if (p[t] * total >= 5) {
      add(found, p[t] * total);
    } else {
      rest_expected += p[t] * total;
      rest_found += found;
    }
  }
  if (rest_expected >= 5) add(rest_found, rest_expected);
  REQUIRE(cells >= 2);
  const double a = 2.0 / (9.0 * (cells - 1));
  CHECK(statistic < (cells - 1) * std::pow(1 - a + 4.753 * std::sqrt(a), 3));
}

}  // namespace vkformer::testing
