// Prompts with pictures: tokens and texts of tests/tasks/golden/prompts-*, and what is refused.
#include <cmath>

#include "base/handle_access.h"
#include "tasks/image_prompts.h"
#include "tasks/task_cases.h"

using namespace vkformer;
using namespace vkformer::testing;

namespace {

const char* const kFamilies[] = {"llava",   "paligemma",  "gemma3",  "idefics3",
                                 "smolvlm", "qwen2_5_vl", "qwen3_vl"};

std::vector<Picture> load_pictures(const Json& names) {
  std::vector<Picture> pictures;
  for (const std::string& name : strings(names)) {
    pictures.push_back(value_of(Picture::load(task_path(name))));
  }
  return pictures;
}

PromptWithPictures prompt_of(const std::string& text, const std::vector<Picture>& pictures) {
  PromptWithPictures prompt{text, {}};
  for (const Picture& picture : pictures) prompt.pictures.push_back(&picture);
  return prompt;
}

TextOptions short_text() {
  TextOptions options;
  options.beams = 1;
  options.max_new_tokens = 8;
  return options;
}

// The error of a call that must fail.
std::string refused(TextGenerator& generator, const PromptWithPictures& prompt,
                    const TextOptions& options = short_text()) {
  const auto made = generator.generate_with_pictures({&prompt, 1}, options);
  REQUIRE_FALSE(made.ok());
  return made.error().message;
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_SUITE("model") {
  TEST_CASE("prompts with pictures have the tokens and answers of transformers") {
    if (!have_test_device()) return;
    for (const std::string family : kFamilies) {
      CAPTURE(family);
      const std::string name = "prompts-" + family;
      auto generator = load_golden<TextGenerator>(name);
      CHECK(generator.info().reads_images);
      for (const Json& entry : task_expected(name)["prompts"]) {
        CAPTURE(entry.dump());
        const std::vector<Picture> pictures = load_pictures(entry["pictures"]);
        // Without a chat template the text itself is the prompt.
        const std::string key = entry["chat"] ? "prompt" : "text";
        const PromptWithPictures prompt = prompt_of(entry[key], pictures);
        const TaskModel& task = *HandleAccess::impl(generator);
        const auto tokens = make_image_prompt(task, prompt, 0, SpecialTokens::kInclude);
        REQUIRE_MESSAGE(tokens.ok(), (tokens ? "" : tokens.error().message));
        CHECK(tokens->encoding.ids == entry["ids"].get<std::vector<TokenId>>());
        const auto texts = value_of(generator.generate_with_pictures({&prompt, 1}, short_text()));
        CHECK(texts[0][0].ids == entry["generated"].get<std::vector<TokenId>>());
      }
    }
  }

  TEST_CASE("prompts with pictures run beside each other, and with beams") {
    if (!have_test_device()) return;
    auto generator = load_golden<TextGenerator>("prompts-smolvlm");
    const Json entries = task_expected("prompts-smolvlm")["prompts"];
    std::vector<std::vector<Picture>> pictures;
    std::vector<PromptWithPictures> prompts;
    for (const Json& entry : entries) pictures.push_back(load_pictures(entry["pictures"]));
    for (size_t i = 0; i < entries.size(); ++i) {
      prompts.push_back(prompt_of(entries[i][entries[i]["chat"] ? "prompt" : "text"], pictures[i]));
    }
    const auto texts = value_of(generator.generate_with_pictures(prompts, short_text()));
    REQUIRE(texts.size() == entries.size());
    for (size_t i = 0; i < entries.size(); ++i) {
      CHECK(texts[i][0].ids == entries[i]["generated"].get<std::vector<TokenId>>());
    }
    TextOptions beams = short_text();
    beams.beams = 3;
    beams.return_sequences = 2;
    CHECK(value_of(generator.generate_with_pictures({prompts.data(), 1}, beams))[0].size() == 2);
    // Without pictures a prompt is the text that generate() takes.
    const std::string text = "What is this?";
    const PromptWithPictures alone{text, {}};
    CHECK(value_of(generator.generate_with_pictures({&alone, 1}, short_text()))[0][0].ids ==
          value_of(generator.generate({&text, 1}, short_text()))[0][0].ids);
    CHECK(value_of(generator.generate_with_pictures({}, short_text())).empty());
  }

  TEST_CASE("prompts whose pictures do not fit are refused") {
    if (!have_test_device()) return;
    auto generator = load_golden<TextGenerator>("prompts-llava");
    const auto pictures = load_pictures(Json({"picture-0.png", "picture-1.png"}));
    CHECK(has(refused(generator, prompt_of("a <image> b", pictures)),
              "1 placeholders <image>, but 2 pictures"));
    CHECK(has(refused(generator, {"a <image> b", {}}), "1 placeholders <image>, but 0 pictures"));
    CHECK(has(refused(generator, {"a", {nullptr}}), "holds no pixels"));
    const std::string long_text(600, 'x');
    CHECK(has(refused(generator, prompt_of(long_text, pictures)), "18 of them of its pictures"));
    TextOptions many = short_text();
    many.max_new_tokens = 510;
    CHECK(has(refused(generator, prompt_of("a", pictures), many), "positions for 512"));
  }

  TEST_CASE("models whose files do not go with pictures are refused") {
    if (!have_test_device()) return;
    const auto pictures = load_pictures(Json({"picture-0.png"}));
    const PromptWithPictures prompt = prompt_of("a", pictures);
    TaskCopy none("prompts-gemma3");
    std::filesystem::remove(none.folder.file("preprocessor_config.json"));
    auto without = load_task<TextGenerator>(none.folder.path());
    CHECK(has(refused(without, prompt), "[preprocessor_config.json]"));
    const std::string text = "a";
    CHECK(without.generate({&text, 1}, short_text()).ok());
    const TaskCopy other("prompts-gemma3");
    other.change("preprocessor_config.json", "size", {{"height", 9}, {"width", 9}});
    auto smaller = load_task<TextGenerator>(other.folder.path());
    CHECK(has(refused(smaller, prompt), "9 x 9"));
    const TaskCopy tiles("prompts-smolvlm");
    tiles.change("preprocessor_config.json", "max_image_size", {{"longest_edge", 10}});
    auto odd = load_task<TextGenerator>(tiles.folder.path());
    CHECK(has(refused(odd, prompt), "10 x 10"));
    const TaskCopy patches("prompts-qwen3_vl");
    patches.change("preprocessor_config.json", "patch_size", 3);
    auto wrong = load_task<TextGenerator>(patches.folder.path());
    CHECK(has(refused(wrong, prompt), "multiples of 4"));
    auto texts = load_golden<TextGenerator>("judge");
    CHECK_FALSE(texts.info().reads_images);
    CHECK(has(refused(texts, prompt), "reads no pictures"));
    CHECK_FALSE(texts.picture_placeholder().ok());
  }

  TEST_CASE("a model is shown a whole page where its files name Donut's processor") {
    if (!have_test_device()) return;
    const TaskCopy donut("captions");
    donut.change("preprocessor_config.json", "image_processor_type", "DonutImageProcessor");
    auto captioner = load_task<Captioner>(donut.folder.path());
    auto plain = load_golden<Captioner>("captions");
    const std::vector<Picture> pictures =
        load_pictures(Json({"picture-0.png", "picture-1.png", "picture-2.png"}));
    // The page made by hand: 32 x 32, which the model's own processor leaves as it is.
    const DocumentPages pages = value_of(
        DocumentPages::parse(value_of(JsonConfig::parse("{\"size\": [32, 32]}", "pages"))));
    std::vector<Picture> whole;
    for (const Picture& picture : pictures) {
      const RgbPicture* const one = HandleAccess::impl(picture).get();
      const auto values = value_of(value_of(pages.process({&one, 1})).to_floats());
      std::vector<uint8_t> bytes(values.size());
      for (size_t i = 0; i < values.size(); ++i) {
        const double byte = (double{values[i]} * 0.5 + 0.5) * 255.0;
        bytes[i % 1024 * 3 + i / 1024] = static_cast<uint8_t>(std::lround(byte));
      }
      whole.push_back(value_of(Picture::from_rgb(32, 32, bytes)));
    }
    CHECK(value_of(captioner.caption(pictures)) == value_of(plain.caption(whole)));
    CHECK(value_of(captioner.caption(pictures)) != value_of(plain.caption(pictures)));
    const TaskCopy loose("captions");
    loose.change("preprocessor_config.json", "image_processor_type", "DonutImageProcessor");
    loose.change("preprocessor_config.json", "do_pad", false);
    const auto refused_pages =
        Captioner::load(*test_device(), ModelSource::directory(loose.folder.path()));
    REQUIRE_FALSE(refused_pages.ok());
    CHECK(has(refused_pages.error().message, "[do_pad] is false"));
  }
}
