// What sentence-transformers' modules make of a model's states, compared with plain loops in double
// over the states that the model gives without them.
#include <cmath>
#include <random>

#include "tasks/task_cases.h"
#include "vkformer/session.h"
#include "vkformer/tokenizer.h"

namespace vkformer::testing {
namespace {

using Vector = std::vector<double>;
using States = std::vector<Vector>;  // (S)(D), of real tokens

const std::vector<std::string> kTexts = {"hello", "the quick brown fox jumps over the lazy dog",
                                         "a small model in france"};

// States of each text alone.
std::vector<States> states_of(const std::string& golden, const std::vector<std::string>& texts) {
  const auto tokenizer = value_of(Tokenizer::load(task_path(golden)));
  const auto model = value_of(Model::load(*test_device(), task_path(golden)));
  auto session = value_of(Session::create(model));
  std::vector<States> all;
  for (const std::string& text : texts) {
    const Encoding encoding = value_of(tokenizer.encode(text));
    const auto tokens = static_cast<int64_t>(encoding.ids.size());
    const TensorMap inputs{{"input_ids", Tensor::from_ints({1, tokens}, encoding.ids)}};
    const TensorMap outputs = value_of(session.run(inputs));
    const Tensor& states = outputs.at("last_hidden_state");
    const std::vector<float> values = value_of(states.to_floats());
    const auto width = static_cast<size_t>(states.shape[2]);
    States rows;
    for (size_t t = 0; t < encoding.ids.size(); ++t) {
      const auto row = values.begin() + static_cast<ptrdiff_t>(t * width);
      rows.emplace_back(row, row + static_cast<ptrdiff_t>(width));
    }
    all.push_back(std::move(rows));
  }
  return all;
}

// `from`: the first token that counts, but for cls.
Vector pooled(const States& states, const std::string& mode, size_t from = 0) {
  if (mode == "cls") return states.front();
  if (mode == "lasttoken") return states.back();
  Vector sum(states[0].size(), mode == "max" ? -INFINITY : 0.0);
  double weights = 0;
  for (size_t t = from; t < states.size(); ++t) {
    const double weight = mode == "weightedmean" ? static_cast<double>(t + 1) : 1.0;
    weights += weight;
    for (size_t d = 0; d < sum.size(); ++d) {
      sum[d] = mode == "max" ? std::max(sum[d], states[t][d]) : sum[d] + weight * states[t][d];
    }
  }
  const double divisor = mode == "max"                    ? 1.0
                         : mode == "mean_sqrt_len_tokens" ? std::sqrt(weights)
                                                          : weights;
  for (double& value : sum) value /= divisor;
  return sum;
}

Vector unit(Vector x) {
  double squares = 0;
  for (const double value : x) squares += value * value;
  for (double& value : x) value /= std::sqrt(squares);
  return x;
}

struct Dense {
  int64_t in = 0, out = 0;
  bool bias = true;
  std::string activation = "torch.nn.modules.activation.Tanh";
  std::vector<float> weight, shift;

