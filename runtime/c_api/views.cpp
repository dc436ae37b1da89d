// Seeing attention through the C interface.
#include "base/message.h"
#include "c_api/enums.h"
#include "vkformer/attention_view.h"

struct vkf_maps {
  vkformer::AttentionMaps maps;
};

struct vkf_heads {
  std::vector<vkformer::AttentionHead> items;
};

namespace vkformer {
namespace {

AttentionMeasurements measured(const vkf_measured_pass& given) {
  need_all({{given.scores, "scores"}, {given.entropies, "entropies"}});
  AttentionMeasurements made{given.scores->maps, {}};
  const size_t count =
      static_cast<size_t>(made.scores.heads) * static_cast<size_t>(made.scores.rows);
  for (size_t i = 0; i < made.scores.layers.size(); ++i) {
    need(given.entropies[i], "entropies of a layer");
    made.entropies.emplace_back(given.entropies[i], given.entropies[i] + count);
  }
  return made;
}

AttentionHeadOptions head_options(const vkf_head_options* options) {
  const vkf_head_options given = read_struct(options, "head options");
  AttentionHeadOptions made;
  if (given.temperature != 0) made.temperature = given.temperature;
  if (given.collapsed != 0) made.collapsed = given.collapsed;
  if (given.saturated != 0) made.saturated = given.saturated;
  return made;
}

using MapsHandle = std::unique_ptr<vkf_maps>;

MapsHandle maps_handle(Result<AttentionMaps> made) {
  AttentionMaps maps = take(std::move(made));
  return handle(vkf_maps{std::move(maps)});
}

// Labels, or none where the pointer is null.
std::vector<std::string> labels(const char* const* given, int count, const char* name) {
  if (given == nullptr) return std::vector<std::string>();
  return read_texts(given, static_cast<size_t>(count), name);
}

std::vector<float> matrix(const float* values, int32_t rows, int32_t columns) {
  // More than any picture shows, and far from what overflows.
  constexpr int32_t kMost = 65536;
  if (rows < 0 || columns < 0 || rows > kMost || columns > kMost) {
    refuse(invalid_argument(message({"[values] of ", rows, " rows and ", columns,
                                     " columns; give 0 to ", kMost, " of each."})));
  }
  const size_t count = static_cast<size_t>(rows) * static_cast<size_t>(columns);
  if (count == 0) return std::vector<float>();
  need(values, "values");
  return std::vector<float>(values, values + count);
}

}  // namespace
}  // namespace vkformer

using namespace vkformer;

vkf_status vkf_maps_from(const vkf_tensors* outputs, const char* kind, int64_t item,
                         vkf_maps** maps, vkf_error* error) {
  return make_handle(maps, error, [&] {
    need_all({{outputs, "outputs"}, {kind, "kind"}});
    return maps_handle(
        attention_maps_from(outputs->map, take(choice_from_name<MapKind>(kind)), item));
  });
}

vkf_status vkf_maps_mean(const vkf_maps* maps, vkf_maps** mean, vkf_error* error) {
  return make_handle(mean, error, [&] {
    need(maps, "maps");
    return maps_handle(mean_over_heads(maps->maps));
  });
}

vkf_status vkf_maps_rollout(const vkf_maps* maps, vkf_maps** rollout, vkf_error* error) {
  return make_handle(rollout, error, [&] {
    need(maps, "maps");
    return maps_handle(attention_rollout(maps->maps));
  });
}

vkf_status vkf_maps_set_labels(vkf_maps* maps, const char* const* rows, const char* const* columns,
                               vkf_error* error) {
  return guard(error, [&] {
    need(maps, "maps");
    std::vector<std::string> down = labels(rows, maps->maps.rows, "rows");
    std::vector<std::string> across = labels(columns, maps->maps.columns, "columns");
    maps->maps.row_labels = std::move(down);
    maps->maps.column_labels = std::move(across);
  });
}

vkf_status vkf_maps_get(const vkf_maps* maps, vkf_maps_info* info, vkf_error* error) {
  return guard(error, [&] {
    need(maps, "maps");
    const AttentionMaps& from = maps->maps;
    vkf_maps_info c{};
    c.heads = from.heads;
    c.first_head = from.first_head;
    c.rows = from.rows;
    c.columns = from.columns;
    c.layers = from.layers.size();
    c.kind = from.kind.c_str();
    return write_struct(info, c, "maps info");
  });
}

