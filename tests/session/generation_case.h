// Generations on small golden models, for the tests of what they must not depend on.
#pragma once

#include <map>
#include <random>
#include <string>
#include <vector>

#include "support/golden_generation.h"
#include "support/test_device.h"

namespace vkformer::testing {

using Rows = std::vector<std::vector<int64_t>>;

inline const Model& golden_model(const std::string& name) {
  static std::map<std::string, Model> loaded;
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

}  // namespace vkformer::testing
