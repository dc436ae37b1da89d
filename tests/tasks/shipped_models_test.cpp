// models/digits and models/shakespeare do what their cards say.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "tasks/task_cases.h"

namespace vkformer::testing {
namespace {

constexpr int kSide = 28;  // pixels of a digit
constexpr int kDigits = 10, kOfEach = 20;

std::string shipped(const std::string& name) {
  return std::string(VKFORMER_SOURCE_DIR) + "/models/" + name;
}

// The digits of test_digits.png: twenty zeros, twenty ones and so on, white on black.
std::vector<Picture> digits_of_sheet() {
  const Picture sheet = value_of(Picture::load(shipped("digits/test_digits.png")));
  REQUIRE(sheet.width() == kSide * kOfEach);
  REQUIRE(sheet.height() == kSide * kDigits);
  constexpr size_t stride = size_t{3} * kSide * kOfEach;
  std::vector<Picture> digits;
  for (size_t i = 0; i < size_t{kDigits} * kOfEach; ++i) {
    const size_t begin = (i / kOfEach) * kSide * stride + (i % kOfEach) * 3 * kSide;
    PixelView view;
    view.bytes = sheet.rgb().subspan(begin, (kSide - 1) * stride + 3 * kSide);
    view.width = view.height = kSide;
    view.stride = static_cast<int64_t>(stride);
    view.format = PixelFormat::kRgb8;
    digits.push_back(value_of(Picture::from_pixels(view)));
  }
  return digits;
}

Picture inverted(const Picture& picture) {
  std::vector<uint8_t> rgb(picture.rgb().begin(), picture.rgb().end());
  for (uint8_t& value : rgb) value = static_cast<uint8_t>(255 - value);
  return value_of(Picture::from_rgb(picture.width(), picture.height(), rgb));
}

int count_right(PictureClassifier& classifier, const std::vector<Picture>& digits) {
  const auto labels = value_of(classifier.classify(digits, 1));
  int right = 0;
  for (size_t i = 0; i < labels.size(); ++i) {
    right += labels[i].front().label == std::to_string(i / kOfEach) ? 1 : 0;
  }
  return right;
}

// Mean negative log likelihood in nats of each byte but the first. logits (1,T,V)
double nats_per_byte(const std::string& text, const std::vector<float>& logits) {
  constexpr size_t kBytes = 256;
  REQUIRE(logits.size() == (text.size() - 1) * kBytes);
  double sum = 0;
  for (size_t i = 0; i + 1 < text.size(); ++i) {
    const auto row = logits.begin() + static_cast<std::ptrdiff_t>(i * kBytes);
    const double most = static_cast<double>(*std::max_element(row, row + kBytes));
    const double total = std::accumulate(row, row + kBytes, 0.0, [&](double so_far, float value) {
      return so_far + std::exp(static_cast<double>(value) - most);
    });
    const auto next = static_cast<uint8_t>(text[i + 1]);
    sum += most + std::log(total) - static_cast<double>(row[next]);
  }
  return sum / static_cast<double>(text.size() - 1);
}

}  // namespace

TEST_SUITE("model") {
  TEST_CASE("models/digits reads test digits, on black and on white") {
    if (!have_test_device()) return;
    auto classifier = load_task<PictureClassifier>(shipped("digits"));
    const std::vector<Picture> digits = digits_of_sheet();
    CHECK(count_right(classifier, digits) >= 198);
    std::vector<Picture> on_white;
    for (const Picture& digit : digits) on_white.push_back(inverted(digit));
    CHECK(count_right(classifier, on_white) >= 198);
  }

  TEST_CASE("models/shakespeare predicts held-out text as well as in PyTorch") {
    if (!have_test_device()) return;
    const Json reference = read_json(shipped("shakespeare/reference.json"));
    const auto text = reference["held_out"].get<std::string>();
    REQUIRE(text.size() == 2000);
    const auto tokenizer = value_of(Tokenizer::load(shipped("shakespeare")));
    const auto tokens = value_of(tokenizer.encode(text)).ids;
    const std::vector<int64_t> ids(tokens.begin(), tokens.end());
    REQUIRE(ids.size() == text.size());
    const auto model = value_of(Model::load(*test_device(), shipped("shakespeare")));
    auto session = value_of(Session::create(model));
    const auto read = std::span(ids).first(ids.size() - 1);
    const Shape shape = {1, static_cast<int64_t>(read.size())};
    const TensorMap outputs =
        value_of(session.run({{"input_ids", Tensor::from_ints(shape, read)}}));
    const double nats = nats_per_byte(text, value_of(outputs.at("logits").to_floats()));
    CHECK(nats == doctest::Approx(reference["nats"].get<double>()).epsilon(2e-5));
    CHECK(nats < 1.6);
  }

  TEST_CASE("models/shakespeare goes on as in PyTorch") {
    if (!have_test_device()) return;
    const Json reference = read_json(shipped("shakespeare/reference.json"));
    auto generator = load_task<TextGenerator>(shipped("shakespeare"));
    const std::vector<std::string> prompts = {reference["prompt"]};
    const auto wanted = reference["greedy"].get<std::string>();
    TextOptions options;
    options.max_new_tokens = static_cast<int>(wanted.size());
    const auto written = value_of(generator.generate(prompts, options));
    REQUIRE(written.size() == 1);
    REQUIRE(written[0].size() == 1);
    CHECK(written[0][0].text == wanted);
  }
}

}  // namespace vkformer::testing