vkf_status vkf_maps_get_layer(const vkf_maps* maps, size_t index, int32_t* layer,
                              const float** values, vkf_error* error) {
  return guard(error, [&] {
    need_all({{maps, "maps"}, {layer, "layer"}, {values, "values"}});
    check_index(index, maps->maps.layers.size(), "layer");
    *layer = maps->maps.layers[index].layer;
    *values = maps->maps.layers[index].values.data();
  });
}

void vkf_maps_free(vkf_maps* maps) {
  delete maps;
}

vkf_status vkf_maps_grid_png(const vkf_maps* maps, const vkf_view_options* options, vkf_bytes** png,
                             vkf_error* error) {
  return make_handle(png, error, [&] {
    need(maps, "maps");
    const vkf_view_options given = read_struct(options, "view options");
    AttentionGridOptions read;
    read.cell_size = given.cell_size;
    read.range = value_of<HeatMapRange>(given.range, "range");
    read.title = text_or(given.title, "");
    return bytes_of(render_attention_grid_png(maps->maps, read));
  });
}

vkf_status vkf_maps_html(const vkf_maps* const* maps, size_t count, const char* title,
                         vkf_bytes** page, vkf_error* error) {
  return make_handle(page, error, [&] {
    if (count != 0) need(maps, "maps");
    std::vector<AttentionMaps> copies;
    for (size_t i = 0; i < count; ++i) {
      need(maps[i], "maps");
      copies.push_back(maps[i]->maps);
    }
    AttentionPageOptions read;
    read.title = text_or(title, read.title.c_str());
    return bytes_of(render_attention_html(copies, read));
  });
}

vkf_status vkf_heat_map_png(const vkf_heat_map* map, const vkf_view_options* options,
                            vkf_bytes** png, vkf_error* error) {
  return make_handle(png, error, [&] {
    const vkf_heat_map from = read_needed(map, "heat map");
    const vkf_view_options given = read_struct(options, "view options");
    HeatMap read;
    read.values = matrix(from.values, from.rows, from.columns);
    read.rows = from.rows;
    read.columns = from.columns;
    read.row_labels = labels(from.row_labels, from.rows, "row_labels");
    read.column_labels = labels(from.column_labels, from.columns, "column_labels");
    read.title = text_or(given.title, "");
    HeatMapOptions how;
    how.cell_size = given.cell_size;
    how.range = value_of<HeatMapRange>(given.range, "range");
    if (given.row_axis != nullptr) how.row_axis = given.row_axis;
    if (given.column_axis != nullptr) how.column_axis = given.column_axis;
    return bytes_of(render_heat_map_png(read, how));
  });
}

vkf_status vkf_overlay_png(const vkf_picture* picture, const vkf_overlay* overlay, vkf_bytes** png,
                           vkf_error* error) {
  return make_handle(png, error, [&] {
    need(picture, "picture");
    const vkf_overlay given = read_needed(overlay, "overlay");
    PatchMap patches;
    patches.values = matrix(given.values, given.rows, given.columns);
    patches.rows = given.rows;
    patches.columns = given.columns;
    AttentionOverlayOptions how;
    how.region = {given.left, given.top, given.width, given.height};
    if (given.strength != 0) how.strength = given.strength;
    if (given.zero_to_one != 0) how.range = HeatMapRange::kZeroToOne;
    return bytes_of(render_attention_overlay_png(picture->picture, patches, how));
  });
}

vkf_status vkf_heads_measure(const vkf_measured_pass* passes, size_t count,
                             const vkf_head_options* options, vkf_heads** heads, vkf_error* error) {
  return make_handle(heads, error, [&] {
    if (count != 0) need(passes, "passes");
    std::vector<AttentionMeasurements> read;
    for (size_t i = 0; i < count; ++i) read.push_back(measured(passes[i]));
    return handle(vkf_heads{take(measure_attention_heads(read, head_options(options)))});
  });
}

size_t vkf_heads_count(const vkf_heads* heads) {
  return heads != nullptr ? heads->items.size() : 0;
}

vkf_status vkf_heads_get(const vkf_heads* heads, size_t index, vkf_head* head, vkf_error* error) {
  return guard(error, [&] {
    need(heads, "heads");
    check_index(index, heads->items.size(), "head");
    const AttentionHead& from = heads->items[index];
    vkf_head c{};
    c.state = number_of(from.state);
    c.layer = from.layer;
    c.head = from.head;
    c.rows = from.rows;
    c.entropy = from.entropy;
    c.most_entropy = from.most_entropy;
    c.score_variance = from.score_variance;
    c.predicted_entropy = from.predicted_entropy;
    write_struct(head, c, "head");
  });
}

void vkf_heads_free(vkf_heads* heads) {
  delete heads;
}
