// Tasks: options, limits and what they refuse.
#include "tasks/task_cases.h"

namespace vkformer::testing {
namespace {

template <class T>
void check_error(const Result<T>& result, ErrorCode code, const std::vector<std::string>& parts) {
  REQUIRE_FALSE(result.ok());
  CAPTURE(result.error().message);
  CHECK(result.error().code == code);
  for (const std::string& part : parts) {
    CHECK_MESSAGE(test::contains(result.error().message, part), part);
  }
}

template <class T>
Result<T> try_golden(const std::string& name) {
  return T::load(*test_device(), ModelSource::directory(task_path(name)));
}

std::vector<float> embed_one(Embedder& task, const std::string& text,
                             const EmbedOptions& options = {}) {
  return value_of(value_of(task.embed({&text, 1}, options)).to_floats());
}

double length_of(const std::vector<float>& vector) {
  double sum = 0;
  for (float value : vector) sum += static_cast<double>(value) * static_cast<double>(value);
  return std::sqrt(sum);
}

Sound golden_sound(const std::string& file) {
  return value_of(load_wav(task_path(file)));
}

TEST_SUITE("model") {
  TEST_CASE("a model that cannot do a task says what it can") {
    if (!have_test_device()) return;
    check_error(try_golden<Answerer>("labels"), ErrorCode::kUnsupported,
                {"[answer]", "BertForSequenceClassification", "embed, classify"});
    check_error(try_golden<Embedder>("picture-labels"), ErrorCode::kUnsupported,
                {"[embed]", "pictures", "classify"});
    check_error(try_golden<TextClassifier>("picture-labels"), ErrorCode::kUnsupported,
                {"PictureClassifier"});
    check_error(try_golden<PictureClassifier>("labels"), ErrorCode::kUnsupported,
                {"TextClassifier"});
    check_error(try_golden<TextGenerator>("embed"), ErrorCode::kUnsupported, {"[generate]"});
    check_error(try_golden<Transcriber>("captions"), ErrorCode::kUnsupported,
                {"[transcribe]", "caption"});
    check_error(try_golden<Embedder>("nothing"), ErrorCode::kNotFound, {"config.json"});
    auto entities = load_golden<TextClassifier>("entities");
    const ClassifyInput input = {"hello"};
    check_error(entities.classify({&input, 1}), ErrorCode::kUnsupported, {"entities"});
  }

  TEST_CASE("too long a text is an error or is cut") {
    if (!have_test_device()) return;
    std::string text = "hello";
    for (int i = 0; i < 120; ++i) text += " hello";
    const std::string texts[] = {"hello", text};
    auto strict = load_golden<Embedder>("embed");
    check_error(strict.embed(texts), ErrorCode::kInvalidArgument, {"[text 2]", "96"});
    TaskOptions options;
    options.long_text = LongText::kTruncate;
    auto cutting = load_task<Embedder>(task_path("embed"), options);
    CHECK(value_of(cutting.embed(texts)).shape == Shape{2, 32});
    options.batch = 0;
    check_error(Embedder::load(*test_device(), ModelSource::directory(task_path("embed")), options),
                ErrorCode::kInvalidArgument, {"[batch]", "0"});
  }

  TEST_CASE("sentence files decide pooling, length and the longest text") {
    if (!have_test_device()) return;
    const TaskCopy copy("embed");
    std::filesystem::create_directory(copy.folder.file("1_Pooling"));
    copy.folder.write("modules.json",
                      R"([{"path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
                          {"path": "2", "type": "sentence_transformers.models.Normalize"}])");
    copy.change("1_Pooling/config.json", "pooling_mode_cls_token", true);
    copy.change("sentence_bert_config.json", "max_seq_length", 12);
    auto own = load_task<Embedder>(copy.folder.path());
    auto plain = load_golden<Embedder>("embed");
    EmbedOptions first;
    first.pooling = Pooling::kFirst;
    std::vector<float> wanted = embed_one(plain, "a small model", first);
    const double length = length_of(wanted);
    const std::vector<float> vector = embed_one(own, "a small model");
    CHECK(length_of(vector) == doctest::Approx(1.0));
    REQUIRE(vector.size() == wanted.size());
    for (size_t i = 0; i < wanted.size(); ++i) {
      const double unit = static_cast<double>(wanted[i]) / length;
      CHECK(std::abs(static_cast<double>(vector[i]) - unit) < 1e-5);
    }
    const std::string longer = "the quick brown fox jumps over the lazy dog in france";
    check_error(own.embed({&longer, 1}), ErrorCode::kInvalidArgument, {"12"});
    first.length = EmbedOptions::Length::kUnit;
    CHECK(length_of(embed_one(plain, "hello", first)) == doctest::Approx(1.0));
  }

