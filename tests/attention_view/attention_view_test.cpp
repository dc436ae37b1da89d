// Maps are averaged, multiplied and measured by hand-made numbers; grids and overlays are rendered,
// decoded with another library and compared pixel by pixel.
#include "vkformer/attention_view.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <numeric>

#include "attention_view/attention_grid.h"
#include "attention_view/attention_maps.h"
#include "attention_view/attention_overlay.h"
#include "image/picture.h"

namespace vkformer {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

AttentionMaps maps_of(int heads, int rows, int columns, std::vector<std::vector<float>> layers) {
  AttentionMaps maps{.heads = heads, .rows = rows, .columns = columns};
  for (auto& values : layers) {
    maps.layers.push_back({static_cast<int>(maps.layers.size()), std::move(values)});
  }
  return maps;
}

RgbPicture decoded(const Result<std::vector<std::byte>>& png) {
  REQUIRE_MESSAGE(png.ok(), (png ? "" : png.error().message));
  auto picture = decode_picture(*png, "drawn.png");
  REQUIRE(picture.ok());
  return std::move(*picture);
}

Rgb pixel(const RgbPicture& picture, int64_t x, int64_t y) {
  const uint8_t* p = picture.row(static_cast<int>(y)) + x * 3;
  return {p[0], p[1], p[2]};
}

// The message of a result that must be an error.
template <class T>
std::string message_of(const Result<T>& result) {
  REQUIRE(!result.ok());
  return result.error().message;
}

bool holds(const std::string& text, const char* part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_SUITE("cpu") {
  TEST_CASE("attention maps: out of a session's outputs, by kind and item, layers in order") {
    TensorMap outputs;
    for (int layer : {10, 2, 9}) {
      std::vector<float> values(2 * 2 * 1 * 3);
      std::iota(values.begin(), values.end(), static_cast<float>(100 * layer));
      outputs["cross_attentions." + std::to_string(layer)] =
          Tensor::from_floats({2, 2, 1, 3}, values);
    }
    outputs["cross_attentions.x"] = Tensor::from_floats({1}, std::vector<float>{0});
    const auto maps = attention_maps_from(outputs, MapKind::kCross, 1);
    REQUIRE(maps.ok());
    CHECK(maps->heads == 2);
    CHECK(maps->rows == 1);
    CHECK(maps->columns == 3);
    REQUIRE(maps->layers.size() == 3);
    CHECK(maps->layers[0].layer == 2);
    CHECK(maps->layers[2].layer == 10);
    CHECK(maps->layers[2].values == std::vector<float>{1006, 1007, 1008, 1009, 1010, 1011});

    CHECK(holds(message_of(attention_maps_from(outputs, MapKind::kSelf)), "attentions."));
    CHECK(holds(message_of(attention_maps_from(outputs, MapKind::kCross, 2)), "2"));
    CHECK(holds(message_of(attention_maps_from(outputs, MapKind::kCross, -1)), "-1"));
    outputs["cross_attentions.3"] = Tensor::from_floats({1, 1, 1, 1}, std::vector<float>{0});
    CHECK(holds(message_of(attention_maps_from(outputs, MapKind::kCross)), "cross_attentions.3"));
  }

  TEST_CASE("attention maps: the mean over heads") {
    const auto mean = mean_over_heads(maps_of(2, 1, 2, {{1, 0, 0.5f, 0.5f}}));
    REQUIRE(mean.ok());
    CHECK(mean->heads == 1);
    CHECK(mean->first_head == -1);
    CHECK(mean->layers[0].values == std::vector<float>{0.75f, 0.25f});
  }

  TEST_CASE("attention rollout: two layers by hand") {
    // Layer 0: token 1 attends to token 0 alone; layer 1: everything to everything.
    const auto flow = attention_rollout(maps_of(1, 2, 2, {{1, 0, 1, 0}, {0.5f, 0.5f, 0.5f, 0.5f}}));
    REQUIRE(flow.ok());
    CHECK(flow->kind == "rollout");
    REQUIRE(flow->layers.size() == 1);
    // (0.75 0.25; 0.25 0.75) (1 0; 0.5 0.5)
    CHECK(flow->layers[0].values == std::vector<float>{0.875f, 0.125f, 0.625f, 0.375f});
  }

  TEST_CASE("attention rollout: rows sum to one, a row without any key keeps itself") {
    const int tokens = 37, heads = 3;
    std::vector<std::vector<float>> layers;
    for (int l = 0; l < 5; ++l) {
      std::vector<float> values(heads * tokens * tokens, 0.0f);
      for (int h = 0; h < heads; ++h) {
        for (int i = 1; i < tokens; ++i) {
          for (int j = 0; j <= i; ++j) {
            values[static_cast<size_t>((h * tokens + i) * tokens + j)] =
                1.0f / static_cast<float>(i + 1);
          }
        }
      }
      layers.push_back(values);
    }
    const auto flow = attention_rollout(maps_of(heads, tokens, tokens, layers));
    REQUIRE(flow.ok());
    const std::vector<float>& values = flow->layers[0].values;
    CHECK(values[0] == 1.0f);
    for (int i = 0; i < tokens; ++i) {
      double sum = 0;
      for (int j = 0; j < tokens; ++j) {
        const float value = values[static_cast<size_t>(i * tokens + j)];
        if (j > i) CHECK(value == 0.0f);
        sum += static_cast<double>(value);
      }
      CHECK(sum == doctest::Approx(1.0).epsilon(1e-6));
    }
  }

  TEST_CASE("attention rollout: what has no rollout is said") {
    CHECK(holds(message_of(attention_rollout(maps_of(1, 1, 2, {{1, 0}}))), "1 rows and 2 columns"));
    auto gap = maps_of(1, 1, 1, {{1}, {1}});
    gap.layers[1].layer = 2;
    CHECK(holds(message_of(attention_rollout(gap)), "layer 2 follows layer 0"));
    CHECK(holds(message_of(attention_rollout(maps_of(1, 2, 2, {{1}}))), "1 values"));
    CHECK(holds(message_of(attention_rollout(AttentionMaps{})), "empty"));
    auto labels = maps_of(1, 1, 1, {{1}});
    labels.row_labels = {"a", "b"};
    CHECK(holds(message_of(attention_rollout(labels)), "row_labels"));
  }

  TEST_CASE("attention grid: every cell of every map has its color") {
    AttentionMaps maps = maps_of(3, 2, 5, {});
    for (int l = 0; l < 2; ++l) {
      std::vector<float> values(30);
      for (size_t i = 0; i < values.size(); ++i) {
        values[i] = static_cast<float>(i + static_cast<size_t>(l)) / 40.0f;
      }
      maps.layers.push_back({l + 7, values});
    }
    for (const auto range : {HeatMapRange::kZeroToOne, HeatMapRange::kZeroToMax}) {
      const AttentionGridOptions options{.range = range, .title = "all of it"};
      const auto at = lay_out_attention_grid(maps, options);
      REQUIRE(at.ok());
      CHECK(at->across == 3);
      CHECK(at->down == 2);
      const float top = range == HeatMapRange::kZeroToOne ? 1.0f : 30.0f / 40.0f;
      CHECK(at->top == top);
      const RgbPicture picture = decoded(render_attention_grid_png(maps, options));
      CHECK(picture.width == at->width);
      CHECK(picture.height == at->height);
      for (int i = 0; i < 60; ++i) {
        const int layer = i / 30, head = i / 10 % 3, row = i / 5 % 2, column = i % 5;
        const int64_t x = at->map_x + head * at->step_x + column * at->cell;
        const int64_t y = at->map_y + layer * at->step_y + row * at->cell;
        const float value = static_cast<float>(i % 30 + layer) / 40.0f;
        CHECK(pixel(picture, x, y) == heat_map_color(value / top));
        CHECK(pixel(picture, x + at->cell - 1, y + at->cell - 1) == heat_map_color(value / top));
      }
      CHECK(pixel(picture, 0, 0) == kWhite);
      CHECK(pixel(picture, at->map_x - 1, at->map_y) == kFrame);
    }
  }

  TEST_CASE("attention grid: many heads of one layer wrap, names leave ink above each map") {
    const AttentionMaps maps = maps_of(10, 1, 1, {std::vector<float>(10, 0.0f)});
    const auto at = lay_out_attention_grid(maps, {});
    REQUIRE(at.ok());
    CHECK(at->across == 4);
    CHECK(at->down == 3);
    const RgbPicture picture = decoded(render_attention_grid_png(maps));
    for (int64_t i = 0; i < 10; ++i) {
      int ink = 0;
      for (int64_t y = 0; y < 8; ++y) {
        for (int64_t x = 0; x < at->step_x - 4; ++x) {
          const int64_t left = at->map_x + i % 4 * at->step_x;
          const int64_t above = at->map_y + i / 4 * at->step_y - 12;
          ink += pixel(picture, left + x, above + y) == kInk ? 1 : 0;
        }
      }
      CHECK(ink > 10);
    }
  }

  TEST_CASE("attention grid: values that are not finite, and sizes that are too large") {
    const auto maps = maps_of(1, 1, 2, {{kInf, 0.0f}});
    const auto at = lay_out_attention_grid(maps, {});
    REQUIRE(at.ok());
    CHECK(pixel(decoded(render_attention_grid_png(maps)), at->map_x, at->map_y) == kRed);
    CHECK(holds(message_of(render_attention_grid_png(maps, {.cell_size = -1})), "cell_size"));
    CHECK(
        holds(message_of(render_attention_grid_png(maps, {.cell_size = 65536})), "over the limit"));
    CHECK(
        holds(message_of(render_attention_grid_png(maps, {.range = static_cast<HeatMapRange>(9)})),
              "range"));
    const auto wide = maps_of(1, 1, 70000, {std::vector<float>(70000)});
    CHECK(holds(message_of(render_attention_grid_png(wide)), "over the limit"));
  }

  TEST_CASE("attention overlay: bilinear weights between the patches' middles") {
    const PatchMap map{.rows = 2, .columns = 2, .values = {0, 1, 2, 3}};
    CHECK(patch_weight(map, 0.5, 0.5) == 0.0);
    CHECK(patch_weight(map, 1.5, 1.5) == 3.0);
    CHECK(patch_weight(map, 1.0, 0.5) == 0.5);
    CHECK(patch_weight(map, 1.0, 1.0) == 1.5);
    CHECK(patch_weight(map, 0.75, 1.25) == doctest::Approx(0.25 + 1.5));
    CHECK(patch_weight(map, 0.0, 0.0) == 0.0);
    CHECK(patch_weight(map, 2.0, 2.0) == 3.0);
  }

  TEST_CASE("attention overlay: red where weights are, the picture's own pixels elsewhere") {
    const std::vector<uint8_t> grey(8 * 4 * 3, 100);
    const auto picture = Picture::from_rgb(8, 4, grey);
    REQUIRE(picture.ok());
    const PatchMap map{.rows = 1, .columns = 2, .values = {0.0f, 0.2f}};
    const RgbPicture whole =
        decoded(render_attention_overlay_png(*picture, map, {.strength = 0.5}));
    CHECK(whole.width == 8);
    CHECK(whole.height == 4);
    // 100 + 0.5 (214 - 100), 100 + 0.5 (32 - 100)
    CHECK(pixel(whole, 7, 3) == Rgb{157, 66, 66});
    CHECK(pixel(whole, 0, 0) == Rgb{100, 100, 100});
    // x = 4 is (4.5 / 8 * 2 - 0.5) = 0.625 of the way from one middle to the other.
    CHECK(pixel(whole, 4, 1) == Rgb{136, 79, 79});

    const AttentionOverlayOptions part{.region = {.left = 2, .top = 1, .width = 4, .height = 2},
                                       .strength = 1.0};
    const PatchMap one{.rows = 1, .columns = 1, .values = {7.0f}};
    const RgbPicture middle = decoded(render_attention_overlay_png(*picture, one, part));
    for (int y = 0; y < 4; ++y) {
      for (int x = 0; x < 8; ++x) {
        const bool inside = x >= 2 && x < 6 && y >= 1 && y < 3;
        CHECK(pixel(middle, x, y) == (inside ? kRed : Rgb{100, 100, 100}));
      }
    }
    const AttentionOverlayOptions absolute{.strength = 1.0, .range = HeatMapRange::kZeroToOne};
    const PatchMap half{.rows = 1, .columns = 1, .values = {0.5f}};
    CHECK(pixel(decoded(render_attention_overlay_png(*picture, half, absolute)), 0, 0) ==
          Rgb{157, 66, 66});
  }

  TEST_CASE("attention overlay: bad weights and options are refused with a sentence") {
    const std::vector<uint8_t> grey(2 * 2 * 3, 100);
    const auto picture = Picture::from_rgb(2, 2, grey);
    REQUIRE(picture.ok());
    const PatchMap good{.rows = 1, .columns = 1, .values = {1}};
    const auto refusal = [&](const PatchMap& map, const AttentionOverlayOptions& options) {
      return message_of(render_attention_overlay_png(*picture, map, options));
    };
    CHECK(holds(refusal({}, {}), "[0] rows"));
    CHECK(holds(refusal({.rows = 2, .columns = 3, .values = {1}}, {}), "are 6"));
    CHECK(holds(refusal({.rows = 1, .columns = 1, .values = {NAN}}, {}), "not finite"));
    CHECK(holds(refusal(good, {.strength = NAN}), "strength"));
    CHECK(holds(refusal(good, {.region = {.left = 0, .top = 0, .width = -1, .height = 1}}),
                "region"));
    CHECK(holds(refusal(good, {.region = {.left = NAN, .top = 0, .width = 1, .height = 1}}),
                "region"));
    CHECK(holds(refusal(good, {.range = static_cast<HeatMapRange>(5)}), "range"));
  }

  TEST_CASE("seen region: crops are smaller than the picture, margins larger") {
    PictureSettings settings;
    const auto all = seen_region(settings, 640, 480);
    REQUIRE(all.ok());
    CHECK(all->width == 640);
    CHECK(all->left == 0);
    settings.fit = PictureFit::kShortestEdge;
    settings.shortest_edge = 240;
    settings.crop_width = settings.crop_height = 200;
    // 640 x 480 comes to 320 x 240; 60 and 20 of its pixels are cut off in front.
    const auto middle = seen_region(settings, 640, 480);
    REQUIRE(middle.ok());
    CHECK(middle->left == 120);
    CHECK(middle->top == 40);
    CHECK(middle->width == 400);
    CHECK(middle->height == 400);
    settings.fit = PictureFit::kAsIs;
    settings.crop_width = settings.crop_height = 20;
    const auto margin = seen_region(settings, 10, 20);
    REQUIRE(margin.ok());
    CHECK(margin->left == -5);
    CHECK(margin->width == 20);
    CHECK(holds(message_of(seen_region(settings, 0, 5)), "picture"));
    settings.crop_height = -1;
    CHECK(!seen_region(settings, 5, 5).ok());
  }

  TEST_CASE("attention heads: entropy, variance and the prediction by hand") {
    // Two rows of one head: keys 2 of 3 allowed, and 3 of 3.
    AttentionMeasurements pass;
    pass.scores = maps_of(1, 2, 3, {{1, 3, -kInf, 0, 0, 3}});
    pass.entropies = {{0.3f, 0.5f}};
    const auto heads = measure_attention_heads(std::span(&pass, 1), {.temperature = 2.0});
    REQUIRE(heads.ok());
    REQUIRE(heads->size() == 1);
    const AttentionHead& head = heads->front();
    CHECK(head.rows == 2);
    CHECK(head.entropy == doctest::Approx(0.4));
    CHECK(head.most_entropy == doctest::Approx((std::log(2) + std::log(3)) / 2));
    // Variances 1 and 2 of divided scores, times the temperature squared.
    CHECK(head.score_variance == doctest::Approx(1.5 * 4));
    CHECK(head.predicted_entropy == doctest::Approx(head.most_entropy - 6.0 / (2 * 4)));
    CHECK(head.state == AttentionHead::State::kUsual);
  }

  TEST_CASE("attention heads: the prediction is near for scores that are near each other") {
    AttentionMeasurements pass;
    const int keys = 400;
    std::vector<float> scores;
    double total = 0, weighted = 0;
    for (int i = 0; i < keys; ++i) {
      scores.push_back(static_cast<float>(0.3 * std::sin(i * 1.7)));
      const double weight = std::exp(static_cast<double>(scores.back()));
      total += weight;
      weighted += weight * static_cast<double>(scores.back());
    }
    const double entropy = std::log(total) - weighted / total;
    pass.scores = maps_of(1, 1, keys, {scores});
    pass.entropies = {{static_cast<float>(entropy)}};
    const auto heads = measure_attention_heads(std::span(&pass, 1));
    REQUIRE(heads.ok());
    CHECK(heads->front().predicted_entropy == doctest::Approx(entropy).epsilon(1e-4));
    CHECK(heads->front().state == AttentionHead::State::kCollapsed);
  }

  TEST_CASE("attention heads: states, rows that do not count, and passes that do not fit") {
    AttentionMeasurements pass;
    pass.scores = maps_of(3, 1, 2, {{0, 0, 50, 0, 5, -kInf}});
    pass.scores.first_head = 4;
    pass.scores.layers[0].layer = 3;
    pass.entropies = {{0.69f, 0.001f, 0.0f}};
    const auto heads = measure_attention_heads(std::span(&pass, 1));
    REQUIRE(heads.ok());
    REQUIRE(heads->size() == 3);
    CHECK((*heads)[0].state == AttentionHead::State::kCollapsed);
    CHECK((*heads)[1].state == AttentionHead::State::kSaturated);
    CHECK((*heads)[1].layer == 3);
    CHECK((*heads)[1].head == 5);
    CHECK((*heads)[2].rows == 0);
    CHECK((*heads)[2].state == AttentionHead::State::kUsual);
    const auto strict = measure_attention_heads(std::span(&pass, 1), {.collapsed = 1.0});
    REQUIRE(strict.ok());
    CHECK(strict->front().state == AttentionHead::State::kUsual);

    CHECK(holds(message_of(measure_attention_heads({})), "passes"));
    CHECK(holds(message_of(measure_attention_heads(std::span(&pass, 1), {.temperature = 0})),
                "temperature"));
    CHECK(holds(message_of(measure_attention_heads(std::span(&pass, 1),
                                                   {.collapsed = 0.1, .saturated = 0.2})),
                "saturated"));
    pass.entropies = {{0.5f}};
    CHECK(holds(message_of(measure_attention_heads(std::span(&pass, 1))), "entropies"));
    pass.entropies.clear();
    CHECK(holds(message_of(measure_attention_heads(std::span(&pass, 1))), "passes"));
  }
}

}  // namespace vkformer
