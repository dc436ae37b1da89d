// A batch through the C interface tells what the C++ class tells.
#include <doctest/doctest.h>

#include <map>

#include "support/c_handles.h"
#include "support/golden.h"
#include "vkformer/generation_batch.h"
#include "vkformer/tokenizer.h"

namespace vkformer::testing {
namespace {

struct CBatch {
  Owned<vkf_error> error{vkf_error_create(), vkf_error_free};
  Owned<vkf_device> device{nullptr, vkf_device_free};
  Owned<vkf_model> model{nullptr, vkf_model_free};
  Owned<vkf_batch> batch{nullptr, vkf_batch_free};

  void check(vkf_status status) const { REQUIRE_MESSAGE(status == VKF_OK, message()); }
  std::string message() const { return vkf_error_message(error.get()); }

  void load(const std::string& directory) {
    check(make_c_device(device, error.get()));
    vkf_model* loaded = nullptr;
    check(vkf_model_load(device.get(), directory.c_str(), nullptr, &loaded, error.get()));
    model.reset(loaded);
  }

  vkf_status create(vkf_batch_options options) {
    options.struct_size = sizeof options;
    vkf_batch* made = nullptr;
    const vkf_status status = vkf_batch_create(model.get(), &options, &made, error.get());
    batch.reset(made);
    return status;
  }

