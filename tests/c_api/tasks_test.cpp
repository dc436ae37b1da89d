// Every task through the C interface gives what the C++ classes give: the same texts, labels,
// scores and places. The other halves of the C interface are tested from C itself, in tests/c.
#include <doctest/doctest.h>

#include <cstring>
#include <functional>

#include "support/c_handles.h"
#include "support/golden.h"
#include "vkformer/depth.h"
#include "vkformer/embed.h"
#include "vkformer/rerank.h"
#include "vkformer/segment.h"
#include "vkformer/speak.h"
#include "vkformer/transcribe.h"

using namespace vkformer;
using testing::Owned;

namespace {

const std::string kGolden = std::string(VKFORMER_SOURCE_DIR) + "/tests/tasks/golden/";

// A device and a task of the C interface, and the error that its calls fill.
struct CTask {
  Owned<vkf_error> error{vkf_error_create(), vkf_error_free};
  Owned<vkf_device> device{nullptr, vkf_device_free};
  Owned<vkf_task> task{nullptr, vkf_task_free};

  vkf_status load(const char* folder, const char* name) {
    vkf_task* loaded = nullptr;
    vkf_status status = testing::make_c_device(device, error.get());
    if (status == VKF_OK) {
      status = vkf_task_load(device.get(), (kGolden + folder).c_str(), name, nullptr, &loaded,
                             error.get());
    }
    task.reset(loaded);
    return status;
  }

  // What a call found. `call` is given the place for it.
  Owned<vkf_findings> find(const std::function<vkf_status(vkf_findings**)>& call) {
    vkf_findings* found = nullptr;
    const vkf_status status = call(&found);
    INFO(vkf_error_message(error.get()));
    CHECK(status == VKF_OK);
    return {found, vkf_findings_free};
  }
};

vkf_finding finding(const Owned<vkf_findings>& findings, size_t input, size_t index) {
  vkf_finding out{};
  out.struct_size = sizeof(out);
  CHECK(vkf_findings_get(findings.get(), input, index, &out, nullptr) == VKF_OK);
  return out;
}

ModelSource source_of(const char* folder) {
  return ModelSource::directory(kGolden + folder);
}

#define LOAD(c, folder, name)      \
  CTask c;                         \
  if (!have_test_device()) return; \
  REQUIRE_MESSAGE((c).load(folder, name) == VKF_OK, vkf_error_message((c).error.get()))

}  // namespace