  Dense(int64_t in_features, int64_t out_features, uint32_t seed)
      : in(in_features), out(out_features) {
    std::mt19937 random(seed);
    std::normal_distribution<float> normal(0.0f, 0.3f);
    weight.resize(static_cast<size_t>(in * out));
    shift.resize(static_cast<size_t>(out));
    for (float& value : weight) value = normal(random);
    for (float& value : shift) value = normal(random);
  }
  Vector of(const Vector& x) const {
    REQUIRE(static_cast<int64_t>(x.size()) == in);
    Vector y(static_cast<size_t>(out));
    for (size_t i = 0; i < y.size(); ++i) {
      y[i] = bias ? static_cast<double>(shift[i]) : 0.0;
      for (size_t k = 0; k < x.size(); ++k) {
        y[i] += static_cast<double>(weight[i * x.size() + k]) * x[k];
      }
      if (activation.ends_with("Tanh")) y[i] = std::tanh(y[i]);
    }
    return y;
  }
  void write(const TaskCopy& copy, const std::string& module) const {
    std::filesystem::create_directory(copy.folder.file(module));
    copy.folder.write(module + "/config.json", Json({{"in_features", in},
                                                     {"out_features", out},
                                                     {"bias", bias},
                                                     {"activation_function", activation}})
                                                   .dump());
    TensorMap tensors{{"linear.weight", Tensor::from_floats({out, in}, weight)}};
    if (bias) tensors["linear.bias"] = Tensor::from_floats({out}, shift);
    const Status written =
        write_tensor_file(copy.folder.file(module + "/model.safetensors"), tensors);
    REQUIRE_MESSAGE(written.ok(), written.error().message);
  }
};

// Writes modules.json with the model, the pooling and `rest`: types by folder.
void write_modules(const TaskCopy& copy, const Json& pooling,
                   const std::vector<std::pair<std::string, std::string>>& rest = {}) {
  Json modules = Json::array();
  const auto add = [&](const std::string& path, const std::string& type) {
    modules.push_back({{"path", path}, {"type", "sentence_transformers.models." + type}});
  };
  add("", "Transformer");
  add("1_Pooling", "Pooling");
  for (const auto& [path, type] : rest) add(path, type);
  copy.folder.write("modules.json", modules.dump());
  std::filesystem::create_directory(copy.folder.file("1_Pooling"));
  copy.folder.write("1_Pooling/config.json", pooling.dump());
}

std::vector<Vector> rows_of(const Tensor& made) {
  const std::vector<float> values = value_of(made.to_floats());
  const auto width = static_cast<size_t>(made.shape[1]);
  std::vector<Vector> rows(values.size() / width, Vector(width));
  for (size_t i = 0; i < values.size(); ++i) {
    rows[i / width][i % width] = static_cast<double>(values[i]);
  }
  return rows;
}

void check_vectors(const Tensor& made, const std::vector<Vector>& wanted) {
  REQUIRE(made.shape ==
          Shape{static_cast<int64_t>(wanted.size()), static_cast<int64_t>(wanted[0].size())});
  const std::vector<float> values = value_of(made.to_floats());
  for (size_t i = 0; i < values.size(); ++i) {
    const double right = wanted[i / wanted[0].size()][i % wanted[0].size()];
    CAPTURE(i);
    REQUIRE(std::abs(static_cast<double>(values[i]) - right) < 2e-5 * (1.0 + std::abs(right)));
  }
}

constexpr const char* kModes[][2] = {{"pooling_mode_cls_token", "cls"},
                                     {"pooling_mode_max_tokens", "max"},
                                     {"pooling_mode_mean_tokens", "mean"},
                                     {"pooling_mode_mean_sqrt_len_tokens", "mean_sqrt_len_tokens"},
                                     {"pooling_mode_weightedmean_tokens", "weightedmean"},
                                     {"pooling_mode_lasttoken", "lasttoken"}};

void check_refused(const TaskCopy& copy, ErrorCode code, const std::vector<std::string>& parts) {
  const auto task = Embedder::load(*test_device(), ModelSource::directory(copy.folder.path()));
  REQUIRE_FALSE(task.ok());
  CAPTURE(task.error().message);
  CHECK(task.error().code == code);
  for (const std::string& part : parts) CHECK(test::contains(task.error().message, part));
}

}  // namespace

TEST_SUITE("model") {
  TEST_CASE("sentences: every way to pool, alone and joined, by both spellings") {
    if (!have_test_device()) return;
    const std::vector<States> states = states_of("embed", kTexts);
    const TaskCopy copy("embed");
    Json all;
    std::vector<Vector> joined(states.size());
    for (const auto& [key, mode] : kModes) {
      CAPTURE(mode);
      std::vector<Vector> wanted;
      for (const States& text : states) wanted.push_back(pooled(text, mode));
      for (size_t i = 0; i < wanted.size(); ++i) {
        joined[i].insert(joined[i].end(), wanted[i].begin(), wanted[i].end());
      }
      all[key] = true;
      write_modules(copy, {{key, true}});
      auto by_key = load_task<Embedder>(copy.folder.path());
      CHECK(by_key.info().head == HeadKind::kSentence);
      check_vectors(value_of(by_key.embed(kTexts)), wanted);
      write_modules(copy, {{"pooling_mode", mode}}, {{"2_Normalize", "Normalize"}});
      auto by_name = load_task<Embedder>(copy.folder.path());
      for (Vector& vector : wanted) vector = unit(vector);
      check_vectors(value_of(by_name.embed(kTexts)), wanted);
    }
    write_modules(copy, all);
    auto every = load_task<Embedder>(copy.folder.path());
    check_vectors(value_of(every.embed(kTexts)), joined);
  }

  TEST_CASE("sentences: a decoder's last token, with a head in config.json but not in the file") {
    if (!have_test_device()) return;
    const Json expected = task_expected("embed-last");
    const std::vector<std::string> texts = strings(expected["texts"]);
    for (const int batch : {1, 4, 32}) {
      auto task = load_golden<Embedder>("embed-last", batch);
      CHECK(task.info().head == HeadKind::kSentence);
      for (const auto& [name, vectors] : expected["vectors"].items()) {
        EmbedOptions options;
        if (!name.empty()) options.prompt_name = name;
        check_vectors(value_of(task.embed(texts, options)), vectors.get<std::vector<Vector>>());
      }
    }
    const auto model = value_of(Model::load(*test_device(), task_path("embed-last")));
    auto session = value_of(Session::create(model));
    const TensorMap inputs{{"input_ids", Tensor::from_ints({1, 3}, std::vector<int64_t>{7, 8, 9})}};
    const TensorMap outputs = value_of(session.run(inputs));
    CHECK(outputs.count("sentence_embedding") == 1);
    CHECK(outputs.count("logits") == 0);
  }

  TEST_CASE("sentences: vectors are cut to their first values, and stored as bytes and signs") {
    if (!have_test_device()) return;
    auto task = load_golden<Embedder>("embed-last", 4);  // its vectors have length 1
    const auto whole = rows_of(value_of(task.embed(kTexts)));
    EmbedOptions options;
    options.dimensions = 8;
    const auto cut = rows_of(value_of(task.embed(kTexts, options)));
    options.values = VectorValues::kInt8;
    const Tensor bytes = value_of(task.embed(kTexts, options));
    options.values = VectorValues::kBinary;
    const Tensor signs = value_of(task.embed(kTexts, options));
    const auto rows = static_cast<int64_t>(kTexts.size());
    CHECK(bytes.dtype == DType::kI8);
    CHECK(bytes.shape == Shape{rows, 8});
    CHECK(signs.dtype == DType::kU8);
    CHECK(signs.shape == Shape{rows, 1});
    for (size_t row = 0; row < kTexts.size(); ++row) {
      const Vector first(whole[row].begin(), whole[row].begin() + 8);
      const Vector wanted = unit(first);
      double largest = 0;
      for (const double value : cut[row]) largest = std::max(largest, std::fabs(value));
      for (size_t i = 0; i < 8; ++i) {
        CHECK(cut[row][i] == doctest::Approx(wanted[i]).epsilon(1e-5));
        const auto stored = static_cast<int8_t>(bytes.bytes[row * 8 + i]);
        CHECK(std::fabs(stored - cut[row][i] / largest * 127) <= 0.5 + 1e-4);
        const auto packed = std::to_integer<unsigned>(signs.bytes[row]);
        CHECK((packed >> (7 - i) & 1u) == (cut[row][i] > 0 ? 1u : 0u));
      }
    }
    for (const int dimensions : {-1, 100'000, 12}) {
      options.dimensions = dimensions;
      const auto refused = task.embed(kTexts, options);
      REQUIRE_FALSE(refused.ok());
      CHECK(refused.error().code == ErrorCode::kInvalidArgument);
      CHECK(refused.error().message.find(std::to_string(dimensions)) != std::string::npos);
    }
    options = {};
    CHECK(value_of(task.embed({}, options)).shape[0] == 0);
  }

  TEST_CASE("sentences: dense layers behind the pooling, with lengths of 1 before or after") {
    if (!have_test_device()) return;
    const std::vector<States> states = states_of("embed", kTexts);
    const TaskCopy copy("embed");
    const Dense first(64, 20, 1);
    Dense second(20, 7, 2);
    second.bias = false;
    second.activation = "torch.nn.modules.linear.Identity";
    first.write(copy, "2_Dense");
    second.write(copy, "4_Dense");
    write_modules(copy, {{"pooling_mode_max_tokens", true}, {"pooling_mode_lasttoken", true}},
                  {{"2_Dense", "Dense"},
                   {"3_Normalize", "Normalize"},
                   {"4_Dense", "Dense"},
                   {"5_Normalize", "Normalize"}});
    auto task = load_task<Embedder>(copy.folder.path());
    std::vector<Vector> wanted;
    for (const States& text : states) {
      Vector x = pooled(text, "max");
      const Vector last = pooled(text, "lasttoken");
      x.insert(x.end(), last.begin(), last.end());
      wanted.push_back(unit(second.of(unit(first.of(x)))));
    }
    check_vectors(value_of(task.embed(kTexts)), wanted);
    // A pooling that the caller chooses is of the model's own width.
    EmbedOptions mean;
    mean.pooling = Pooling::kMean;
    wanted.clear();
    for (const States& text : states) wanted.push_back(unit(pooled(text, "mean")));
    check_vectors(value_of(task.embed(kTexts, mean)), wanted);
    // Normalize straight after one way to pool, then a dense layer.
    const Dense third(32, 5, 3);
    third.write(copy, "3_Dense");
    write_modules(copy, {{"pooling_mode_mean_tokens", true}},
                  {{"2_Normalize", "Normalize"}, {"3_Dense", "Dense"}});
    auto narrow = load_task<Embedder>(copy.folder.path());
    wanted.clear();
    for (const States& text : states) wanted.push_back(third.of(unit(pooled(text, "mean"))));
    check_vectors(value_of(narrow.embed(kTexts)), wanted);
    ModelOptions halves;
    halves.weights = WeightFormat::kF16;
    CHECK(Model::load(*test_device(), copy.folder.path(), halves).ok());
  }

  TEST_CASE("sentences: decoders pool their last token") {
    if (!have_test_device()) return;
    const std::vector<std::string> texts = {"the quick", "hello", "a small model"};
    const std::vector<States> states = states_of("texts", texts);
    const TaskCopy copy("texts");
    write_modules(copy, {{"pooling_mode_lasttoken", true}}, {{"2_Normalize", "Normalize"}});
    auto task = load_task<Embedder>(copy.folder.path());
    std::vector<Vector> wanted;
    for (const States& text : states) wanted.push_back(unit(text.back()));
    check_vectors(value_of(task.embed(texts)), wanted);
  }

  TEST_CASE("sentences: prompts by name, by default, of the caller, pooled or not") {
    if (!have_test_device()) return;
    const std::string query = "the fox in ";
    std::vector<std::string> prompted;
    for (const std::string& text : kTexts) prompted.push_back(query + text);
    const std::vector<States> with = states_of("embed", prompted);
    const std::vector<States> without = states_of("embed", kTexts);
    const TaskCopy copy("embed");
    write_modules(copy, {{"pooling_mode_mean_tokens", true}});
    copy.folder.write(
        "config_sentence_transformers.json",
        Json({{"prompts", {{"query", query}, {"document", ""}}}, {"default_prompt_name", "query"}})
            .dump());
    const auto means = [](const std::vector<States>& states, size_t from) {
      std::vector<Vector> vectors;
      for (const States& text : states) vectors.push_back(pooled(text, "mean", from));
      return vectors;
    };
    EmbedOptions named, own, plain, both;
    named.prompt_name = "document";
    own.prompt = query;
    plain.prompt = "";
    both.prompt = "x";
    both.prompt_name = "query";
    {
      auto task = load_task<Embedder>(copy.folder.path());
      check_vectors(value_of(task.embed(kTexts)), means(with, 0));
      check_vectors(value_of(task.embed(kTexts, named)), means(without, 0));
      check_vectors(value_of(task.embed(kTexts, own)), means(with, 0));
      check_vectors(value_of(task.embed(kTexts, plain)), means(without, 0));
      const auto two = task.embed(kTexts, both);
      REQUIRE_FALSE(two.ok());
      CHECK(test::contains(two.error().message, "[prompt_name]"));
      named.prompt_name = "passage";
      const auto unknown = task.embed(kTexts, named);
      REQUIRE_FALSE(unknown.ok());
      for (const char* part : {"[prompt_name]", "passage", "document, query"}) {
        CHECK(test::contains(unknown.error().message, part));
      }
    }
    const auto tokenizer = value_of(Tokenizer::load(task_path("embed")));
    const size_t skipped = value_of(tokenizer.encode(query)).ids.size() - 1;  // its [SEP]
    REQUIRE(skipped > 2);
    for (const char* mode : {"mean", "max", "weightedmean"}) {
      CAPTURE(mode);
      copy.folder.write("1_Pooling/config.json",
                        Json({{"pooling_mode", mode}, {"include_prompt", false}}).dump());
      auto task = load_task<Embedder>(copy.folder.path());
      std::vector<Vector> wanted;
      for (const States& text : with) wanted.push_back(pooled(text, mode, skipped));
      check_vectors(value_of(task.embed(kTexts)), wanted);
    }
    EmbedOptions mean;
    mean.pooling = Pooling::kMean;
    auto task = load_task<Embedder>(copy.folder.path());
    check_vectors(value_of(task.embed(kTexts, mean)), means(with, skipped));
  }

  TEST_CASE("sentences: a mask of the tokens that are pooled") {
    if (!have_test_device()) return;
    const TaskCopy copy("embed");
    write_modules(copy, {{"pooling_mode_max_tokens", true}});
    const auto model = value_of(Model::load(*test_device(), copy.folder.path()));
    auto session = value_of(Session::create(model));
    TensorMap inputs;
    inputs["input_ids"] = Tensor::from_ints({1, 4}, std::vector<int64_t>{2, 9, 11, 3});
    const TensorMap whole = value_of(session.run(inputs));
    inputs["pooling_mask"] = Tensor::from_ints({1, 4}, std::vector<int64_t>{0, 1, 0, 0});
    const TensorMap one = value_of(session.run(inputs));
    const std::vector<float> states = value_of(whole.at("last_hidden_state").to_floats());
    const std::vector<float> made = value_of(one.at("sentence_embedding").to_floats());
    CHECK(made == std::vector<float>(states.begin() + 32, states.begin() + 64));
    CHECK(whole.at("sentence_embedding").bytes != one.at("sentence_embedding").bytes);
    inputs["pooling_mask"] = Tensor::from_ints({1, 3}, std::vector<int64_t>{0, 1, 0});
    CHECK(test::contains(session.run(inputs).error().message, "[pooling_mask]"));
    inputs["pooling_mask"] = Tensor::from_ints({1, 4}, std::vector<int64_t>{0, 1, 2, 0});
    CHECK(test::contains(session.run(inputs).error().message, "holds 2"));
  }

  TEST_CASE("sentences: modules that are not supported or do not fit are refused by name") {
    if (!have_test_device()) return;
    const TaskCopy copy("embed");
    write_modules(copy, {{"pooling_mode", "median"}});
    check_refused(copy, ErrorCode::kUnsupported, {"[pooling_mode]", "median", "weightedmean"});
    write_modules(copy, {{"pooling_mode_mean_tokens", false}});
    check_refused(copy, ErrorCode::kUnsupported, {"[pooling]", "lasttoken"});
    const Json mean = {{"pooling_mode_mean_tokens", true}};
    write_modules(copy, mean, {{"2_LSTM", "LSTM"}});
    check_refused(copy, ErrorCode::kUnsupported, {"[modules.json]", "LSTM", "Dense"});
    write_modules(copy, mean, {{"2_Dense", "Dense"}});
    check_refused(copy, ErrorCode::kNotFound, {"2_Dense/config.json"});
    Dense dense(32, 8, 1);
    dense.activation = "torch.nn.modules.activation.Softmax";
    dense.write(copy, "2_Dense");
    check_refused(copy, ErrorCode::kUnsupported, {"[activation_function]", "Softmax", "Tanh"});
    dense.activation = "torch.nn.modules.activation.Tanh";
    dense.write(copy, "2_Dense");
    std::filesystem::remove(copy.folder.file("2_Dense/model.safetensors"));
    check_refused(copy, ErrorCode::kNotFound, {"[2_Dense/model.safetensors]", "safetensors"});
    Dense(30, 8, 1).write(copy, "2_Dense");
    copy.change("2_Dense/config.json", "in_features", 32);
    check_refused(copy, ErrorCode::kInvalidFile, {"2_Dense/linear.weight"});
    Dense(30, 8, 1).write(copy, "2_Dense");
    const auto wide = Embedder::load(*test_device(), ModelSource::directory(copy.folder.path()));
    if (wide.ok()) CHECK_FALSE(load_task<Embedder>(copy.folder.path()).embed(kTexts).ok());
    for (const Json& size : {Json(0), Json(-1), Json(int64_t{1} << 40), Json("8")}) {
      dense.write(copy, "2_Dense");
      copy.change("2_Dense/config.json", "out_features", size);
      check_refused(copy, ErrorCode::kInvalidFile, {"out_features"});
    }
    write_modules(copy, mean, {{"../outside", "Dense"}});
    check_refused(copy, ErrorCode::kInvalidFile, {"outside"});
    copy.folder.write("modules.json",
                      R"([{"type": "x.Normalize"}, {"type": "x.Pooling", "path": "1_Pooling"}])");
    check_refused(copy, ErrorCode::kUnsupported, {"[modules.json]", "before the pooling"});
  }
}

}  // namespace vkformer::testing
