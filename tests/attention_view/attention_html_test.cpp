// The page's data is read back with another JSON library; hostile labels must stay data.
#include "attention_view/attention_html.h"

#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <nlohmann/json.hpp>

#include "attention_view/attention_page.h"

namespace vkformer {
namespace {

using nlohmann::json;

AttentionMaps small_maps() {
  AttentionMaps maps{.kind = "self", .heads = 2, .rows = 2, .columns = 3};
  maps.layers.push_back({5, {0.5f, 0.25f, 0.25f, 1, 0, 0, 0.1f, 0.2f, 0.05f, 0, 0, 0}});
  maps.row_labels = {"a", "b"};
  maps.column_labels = {"x", "y", "z"};
  return maps;
}

std::string page_of(const AttentionMaps& maps, const AttentionPageOptions& options = {}) {
  const auto page = render_attention_html(std::span(&maps, 1), options);
  REQUIRE_MESSAGE(page.ok(), (page ? "" : page.error().message));
  return *page;
}

// What stands between the data element's tags.
json data_of(const std::string& page) {
  const std::string start = "<script id=\"data\" type=\"application/json\">";
  const size_t begin = page.find(start) + start.size();
  const size_t end = page.find("</script>", begin);
  REQUIRE(end != std::string::npos);
  return json::parse(page.substr(begin, end - begin));
}

std::vector<uint8_t> bytes_of(const std::string& base64) {
  const std::string letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::vector<uint8_t> bytes;
  uint32_t bits = 0;
  int count = 0;
  for (char c : base64) {
    if (c == '=') break;
    bits = bits << 6 | static_cast<uint32_t>(letters.find(c));
    count += 6;
    if (count < 8) continue;
    count -= 8;
    bytes.push_back(static_cast<uint8_t>(bits >> count));
  }
  return bytes;
}

size_t count_of(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

}  // namespace

TEST_SUITE("cpu") {
  TEST_CASE("attention page: base64 of RFC 4648, section 10") {
    const auto text = [](std::string_view bytes) {
      return base64_text({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()});
    };
    CHECK(text("").empty());
    CHECK(text("f") == "Zg==");
    CHECK(text("fo") == "Zm8=");
    CHECK(text("foo") == "Zm9v");
    CHECK(text("foobar") == "Zm9vYmFy");
    CHECK(text("\xff\xfe") == "//4=");
  }

  TEST_CASE("attention page: weights come back within half a step of each head's largest") {
    const AttentionMaps maps = small_maps();
    const json data = data_of(page_of(maps));
    CHECK(bytes_of(data["colors"]).size() == 768);
    const json& map = data["maps"][0];
    CHECK(map["kind"] == "self");
    CHECK(map["heads"] == 2);
    CHECK(map["rows"] == 2);
    CHECK(map["columns"] == 3);
    CHECK(map["rowLabels"] == json({"a", "b"}));
    CHECK(map["columnLabels"] == json({"x", "y", "z"}));
    CHECK(map["layers"][0]["layer"] == 5);
    const auto bytes = bytes_of(map["layers"][0]["data"]);
    REQUIRE(bytes.size() == 12);
    for (size_t i = 0; i < bytes.size(); ++i) {
      const double scale = map["layers"][0]["scale"][i / 6];
      const double value = static_cast<double>(maps.layers[0].values[i]);
      CHECK(std::abs(bytes[i] * scale / 254 - value) <= scale / 508 + 1e-9);
    }
  }

  TEST_CASE("attention page: values that are not finite are marked, zeros have no scale") {
    AttentionMaps maps{.heads = 2, .rows = 1, .columns = 4};
    maps.layers.push_back({0, {NAN, INFINITY, -INFINITY, 1e-42f, 0, 0, -1, 0}});
    const json layer = data_of(page_of(maps))["maps"][0]["layers"][0];
    CHECK(bytes_of(layer["data"]) == std::vector<uint8_t>{255, 255, 255, 254, 0, 0, 0, 0});
    CHECK(layer["scale"][1] == 0.0);
  }

  TEST_CASE("attention page: hostile labels and titles stay text") {
    const std::array<std::string, 7> hostile = {
        "</script><script>window.stolen=1</script>",
        "<img src=x onerror=alert(1)>",
        "\"],\"x\":[\"",
        "\\u003c/script>\\",
        "<!--<script>",
        "a\nb\t\x01\x7f\xe2\x80\xa8\xe2\x80\xae",
        "\xff\xc0\x80 \xf0\x9f\x98\x80 &lt;",
    };
    const std::string honest = page_of(small_maps());
    for (const std::string& label : hostile) {
      AttentionMaps maps = small_maps();
      maps.kind = label;
      maps.row_labels[1] = label;
      maps.column_labels[2] = label;
      const std::string page = page_of(maps, {.title = label});
      for (const char* part : {"<script", "</script", "<img", "<!--", "onerror=\""}) {
        CHECK(count_of(page, part) == count_of(honest, part));
      }
      const json data = data_of(page);
      CHECK(data["maps"].size() == 1);
      CHECK(data["maps"][0]["rowLabels"].size() == 2);
      CHECK(data["maps"][0]["rowLabels"][1] == data["maps"][0]["columnLabels"][2]);
      if (label[0] != '\xff') CHECK(data["maps"][0]["rowLabels"][1] == label);
    }
    AttentionMaps maps = small_maps();
    maps.row_labels[0] = "\xff\xc0\x80 \xf0\x9f\x98\x80";
    CHECK(data_of(page_of(maps))["maps"][0]["rowLabels"][0] ==
          "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd \xf0\x9f\x98\x80");
  }

  TEST_CASE("attention page: it asks nothing of any network") {
    const std::string page = page_of(small_maps());
    for (const char* part : {"http:", "https:", "//cdn", "src=", "href=", "@import", "url("}) {
      CHECK(count_of(page, part) == 0);
    }
    CHECK(count_of(page, "default-src 'none'") == 1);
    for (const std::string_view part : {kPageStart, kPageHead, kPageBody, kPageEnd}) {
      CHECK(page.find(part) != std::string::npos);
      for (char c : part) CHECK(static_cast<unsigned char>(c) < 0x80);
    }
  }

  TEST_CASE("attention page: too large or empty is refused with a sentence") {
    const AttentionMaps maps = small_maps();
    const auto message = [](const Result<std::string>& page) {
      REQUIRE(!page.ok());
      return page.error().message;
    };
    const size_t size = page_of(maps).size();
    CHECK(page_of(maps, {.most_bytes = size}).size() == size);
    const auto refused = render_attention_html(std::span(&maps, 1), {.most_bytes = size - 1});
    CHECK(message(refused).find(std::to_string(size - 1)) != std::string::npos);
    AttentionMaps large{.heads = 1, .rows = 3000, .columns = 3000};
    large.layers.push_back({0, std::vector<float>(9'000'000)});
    CHECK(message(render_attention_html(std::span(&large, 1))).find("10000000") !=
          std::string::npos);
    CHECK(message(render_attention_html({})).find("page") != std::string::npos);
    AttentionMaps broken = maps;
    broken.layers[0].values.pop_back();
    CHECK(message(render_attention_html(std::span(&broken, 1))).find("11 values") !=
          std::string::npos);
  }
}

}  // namespace vkformer
