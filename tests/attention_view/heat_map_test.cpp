// Heat maps are rendered, decoded again with another library, and compared pixel by pixel.
#include "attention_view/heat_map.h"

#include <doctest/doctest.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "vkformer/heat_map.h"

#define STB_IMAGE_IMPLEMENTATION
#define STB_IMAGE_STATIC
#define STBI_ONLY_PNG
#define STBI_NO_STDIO
#include <stb/stb_image.h>

namespace vkformer {
namespace {

struct DecodedPng {
  int width = 0, height = 0;
  std::unique_ptr<stbi_uc, void (*)(void*)> bytes{nullptr, &stbi_image_free};

  Rgb at(int64_t x, int64_t y) const {
    const stbi_uc* p = bytes.get() + (y * width + x) * 3;
    return {p[0], p[1], p[2]};
  }
};

DecodedPng decode(const std::vector<std::byte>& png) {
  DecodedPng picture;
  int channels = 0;
  picture.bytes.reset(stbi_load_from_memory(reinterpret_cast<const stbi_uc*>(png.data()),
                                            static_cast<int>(png.size()), &picture.width,
                                            &picture.height, &channels, 3));
  REQUIRE(picture.bytes != nullptr);
  CHECK(channels == 3);
  return picture;
}

DecodedPng draw(const HeatMap& map, const HeatMapOptions& options = {}) {
  const auto png = render_heat_map_png(map, options);
  REQUIRE_MESSAGE(png.ok(), (png ? "" : png.error().message));
  return decode(*png);
}

double luminance(Rgb c) {
  return 0.2126 * c[0] + 0.7152 * c[1] + 0.0722 * c[2];
}

HeatMap ramp(int rows, int columns) {
  HeatMap map{.rows = rows, .columns = columns};
  const int count = rows * columns;
  for (int i = 0; i < count; ++i) {
    map.values.push_back(count > 1 ? static_cast<float>(i) / static_cast<float>(count - 1) : 0.5f);
  }
  return map;
}

// The middle of a cell.
Rgb cell_color(const DecodedPng& picture, const HeatMapLayout& at, int row, int column) {
  return picture.at(at.grid_x + column * at.cell + at.cell / 2,
                    at.grid_y + row * at.cell + at.cell / 2);
}

// Whether a band along the picture's edges is white: nothing touches or crosses them.
bool has_white_margin(const DecodedPng& picture, int band) {
  for (int y = 0; y < picture.height; ++y) {
    for (int x = 0; x < picture.width; ++x) {
      const bool inside =
          x >= band && y >= band && x < picture.width - band && y < picture.height - band;
      if (!inside && picture.at(x, y) != Rgb{255, 255, 255}) return false;
    }
  }
  return true;
}

bool has_ink(const DecodedPng& picture, int64_t x, int64_t y, int64_t w, int64_t h) {
  for (int64_t j = y; j < y + h; ++j) {
    for (int64_t i = x; i < x + w; ++i) {
      if (luminance(picture.at(i, j)) < 128) return true;
    }
  }
  return false;
}

}  // namespace

TEST_SUITE("cpu") {
  TEST_CASE("heat map: size, margins and colors for several shapes") {
    const int shapes[][2] = {{1, 1}, {8, 9}, {40, 60}, {2, 300}, {300, 2}, {70, 1}, {1, 70}};
    for (const auto& shape : shapes) {
      CAPTURE(shape[0]);
      CAPTURE(shape[1]);
      HeatMap map = ramp(shape[0], shape[1]);
      map.title = "a title";
      const auto at = lay_out_heat_map(map, {});
      REQUIRE(at.ok());
      const DecodedPng picture = draw(map);
      CHECK(picture.width == at->width);
      CHECK(picture.height == at->height);
      CHECK(picture.width >= 600);
      CHECK(picture.width <= 1600);
      CHECK(has_white_margin(picture, 12));
      for (int r = 0; r < map.rows; ++r) {
        for (int c = 0; c < map.columns; ++c) {
          const float value = map.values[static_cast<size_t>(r * map.columns + c)];
          REQUIRE(cell_color(picture, *at, r, c) == heat_map_color(value));
        }
      }
      if (shape[0] * shape[1] > 1) {
        CHECK(luminance(cell_color(picture, *at, map.rows - 1, map.columns - 1)) + 100 <
              luminance(cell_color(picture, *at, 0, 0)));
      }
    }
  }

  TEST_CASE("heat map: colors darken evenly from white to dark blue") {
    CHECK(heat_map_color(0.0f) == Rgb{255, 255, 255});
    double before = 256;
    for (int i = 0; i <= 64; ++i) {
      const Rgb color = heat_map_color(static_cast<float>(i) / 64);
      CHECK(luminance(color) < before);
      CHECK(color[2] >= color[0]);
      CHECK(color[2] >= color[1]);
      before = luminance(color);
    }
    CHECK(before < 64);
    CHECK(heat_map_color(-1.0f) == heat_map_color(0.0f));
    CHECK(heat_map_color(2.0f) == heat_map_color(1.0f));
  }

  TEST_CASE("heat map: the range decides what the darkest color means") {
    HeatMap map{.values = {0.0f, 0.125f}, .rows = 1, .columns = 2};
    const HeatMapOptions to_max{.range = HeatMapRange::kZeroToMax};
    const auto at = lay_out_heat_map(map, to_max);
    REQUIRE(at.ok());
    CHECK(at->top == 0.125f);
    CHECK(at->ticks.front() == "0.125");
    CHECK(at->ticks.back() == "0");
    CHECK(cell_color(draw(map, to_max), *at, 0, 1) == heat_map_color(1.0f));
    const auto plain = lay_out_heat_map(map, {});
    REQUIRE(plain.ok());
    CHECK(plain->ticks.front() == "1.00");
    CHECK(cell_color(draw(map), *plain, 0, 1) == heat_map_color(0.125f));

    map.values = {-1.0f, 3.0f};
    const auto outside = lay_out_heat_map(map, {});
    REQUIRE(outside.ok());
    CHECK(outside->ticks.front() == ">= 1.00");
    CHECK(outside->ticks.back() == "<= 0.00");

    map.values = {0.0f, 0.0f};
    const auto zeros = lay_out_heat_map(map, to_max);
    REQUIRE(zeros.ok());
    CHECK(cell_color(draw(map, to_max), *zeros, 0, 1) == Rgb{255, 255, 255});
  }

  TEST_CASE("heat map: NaN and infinity are hatched in red at every cell size") {
    for (int cell : {1, 2, 5, 6, 16, 40}) {
      CAPTURE(cell);
      HeatMap map = ramp(3, 4);
      map.values[5] = std::numeric_limits<float>::quiet_NaN();
      map.values[6] = std::numeric_limits<float>::infinity();
      const HeatMapOptions options{.cell_size = cell};
      const auto at = lay_out_heat_map(map, options);
      REQUIRE(at.ok());
      CHECK(at->not_finite);
      const DecodedPng picture = draw(map, options);
      CHECK(has_white_margin(picture, 12));
      for (int column : {1, 2}) {
        int red = 0, white = 0;
        for (int64_t y = 0; y < cell; ++y) {
          for (int64_t x = 0; x < cell; ++x) {
            const Rgb c = picture.at(at->grid_x + column * cell + x, at->grid_y + cell + y);
            red += c[0] > 180 && c[1] < 80 ? 1 : 0;
            white += c == Rgb{255, 255, 255} ? 1 : 0;
          }
        }
        CHECK(red > 0);
        if (cell >= 6) CHECK(white > 0);
      }
    }
  }

  TEST_CASE("heat map: labels are escaped and shortened") {
    CHECK(heat_map_text("plain text~", 200) == "plain text~");
    CHECK(heat_map_text("caf\xC3\xA9", 200) == "caf<U+00E9>");
    CHECK(heat_map_text("\xE2\x96\x81the", 200) == "<U+2581>the");
    CHECK(heat_map_text("\xF0\x9F\x98\x80", 200) == "<U+1F600>");
    CHECK(heat_map_text("a\nb\x7F", 200) == "a<U+000A>b<U+007F>");
    CHECK(heat_map_text(std::string("a\0b", 3), 200) == "a<U+0000>b");
    CHECK(heat_map_text("\xFF\xC3", 200) == "<0xFF><0xC3>");
    CHECK(heat_map_text("\xED\xA0\x80", 200) == "<0xED><0xA0><0x80>");
    CHECK(heat_map_text("\xC0\xAF", 200) == "<0xC0><0xAF>");
    CHECK(heat_map_text("12345", 29) == "12345");
    CHECK(heat_map_text("123456", 29) == "123...");
    CHECK(heat_map_text(std::string(1 << 20, 'x'), 60).size() < 20);
    CHECK(heat_map_text("12345", 2).empty());
    CHECK(heat_map_text("", 10).empty());
  }

  TEST_CASE("heat map: every label leaves ink beside its row and over its column") {
    HeatMap map = ramp(5, 6);
    map.row_labels = {"Die", "Katze", "sa\xC3\x9F", "auf", std::string(500, 'w')};
    map.column_labels = {"The", "cat", "sat", "on", "the", "mat"};
    for (bool long_labels : {false, true}) {
      if (long_labels) map.column_labels[2] = std::string(100, 'M');
      const auto at = lay_out_heat_map(map, {});
      REQUIRE(at.ok());
      CHECK(at->vertical == long_labels);
      const DecodedPng picture = draw(map);
      CHECK(has_white_margin(picture, 12));
      for (int r = 0; r < map.rows; ++r) {
        CHECK(has_ink(picture, at->grid_x - 60, at->grid_y + r * at->cell, 56, at->cell));
      }
      for (int c = 0; c < map.columns; ++c) {
        CHECK(has_ink(picture, at->grid_x + c * at->cell, at->grid_y - 30, at->cell, 26));
      }
    }
  }

  TEST_CASE("heat map: labels of small cells are thinned out, long names and titles fit") {
    HeatMap map = ramp(30, 30);
    map.title = std::string(4000, 'T');
    HeatMapOptions options{.cell_size = 2};
    options.row_axis = std::string(300, 'r');
    options.column_axis = std::string(300, 'c');
    const auto at = lay_out_heat_map(map, options);
    REQUIRE(at.ok());
    CHECK(at->stride == 5);
    CHECK(at->row_labels.size() == 6);
    CHECK(at->title.ends_with("..."));
    CHECK(has_white_margin(draw(map, options), 12));
    options.row_axis.clear();
    options.column_axis.clear();
    map.title.clear();
    CHECK(has_white_margin(draw(map, options), 12));
  }

  TEST_CASE("heat map: bad maps are refused with a sentence") {
    const auto message = [](const HeatMap& map, const HeatMapOptions& options = {}) {
      const auto png = render_heat_map_png(map, options);
      REQUIRE(!png.ok());
      CHECK(png.error().code == ErrorCode::kInvalidArgument);
      return png.error().message;
    };
    CHECK(message({}).find("empty") != std::string::npos);
    CHECK(message({.rows = -1, .columns = 3}).find("-1 rows") != std::string::npos);
    HeatMap map = ramp(2, 3);
    map.values.pop_back();
    CHECK(message(map).find("hold 5 numbers") != std::string::npos);
    CHECK(message({.rows = 2147483647, .columns = 2147483647}).find("hold 0") != std::string::npos);
    map = ramp(2, 3);
    map.row_labels = {"one"};
    CHECK(message(map).find("[row_labels] has 1 ") != std::string::npos);
    map.row_labels.clear();
    map.column_labels = {"one", "two", "three", "four"};
    CHECK(message(map).find("[column_labels] has 4 ") != std::string::npos);
    map.column_labels.clear();
    CHECK(message(map, {.cell_size = -3}).find("-3") != std::string::npos);
    CHECK(message(map, {.cell_size = 65537}).find("65537") != std::string::npos);
    CHECK(message(map, {.range = static_cast<HeatMapRange>(9)}).find("9") != std::string::npos);
    CHECK(message(map, {.cell_size = 30000}).find("65536") != std::string::npos);
    CHECK(message(map, {.cell_size = 8000}).find("67108864") != std::string::npos);
    CHECK(message(ramp(70000, 1)).find("65536") != std::string::npos);
  }

  TEST_CASE("heat map: files are written, and what cannot be written is said") {
    const auto folder = std::filesystem::temp_directory_path();
    const auto file = folder / "vkformer_heat_map_test.png";
    const HeatMap map = ramp(2, 3);
    REQUIRE(write_heat_map_png(file.string(), map).ok());
    std::ifstream stream(file, std::ios::binary);
    const std::string content((std::istreambuf_iterator<char>(stream)), {});
    const auto png = render_heat_map_png(map);
    REQUIRE(png.ok());
    CHECK(content == std::string(reinterpret_cast<const char*>(png->data()), png->size()));
    stream.close();
    std::filesystem::remove(file);

    const auto missing = (folder / "vkformer_no_such_folder" / "x.png").string();
    const Status lost = write_heat_map_png(missing, map);
    REQUIRE(!lost.ok());
    CHECK(lost.error().code == ErrorCode::kNotFound);
    CHECK(lost.error().message.find(missing) != std::string::npos);
    CHECK(lost.error().message.find(std::strerror(ENOENT)) != std::string::npos);
    CHECK(!write_heat_map_png(folder.string(), map).ok());
    CHECK(!write_heat_map_png("", map).ok());
  }
}

}  // namespace vkformer
