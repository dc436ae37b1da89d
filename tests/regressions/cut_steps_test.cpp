// A step that a grammar cuts in two is seen whole: by a profile, and by what looks at every
// dispatch
// (`--nan-check`). Both used to miss such steps.
#include <doctest/doctest.h>

#include <set>

#include "recording/dispatch_watch.h"
#include "support/test_device.h"
#include "vkformer/benchmark.h"
#include "vkformer/grammar.h"
#include "vkformer/session.h"

using namespace vkformer;

namespace {

constexpr int64_t kEnd = 255;  // of models/shakespeare, whose other tokens are bytes

std::shared_ptr<GrammarConstraint> small_letters() {
  std::vector<std::string> bytes;
  for (int id = 0; id < kEnd; ++id) bytes.emplace_back(1, static_cast<char>(id));
  bytes.emplace_back();
  const std::vector<TokenId> ends = {kEnd};
  auto grammar = Grammar::from_gbnf("root ::= [a-z ]*");
  REQUIRE_MESSAGE(grammar.ok(), grammar.error().message);
  auto vocabulary = GrammarVocabulary::from_bytes(bytes, ends);
  REQUIRE_MESSAGE(vocabulary.ok(), vocabulary.error().message);
  auto constraint = GrammarConstraint::create(*grammar, *vocabulary);
  REQUIRE_MESSAGE(constraint.ok(), constraint.error().message);
  return std::make_shared<GrammarConstraint>(std::move(*constraint));
}

// Three tokens within the grammar, by a session whose recordings are new.
Generation generate_letters(const Device& device) {
  const auto model = Model::load(device, VKFORMER_SOURCE_DIR "/models/shakespeare");
  REQUIRE_MESSAGE(model.ok(), model.error().message);
  auto session = Session::create(*model);
  REQUIRE_MESSAGE(session.ok(), session.error().message);
  GenerateOptions options = session->generation_defaults();
  options.grammar = small_letters();
  options.eos = {kEnd};
  options.min_new_tokens = options.max_new_tokens = 3;
  auto generation = session->generate({{'a', 'b', 'c', ' '}}, options);
  REQUIRE_MESSAGE(generation.ok(), generation.error().message);
  return std::move(*generation);
}

void check_both_parts(const std::multiset<std::string>& ops) {
  // Before the cut and after it, once a step at least.
  CHECK(ops.count("attention") >= 3);
  CHECK(ops.count("token_scores") == 3);
  CHECK(ops.count("step_advance") == 3);
}

}  // namespace

TEST_SUITE("model") {
  TEST_CASE("a profile has both parts of a step that a grammar cuts") {
    VKF_TEST_DEVICE(device);
    const Device handle = device_of(device);
    const Generation expected = generate_letters(handle);
    REQUIRE(start_profile(handle).ok());
    const Generation generation = generate_letters(handle);
    const auto profile = take_profile(handle);
    REQUIRE(stop_profile(handle).ok());
    REQUIRE_MESSAGE(profile.ok(), profile.error().message);
    CHECK(generation[0][0].ids == expected[0][0].ids);
    std::multiset<std::string> ops;
    for (const ProfiledDispatch& dispatch : profile->dispatches) ops.insert(dispatch.op);
    check_both_parts(ops);
  }

  TEST_CASE("every dispatch of a step that a grammar cuts is looked at") {
    VKF_TEST_DEVICE(device);
    const Device handle = device_of(device);
    const Generation expected = generate_letters(handle);
    std::set<std::pair<std::string, std::string>> seen;
    std::multiset<std::string> ops;
    REQUIRE(watch_dispatches(device, [&](const WatchedTensor& tensor) -> Status {
              seen.emplace(tensor.op, tensor.name);
              ops.insert(tensor.op);
              return {};
            }).ok());
    const Generation generation = generate_letters(handle);
    REQUIRE(watch_dispatches(device, {}).ok());
    CHECK(generation[0][0].ids == expected[0][0].ids);
    const auto wrote = [&](const std::string& op) {
      for (const auto& [writer, name] : seen) {
        if (writer == op) return true;
      }
      return false;
    };
    for (const char* op : {"attention", "token_scores", "greedy_select", "step_advance"})
      CHECK_MESSAGE(wrote(op), op);
  }
}