  vkf_status submit(const std::vector<int64_t>& prompt, int tokens, uint64_t* number) {
    vkf_generate_options options{};
    options.struct_size = sizeof options;
    options.set = VKF_SET_MAX_NEW_TOKENS | VKF_SET_EOS;
    options.max_new_tokens = tokens;
    vkf_batch_request request{};
    request.struct_size = sizeof request;
    request.prompt = {prompt.data(), prompt.size()};
    request.options = &options;
    request.client = "c";
    return vkf_batch_submit(batch.get(), &request, number, error.get());
  }
};

struct Told {
  std::vector<int64_t> tokens;
  double score = 0;
  int state = 0;
  int64_t accepted = 0;
};

std::map<uint64_t, Told> run_c(CBatch& c) {
  std::map<uint64_t, Told> stories;
  while (vkf_batch_idle(c.batch.get()) == 0) {
    vkf_updates* updates = nullptr;
    c.check(vkf_batch_step(c.batch.get(), &updates, c.error.get()));
    const Owned<vkf_updates> owned(updates, vkf_updates_free);
    for (size_t i = 0; i < vkf_updates_count(updates); ++i) {
      vkf_batch_update u{};
      u.struct_size = sizeof u;
      c.check(vkf_updates_get(updates, i, &u, c.error.get()));
      Told& told = stories[u.request];
      told.tokens.insert(told.tokens.end(), u.tokens.ids, u.tokens.ids + u.tokens.count);
      told.score = u.score;
      told.state = u.state;
      told.accepted = u.accepted_tokens;
    }
    vkf_batch_update beyond{};
    beyond.struct_size = sizeof beyond;
    CHECK(vkf_updates_get(updates, vkf_updates_count(updates), &beyond, c.error.get()) ==
          VKF_INVALID_ARGUMENT);
  }
  return stories;
}

const std::vector<std::vector<int64_t>> kPrompts = {{4, 8, 15, 16}, {23, 42}, {7}};

}  // namespace

TEST_SUITE("model") {
  TEST_CASE("a batch in C tells what one in C++ tells") {
    if (!have_test_device()) return;
    const std::string directory = golden_case("llama-gqa").path("model");
    auto model = Model::load(*test_device(), directory);
    REQUIRE(model.ok());
    auto batch =
        GenerationBatch::create(*model, {.rows = 2, .capacity = 40, .step_tokens = 8, .lookup = 2});
    REQUIRE(batch.ok());
    std::map<uint64_t, Told> expected;
    for (const auto& prompt : kPrompts) {
      BatchRequest request{.prompt = prompt, .options = batch->generation_defaults()};
      request.options.max_new_tokens = 20;
      request.options.eos.clear();
      REQUIRE(batch->submit(request).ok());
    }
    while (!batch->idle()) {
      const auto updates = batch->step();
      REQUIRE(updates.ok());
      for (const BatchUpdate& u : *updates) {
        Told& told = expected[u.request];
        told.tokens.insert(told.tokens.end(), u.tokens.begin(), u.tokens.end());
        told.score = u.score;
        told.accepted = u.work.accepted_tokens;
      }
    }
    CBatch c;
    c.load(directory);
    vkf_batch_options options{};
    options.rows = 2;
    options.capacity = 40;
    options.step_tokens = 8;
    options.lookup = 2;
    options.waiting = 3;
    c.check(c.create(options));
    uint64_t number = 0;
    for (size_t i = 0; i < kPrompts.size(); ++i) {
      c.check(c.submit(kPrompts[i], 20, &number));
      CHECK(number == i + 1);
    }
    CHECK(c.submit(kPrompts[0], 20, &number) == VKF_QUEUE_FULL);
    CHECK(c.message().find("3 requests wait") != std::string::npos);
    const std::map<uint64_t, Told> found = run_c(c);
    REQUIRE(found.size() == expected.size());
    for (const auto& [id, told] : expected) {
      CHECK(found.at(id).tokens == told.tokens);
      CHECK(found.at(id).score == told.score);
      CHECK(found.at(id).accepted == told.accepted);
      CHECK(found.at(id).state == VKF_REQUEST_FINISHED);
    }
    vkf_batch_counters counters{};
    counters.struct_size = sizeof counters;
    c.check(vkf_batch_count(c.batch.get(), &counters, c.error.get()));
    CHECK(counters.new_tokens == 60);
    CHECK(counters.prompt_tokens == 7);
    CHECK(counters.steps == batch->counters().work.steps);
    CHECK(counters.waiting + counters.running == 0);
  }

  TEST_CASE("a batch in C refuses, cancels and takes a draft and a context") {
    if (!have_test_device()) return;
    CBatch c;
    c.load(golden_case("llama-gqa").path("model"));
    vkf_batch_options options{};
    options.rows = -1;
    CHECK(c.create(options) == VKF_INVALID_ARGUMENT);
    CHECK(c.message().find("[rows] is -1") != std::string::npos);
    CHECK(vkf_batch_create(nullptr, nullptr, nullptr, c.error.get()) == VKF_INVALID_ARGUMENT);
    options.rows = 1;
    options.draft = c.model.get();
    options.context = 9;
    options.sinks = -1;
    options.forget = 1;
    options.capacity = 60;
    c.check(c.create(options));
    uint64_t number = 0;
    CHECK(c.submit({}, 4, &number) == VKF_INVALID_ARGUMENT);
    c.check(c.submit({5, 6}, 40, &number));
    uint64_t cancelled = 0;
    c.check(c.submit({5, 6}, 40, &cancelled));
    c.check(vkf_batch_cancel(c.batch.get(), cancelled, c.error.get()));
    CHECK(vkf_batch_cancel(c.batch.get(), 99, c.error.get()) == VKF_NOT_FOUND);
    const std::map<uint64_t, Told> found = run_c(c);
    CHECK(found.at(number).tokens.size() == 40);
    CHECK(found.at(number).accepted > 0);
    CHECK(found.at(cancelled).state == VKF_REQUEST_CANCELLED);
    CHECK(vkf_batch_idle(nullptr) == 1);
    CHECK(vkf_updates_count(nullptr) == 0);
    vkf_batch_free(nullptr);
    vkf_updates_free(nullptr);
  }

  TEST_CASE("a batch in C reads prompts with pictures beside texts") {
    if (!have_test_device()) return;
    const std::string folder = std::string(VKFORMER_SOURCE_DIR) + "/tests/tasks/golden/";
    const std::string directory = folder + "prompts-smolvlm";
    CBatch c;
    c.load(directory);
    vkf_batch_options options{};
    options.rows = 2;
    options.capacity = 128;
    c.check(c.create(options));
    vkf_source* files = nullptr;
    c.check(vkf_source_directory(directory.c_str(), &files, c.error.get()));
    const Owned<vkf_source> source(files, vkf_source_free);
    vkf_image_prompts* made = nullptr;
    c.check(vkf_image_prompts_load(c.model.get(), source.get(), &made, c.error.get()));
    const Owned<vkf_image_prompts> reader(made, vkf_image_prompts_free);
    CHECK(std::string(vkf_image_prompts_placeholder(reader.get())) == "<image>");
    CHECK(vkf_image_prompts_placeholder(nullptr) == nullptr);
    vkf_picture* loaded = nullptr;
    c.check(vkf_picture_load((folder + "picture-0.png").c_str(), &loaded, c.error.get()));
    const Owned<vkf_picture> picture(loaded, vkf_picture_free);
    const vkf_picture* const pictures[] = {picture.get()};
    const vkf_prompt prompt = {"<image>What is this?", pictures, 1};
    vkf_tensors* read = nullptr;
    c.check(vkf_image_prompts_read(reader.get(), &prompt, &read, c.error.get()));
    const Owned<vkf_tensors> inputs(read, vkf_tensors_free);
    const Json expected = read_json(directory + "/expected.json")["prompts"][0];
    std::vector<int64_t> ids(expected["ids"].size());
    c.check(vkf_tensors_get_ints(inputs.get(), "input_ids", ids.data(), ids.size(), c.error.get()));
    CHECK(ids == expected["ids"].get<std::vector<int64_t>>());
    vkf_generate_options settings{};
    settings.struct_size = sizeof settings;
    settings.set = VKF_SET_MAX_NEW_TOKENS;
    settings.max_new_tokens = 8;
    vkf_batch_request request{};
    request.struct_size = sizeof request;
    request.options = &settings;
    request.inputs = inputs.get();
    uint64_t number = 0, text = 0;
    c.check(vkf_batch_submit(c.batch.get(), &request, &number, c.error.get()));
    c.check(c.submit({4, 8, 15}, 6, &text));
    const auto told = run_c(c);
    CHECK(told.at(number).tokens == expected["generated"].get<std::vector<int64_t>>());
    CHECK(told.at(text).tokens.size() == 6);
    // Ids in both places are a mistake, and so is a reader of a model that reads no images.
    request.prompt = {ids.data(), ids.size()};
    CHECK(vkf_batch_submit(c.batch.get(), &request, &number, c.error.get()) ==
          VKF_INVALID_ARGUMENT);
    CHECK(c.message().find("[inputs] has input_ids") != std::string::npos);
    const vkf_prompt wrong = {"a", nullptr, 1};
    vkf_tensors* none = nullptr;
    CHECK(vkf_image_prompts_read(reader.get(), &wrong, &none, c.error.get()) ==
          VKF_INVALID_ARGUMENT);
    vkf_image_prompts* no_reader = nullptr;
    CBatch texts;
    texts.load(folder + "judge");
    CHECK(vkf_image_prompts_load(texts.model.get(), source.get(), &no_reader, c.error.get()) !=
          VKF_OK);
  }

  TEST_CASE("C: a picture that a model describes gets its text in a batch") {
    if (!have_test_device()) return;
    const std::string folder = std::string(VKFORMER_SOURCE_DIR) + "/tests/tasks/golden/";
    const std::string directory = folder + "captions";
    CBatch c;
    c.load(directory);
    vkf_batch_options options{};
    options.rows = 2;
    c.check(c.create(options));
    vkf_source* files = nullptr;
    c.check(vkf_source_directory(directory.c_str(), &files, c.error.get()));
    const Owned<vkf_source> source(files, vkf_source_free);
    vkf_image_prompts* made = nullptr;
    c.check(vkf_image_prompts_load(c.model.get(), source.get(), &made, c.error.get()));
    const Owned<vkf_image_prompts> reader(made, vkf_image_prompts_free);
    CHECK(std::string(vkf_image_prompts_placeholder(reader.get())).empty());
    vkf_picture* loaded = nullptr;
    c.check(vkf_picture_load((folder + "picture-0.png").c_str(), &loaded, c.error.get()));
    const Owned<vkf_picture> picture(loaded, vkf_picture_free);
    const vkf_picture* const pictures[] = {picture.get()};
    vkf_generate_options settings{};
    settings.struct_size = sizeof settings;
    settings.set = VKF_SET_MAX_NEW_TOKENS;
    settings.max_new_tokens = 8;
    vkf_batch_request request{};
    request.struct_size = sizeof request;
    request.options = &settings;
    const auto submit = [&](const char* text) {
      const vkf_prompt prompt = {text, pictures, 1};
      vkf_tensors* read = nullptr;
      c.check(vkf_image_prompts_read(reader.get(), &prompt, &read, c.error.get()));
      const Owned<vkf_tensors> inputs(read, vkf_tensors_free);
      CHECK(vkf_tensors_count(inputs.get()) == (*text == 0 ? 1 : 2));
      request.inputs = inputs.get();
      uint64_t number = 0;
      c.check(vkf_batch_submit(c.batch.get(), &request, &number, c.error.get()));
      return number;
    };
    const uint64_t plain = submit(""), begun = submit("ab");
    const auto told = run_c(c);
    const auto tokenizer = Tokenizer::load(directory);
    REQUIRE(tokenizer.ok());
    const Json found = read_json(directory + "/expected.json")["found"];
    const std::vector<TokenId> ids(told.at(plain).tokens.begin(), told.at(plain).tokens.end());
    const auto text = tokenizer->decode(ids);
    REQUIRE(text.ok());
    CHECK(*text == found[0].get<std::string>());
    CHECK(told.at(begun).tokens.size() <= 8);
    const vkf_prompt none = {"a", nullptr, 0};
    vkf_tensors* refused = nullptr;
    CHECK(vkf_image_prompts_read(reader.get(), &none, &refused, c.error.get()) ==
          VKF_INVALID_ARGUMENT);
    CHECK(c.message().find("holds 0 pictures") != std::string::npos);
  }
}

}  // namespace vkformer::testing
