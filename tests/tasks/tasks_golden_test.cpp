// Every task against Hugging Face's answers, in batches of several sizes.
#include <algorithm>
#include <cmath>
#include <limits>

#include "tasks/task_cases.h"

namespace vkformer::testing {
namespace {

void check_labels(const std::vector<LabelScore>& labels, const Json& expected) {
  REQUIRE(labels.size() == expected.size());
  for (size_t i = 0; i < labels.size(); ++i) {
    CHECK(labels[i].label == expected[i]["label"].get<std::string>());
    CHECK(labels[i].score == near_score(expected[i]["score"]));
  }
}

std::vector<Picture> task_pictures(const Json& expected) {
  std::vector<Picture> pictures;
  for (const std::string& file : strings(expected["pictures"])) {
    pictures.push_back(value_of(Picture::load(task_path(file))));
  }
  return pictures;
}

void check_objects(const std::vector<std::vector<Detection>>& found, const Json& expected) {
  REQUIRE(found.size() == expected["found"].size());
  for (size_t i = 0; i < found.size(); ++i) {
    const Json& right = expected["found"][i];
    REQUIRE(found[i].size() == right.size());
    for (size_t n = 0; n < right.size(); ++n) {
      const Detection& one = found[i][n];
      CHECK(one.label == right[n]["label"].get<std::string>());
      CHECK(one.score == doctest::Approx(right[n]["score"].get<double>()).epsilon(1e-4));
      const double box[] = {one.left, one.top, one.right, one.bottom};
      for (size_t side = 0; side < 4; ++side) {
        CHECK(box[side] == doctest::Approx(right[n]["box"][side].get<double>()).epsilon(1e-4));
      }
    }
  }
}

// The prompts of a run of the golden masks.
std::vector<MaskPrompt> prompts_of(const Json& run) {
  const size_t count = run["points"].is_null() ? run["boxes"].size() : run["points"].size();
  std::vector<MaskPrompt> prompts(count);
  for (size_t p = 0; p < count; ++p) {
    for (size_t i = 0; !run["points"].is_null() && i < run["points"][p].size(); ++i) {
      const Json& place = run["points"][p][i];
      const auto side =
          run["labels"][p][i] == 1 ? PromptPoint::Side::kInside : PromptPoint::Side::kOutside;
      prompts[p].points.push_back({place[0], place[1], side});
    }
    if (run["boxes"].is_null()) continue;
    const Json& box = run["boxes"][p];
    prompts[p].box = PromptBox{box[0], box[1], box[2], box[3]};
  }
  return prompts;
}

TEST_SUITE("model") {
  TEST_CASE("embed gives the mean state whatever the batch") {
    if (!have_test_device()) return;
    const Json expected = task_expected("embed");
    const std::vector<std::string> texts = strings(expected["texts"]);
    for (int batch : {1, 2, 32}) {
      auto task = load_golden<Embedder>("embed", batch);
      const Tensor vectors = value_of(task.embed(texts));
      REQUIRE(vectors.shape == Shape{static_cast<int64_t>(texts.size()), 32});
      const std::vector<float> values = value_of(vectors.to_floats());
      for (size_t i = 0; i < values.size(); ++i) {
        const double wanted = expected["vectors"][i / 32][i % 32].get<double>();
        CHECK(std::abs(static_cast<double>(values[i]) - wanted) < 2e-5);
      }
    }
  }

  TEST_CASE("classify gives labels with probabilities") {
    if (!have_test_device()) return;
    for (const char* name : {"labels", "several-labels"}) {
      const Json expected = task_expected(name);
      auto task = load_golden<TextClassifier>(name, 4);
      CHECK_FALSE(task.finds_entities());
      std::vector<ClassifyInput> inputs;
      for (const std::string& text : strings(expected["texts"])) inputs.push_back({text});
      inputs.push_back({expected["pair"]["text"], expected["pair"]["text_pair"]});
      const auto labels = value_of(task.classify(inputs));
      REQUIRE(labels.size() == inputs.size());
      for (size_t i = 0; i + 1 < inputs.size(); ++i) check_labels(labels[i], expected["labels"][i]);
      check_labels(labels.back(), expected["pair_labels"]);
      CHECK(value_of(task.classify(inputs, 1))[0].size() == 1);
    }
  }

  TEST_CASE("entities have the pipeline's ranges") {
    if (!have_test_device()) return;
    const Json expected = task_expected("entities");
    const std::vector<std::string> texts = strings(expected["texts"]);
    auto task = load_golden<TextClassifier>("entities", 2);
    CHECK(task.finds_entities());
    const auto found = value_of(task.entities(texts));
    for (size_t i = 0; i < texts.size(); ++i) {
      const Json& wanted = expected["entities"][i];
      REQUIRE(found[i].size() == wanted.size());
      for (size_t k = 0; k < wanted.size(); ++k) {
        CHECK(found[i][k].label == wanted[k]["entity_group"].get<std::string>());
        CHECK(found[i][k].range == TextRange{wanted[k]["start"], wanted[k]["end"]});
        CHECK(found[i][k].score == near_score(wanted[k]["score"]));
      }
    }
  }

  TEST_CASE("masks are filled as the pipeline does") {
    if (!have_test_device()) return;
    const Json expected = task_expected("masks");
    auto task = load_golden<MaskFiller>("masks");
    CHECK(task.mask_token() == "[MASK]");
    const auto filled = value_of(task.fill(strings(expected["texts"]), 4));
    for (size_t i = 0; i < filled.size(); ++i) {
      REQUIRE(filled[i].size() == expected["masks"][i].size());
      for (size_t m = 0; m < filled[i].size(); ++m) {
        const Json& wanted = expected["masks"][i][m];
        REQUIRE(filled[i][m].size() == wanted.size());
        for (size_t k = 0; k < wanted.size(); ++k) {
          const MaskCandidate& candidate = filled[i][m][k];
          CHECK(candidate.token == wanted[k]["token"].get<int32_t>());
          CHECK(candidate.token_text == wanted[k]["token_str"].get<std::string>());
          CHECK(candidate.text == wanted[k]["sequence"].get<std::string>());
          CHECK(candidate.score == near_score(wanted[k]["score"]));
        }
      }
    }
  }

  TEST_CASE("answers are the pipeline's, over one window or many") {
    if (!have_test_device()) return;
    for (const char* name : {"answers", "answers-bytes"}) {
      const Json expected = task_expected(name);
      auto task = load_golden<Answerer>(name, 5);
      for (const Json& run : expected["runs"]) {
        std::vector<Question> questions;
        for (const std::string& question : strings(expected["questions"])) {
          questions.push_back({question, run["context"]});
        }
        AnswerOptions options;
        options.max_answer_tokens = run["longest"];
        options.window = run["window"];
        options.overlap = run["overlap"];
        options.top = run["top"];
        if (run["null"]) options.allow_no_answer = true;
        const auto answers = value_of(task.answer(questions, options));
        for (size_t i = 0; i < questions.size(); ++i) {
          const Json& wanted = run["answers"][i];
          REQUIRE(answers[i].size() == wanted.size());
          CAPTURE(name);
          for (size_t k = 0; k < wanted.size(); ++k) {
            CHECK(answers[i][k].text == wanted[k]["answer"].get<std::string>());
            CHECK(answers[i][k].range == TextRange{wanted[k]["begin"], wanted[k]["end"]});
            CHECK(answers[i][k].score == near_score(wanted[k]["score"]));
          }
        }
      }
    }
  }

  TEST_CASE("prompts are continued the same in every batch") {
    if (!have_test_device()) return;
    const Json expected = task_expected("texts");
    const std::vector<std::string> texts = strings(expected["texts"]);
    for (int batch : {1, 4}) {
      auto task = load_golden<TextGenerator>("texts", batch);
      for (const Json& run : expected["runs"]) {
        TextOptions options;
        options.beams = run["beams"].get<int>();
        options.max_new_tokens = run["max_new_tokens"].get<int>();
        const auto found = value_of(task.generate(texts, options));
        for (size_t i = 0; i < texts.size(); ++i) {
          CHECK(found[i][0].ids == run["found"][i]["ids"].get<std::vector<int64_t>>());
          CHECK(found[i][0].text == run["found"][i]["text"].get<std::string>());
        }
      }
    }
  }

  TEST_CASE("a model's own task brings its prefix and settings") {
    if (!have_test_device()) return;
    const Json expected = task_expected("translations");
    const std::vector<std::string> texts = strings(expected["texts"]);
    auto task = load_golden<TextGenerator>("translations");
    TextOptions own, said;
    own.task = "go";
    said.prefix = "translate this: ";
    said.beams = 2;
    said.max_new_tokens = 9;
    for (const TextOptions& options : {own, said}) {
      const auto found = value_of(task.generate(texts, options));
      for (size_t i = 0; i < texts.size(); ++i) {
        CHECK(found[i][0].text == expected["found"][i].get<std::string>());
      }
    }
  }

  TEST_CASE("pictures are labelled and described") {
    if (!have_test_device()) return;
    const Json expected = task_expected("picture-labels");
    std::vector<Picture> pictures;
    for (const std::string& file : strings(expected["pictures"])) {
      pictures.push_back(value_of(Picture::load(task_path(file))));
    }
    auto classifier = load_golden<PictureClassifier>("picture-labels", 2);
    const auto labels = value_of(classifier.classify(pictures));
    for (size_t i = 0; i < pictures.size(); ++i) check_labels(labels[i], expected["labels"][i]);
    auto captioner = load_golden<Captioner>("captions", 2);
    TextOptions options;
    options.max_new_tokens = 8;
    const auto texts = value_of(captioner.caption(pictures, options));
    CHECK(texts == strings(task_expected("captions")["found"]));
  }

  TEST_CASE("texts are spoken as transformers does after the same seed") {
    if (!have_test_device()) return;
    auto speaker = load_golden<Speaker>("speak");
    CHECK(speaker.info().sampling_rate == 16000);
    CHECK(speaker.info().speakers == 0);
    const TensorMap expected = value_of(read_tensor_file(task_path("speak/expected.safetensors")));
    const Json texts = task_expected("speak")["texts"];
    for (size_t i = 0; i < texts.size(); ++i) {
      CAPTURE(i);
      SpeakOptions options;
      options.seed = texts[i]["seed"].get<uint64_t>();
      const std::string text = texts[i]["text"].get<std::string>();
      const auto sounds = value_of(speaker.speak({&text, 1}, options));
      CHECK(sounds[0].sampling_rate == 16000);
      const auto wanted = value_of(expected.at("waveform." + std::to_string(i)).to_floats());
      REQUIRE(sounds[0].samples.size() == wanted.size());
      double farthest = 0;
      for (size_t at = 0; at < wanted.size(); ++at) {
        farthest = std::max(farthest, std::abs(double{wanted[at]} - sounds[0].samples[at]));
      }
      CHECK(farthest < 2e-4);
    }
  }

  TEST_CASE("a text is spoken the same alone and among others, and not without letters") {
    if (!have_test_device()) return;
    auto speaker = load_golden<Speaker>("speak");
    const std::vector<std::string> texts = {"a b", "hello there", "c"};
    const auto together = value_of(speaker.speak(texts, {}));
    for (size_t i = 0; i < texts.size(); ++i) {
      const auto alone = value_of(speaker.speak({&texts[i], 1}, {}));
      CHECK(alone[0].samples == together[i].samples);
    }
    const std::vector<std::string> bad = {"a", "!"};
    const auto none = speaker.speak(bad, {});
    REQUIRE_FALSE(none.ok());
    CHECK(test::contains(none.error().message, "[text 2]"));
  }

  TEST_CASE("pictures become objects with boxes, by scores of classes as well") {
    if (!have_test_device()) return;
    const Json expected = task_expected("scored-objects");
    const std::vector<Picture> pictures = task_pictures(expected);
    auto detector = load_golden<ObjectDetector>("scored-objects", 2);
    const auto found = value_of(detector.detect(pictures, {.threshold = 0.0}));
    check_objects(found, expected);
    CHECK(value_of(detector.detect({pictures.data(), 1}, {.threshold = 0.0, .top = 2}))[0].size() ==
          2);
  }

  TEST_CASE("pictures become depths") {
    if (!have_test_device()) return;
    const Json expected = task_expected("depth");
    const std::vector<Picture> pictures = task_pictures(expected);
    auto estimator = load_golden<DepthEstimator>("depth", 2);
    const auto maps = value_of(estimator.estimate(pictures));
    REQUIRE(maps.size() == pictures.size());
    for (size_t i = 0; i < maps.size(); ++i) {
      const DepthMap& map = maps[i];
      CHECK(map.width == pictures[i].width());
      CHECK(map.scale == DepthMap::Scale::kRelative);
      const std::vector<float> right = expected["depths"][i];
      REQUIRE(map.values.size() == right.size());
      for (size_t p = 0; p < right.size(); ++p) {
        CHECK(map.values[p] == doctest::Approx(right[p]).epsilon(1e-3).scale(1.0));
      }
      const Picture drawn = value_of(Picture::decode(value_of(render_depth_png(map)), "drawn"));
      CHECK(drawn.height() == map.height);
      const auto most = std::max_element(map.values.begin(), map.values.end());
      CHECK(drawn.rgb()[3 * static_cast<size_t>(most - map.values.begin())] == 255);
    }
    DepthMap wrong = maps[0];
    wrong.values[3] = std::nanf("");
    CHECK(render_depth_png(wrong).error().code == ErrorCode::kInvalidArgument);
    wrong.values.pop_back();
    CHECK(render_depth_png(wrong).error().code == ErrorCode::kInvalidArgument);
    CHECK(value_of(render_depth_png({.width = 1, .height = 1, .values = {2.0f}})).size() > 8);
  }

  TEST_CASE("points and boxes become masks") {
    if (!have_test_device()) return;
    const Json expected = task_expected("segments");
    auto segmenter = load_golden<Segmenter>("segments", 2);
    for (const Json& run : expected["runs"]) {
      const Picture picture = value_of(Picture::load(task_path(run["picture"].get<std::string>())));
      const std::vector<MaskPrompt> prompts = prompts_of(run);
      const auto found = value_of(segmenter.segment(picture, prompts, {.top = 0}));
      REQUIRE(found.size() == prompts.size());
      for (size_t p = 0; p < prompts.size(); ++p) {
        std::vector<double> scores = run["scores"][p];
        std::sort(scores.rbegin(), scores.rend());
        REQUIRE(found[p].size() == scores.size());
        for (size_t m = 0; m < scores.size(); ++m) {
          CHECK(found[p][m].score == doctest::Approx(scores[m]).epsilon(1e-4));
        }
        const std::vector<double> logits = run["best"][p];
        const PictureMask& best = found[p][0];
        REQUIRE(best.inside.size() == logits.size());
        for (size_t i = 0; i < logits.size(); ++i) {
          if (std::abs(logits[i]) > 2e-3) CHECK((best.inside[i] != 0) == (logits[i] > 0));
        }
      }
      const auto drawn = render_masks_png(picture, found[0]);
      REQUIRE_MESSAGE(drawn.ok(), drawn.error().message);
      CHECK(value_of(Picture::decode(*drawn, "drawn")).width() == picture.width());
    }
    const Picture picture = value_of(Picture::load(task_path("picture-0.png")));
    const PromptPoint point{.x = 3, .y = 4};
    const std::vector<std::vector<MaskPrompt>> wrong = {
        {},
        {{}},
        {{.points = {point}}, {.points = {point}, .box = PromptBox{1, 2, 3, 4}}},
        {{.points = {{.x = std::nan("")}}}}};
    for (const auto& prompts : wrong) {
      CHECK(segmenter.segment(picture, prompts).error().code == ErrorCode::kInvalidArgument);
    }
    const std::vector<MaskPrompt> one = {{.points = {point}}};
    CHECK(segmenter.segment(picture, one, {.top = -1}).error().code == ErrorCode::kInvalidArgument);
    CHECK(value_of(segmenter.segment(picture, one))[0].size() == 1);
    PictureMask other = value_of(segmenter.segment(picture, one))[0][0];
    other.inside.pop_back();
    CHECK(render_masks_png(picture, {&other, 1}).error().code == ErrorCode::kInvalidArgument);
  }

  TEST_CASE("pictures become objects with boxes") {
    if (!have_test_device()) return;
    const Json expected = task_expected("objects");
    const std::vector<Picture> pictures = task_pictures(expected);
    auto detector = load_golden<ObjectDetector>("objects", 2);
    const auto found = value_of(detector.detect(pictures, {.threshold = 0.0}));
    check_objects(found, expected);
    const auto best = value_of(detector.detect({pictures.data(), 1}, {.threshold = 0.0, .top = 1}));
    REQUIRE(best[0].size() == 1);
    CHECK(best[0][0].label == found[0][0].label);
    CHECK(value_of(detector.detect({pictures.data(), 1}, {.threshold = 1.0}))[0].empty());
    for (const DetectOptions& wrong :
         {DetectOptions{.threshold = 1.5}, DetectOptions{.threshold = std::nan("")},
          DetectOptions{.top = -1}}) {
      CHECK(detector.detect(pictures, wrong).error().code == ErrorCode::kInvalidArgument);
    }
    const auto drawn = render_detections_png(pictures[0], found[0]);
    REQUIRE_MESSAGE(drawn.ok(), drawn.error().message);
    const Picture seen = value_of(Picture::decode(*drawn, "drawn"));
    CHECK(seen.width() == pictures[0].width());
    CHECK(seen.height() == pictures[0].height());
    CHECK_FALSE(std::equal(seen.rgb().begin(), seen.rgb().end(), pictures[0].rgb().begin()));
    const Detection endless = {.label = "x", .left = std::numeric_limits<double>::infinity()};
    CHECK(render_detections_png(pictures[0], {&endless, 1}).error().code ==
          ErrorCode::kInvalidArgument);
  }

  TEST_CASE("speech becomes text in the language that is asked for or heard") {
    if (!have_test_device()) return;
    const Json expected = task_expected("speech");
    std::vector<Sound> sounds;
    for (const std::string& file : strings(expected["sounds"])) {
      sounds.push_back(value_of(load_wav(task_path(file))));
    }
    auto task = load_golden<Transcriber>("speech", 2);
    for (const Json& run : expected["runs"]) {
      TranscribeOptions options;
      options.language = run["language"];
      const std::string task_name = run["task"];
      if (!task_name.empty()) options.task = choice_from_name<SpeechTask>(task_name).value();
      options.max_new_tokens = 10;
      CHECK(value_of(task.transcribe(sounds, options)) == strings(run["texts"]));
    }
  }

  TEST_CASE("speech becomes text by a decoder that reads samples") {
    if (!have_test_device()) return;
    const Json expected = task_expected("samples");
    std::vector<Sound> sounds;
    for (const std::string& file : strings(expected["sounds"])) {
      sounds.push_back(value_of(load_wav(task_path(file))));
    }
    sounds.push_back(sounds[0]);
    auto task = load_golden<Transcriber>("samples", 4);
    const auto texts = value_of(task.transcribe(sounds));
    REQUIRE(texts.size() == sounds.size());
    CHECK(std::vector<std::string>(texts.begin(), texts.end() - 1) == strings(expected["texts"]));
    CHECK(texts.back() == texts.front());
  }

  TEST_CASE("speech becomes text by the class of each frame, with the times of words") {
    if (!have_test_device()) return;
    const Json expected = task_expected("ctc");
    std::vector<Sound> sounds;
    for (const std::string& file : strings(expected["sounds"])) {
      sounds.push_back(value_of(load_wav(task_path(file))));
    }
    sounds.push_back({std::vector<float>(20, 0.1f)});  // too short for a frame: silence follows
    sounds.push_back({});
    auto task = load_golden<Transcriber>("ctc", 2);
    const auto texts = value_of(task.transcribe(sounds));
    const auto heard = value_of(task.transcribe_words(sounds));
    REQUIRE(heard.size() == sounds.size());
    CHECK(texts.back().empty());
    for (size_t i = 0; i < expected["found"].size(); ++i) {
      const Json& found = expected["found"][i];
      CHECK(texts[i] == found["text"].get<std::string>());
      CHECK(heard[i].text == texts[i]);
      REQUIRE(heard[i].words.size() == found["words"].size());
      for (size_t w = 0; w < heard[i].words.size(); ++w) {
        CHECK(heard[i].words[w].text == found["words"][w]["word"].get<std::string>());
        CHECK(heard[i].words[w].begin == near_score(found["words"][w]["begin"]));
        CHECK(heard[i].words[w].end == near_score(found["words"][w]["end"]));
      }
    }
  }

  TEST_CASE("speech becomes text by the token of each frame of a recording's features") {
    if (!have_test_device()) return;
    const Json expected = task_expected("frames");
    std::vector<Sound> sounds;
    for (const std::string& file : strings(expected["sounds"])) {
      sounds.push_back(value_of(load_wav(task_path(file))));
    }
    sounds.push_back(sounds[1]);                       // runs together with the other
    sounds.push_back({std::vector<float>(20, 0.1f)});  // too short for a frame: silence follows
    auto task = load_golden<Transcriber>("frames", 4);
    const auto heard = value_of(task.transcribe_words(sounds));
    REQUIRE(heard.size() == sounds.size());
    CHECK(heard[3].text == heard[1].text);
    for (size_t i = 0; i < expected["found"].size(); ++i) {
      const Json& found = expected["found"][i];
      CHECK(heard[i].text == found["text"].get<std::string>());
      REQUIRE(heard[i].words.size() == found["words"].size());
      for (size_t w = 0; w < heard[i].words.size(); ++w) {
        CHECK(heard[i].words[w].text == found["words"][w]["word"].get<std::string>());
        CHECK(heard[i].words[w].begin == near_score(found["words"][w]["begin"]));
        CHECK(heard[i].words[w].end == near_score(found["words"][w]["end"]));
      }
    }
  }
}

}  // namespace
}  // namespace vkformer::testing