  TEST_CASE("regression hands out the logit, unknown problem types are refused") {
    if (!have_test_device()) return;
    const TaskCopy copy("labels");
    const ClassifyInput input = {"hello"};
    copy.change("config.json", "problem_type", "regression");
    auto raw = load_task<TextClassifier>(copy.folder.path());
    auto soft = load_golden<TextClassifier>("labels");
    const auto logits = value_of(raw.classify({&input, 1}))[0];
    const auto scores = value_of(soft.classify({&input, 1}))[0];
    CHECK(std::exp(logits[0].score - logits[1].score) ==
          doctest::Approx(scores[0].score / scores[1].score));
    copy.change("config.json", "problem_type", "guessing");
    auto odd = load_task<TextClassifier>(copy.folder.path());
    check_error(odd.classify({&input, 1}), ErrorCode::kUnsupported, {"[problem_type]", "guessing"});
  }

  TEST_CASE("texts without a mask and masks of other names") {
    if (!have_test_device()) return;
    auto task = load_golden<MaskFiller>("masks");
    const std::string text = "nothing to fill";
    check_error(task.fill({&text, 1}), ErrorCode::kInvalidArgument, {"[text 1]", "[MASK]"});
    const TaskCopy copy("masks");
    copy.change("tokenizer_config.json", "mask_token", "<gap>");
    check_error(MaskFiller::load(*test_device(), ModelSource::directory(copy.folder.path())),
                ErrorCode::kInvalidFile, {"[mask_token]", "<gap>"});
    copy.change("tokenizer_config.json", "mask_token", {{"content", "[MASK]"}});
    CHECK(load_task<MaskFiller>(copy.folder.path()).mask_token() == "[MASK]");
  }

  TEST_CASE("questions that fit no window") {
    if (!have_test_device()) return;
    auto task = load_golden<Answerer>("answers");
    std::vector<Question> questions = {{"what is it", "a fox"}, {"what is it", ""}};
    check_error(task.answer(questions), ErrorCode::kInvalidArgument, {"[question 2]", "[context]"});
    questions.pop_back();
    AnswerOptions options;
    options.window = 97;
    check_error(task.answer(questions, options), ErrorCode::kInvalidArgument, {"97", "96"});
    options = {};
    options.top = 0;
    check_error(task.answer(questions, options), ErrorCode::kInvalidArgument, {"top is 0"});
    options.top = 3;
    options.max_answer_tokens = 1;
    const auto answers = value_of(task.answer(questions, options));
    CHECK(answers[0].size() == 2);  // two words, one token or more each
  }

  TEST_CASE("prompts: defaults, empty texts and limits") {
    if (!have_test_device()) return;
    auto task = load_golden<TextGenerator>("texts", 3);
    const std::string texts[] = {"hello", "hi", "The quick brown fox"};
    TextOptions options;
    options.max_new_tokens = 5;
    options.beams = 2;
    options.return_sequences = 2;
    const auto found = value_of(task.generate(texts, options));
    CHECK(found[0].size() == 2);
    check_error(task.generate(std::vector<std::string>{"hello", ""}, options),
                ErrorCode::kInvalidArgument, {"[text 2] is empty"});
    CHECK(found[2][0].score >= found[2][1].score);
    options.max_new_tokens = 93;
    check_error(task.generate(texts, options), ErrorCode::kInvalidArgument,
                {"[text 3]", "93", "96"});
    options = {};
    options.task = "sing";
    check_error(task.generate(texts, options), ErrorCode::kInvalidArgument, {"[task]", "sing"});
    options = {};
    options.target_language = "de";
    check_error(task.generate(texts, options), ErrorCode::kInvalidArgument, {"language"});
    // A prompt that leaves little room ends where the model's positions do.
    const auto all = value_of(task.generate(texts, {}));
    for (size_t i : {size_t{0}, size_t{2}}) {
      REQUIRE(all[i].size() == 1);
      CHECK(all[i][0].ids.size() <= 96);
      const auto alone = value_of(task.generate({&texts[i], 1}, {}));
      CHECK(alone[0][0].ids == all[i][0].ids);
    }
  }

  TEST_CASE("languages are tokens that the source begins with and the target is forced to") {
    if (!have_test_device()) return;
    const TaskCopy copy("translations");
    Json tokenizer = read_json(copy.folder.file("tokenizer.json"));
    const auto id_of = [&](const char* content) {
      const size_t id = tokenizer["model"]["vocab"].size() - 1;
      return std::pair<std::string, size_t>(content, id);
    };
    // The last two pieces of the vocabulary become languages.
    Json& vocab = tokenizer["model"]["vocab"];
    const auto [target, target_id] = id_of("__de__");
    vocab[target_id][0] = target;
    vocab[target_id - 1][0] = "__fr__";
    vocab[target_id - 2][0] = "__en__";
    for (size_t id : {target_id - 2, target_id - 1, target_id}) {
      Json token = tokenizer["added_tokens"][0];
      token["id"] = id;
      token["content"] = vocab[id][0];
      tokenizer["added_tokens"].push_back(token);
    }
    Json& template_json = tokenizer["post_processor"];
    const Json piece = {{"SpecialToken", {{"id", "__en__"}, {"type_id", 0}}}};
    template_json["single"].insert(template_json["single"].begin(), piece);
    template_json["special_tokens"]["__en__"] = {
        {"id", "__en__"}, {"ids", {target_id - 2}}, {"tokens", {"__en__"}}};
    copy.folder.write("tokenizer.json", tokenizer.dump());
    auto task = load_task<TextGenerator>(copy.folder.path());
    const std::string text = "The quick brown fox";
    TextOptions options;
    options.max_new_tokens = 6;
    options.target_language = "de";
    const auto english = value_of(task.generate({&text, 1}, options));
    REQUIRE_FALSE(english[0].empty());
    CHECK(english[0][0].ids[0] == static_cast<int64_t>(target_id));
    options.source_language = "__fr__";
    const auto french = value_of(task.generate({&text, 1}, options));
    CHECK(french[0][0].score != english[0][0].score);
    options.source_language = "en";
    CHECK(value_of(task.generate({&text, 1}, options))[0][0].ids == english[0][0].ids);
    options.source_language = "xx";
    check_error(task.generate({&text, 1}, options), ErrorCode::kInvalidArgument, {"xx"});
    auto plain = load_golden<TextGenerator>("translations");
    options.target_language = "";
    options.source_language = "hello";
    check_error(plain.generate({&text, 1}, options), ErrorCode::kInvalidArgument, {"hello"});
  }