TEST_SUITE("model") {
  TEST_CASE("C tasks: prompts hold pictures") {
    LOAD(c, "prompts-smolvlm", "generate");
    CHECK(std::string(vkf_task_picture_placeholder(c.task.get())) == "<image>");
    vkf_picture* loaded = nullptr;
    REQUIRE(vkf_picture_load((kGolden + "picture-0.png").c_str(), &loaded, c.error.get()) ==
            VKF_OK);
    const Owned<vkf_picture> picture{loaded, vkf_picture_free};
    const vkf_picture* const pictures[] = {picture.get()};
    const vkf_prompt prompt = {"<image>What is this?", pictures, 1};
    vkf_text_options options{};
    options.struct_size = sizeof(options);
    options.set = VKF_SET_BEAMS | VKF_SET_MAX_NEW_TOKENS;
    options.beams = 1;
    options.max_new_tokens = 8;
    const auto found = c.find([&](vkf_findings** out) {
      return vkf_task_generate_with_pictures(c.task.get(), &prompt, 1, &options, out,
                                             c.error.get());
    });
    const auto expected = testing::read_json(kGolden + "prompts-smolvlm/expected.json");
    CHECK(finding(found, 0, 0).text == expected["prompts"][0]["answer"].get<std::string>());
    vkf_findings* none = nullptr;
    const vkf_prompt wrong = {"a", nullptr, 1};
    CHECK(vkf_task_generate_with_pictures(c.task.get(), &wrong, 1, &options, &none,
                                          c.error.get()) == VKF_INVALID_ARGUMENT);
    LOAD(texts, "judge", "generate");
    CHECK(vkf_task_picture_placeholder(texts.task.get()) == nullptr);
    CHECK(vkf_task_picture_placeholder(nullptr) == nullptr);
  }

  TEST_CASE("C tasks: texts are spoken") {
    LOAD(c, "speak", "speak");
    vkf_speak_options options{};
    options.struct_size = sizeof(options);
    options.set = VKF_SPEAK_RATE | VKF_SPEAK_NOISE;
    options.speaking_rate = 0.75;
    options.noise = 0.25;
    options.seed = 9;
    vkf_sound* made = nullptr;
    REQUIRE_MESSAGE(vkf_task_speak(c.task.get(), "hello", &options, &made, c.error.get()) == VKF_OK,
                    vkf_error_message(c.error.get()));
    const Owned<vkf_sound> sound{made, vkf_sound_free};
    Result<Speaker> task = Speaker::load(*test_device(), source_of("speak"));
    REQUIRE(task.ok());
    SpeakOptions read;
    read.speaking_rate = 0.75;
    read.noise = 0.25;
    read.seed = 9;
    const std::string text = "hello";
    const auto wanted = task->speak({&text, 1}, read);
    REQUIRE(wanted.ok());
    const std::vector<float>& samples = (*wanted)[0].samples;
    REQUIRE(vkf_sound_count(sound.get()) == samples.size());
    CHECK(std::memcmp(vkf_sound_samples(sound.get()), samples.data(), 4 * samples.size()) == 0);
    CHECK(vkf_sound_sampling_rate(sound.get()) == 16000);
    CHECK(vkf_sound_save(sound.get(), "/", c.error.get()) == VKF_INVALID_ARGUMENT);
    options.set = 16;
    vkf_sound* none = nullptr;
    CHECK(vkf_task_speak(c.task.get(), "hello", &options, &none, c.error.get()) == VKF_UNSUPPORTED);
    options.set = VKF_SPEAK_SPEAKER;
    CHECK(vkf_task_speak(c.task.get(), "hello", &options, &none, c.error.get()) ==
          VKF_INVALID_ARGUMENT);
    CHECK(std::string(vkf_error_message(c.error.get())).find("[speaker_id]") != std::string::npos);
  }

  TEST_CASE("C tasks: documents are ranked") {
    LOAD(c, "rerank", "rerank");
    const std::vector<std::string> documents = {"hello", "a quick fox", "what is it"};
    std::vector<const char*> pointers;
    for (const std::string& document : documents) pointers.push_back(document.c_str());
    vkf_rerank_options options{};
    options.struct_size = sizeof(options);
    options.score = VKF_RERANK_LOGIT;
    options.top = 2;
    const auto found = c.find([&](vkf_findings** out) {
      return vkf_task_rerank(c.task.get(), "who", pointers.data(), pointers.size(), &options, out,
                             c.error.get());
    });
    Result<Reranker> task = Reranker::load(*test_device(), source_of("rerank"));
    REQUIRE(task.ok());
    RerankOptions read;
    read.top = 2;
    read.score = RerankOptions::Score::kLogit;
    const auto wanted = task->rank("who", documents, read);
    REQUIRE(wanted.ok());
    REQUIRE(vkf_findings_count(found.get(), 0) == 2);
    for (size_t i = 0; i < 2; ++i) {
      CHECK(finding(found, 0, i).index == (*wanted)[i].index);
      CHECK(finding(found, 0, i).score == (*wanted)[i].score);
    }
    options.instruction = "Find animals";
    vkf_findings* none = nullptr;
    CHECK(vkf_task_rerank(c.task.get(), "who", pointers.data(), pointers.size(), &options, &none,
                          c.error.get()) == VKF_INVALID_ARGUMENT);
    CHECK(std::string(vkf_error_message(c.error.get())).find("[instruction]") != std::string::npos);
    options.instruction = nullptr;
    options.score = 9;
    CHECK(vkf_task_rerank(c.task.get(), "who", pointers.data(), pointers.size(), &options, &none,
                          c.error.get()) == VKF_INVALID_ARGUMENT);
  }

  TEST_CASE("C tasks: texts are classified by labels of the caller") {
    LOAD(c, "zero-shot", "classify");
    const char* texts[] = {"a quick fox", "hello"};
    const char* labels[] = {"animals", "politics", "music"};
    vkf_zero_shot_options options{};
    options.struct_size = sizeof(options);
    options.multi_label = 1;
    options.labels = labels;
    options.label_count = 3;
    options.hypothesis = "It tells of {}";
    const auto found = c.find([&](vkf_findings** out) {
      return vkf_task_zero_shot(c.task.get(), texts, 2, &options, out, c.error.get());
    });
    Result<TextClassifier> task = TextClassifier::load(*test_device(), source_of("zero-shot"));
    REQUIRE(task.ok());
    const std::vector<std::string> inputs(std::begin(texts), std::end(texts));
    const std::vector<std::string> names(std::begin(labels), std::end(labels));
    const auto wanted = task->zero_shot(inputs, names, {"It tells of {}", true});
    REQUIRE(wanted.ok());
    for (size_t i = 0; i < 2; ++i) {
      REQUIRE(vkf_findings_count(found.get(), i) == 3);
      for (size_t k = 0; k < 3; ++k) {
        CHECK(finding(found, i, k).label == (*wanted)[i][k].label);
        CHECK(finding(found, i, k).score == (*wanted)[i][k].score);
      }
    }
  }

  TEST_CASE("C tasks: labels of texts") {
    LOAD(c, "labels", "classify");
    auto task = TextClassifier::load(*test_device(), source_of("labels"));
    REQUIRE(task);
    const std::vector<ClassifyInput> inputs = {{"a good day"}, {"one text", "and another"}};
    const vkf_text_pair pairs[] = {{"a good day", nullptr}, {"one text", "and another"}};
    const auto wanted = task->classify(inputs, 2);
    REQUIRE(wanted);
    const auto found = c.find([&](vkf_findings** out) {
      return vkf_task_classify(c.task.get(), pairs, 2, 2, out, c.error.get());
    });
    REQUIRE(vkf_findings_inputs(found.get()) == 2);
    for (size_t i = 0; i < 2; ++i) {
      REQUIRE(vkf_findings_count(found.get(), i) == (*wanted)[i].size());
      for (size_t k = 0; k < (*wanted)[i].size(); ++k) {
        const vkf_finding got = finding(found, i, k);
        CHECK(got.label == (*wanted)[i][k].label);
        CHECK(got.score == (*wanted)[i][k].score);
        CHECK(got.text == nullptr);
      }
    }
    vkf_findings* none = nullptr;
    CHECK(vkf_task_classify_pictures(c.task.get(), nullptr, 0, 1, &none, c.error.get()) ==
          VKF_INVALID_ARGUMENT);
    const vkf_text_pair hole{nullptr, nullptr};
    CHECK(vkf_task_classify(c.task.get(), &hole, 1, 1, &none, c.error.get()) ==
          VKF_INVALID_ARGUMENT);
    CHECK(vkf_task_classify(c.task.get(), nullptr, 3, 1, &none, c.error.get()) ==
          VKF_INVALID_ARGUMENT);
  }

  TEST_CASE("C tasks: entities") {
    LOAD(c, "entities", "classify");
    auto task = TextClassifier::load(*test_device(), source_of("entities"));
    REQUIRE(task);
    CHECK(vkf_task_finds_entities(c.task.get()) == 1);
    const std::vector<std::string> texts = {"Anna met Peter in Rome last week.", "Nobody."};
    const char* const pointers[] = {texts[0].c_str(), texts[1].c_str()};
    const auto wanted = task->entities(texts);
    REQUIRE(wanted);
    const auto found = c.find([&](vkf_findings** out) {
      return vkf_task_find_entities(c.task.get(), pointers, 2, out, c.error.get());
    });
    for (size_t i = 0; i < 2; ++i) {
      REQUIRE(vkf_findings_count(found.get(), i) == (*wanted)[i].size());
      for (size_t k = 0; k < (*wanted)[i].size(); ++k) {
        const vkf_finding got = finding(found, i, k);
        const Entity& entity = (*wanted)[i][k];
        CHECK(got.label == entity.label);
        CHECK(got.text == entity.text);
        CHECK(got.begin == entity.range.begin);
        CHECK(got.end == entity.range.end);
      }
    }
  }

  TEST_CASE("C tasks: entities of labels that are named") {
    LOAD(c, "named-entities", "classify");
    auto task = TextClassifier::load(*test_device(), source_of("named-entities"));
    REQUIRE(task);
    const std::vector<std::string> texts = {"Barack went to the U.S. in 2009", "hello"};
    const std::vector<std::string> names = {"person", "city"};
    const char* const pointers[] = {texts[0].c_str(), texts[1].c_str()};
    const char* const labels[] = {names[0].c_str(), names[1].c_str()};
    vkf_entity_options options{};
    options.struct_size = sizeof options;
    options.flags = VKF_ENTITY_NESTED | VKF_ENTITY_MULTI_LABEL;
    options.labels = labels;
    options.label_count = 2;
    for (const double threshold : {0.0, 0.25}) {
      options.threshold = threshold;
      const auto found = c.find([&](vkf_findings** out) {
        return vkf_task_zero_shot_entities(c.task.get(), pointers, 2, &options, out, c.error.get());
      });
      EntityOptions wishes;
      wishes.nested = wishes.multi_label = true;
      if (threshold > 0) wishes.threshold = threshold;
      const auto wanted = task->zero_shot_entities(texts, names, wishes);
      REQUIRE(wanted);
      for (size_t i = 0; i < 2; ++i) {
        REQUIRE(vkf_findings_count(found.get(), i) == (*wanted)[i].size());
        for (size_t k = 0; k < (*wanted)[i].size(); ++k) {
          const vkf_finding got = finding(found, i, k);
          CHECK(got.label == (*wanted)[i][k].label);
          CHECK(got.text == (*wanted)[i][k].text);
          CHECK(got.score == (*wanted)[i][k].score);
          CHECK(got.begin == (*wanted)[i][k].range.begin);
          CHECK(got.end == (*wanted)[i][k].range.end);
        }
      }
    }
    vkf_findings* none = nullptr;
    CHECK(vkf_task_zero_shot_entities(c.task.get(), pointers, 2, nullptr, &none, c.error.get()) ==
          VKF_INVALID_ARGUMENT);
    options.flags = 8;
    CHECK(vkf_task_zero_shot_entities(c.task.get(), pointers, 2, &options, &none, c.error.get()) ==
          VKF_UNSUPPORTED);
  }

  TEST_CASE("C tasks: answers") {
    LOAD(c, "answers", "answer");
    auto task = Answerer::load(*test_device(), source_of("answers"));
    REQUIRE(task);
    const char* context = "The river runs to the sea. The old bridge is made of stone.";
    const std::vector<Question> questions = {{"What is the bridge made of?", context}};
    const vkf_question asked{questions[0].question.c_str(), context};
    AnswerOptions options;
    options.top = 3;
    options.max_answer_tokens = 4;
    options.overlap = 0;
    vkf_answer_options same{};
    same.struct_size = sizeof(same);
    same.flags = VKF_ANSWER_OVERLAP;
    same.top = 3;
    same.max_answer_tokens = 4;
    const auto wanted = task->answer(questions, options);
    REQUIRE(wanted);
    const auto found = c.find([&](vkf_findings** out) {
      return vkf_task_answer(c.task.get(), &asked, 1, &same, out, c.error.get());
    });
    REQUIRE(vkf_findings_count(found.get(), 0) == (*wanted)[0].size());
    for (size_t k = 0; k < (*wanted)[0].size(); ++k) {
      const vkf_finding got = finding(found, 0, k);
      CHECK(got.text == (*wanted)[0][k].text);
      CHECK(got.score == (*wanted)[0][k].score);
      CHECK(got.begin == (*wanted)[0][k].range.begin);
    }
  }

  TEST_CASE("C tasks: gaps") {
    LOAD(c, "masks", "fill-mask");
    auto task = MaskFiller::load(*test_device(), source_of("masks"));
    REQUIRE(task);
    const std::string mask = task->mask_token();
    CHECK(vkf_task_mask_token(c.task.get()) == mask);
    const std::vector<std::string> texts = {"the " + mask + " is " + mask};
    const char* const pointer = texts[0].c_str();
    const auto wanted = task->fill(texts, 3);
    REQUIRE(wanted);
    const auto found = c.find([&](vkf_findings** out) {
      return vkf_task_fill(c.task.get(), &pointer, 1, 3, out, c.error.get());
    });
    REQUIRE(vkf_findings_count(found.get(), 0) == 6);
    for (size_t k = 0; k < 6; ++k) {
      const vkf_finding got = finding(found, 0, k);
      const MaskCandidate& candidate = (*wanted)[0][k / 3][k % 3];
      CHECK(got.gap == static_cast<int>(k / 3));
      CHECK(got.token == candidate.token);
      CHECK(got.label == candidate.token_text);
      CHECK(got.text == candidate.text);
    }
  }

  TEST_CASE("C tasks: embeddings") {
    LOAD(c, "embed", "embed");
    auto task = Embedder::load(*test_device(), source_of("embed"));
    REQUIRE(task);
    const std::vector<std::string> texts = {"one", "two words"};
    const char* const pointers[] = {"one", "two words"};
    EmbedOptions options;
    options.pooling = Pooling::kFirst;
    options.length = EmbedOptions::Length::kUnit;
    vkf_embed_options same{};
    same.struct_size = sizeof(same);
    same.pooling = VKF_POOL_FIRST;
    same.unit_length = 1;
    const auto wanted = task->embed(texts, options);
    REQUIRE(wanted);
    vkf_tensors* tensors = nullptr;
    vkf_tensor view{};
    view.struct_size = sizeof(view);
    REQUIRE(vkf_task_embed(c.task.get(), pointers, 2, &same, &tensors, c.error.get()) == VKF_OK);
    REQUIRE(vkf_tensors_get(tensors, "embeddings", &view, c.error.get()) == VKF_OK);
    REQUIRE(view.bytes == wanted->bytes.size());
    CHECK(std::memcmp(view.data, wanted->bytes.data(), view.bytes) == 0);
    vkf_tensors_free(tensors);
    same.pooling = 9;
    CHECK(vkf_task_embed(c.task.get(), pointers, 2, &same, &tensors, c.error.get()) ==
          VKF_INVALID_ARGUMENT);
    CHECK(tensors == nullptr);
  }

  TEST_CASE("C tasks: depths and masks") {
    LOAD(c, "depth", "depth");
    const std::string path = kGolden + "picture-0.png";
    vkf_picture* loaded = nullptr;
    REQUIRE(vkf_picture_load(path.c_str(), &loaded, c.error.get()) == VKF_OK);
    const Owned<vkf_picture> picture{loaded, vkf_picture_free};
    std::vector<Picture> pictures;
    pictures.push_back(std::move(Picture::load(path)).value());
    vkf_tensors* tensors = nullptr;
    vkf_tensor view{};
    view.struct_size = sizeof(view);
    REQUIRE(vkf_task_depth(c.task.get(), picture.get(), &tensors, c.error.get()) == VKF_OK);
    REQUIRE(vkf_tensors_get(tensors, "depth", &view, c.error.get()) == VKF_OK);
    auto estimator = DepthEstimator::load(*test_device(), source_of("depth"));
    REQUIRE(estimator);
    const std::vector<DepthMap> maps = estimator->estimate(pictures).value();
    REQUIRE(view.rank == 2);
    CHECK(view.shape[0] == maps[0].height);
    REQUIRE(view.bytes == 4 * maps[0].values.size());
    CHECK(std::memcmp(view.data, maps[0].values.data(), view.bytes) == 0);
    vkf_tensors_free(tensors);
    const vkf_prompt_point point = {4.0, 5.5, 0, 0};
    const double box[] = {2.0, 1.0, 14.0, 12.5};
    const vkf_mask_prompt prompt = {&point, 1, box};
    CHECK(vkf_task_segment(c.task.get(), picture.get(), &prompt, 1, 0, &tensors, c.error.get()) ==
          VKF_INVALID_ARGUMENT);
    CHECK(tensors == nullptr);

    REQUIRE(c.load("segments", "segment") == VKF_OK);
    REQUIRE(vkf_task_segment(c.task.get(), picture.get(), &prompt, 1, 0, &tensors, c.error.get()) ==
            VKF_OK);
    auto segmenter = Segmenter::load(*test_device(), source_of("segments"));
    REQUIRE(segmenter);
    const std::vector<MaskPrompt> prompts = {
        {.points = {{.x = 4.0, .y = 5.5}}, .box = PromptBox{2.0, 1.0, 14.0, 12.5}}};
    const auto masks = segmenter->segment(pictures[0], prompts, {.top = 0}).value();
    REQUIRE(vkf_tensors_get(tensors, "masks", &view, c.error.get()) == VKF_OK);
    REQUIRE(view.rank == 4);
    CHECK(view.shape[1] == 3);
    REQUIRE(view.bytes == 3 * masks[0][0].inside.size());
    CHECK(std::memcmp(view.data, masks[0][0].inside.data(), masks[0][0].inside.size()) == 0);
    float scores[3] = {};
    REQUIRE(vkf_tensors_get_floats(tensors, "scores", scores, 3, c.error.get()) == VKF_OK);
    CHECK(static_cast<double>(scores[2]) == doctest::Approx(masks[0][2].score));
    vkf_tensors_free(tensors);
    CHECK(vkf_task_segment(c.task.get(), picture.get(), nullptr, 1, 0, &tensors, c.error.get()) ==
          VKF_INVALID_ARGUMENT);
    CHECK(vkf_task_depth(c.task.get(), nullptr, &tensors, c.error.get()) == VKF_INVALID_ARGUMENT);
  }

  TEST_CASE("C tasks: translations with their languages") {
    LOAD(c, "translations", "generate");
    auto task = TextGenerator::load(*test_device(), source_of("translations"));
    REQUIRE(task);
    const std::vector<std::string> texts = {"hello"};
    const char* const pointer = "hello";
    TextOptions options;
    options.beams = 2;
    options.return_sequences = 2;
    options.max_new_tokens = 6;
    options.length_penalty = 0.5;
    vkf_text_options same{};
    same.struct_size = sizeof(same);
    same.set =
        VKF_SET_BEAMS | VKF_SET_RETURN_SEQUENCES | VKF_SET_MAX_NEW_TOKENS | VKF_SET_LENGTH_PENALTY;
    same.beams = same.return_sequences = 2;
    same.max_new_tokens = 6;
    same.length_penalty = 0.5;
    const auto wanted = task->generate(texts, options);
    const auto status = [&](vkf_findings** out) {
      return vkf_task_generate(c.task.get(), &pointer, 1, &same, out, c.error.get());
    };
    REQUIRE(wanted);
    const auto found = c.find(status);
    REQUIRE(vkf_findings_count(found.get(), 0) == 2);
    for (size_t k = 0; k < 2; ++k) {
      const vkf_finding got = finding(found, 0, k);
      CHECK(got.text == (*wanted)[0][k].text);
      CHECK(got.score == (*wanted)[0][k].score);
      CHECK(std::vector<int64_t>(got.ids.ids, got.ids.ids + got.ids.count) == (*wanted)[0][k].ids);
    }
    same.target_language = "no such language";
    vkf_findings* none = nullptr;
    CHECK(status(&none) != VKF_OK);
    CHECK(std::strstr(vkf_error_message(c.error.get()), "no such language") != nullptr);
  }

  TEST_CASE("C tasks: pictures and sounds") {
    CTask c;
    if (!have_test_device()) return;
    const std::string path = kGolden + "picture-0.png";
    const std::string wav = kGolden + "sound-0.wav";
    vkf_picture* picture = nullptr;
    vkf_sound* sound = nullptr;
    REQUIRE(vkf_picture_load(path.c_str(), &picture, nullptr) == VKF_OK);
    REQUIRE(vkf_sound_load(wav.c_str(), 0, &sound, nullptr) == VKF_OK);
    const Owned<vkf_picture> own_picture(picture, vkf_picture_free);
    const Owned<vkf_sound> own_sound(sound, vkf_sound_free);
    std::vector<Picture> pictures;
    pictures.push_back(std::move(Picture::load(path)).value());
    const std::vector<Sound> sounds = {load_wav(wav).value()};

    REQUIRE(c.load("picture-labels", "classify") == VKF_OK);
    auto labels = PictureClassifier::load(*test_device(), source_of("picture-labels"));
    REQUIRE(labels);
    auto found = c.find([&](vkf_findings** out) {
      return vkf_task_classify_pictures(c.task.get(), &picture, 1, 1, out, c.error.get());
    });
    CHECK(finding(found, 0, 0).label == labels->classify(pictures, 1).value()[0][0].label);

    REQUIRE(c.load("captions", "caption") == VKF_OK);
    auto captions = Captioner::load(*test_device(), source_of("captions"));
    REQUIRE(captions);
    found = c.find([&](vkf_findings** out) {
      return vkf_task_caption(c.task.get(), &picture, 1, nullptr, out, c.error.get());
    });
    CHECK(finding(found, 0, 0).text == captions->caption(pictures).value()[0]);

    REQUIRE(c.load("speech", "transcribe") == VKF_OK);
    auto speech = Transcriber::load(*test_device(), source_of("speech"));
    REQUIRE(speech);
    TranscribeOptions options;
    options.max_new_tokens = 5;
    vkf_transcribe_options same{};
    same.struct_size = sizeof(same);
    same.set = VKF_SET_MAX_NEW_TOKENS;
    same.max_new_tokens = 5;
    found = c.find([&](vkf_findings** out) {
      return vkf_task_transcribe(c.task.get(), &sound, 1, &same, out, c.error.get());
    });
    CHECK(finding(found, 0, 0).text == speech->transcribe(sounds, options).value()[0]);

    REQUIRE(c.load("ctc", "transcribe") == VKF_OK);
    auto frames = Transcriber::load(*test_device(), source_of("ctc"));
    REQUIRE(frames);
    const Transcript heard = frames->transcribe_words(sounds).value()[0];
    same.set = 0;
    same.words = 1;
    found = c.find([&](vkf_findings** out) {
      return vkf_task_transcribe(c.task.get(), &sound, 1, &same, out, c.error.get());
    });
    REQUIRE(vkf_findings_count(found.get(), 0) == 1 + heard.words.size());
    CHECK(finding(found, 0, 0).text == heard.text);
    for (size_t i = 0; i < heard.words.size(); ++i) {
      CHECK(finding(found, 0, i + 1).text == heard.words[i].text);
      CHECK(finding(found, 0, i + 1).begin_seconds == heard.words[i].begin);
      CHECK(finding(found, 0, i + 1).end_seconds == heard.words[i].end);
    }
  }

  TEST_CASE("C: texts that are drawn, stopped, followed and kept to a grammar") {
    LOAD(c, "../../../models/shakespeare", "generate");
    const char* prompt = "ROMEO:\n";
    vkf_choice_options choice{};
    choice.struct_size = sizeof(choice);
    choice.set = VKF_CHOICE_TEMPERATURE | VKF_CHOICE_SEED | VKF_CHOICE_TOP_K;
    choice.temperature = 0.8;
    choice.seed = 11;
    vkf_text_options options{};
    options.struct_size = sizeof(options);
    options.set = VKF_SET_MAX_NEW_TOKENS;
    options.max_new_tokens = 30;
    options.choice = &choice;
    const auto text = [&] {
      const auto found = c.find([&](vkf_findings** out) {
        return vkf_task_generate(c.task.get(), &prompt, 1, &options, out, c.error.get());
      });
      return std::string(finding(found, 0, 0).text);
    };
    const std::string once = text();
    CHECK(once == text());
    choice.seed = 12;
    CHECK(once != text());
    choice.seed = 11;
    std::string seen;
    options.on_text_user = &seen;
    options.on_text = [](void* user, size_t, size_t, const char* piece) -> vkf_verdict {
      *static_cast<std::string*>(user) += piece;
      return VKF_GO_ON;
    };
    CHECK(text() == once);
    CHECK(seen == once);
    const std::string stop = once.substr(10, 3);
    const char* stops[] = {stop.c_str()};
    options.stop = stops;
    options.stop_count = 1;
    CHECK(text() == once.substr(0, once.find(stop)));
    options.stop_count = 0;
    options.on_text = [](void*, size_t, size_t, const char*) -> vkf_verdict {
      return VKF_CANCEL_GENERATION;
    };
    vkf_findings* found = nullptr;
    CHECK(vkf_task_generate(c.task.get(), &prompt, 1, &options, &found, nullptr) == VKF_CANCELLED);
    CHECK(found == nullptr);
    options.on_text = nullptr;
    vkf_grammar* grammar = nullptr;
    REQUIRE(vkf_grammar_from_gbnf("root ::= [a-c]+ \".\"", nullptr, &grammar, nullptr) == VKF_OK);
    options.grammar = grammar;
    int32_t matches = 0;
    CHECK(vkf_grammar_matches(grammar, text().c_str(), &matches, nullptr) == VKF_OK);
    CHECK(matches == 1);
    vkf_grammar_free(grammar);
    CHECK(vkf_grammar_from_json_schema("{\"type\": \"colour\"}", &grammar, c.error.get()) !=
          VKF_OK);
    CHECK(std::string(vkf_error_message(c.error.get())).find("type") != std::string::npos);
  }

  TEST_CASE("C: a chat template") {
    vkf_chat_template* chat = nullptr;
    REQUIRE(
        vkf_chat_template_parse("{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}"
                                "{% if add_generation_prompt %}<assistant>{% endif %}",
                                nullptr, &chat, nullptr) == VKF_OK);
    const vkf_message messages[] = {{"system", "Be brief."}, {"user", "Hello"}};
    vkf_bytes* text = nullptr;
    REQUIRE(vkf_chat_template_render(chat, messages, 2, &text, nullptr) == VKF_OK);
    CHECK(std::string(vkf_bytes_text(text)) == "<system>Be brief.<user>Hello<assistant>");
    vkf_bytes_free(text);
    vkf_chat_template_free(chat);
    CHECK(vkf_chat_template_parse("{% if %}", nullptr, &chat, nullptr) != VKF_OK);
  }
}
