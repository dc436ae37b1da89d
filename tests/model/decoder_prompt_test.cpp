// A decoder that starts with several tokens, as languages and tasks are chosen, for every family
// with an encoder.
#include "support/golden_generation.h"
#include "support/test_device.h"

namespace vkformer::testing {
namespace {

constexpr size_t kPrompt = 5;  // tokens, the start among them

// What follows a prompt out of a greedy text is the rest of that text.
void check_continuation(const std::string& name) {
  CAPTURE(name);
  const GoldenCase golden = golden_case(name);
  const auto model = Model::load(*test_device(), golden.path("model"));
  REQUIRE_MESSAGE(model.ok(), model.error().message);
  auto session = Session::create(*model);
  REQUIRE(session.ok());
  const TensorMap inputs = golden_sources(golden);
  GenerateOptions options = golden_generate_options(golden, *session);
  options.beams = 1;
  options.eos.clear();
  options.forced_bos = options.forced_eos = -1;
  options.max_new_tokens = 14;
  const auto whole = session->generate_masked(inputs, options);
  REQUIRE_MESSAGE(whole.ok(), whole.error().message);
  // The prompt is the same for all inputs, so that only the first one's text goes on.
  const std::vector<int64_t>& ids = whole->front().front().ids;
  options.decoder_prompt.assign(ids.begin(), ids.begin() + kPrompt);
  options.begin_suppress.clear();
  options.max_new_tokens -= static_cast<int>(kPrompt) - 1;
  const auto rest = session->generate_masked(inputs, options);
  REQUIRE_MESSAGE(rest.ok(), rest.error().message);
  CHECK(rest->front().front().ids == ids);
  options.beams = 3;
  const auto beams = session->generate_masked(inputs, options);
  REQUIRE_MESSAGE(beams.ok(), beams.error().message);
  for (const auto& input : *beams) {
    const std::vector<int64_t>& found = input.front().ids;
    REQUIRE(found.size() == ids.size());
    CHECK(std::equal(ids.begin(), ids.begin() + kPrompt, found.begin()));
  }
}

}  // namespace

TEST_SUITE("model") {
  TEST_CASE("a decoder goes on from a prompt as it went on before") {
    if (!have_test_device()) return;
    for (const char* name :
         {"bart-noeos", "mbart-base", "m2m100-base", "marian-base", "t5-relu", "t5-gated",
          "whisper-base", "whisper-suppress", "vision-encoder-decoder-projected",
          "rnn-bahdanau-lstm", "rnn-concat-feeding", "rnn-dot-local-m", "rnn-none-lstm"}) {
      check_continuation(name);
    }
  }
}

}  // namespace vkformer::testing
