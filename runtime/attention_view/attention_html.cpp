#include "attention_view/attention_html.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>

#include "attention_view/attention_maps.h"
#include "attention_view/attention_page.h"
#include "attention_view/canvas.h"
#include "base/check.h"
#include "base/message.h"
#include "base/utf8_step.h"

namespace vkformer {
namespace {

using std::to_string;

// A weight is a byte of 0 to 254, in steps of the head's largest; 255 is not a number.
constexpr float kSteps = 254.0f;
constexpr uint8_t kNotFinite = 255;
constexpr uint32_t kReplacement = 0xFFFD;
// Labels longer than this tell nothing in a page.
constexpr size_t kMostLabelBytes = 400;

void append_escape(uint32_t unit, std::string& out) {
  char escaped[8];
  std::snprintf(escaped, sizeof escaped, "\\u%04X", static_cast<unsigned>(unit & 0xFFFF));
  out += escaped;
}

// Calls `take` with every character of the text.
template <class Take>
void each_character(std::string_view text, const Take& take) {
  while (!text.empty()) {
    // One replacement for every byte that belongs to no character.
    const Utf8Step step = utf8_step(text);
    take(step.valid ? uint32_t{utf8_value(text, step.length)} : kReplacement);
    text.remove_prefix(step.valid ? step.length : 1);
  }
}

void append_string(std::string_view text, std::string& out) {
  out += '"' + page_json_text(text.substr(0, kMostLabelBytes)) + '"';
}

void append_strings(const char* name, const std::vector<std::string>& texts, std::string& out) {
  out += std::string(",\"") + name + "\":[";
  for (size_t i = 0; i < texts.size(); ++i) {
    if (i > 0) out += ',';
    append_string(texts[i], out);
  }
  out += ']';
}

// The shortest number that reads back the same, whatever the host's locale.
std::string json_number(float value) {
  char buffer[32];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, value);
  return std::string(buffer, end.ptr);
}

float largest_of(std::span<const float> values) {
  float largest = 0.0f;
  for (float value : values) {
    if (std::isfinite(value)) largest = std::max(largest, value);
  }
  return largest;
}

void append_layer(const AttentionMaps& maps, size_t index, std::string& out) {
  std::vector<uint8_t> bytes;
  bytes.reserve(maps.layers[index].values.size());
  out += "{\"layer\":" + to_string(maps.layers[index].layer) + ",\"scale\":[";
  for (int h = 0; h < maps.heads; ++h) {
    const std::span<const float> values = head_values(maps, index, h);
    const float largest = largest_of(values);
    if (h > 0) out += ',';
    out += json_number(largest);
    for (float value : values) {
      // Divided first: no product of a tiny or huge scale overflows.
      const float share = largest > 0 ? std::clamp(value / largest, 0.0f, 1.0f) : 0.0f;
      bytes.push_back(std::isfinite(value) ? static_cast<uint8_t>(std::lround(share * kSteps))
                                           : kNotFinite);
    }
  }
  out += "],\"data\":\"" + base64_text(bytes) + "\"}";
}

void append_maps(const AttentionMaps& maps, std::string& out) {
  out += "{\"kind\":";
  append_string(maps.kind, out);
  out += ",\"heads\":" + to_string(maps.heads) + ",\"first\":" + to_string(maps.first_head);
  out += ",\"rows\":" + to_string(maps.rows) + ",\"columns\":" + to_string(maps.columns);
  append_strings("rowLabels", maps.row_labels, out);
  append_strings("columnLabels", maps.column_labels, out);
  out += ",\"layers\":[";
  for (size_t i = 0; i < maps.layers.size(); ++i) {
    if (i > 0) out += ',';
    append_layer(maps, i, out);
  }
  out += "]}";
}

// The same ramp as in heat maps. (256, 3)
std::string color_table() {
  std::vector<uint8_t> bytes;
  for (int i = 0; i < 256; ++i) {
    const Rgb color = heat_map_color(static_cast<float>(i) / 255.0f);
    bytes.insert(bytes.end(), color.begin(), color.end());
  }
  return base64_text(bytes);
}

Error too_large(size_t bytes, const AttentionPageOptions& options) {
  return invalid_argument(
      message({"The attention [page] would take ", bytes, " bytes, over the limit of ",
               options.most_bytes, "; show fewer layers, one head, or a shorter input."}));
}

// What weights and labels take at least, found before anything large is made.
size_t least_bytes(std::span<const AttentionMaps> maps) {
  size_t bytes = kPageStart.size() + kPageHead.size() + kPageBody.size() + kPageEnd.size();
  for (const AttentionMaps& m : maps) {
    for (const AttentionLayer& layer : m.layers) bytes += layer.values.size() / 3 * 4;
    for (const std::string& label : m.row_labels) bytes += std::min(label.size(), kMostLabelBytes);
  }
  return bytes;
}

}  // namespace

std::string page_json_text(std::string_view text) {
  std::string out;
  each_character(text, [&](uint32_t code) {
    const bool plain = code >= 0x20 && code < 0x7F && code != '"' && code != '\\' && code != '<' &&
                       code != '>' && code != '&' && code != '\'';
    if (plain) {
      out += static_cast<char>(code);
    } else if (code < 0x10000) {
      append_escape(code, out);
    } else {
      append_escape(0xD800 + ((code - 0x10000) >> 10), out);
      append_escape(0xDC00 + ((code - 0x10000) & 0x3FF), out);
    }
  });
  return out;
}

std::string page_markup_text(std::string_view text) {
  std::string out;
  each_character(text, [&](uint32_t code) {
    const bool plain = code >= 0x20 && code < 0x7F && code != '"' && code != '<' && code != '>' &&
                       code != '&' && code != '\'';
    if (plain) {
      out += static_cast<char>(code);
    } else {
      // No reference may stand for a control character.
      const bool control = code < 0x20 || (code >= 0x7F && code < 0xA0);
      out += "&#" + to_string(control ? kReplacement : code) + ";";
    }
  });
  return out;
}

std::string base64_text(std::span<const uint8_t> bytes) {
  constexpr std::string_view letters =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t i = 0; i < bytes.size(); i += 3) {
    const size_t left = std::min<size_t>(bytes.size() - i, 3);
    uint32_t bits = uint32_t{bytes[i]} << 16;
    if (left > 1) bits |= uint32_t{bytes[i + 1]} << 8;
    if (left > 2) bits |= bytes[i + 2];
    for (size_t j = 0; j < 4; ++j) {
      out += j <= left ? letters[bits >> (18 - 6 * j) & 63] : '=';
    }
  }
  return out;
}

Result<std::string> write_attention_page(std::span<const AttentionMaps> maps,
                                         const AttentionPageOptions& options) {
  if (maps.empty()) {
    return invalid_argument("The attention [page] has no maps to show; give at least one kind.");
  }
  for (const AttentionMaps& m : maps) VKF_CHECK(check_attention_maps(m));
  if (least_bytes(maps) > options.most_bytes) return too_large(least_bytes(maps), options);
  const std::string title = page_markup_text(options.title);
  std::string page(kPageStart);
  page += title;
  page += kPageHead;
  page += title;
  page += kPageBody;
  page += "{\"colors\":\"" + color_table() + "\",\"maps\":[";
  for (size_t i = 0; i < maps.size(); ++i) {
    if (i > 0) page += ',';
    append_maps(maps[i], page);
  }
  page += "]}";
  page += kPageEnd;
  if (page.size() > options.most_bytes) return too_large(page.size(), options);
  return page;
}

}  // namespace vkformer
