#include "attend_output.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "files.h"
#include "vkformer/heat_map.h"

namespace vkformer::cli {

namespace {

// Terminal columns a label takes, near enough: its code points.
size_t label_width(const std::string& label) {
  return static_cast<size_t>(std::count_if(label.begin(), label.end(), [](char byte) {
    return (static_cast<unsigned char>(byte) & 0xC0) != 0x80;
  }));
}

std::vector<std::string> numbered(const std::vector<std::string>& labels, int count) {
  if (!labels.empty()) return labels;
  std::vector<std::string> numbers;
  for (int i = 0; i < count; ++i) numbers.push_back(std::to_string(i));
  return numbers;
}

float value_at(const AttentionMaps& map, int row, int column) {
  return map.layers[0].values[static_cast<size_t>(row) * static_cast<size_t>(map.columns) +
                              static_cast<size_t>(column)];
}

HeatMapRange range_of(const AttendOptions& options) {
  return options.range == "max" ? HeatMapRange::kZeroToMax : HeatMapRange::kZeroToOne;
}

// Tokens before the patches.
int extra_tokens(const AttendPass& pass, int tokens) {
  return tokens - pass.patch_rows * pass.patch_columns;
}

// Without a class token all patches together are the best stand-in.
constexpr int64_t kAllQueries = -1;

Result<int64_t> overlay_query(const AttendPass& pass, const AttendOptions& options,
                              const AttentionMaps& map) {
  const bool of_words = map.kind == "cross";
  const int64_t usual = of_words || extra_tokens(pass, map.columns) > 0 ? 0 : kAllQueries;
  const int64_t query = options.query.value_or(usual);
  if (query == kAllQueries || (query >= 0 && query < map.rows)) return query;
  return Error{ErrorCode::kInvalidArgument, "[--query] is " + std::to_string(query) + ", but the " +
                                                map.kind + " attention has queries 0 to " +
                                                std::to_string(map.rows - 1) + "."};
}

}  // namespace

std::string map_title(const AttentionMaps& map) {
  if (map.kind == "rollout") return "rollout over all layers";
  const std::string title = map.kind + " attention, layer " + std::to_string(map.layers[0].layer);
  if (map.first_head < 0) return title + ", mean over heads";
  return title + ", head " + std::to_string(map.first_head);
}

void print_map(const AttentionMaps& map) {
  constexpr std::array<char, 10> shades = {' ', '.', ':', '-', '=', '+', '*', '#', '%', '@'};
  const std::vector<std::string> rows = numbered(map.row_labels, map.rows);
  const std::vector<std::string> columns = numbered(map.column_labels, map.columns);
  size_t left = 0, cell = 2;
  for (const std::string& label : rows) left = std::max(left, label_width(label));
  for (const std::string& label : columns) cell = std::max(cell, label_width(label) + 1);
  cell = std::min<size_t>(cell, 8);
  std::string header(left + 1, ' ');
  for (const std::string& label : columns) {
    header += label;
    header.append(cell > label_width(label) ? cell - label_width(label) : 1, ' ');
  }
  while (header.back() == ' ') header.pop_back();
  print_line(header);
  for (int r = 0; r < map.rows; ++r) {
    std::string line = rows[static_cast<size_t>(r)];
    line.append(left + 1 - label_width(line), ' ');
    for (int c = 0; c < map.columns; ++c) {
      const float value = value_at(map, r, c);
      const bool finite = std::isfinite(value);
      const auto shade =
          finite ? static_cast<size_t>(std::clamp(value, 0.0F, 1.0F) * 9.0F + 0.5F) : 0;
      line += std::string(cell - 1, finite ? shades[shade] : '?') + ' ';
    }
    while (!line.empty() && line.back() == ' ') line.pop_back();
    print_line(line);
  }
}

void print_map_json(const AttendPass& pass, const AttendOptions& options,
                    const AttentionMaps& map) {
  Json json;
  json["input"] = options.input.input;
  json["text"] = pass.text;
  json["kind"] = map.kind;
  if (map.kind != "rollout") {
    json["layer"] = map.layers[0].layer;
    if (map.first_head < 0) {
      json["head"] = "all";
    } else {
      json["head"] = map.first_head;
    }
  }
  if (options.temperature != 1.0) json["temperature"] = options.temperature;
  json["rows"] = numbered(map.row_labels, map.rows);
  json["columns"] = numbered(map.column_labels, map.columns);
  json["matrix"] = Json::array();
  for (int r = 0; r < map.rows; ++r) {
    const auto begin = map.layers[0].values.begin() + ptrdiff_t{r} * map.columns;
    json["matrix"].push_back(std::vector<float>(begin, begin + map.columns));
  }
  print_json(json);
}

Status write_map_png(const AttendPass& pass, const AttendOptions& options,
                     const AttentionMaps& map) {
  HeatMap picture;
  picture.values = map.layers[0].values;
  picture.rows = map.rows;
  picture.columns = map.columns;
  picture.row_labels = map.row_labels;
  picture.column_labels = map.column_labels;
  picture.title = map_title(map);
  HeatMapOptions drawing;
  drawing.range = range_of(options);
  const bool decoder = pass.writes && map.kind == "decoder";
  const bool generated = decoder || (pass.writes && map.kind == "cross");
  drawing.row_axis = generated ? "generated" : map.kind == "encoder" ? "source" : "token";
  drawing.column_axis = decoder                       ? "read so far"
                        : drawing.row_axis == "token" ? "attends to"
                                                      : "source";
  return write_heat_map_png(options.png, picture, drawing);
}

Status write_overlay(const AttendPass& pass, const AttendOptions& options,
                     const AttentionMaps& map) {
  const int extra = extra_tokens(pass, map.columns);
  const bool on_words = map.kind == "decoder" || options.kind == MapKind::kDecoder;
  const bool on_patches = extra >= 0 && extra <= kMostExtraTokens && !on_words;
  if (!pass.picture || pass.patch_rows == 0 || !on_patches) {
    return Error{ErrorCode::kUnsupported,
                 "[--overlay] needs attention on the patches of a picture, but the " + map.kind +
                     " attention of [" + options.model + "] is on " + std::to_string(map.columns) +
                     " other tokens; use --png or --html."};
  }
  const Result<int64_t> query = overlay_query(pass, options, map);
  if (!query) return query.error();
  PatchMap patches{.rows = pass.patch_rows, .columns = pass.patch_columns, .values = {}};
  const int first = *query == kAllQueries ? 0 : static_cast<int>(*query);
  const int last = *query == kAllQueries ? map.rows - 1 : first;
  for (int c = extra; c < map.columns; ++c) {
    double sum = 0;
    for (int r = first; r <= last; ++r) sum += static_cast<double>(value_at(map, r, c));
    patches.values.push_back(static_cast<float>(sum / (last - first + 1)));
  }
  AttentionOverlayOptions drawing;
  drawing.region = pass.region;
  return write_bytes(options.overlay,
                     render_attention_overlay_png(*pass.picture, patches, drawing));
}

Status write_grid(const AttendOptions& options, const AttentionMaps& maps) {
  AttentionGridOptions drawing;
  drawing.range = range_of(options);
  drawing.title = maps.kind + " attention";
  return write_bytes(options.grid, render_attention_grid_png(maps, drawing));
}

Status write_html(const AttendOptions& options, const std::vector<AttentionMaps>& maps) {
  AttentionPageOptions page;
  page.title = "Attention of " + options.model;
  if (!options.input.input.empty()) page.title += ": " + options.input.input;
  const Result<std::string> html = render_attention_html(maps, page);
  if (!html) return html.error();
  return write_text_file(options.html, *html);
}

}  // namespace vkformer::cli
