// Scores, grammars and callbacks of sessions and batches through the C interface give what the C++
// classes give.
#include <doctest/doctest.h>

#include <cstring>

#include "support/c_handles.h"
#include "vkformer/grammar.h"
#include "vkformer/session.h"
#include "vkformer/tokenizer.h"

namespace vkformer::testing {
namespace {

const std::string kModel = std::string(VKFORMER_SOURCE_DIR) + "/models/shakespeare";
constexpr const char* kGrammar = "root ::= [A-Z] [a-z ]* \".\"";
const std::vector<int64_t> kPrompt = {82, 79, 77, 69, 79, 58};

vkf_ids view(const std::vector<int64_t>& ids) {
  return {ids.data(), ids.size()};
}

struct CModel {
  Owned<vkf_error> error{vkf_error_create(), vkf_error_free};
  Owned<vkf_device> device{nullptr, vkf_device_free};
  Owned<vkf_model> model{nullptr, vkf_model_free};
  Owned<vkf_session> session{nullptr, vkf_session_free};
  Owned<vkf_tokenizer> tokenizer{nullptr, vkf_tokenizer_free};
  Owned<vkf_constraint> constraint{nullptr, vkf_constraint_free};

  void check(vkf_status status) const {
    REQUIRE_MESSAGE(status == VKF_OK, vkf_error_message(error.get()));
  }
  // Calls `make` with the place of a handle, which `owner` then has.
  template <class Handle, class Make>
  void make(Owned<Handle>& owner, Make call) {
    Handle* made = nullptr;
    check(call(&made));
    owner.reset(made);
  }

  void load(uint32_t prefix_reuse) {
    check(make_c_device(device, error.get()));
    make(model, [&](vkf_model** out) {
      return vkf_model_load(device.get(), kModel.c_str(), nullptr, out, error.get());
    });
    vkf_session_options options{};
    options.struct_size = sizeof options;
    options.prefix_reuse = prefix_reuse;
    make(session, [&](vkf_session** out) {
      return vkf_session_create(model.get(), &options, out, error.get());
    });
    make(tokenizer,
         [&](vkf_tokenizer** out) { return vkf_tokenizer_load(kModel.c_str(), out, error.get()); });
  }

