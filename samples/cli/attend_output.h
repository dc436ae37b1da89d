// How `vkformer attend` shows maps: in characters, as JSON, as pictures and as pages.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "attend_inputs.h"

namespace vkformer::cli {

struct AttendOptions {
  std::string model;
  AttendInput input;
  std::optional<MapKind> kind;  // absent: the model's most telling one
  std::string head = "all";
  std::string png, grid, overlay, html;  // files to write
  std::string range = "one";
  std::optional<int64_t> layer;
  std::optional<int64_t> query;
  std::optional<int64_t> item;
  double temperature = 1.0;
  bool rollout = false;
  ModelOptions load;

  bool writes_files() const {
    return !(png.empty() && grid.empty() && overlay.empty() && html.empty());
  }
};

// Precondition of all: `map` has one layer and one head. A drawing in characters, dark for high.
void print_map(const AttentionMaps& map);
void print_map_json(const AttendPass& pass, const AttendOptions& options, const AttentionMaps& map);
Status write_map_png(const AttendPass& pass, const AttendOptions& options,
                     const AttentionMaps& map);
// One query's weights over the picture.
Status write_overlay(const AttendPass& pass, const AttendOptions& options,
                     const AttentionMaps& map);

Status write_grid(const AttendOptions& options, const AttentionMaps& maps);
Status write_html(const AttendOptions& options, const std::vector<AttentionMaps>& maps);

// "cross attention, layer 1, head 0".
std::string map_title(const AttentionMaps& map);

}  // namespace vkformer::cli
