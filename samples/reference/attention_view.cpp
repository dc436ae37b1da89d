// Examples of maps of attention, and of pictures and pages of them.
#include <vkformer/attention_view.h>
#include <vkformer/heat_map.h>
#include <vkformer/session.h>

#include <cstdio>
#include <utility>

#include "examples.h"

namespace {

vkformer::Status show_maps(vkformer::Session& session, const vkformer::TensorMap& inputs) {
  //! [attention_maps_from mean_over_heads attention_rollout]
  // Takes the self-attention of a pass, its mean over heads, and the rollout over all layers.
  vkformer::RunOptions run;
  run.attentions = true;
  const auto outputs = session.run(inputs, run);
  if (!outputs) return outputs.error();
  const auto maps = vkformer::attention_maps_from(*outputs, vkformer::MapKind::kSelf);
  if (!maps) return maps.error();
  const auto mean = vkformer::mean_over_heads(*maps);
  if (!mean) return mean.error();
  const auto rollout = vkformer::attention_rollout(*maps);
  if (!rollout) return rollout.error();
  std::printf("%zu layers of %d heads\n", maps->layers.size(), maps->heads);
  //! [end]

  vkformer::AttentionMaps named = *maps;
  //! [render_attention_grid_png render_attention_html]
  // Names the four tokens, and draws all maps as one picture and as a page for a browser.
  named.row_labels = named.column_labels = {"the", "cat", "sat", "."};
  const auto png = vkformer::render_attention_grid_png(named);
  if (!png) return png.error();
  const auto page = vkformer::render_attention_html({&named, 1});
  if (!page) return page.error();
  //! [end]
  return expect(!png->empty() && !page->empty() && mean->heads == 1 && rollout->layers.size() == 1,
                "a picture, a page, a mean and a rollout");
}

vkformer::Status show_heads(vkformer::Session& session, const vkformer::TensorMap& inputs) {
  //! [measure_attention_heads]
  // Judges the heads of layer 0 by the scores and entropies of a text.
  vkformer::RunOptions run = {.attention_layer = 0, .entropy = true};
  const auto entropies = session.run(inputs, run);
  if (!entropies) return entropies.error();
  run.entropy = false;
  run.attentions = true;
  run.attention_values = vkformer::RunOptions::AttentionValues::kScores;
  const auto scores = session.run(inputs, run);
  if (!scores) return scores.error();
  vkformer::AttentionMeasurements pass;
  pass.scores = vkformer::attention_maps_from(*scores, vkformer::MapKind::kSelf).value();
  pass.entropies = {entropies->at("attention_entropy.0").to_floats().value()};
  const auto heads = vkformer::measure_attention_heads({&pass, 1});
  if (!heads) return heads.error();
  for (const vkformer::AttentionHead& head : *heads) {
    std::printf("%d: %.3f nats\n", head.head, head.entropy);
  }
  //! [end]
  return expect(!heads->empty(), "heads");
}

vkformer::Status show_drawing(const Setting& setting) {
  const std::string path = setting.scratch + "/heat_map.png";
  //! [render_heat_map_png write_heat_map_png]
  // Draws a matrix of weights, in memory and as a file.
  vkformer::HeatMap map;
  map.values = {1, 0, 0, 0.25F, 0.75F, 0};
  map.rows = 2;
  map.columns = 3;
  map.column_labels = {"the", "cat", "sat"};
  const auto png = vkformer::render_heat_map_png(map);
  if (!png) return png.error();
  const auto written = vkformer::write_heat_map_png(path, map);
  if (!written) return written.error();
  //! [end]

  const auto picture = vkformer::Picture::load(setting.tasks + "/picture-0.png");
  if (!picture) return picture.error();
  const auto processor = vkformer::PictureProcessor::load(setting.tasks + "/picture-labels");
  if (!processor) return processor.error();
  //! [seen_region render_attention_overlay_png]
  // Draws a picture with red where weights on 2 x 2 patches of what the model sees are high.
  const auto region =
      vkformer::seen_region(processor->settings(), picture->width(), picture->height());
  if (!region) return region.error();
  vkformer::AttentionOverlayOptions options;
  options.region = *region;
  const vkformer::PatchMap patches = {2, 2, {0, 1, 0.5F, 0.25F}};
  const auto overlay = vkformer::render_attention_overlay_png(*picture, patches, options);
  if (!overlay) return overlay.error();
  //! [end]
  return expect(!png->empty() && !overlay->empty(), "two PNG files");
}

}  // namespace

vkformer::Status show_attention_view(const Setting& setting) {
  const auto model =
      vkformer::Model::load(setting.device, setting.goldens + "/bert-sentiment/model");
  if (!model) return model.error();
  auto session = vkformer::Session::create(*model);
  if (!session) return session.error();
  const vkformer::TensorMap inputs = {
      {"input_ids", vkformer::Tensor::from_ints({1, 4}, {1, 5, 7, 2})}};
  const auto maps = show_maps(*session, inputs);
  if (!maps) return maps;
  const auto heads = show_heads(*session, inputs);
  if (!heads) return heads;
  return show_drawing(setting);
}