  void constrain(int64_t width) {
    vkf_grammar* grammar = nullptr;
    check(vkf_grammar_from_gbnf(kGrammar, nullptr, &grammar, error.get()));
    const Owned<vkf_grammar> owned(grammar, vkf_grammar_free);
    make(constraint, [&](vkf_constraint** out) {
      return vkf_constraint_create(grammar, tokenizer.get(), width, {}, out, error.get());
    });
  }
};

struct Seen {
  std::vector<int64_t> ids;
  double score = 0;
  size_t most = 1000;
};

vkf_verdict see(void* user, size_t, size_t, int64_t id, double log_probability) {
  auto& seen = *static_cast<Seen*>(user);
  seen.ids.push_back(id);
  seen.score += log_probability;
  return seen.ids.size() == seen.most ? VKF_END_TEXT : VKF_GO_ON;
}

vkf_generate_options options_of(int tokens, const vkf_choice_options& choice) {
  vkf_generate_options options{};
  options.struct_size = sizeof options;
  options.set = VKF_SET_MAX_NEW_TOKENS | VKF_SET_EOS;
  options.max_new_tokens = tokens;
  options.choice = &choice;
  return options;
}

vkf_choice_options drawn(uint64_t seed) {
  vkf_choice_options choice{};
  choice.struct_size = sizeof choice;
  choice.set = VKF_CHOICE_SAMPLE | VKF_CHOICE_SEED;
  choice.sample = 1;
  choice.seed = seed;
  return choice;
}

// The same in C++.
GenerateOptions plain_options(const Session& session, int tokens, uint64_t seed) {
  GenerateOptions options = session.generation_defaults();
  options.max_new_tokens = tokens;
  options.eos.clear();
  options.choice = TokenChoice::kSampled;
  options.sampling.seed = seed;
  return options;
}

std::shared_ptr<GrammarConstraint> plain_constraint(int64_t width) {
  const auto tokenizer = Tokenizer::load(kModel);
  REQUIRE(tokenizer.ok());
  const auto grammar = Grammar::from_gbnf(kGrammar);
  const auto vocabulary = GrammarVocabulary::create(*tokenizer, width, {});
  REQUIRE(vocabulary.ok());
  auto made = GrammarConstraint::create(*grammar, *vocabulary);
  REQUIRE(made.ok());
  return std::make_shared<GrammarConstraint>(std::move(*made));
}

}  // namespace

TEST_SUITE("model") {
  TEST_CASE("C: scores, a grammar and who follows the tokens, as in C++") {
    if (!have_test_device()) return;
    const auto model = Model::load(*test_device(), kModel);
    REQUIRE_MESSAGE(model.ok(), model.error().message);
    auto session = Session::create(*model);
    REQUIRE(session.ok());
    const int64_t width = model->info().target_vocab;
    CModel c;
    c.load(0);
    const std::vector<int64_t> continuation = {10, 87, 104, 97, 116};
    const vkf_ids input = view(kPrompt), target = view(continuation);
    vkf_tensors* scores = nullptr;
    c.check(vkf_session_score(c.session.get(), &input, &target, &scores, c.error.get()));
    const Owned<vkf_tensors> owned(scores, vkf_tensors_free);
    vkf_tensor tensor{};
    tensor.struct_size = sizeof tensor;
    c.check(vkf_tensors_get(scores, "log_probabilities", &tensor, c.error.get()));
    const auto wanted_scores = session->score({kPrompt}, {continuation});
    REQUIRE(wanted_scores.ok());
    REQUIRE(tensor.bytes == 4 * continuation.size());
    CHECK(std::memcmp(tensor.data, (*wanted_scores)[0].data(), tensor.bytes) == 0);
    CHECK(vkf_session_score(c.session.get(), &input, nullptr, &scores, c.error.get()) ==
          VKF_INVALID_ARGUMENT);

    c.constrain(width);
    const vkf_choice_options choice = drawn(7);
    for (size_t most : {size_t{1000}, size_t{3}}) {
      Seen seen{.ids = {}, .most = most};
      vkf_generate_options options = options_of(20, choice);
      options.constraint = c.constraint.get();
      options.on_token = see;
      options.on_token_user = &seen;
      vkf_generation* generation = nullptr;
      c.check(
          vkf_session_generate(c.session.get(), &input, 1, &options, &generation, c.error.get()));
      const Owned<vkf_generation> found(generation, vkf_generation_free);
      vkf_sequence sequence{};
      sequence.struct_size = sizeof sequence;
      c.check(vkf_generation_get(generation, 0, 0, &sequence, c.error.get()));
      std::vector<int64_t> ids(sequence.ids.ids, sequence.ids.ids + sequence.ids.count);
      GenerateOptions wanted = plain_options(*session, 20, 7);
      wanted.grammar = plain_constraint(width);
      size_t count = 0;
      wanted.on_token = [&](const NewToken&) {
        return ++count == most ? TokenVerdict::kEnd : TokenVerdict::kGoOn;
      };
      const auto expected = session->generate({kPrompt}, wanted);
      REQUIRE_MESSAGE(expected.ok(), expected.error().message);
      CHECK(ids == (*expected)[0][0].ids);
      CHECK(sequence.score == (*expected)[0][0].score);
      CHECK(seen.score == sequence.score);
      ids.erase(ids.begin(), ids.begin() + static_cast<ptrdiff_t>(kPrompt.size()));
      CHECK(seen.ids == ids);
    }
  }

  TEST_CASE("C: a session that keeps its texts counts what it reads again") {
    if (!have_test_device()) return;
    CModel c;
    c.load(1);
    const vkf_choice_options choice = drawn(3);
    const vkf_generate_options options = options_of(9, choice);
    const vkf_ids input = view(kPrompt);
    for (int64_t reused : {int64_t{0}, static_cast<int64_t>(kPrompt.size()) - 1}) {
      vkf_generation* generation = nullptr;
      c.check(
          vkf_session_generate(c.session.get(), &input, 1, &options, &generation, c.error.get()));
      vkf_generation_free(generation);
      vkf_generation_counters counters{};
      counters.struct_size = sizeof counters;
      c.check(vkf_session_counters(c.session.get(), &counters, c.error.get()));
      CHECK(counters.reused_tokens == reused);
      CHECK(counters.submits == counters.steps);
    }
  }

  TEST_CASE("C: requests of a batch with a grammar, a follower and several sequences") {
    if (!have_test_device()) return;
    CModel c;
    c.load(0);
    const auto model = Model::load(*test_device(), kModel);
    REQUIRE(model.ok());
    c.constrain(model->info().target_vocab);
    vkf_batch_options batch_options{};
    batch_options.struct_size = sizeof batch_options;
    batch_options.rows = 2;
    batch_options.capacity = 64;
    Owned<vkf_batch> batch{nullptr, vkf_batch_free};
    c.make(batch, [&](vkf_batch** out) {
      return vkf_batch_create(c.model.get(), &batch_options, out, c.error.get());
    });
    const vkf_choice_options choice = drawn(11);
    vkf_generate_options options = options_of(16, choice);
    options.set |= VKF_SET_RETURN_SEQUENCES;
    options.return_sequences = 3;
    options.constraint = c.constraint.get();
    Seen seen;
    options.on_token = see;
    options.on_token_user = &seen;
    vkf_batch_request request{};
    request.struct_size = sizeof request;
    request.prompt = view(kPrompt);
    request.options = &options;
    uint64_t number = 0;
    c.check(vkf_batch_submit(batch.get(), &request, &number, c.error.get()));
    std::vector<std::vector<int64_t>> found(3);
    size_t tokens = 0, ended = 0;
    while (vkf_batch_idle(batch.get()) == 0) {
      vkf_updates* updates = nullptr;
      c.check(vkf_batch_step(batch.get(), &updates, c.error.get()));
      const Owned<vkf_updates> owned(updates, vkf_updates_free);
      for (size_t i = 0; i < vkf_updates_count(updates); ++i) {
        vkf_batch_update u{};
        u.struct_size = sizeof u;
        c.check(vkf_updates_get(updates, i, &u, c.error.get()));
        CHECK(u.request == number);
        std::vector<int64_t>& to = found.at(u.sequence);
        to.insert(to.end(), u.tokens.ids, u.tokens.ids + u.tokens.count);
        tokens += u.tokens.count;
        ended += u.state == VKF_REQUEST_FINISHED ? 1 : 0;
      }
    }
    CHECK(ended == 3);
    CHECK(seen.ids.size() == tokens);
    CHECK(found[0] != found[1]);
    const auto grammar = Grammar::from_gbnf(kGrammar);
    for (const std::vector<int64_t>& ids : found) {
      vkf_bytes* text = nullptr;
      c.check(vkf_tokenizer_decode(c.tokenizer.get(), view(ids), 0, &text, c.error.get()));
      const Owned<vkf_bytes> owned(text, vkf_bytes_free);
      CHECK_MESSAGE(*grammar->matches(vkf_bytes_text(text)), vkf_bytes_text(text));
    }
  }
}

}  // namespace vkformer::testing