  TEST_CASE("a long recording is cut where it is quiet") {
    if (!have_test_device()) return;
    auto task = load_golden<Transcriber>("speech");
    const Sound loud = golden_sound("sound-1.wav");
    // 0.8 s of sound and 0.1 s of silence, then more sound: the cut is in the silence.
    Sound first = loud;
    first.samples.resize(12800);
    Sound second = golden_sound("sound-0.wav");
    Sound both = first;
    both.samples.resize(14400, 0.0f);
    both.samples.insert(both.samples.end(), second.samples.begin(), second.samples.end());
    first.samples.resize(13600, 0.0f);
    second.samples.insert(second.samples.begin(), 800, 0.0f);
    TranscribeOptions options;
    options.language = "en";
    options.max_new_tokens = 6;
    const Sound sounds[] = {first, second, both, Sound{}};
    const auto texts = value_of(task.transcribe(sounds, options));
    std::string joined = texts[0];
    if (!texts[1].empty()) joined += texts[1];
    std::string heard = texts[2];
    std::erase(heard, ' ');
    std::erase(joined, ' ');
    CHECK(heard == joined);
    CHECK(texts[3].empty());
    options.language = "xx";
    check_error(task.transcribe(sounds, options), ErrorCode::kInvalidArgument,
                {"[language]", "<|xx|>", "<|de|>"});
  }

  TEST_CASE("a head of frames has windows with times, and no settings of a decoder") {
    if (!have_test_device()) return;
    auto task = load_golden<Transcriber>("ctc");
    // 31 seconds: a second window begins where it is quiet, and its words later.
    Sound sound = golden_sound("sound-1.wav");
    const std::vector<float> once = sound.samples;
    sound.samples.resize(30 * 16000, 0.0f);
    sound.samples.insert(sound.samples.end(), once.begin(), once.end());
    const auto heard = value_of(task.transcribe_words({&sound, 1}));
    REQUIRE(heard.size() == 1);
    CHECK(heard[0].words.back().end > 30.0);
    CHECK(heard[0].words.back().end <= 31.0);
    TranscribeOptions options;
    options.beams = 2;
    check_error(task.transcribe({&sound, 1}, options), ErrorCode::kInvalidArgument, {"[beams]"});
    options = {};
    options.language = "en";
    check_error(task.transcribe({&sound, 1}, options), ErrorCode::kInvalidArgument,
                {"[language]", "Wav2Vec2ForCTC"});
    auto whisper = load_golden<Transcriber>("speech");
    check_error(whisper.transcribe_words({&sound, 1}), ErrorCode::kUnsupported, {"[words]"});
  }

  TEST_CASE("a CTC vocabulary is what the model's files say") {
    if (!have_test_device()) return;
    const TaskCopy copy("ctc");
    const Sound sound = golden_sound("sound-2.wav");
    const auto before = value_of(load_golden<Transcriber>("ctc").transcribe({&sound, 1}));
    copy.change("tokenizer_config.json", "do_lower_case", true);
    copy.change("tokenizer_config.json", "replace_word_delimiter_char", "-");
    std::string wanted = before[0];
    for (char& c : wanted) c = c == ' ' ? '-' : static_cast<char>(std::tolower(c));
    auto changed = load_task<Transcriber>(copy.folder.path());
    CHECK(value_of(changed.transcribe({&sound, 1}))[0].find(wanted) != std::string::npos);
    copy.folder.write("vocab.json", "[]");
    check_error(Transcriber::load(*test_device(), ModelSource::directory(copy.folder.path())),
                ErrorCode::kInvalidFile, {"vocab.json"});
  }

  TEST_CASE("no inputs give no answers") {
    if (!have_test_device()) return;
    auto embedder = load_golden<Embedder>("embed");
    CHECK(value_of(embedder.embed({})).shape == Shape{0, 32});
    auto transcriber = load_golden<Transcriber>("speech");
    CHECK(value_of(transcriber.transcribe({})).empty());
    auto generator = load_golden<TextGenerator>("texts");
    CHECK(value_of(generator.generate({})).empty());
  }
}

}  // namespace
}  // namespace vkformer::testing
