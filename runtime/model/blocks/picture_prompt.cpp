#include "model/blocks/picture_prompt.h"

#include <algorithm>
#include <cmath>

#include "base/message.h"
#include "base/narrow.h"

namespace vkformer {
namespace {

constexpr int64_t kMostPictures = 4096;  // of a pass

// Calls visit(row, token, kept index) for each kept token, row by row.
template <class Visit>
void for_kept(const PromptTokens& tokens, Visit visit) {
  for (int64_t b = 0; b < tokens.batch; ++b) {
    size_t index = 0;
    for (int64_t t = 0; t < tokens.tokens; ++t) {
      const auto at = static_cast<size_t>(b * tokens.tokens + t);
      if (tokens.kept[at] != 0) visit(static_cast<size_t>(b), at, index++);
    }
  }
}

}  // namespace

Status PicturePrompt::prepare(const Checkpoint&) {
  return {};
}

PicturePrompt::Grid PicturePrompt::grid_of(std::span<const int64_t>, int64_t) const {
  return {};
}

Result<std::vector<uint8_t>> PicturePrompt::token_types(const TensorMap& inputs,
                                                        const PromptTokens& tokens) const {
  std::vector<uint8_t> types(tokens.ids.size(), 0);
  const auto given = settings_.types.empty() ? inputs.end() : inputs.find(settings_.types);
  if (given == inputs.end()) {
    if (settings_.spans == Spans::kPrompts) return types;
    for (size_t i = 0; i < types.size(); ++i) types[i] = is_image(tokens.ids[i]) ? 1 : 0;
    return types;
  }
  if (given->second.shape != Shape{tokens.batch, tokens.tokens}) {
    return invalid_argument(
        message({"[", settings_.types, "] has shape ", shape_text(given->second.shape),
                 ", but input_ids has ", shape_text({tokens.batch, tokens.tokens}), "."}));
  }
  VKF_ASSIGN(const std::vector<int64_t> values, given->second.to_ints());
  for (size_t i = 0; i < values.size(); ++i) {
    if (values[i] != 0 && values[i] != 1) {
      return unsupported(message({"[", settings_.types, "] holds ", values[i],
                                  "; supported are 0 (text) and 1 (an image)."}));
    }
    types[i] = static_cast<uint8_t>(values[i]);
  }
  return types;
}

Result<std::vector<uint32_t>> PicturePrompt::first_features(const PromptTokens& tokens,
                                                            std::span<const int64_t> more) const {
  std::vector<uint32_t> first(static_cast<size_t>(tokens.batch));
  int64_t images = 0;
  for (size_t i = 0; i < tokens.ids.size(); ++i) {
    if (i % static_cast<size_t>(tokens.tokens) == 0) {
      first[i / static_cast<size_t>(tokens.tokens)] = u32(images);
    }
    if (tokens.kept[i] != 0 && is_image(tokens.ids[i])) ++images;
  }
  const int64_t made = features(more);
  if (made == 0 || made == images) return first;
  return invalid_argument(
      message({"[pixel_values] make ", made, " rows of features, but ", images,
               " tokens of input_ids are the image token ", settings_.image_token,
               "; give one such token for each row of features."}));
}

void PicturePrompt::add_rows_words(const PromptTokens& tokens,
                                   std::span<const PromptPictures::Row> rows,
                                   FeedWords& words) const {
  std::vector<uint32_t> text(tokens.ids.size()), pictures(tokens.ids.size(), ~0u);
  for (size_t i = 0; i < text.size(); ++i) text[i] = static_cast<uint32_t>(i);
  std::vector<uint32_t> next;
  next.reserve(rows.size());
  for (const PromptPictures::Row& row : rows) next.push_back(row.first);
  for_kept(tokens, [&](size_t b, size_t at, size_t) {
    if (!is_image(tokens.ids[at])) return;
    text[at] = ~0u;
    pictures[at] = next[b]++;
  });
  words["text_rows"] = std::move(text);
  words["picture_rows"] = std::move(pictures);
}

void PicturePrompt::add_span_words(const PromptTokens& tokens,
                                   std::span<const PromptPictures::Row> rows,
                                   const StackConfig& stack, FeedWords& words) const {
  const auto t = static_cast<size_t>(tokens.tokens);
  const size_t line = (t + 31) / 32;
  const size_t kinds = std::max<size_t>(1, stack.kinds.size());
  const size_t plane = static_cast<size_t>(tokens.batch) * t * line;
  std::vector<uint32_t> masks(kinds * plane, 0u);
  // The number of each token's span; 0: none.
  std::vector<uint32_t> spans(tokens.ids.size(), 0u);
  const uint8_t wanted = settings_.spans == Spans::kPrompts ? 0 : 1;
  uint32_t number = 0;
  size_t before = 0;
  for_kept(tokens, [&](size_t b, size_t at, size_t index) {
    const std::vector<uint8_t>& types = rows[b].types;
    if (types[index] != wanted) return;
    // A prompt is one span whatever stands between its tokens.
    const bool goes_on = settings_.spans == Spans::kPrompts
                             ? number > 0 && before / t == b
                             : number > 0 && before + 1 == at && before / t == b;
    if (!goes_on) ++number;
    before = at;
    spans[at] = number;
  });
  for (size_t k = 0; k < kinds; ++k) {
    const int64_t window = stack.kinds.empty() ? -1 : stack.kinds[k].window_left;
    for (size_t i = 0; i < tokens.ids.size(); ++i) {
      uint32_t* bits = &masks[k * plane + i * line];
      const size_t row = i / t * t;
      const size_t first =
          window < 0 ? 0 : i - row - std::min(i - row, static_cast<size_t>(window));
      for (size_t j = first; j <= i - row; ++j) bits[j / 32] |= 1u << (j % 32);
      if (spans[i] == 0) continue;
      for (size_t j = 0; j < t; ++j) {
        if (spans[row + j] == spans[i]) bits[j / 32] |= 1u << (j % 32);
      }
    }
  }
  words["span_masks"] = std::move(masks);
}

// Text advances all three components. An image has (0, row, column) after the text before it. What
// follows comes after the longer of its sides.
std::vector<std::array<int64_t, 3>> PicturePrompt::positions_of(std::span<const uint32_t> ids,
                                                                const PromptPictures::Row& row,
                                                                std::span<const int64_t> more,
                                                                Shift shift) const {
  std::vector<std::array<int64_t, 3>> positions;
  int64_t next = 0;
  int64_t feature = row.first;
  for (size_t i = 0; i < ids.size();) {
    const Grid grid = row.types[i] == 1 ? grid_of(more, feature) : Grid{};
    if (grid.features == 0) {
      positions.push_back({next, next, next});
      ++next;
      ++i;
      continue;
    }
    for (int64_t f = 0; f < grid.features && i < ids.size(); ++f, ++i) {
      const int64_t in_frame = f % (grid.rows * grid.columns);
      positions.push_back({next + f / (grid.rows * grid.columns), next + in_frame / grid.columns,
                           next + in_frame % grid.columns});
    }
    feature += grid.features;
    next += std::max(grid.rows, grid.columns);
  }
  if (shift == Shift::kNone || positions.empty()) return positions;
  const int64_t by = static_cast<int64_t>(ids.size()) - next;
  for (auto& position : positions) {
    for (int64_t& p : position) p += by;
  }
  return positions;
}

Status PicturePrompt::add_turning_words(const PromptTokens& tokens,
                                        std::span<const PromptPictures::Row> rows,
                                        std::span<const int64_t> more, const RotarySetup& rotary,
                                        Shift shift, FeedWords& words) const {
  VKF_ASSIGN(const RotaryFrequencies frequencies,
             rotary_frequencies(rotary.scaling, rotary.width, tokens.tokens));
  const size_t pairs = rotary.width / 2;
  // The component of each frequency.
  std::vector<size_t> component(pairs, 0);
  const std::vector<int64_t>& sections = settings_.sections;
  size_t behind = 0;
  for (size_t c = 0; c < sections.size(); ++c) {
    for (size_t i = 0; i < static_cast<size_t>(sections[c]); ++i) {
      const bool interleaved = settings_.order == Settings::Sections::kInterleaved;
      const size_t at = interleaved ? 3 * i + c : behind + i;
      if (at < pairs && (c > 0 || !interleaved)) component[at] = c;
    }
    behind += static_cast<size_t>(sections[c]);
  }
  std::vector<float> table(tokens.ids.size() * rotary.width, 0.0f);
  for (size_t b = 0; b < rows.size(); ++b) {
    std::vector<uint32_t> ids;
    std::vector<size_t> places;
    for (int64_t t = 0; t < tokens.tokens; ++t) {
      const size_t at = b * static_cast<size_t>(tokens.tokens) + static_cast<size_t>(t);
      if (tokens.kept[at] == 0) continue;
      ids.push_back(tokens.ids[at]);
      places.push_back(at);
    }
    const auto positions = positions_of(ids, rows[b], more, shift);
    for (size_t i = 0; i < places.size(); ++i) {
      float* to = &table[places[i] * rotary.width];
      for (size_t p = 0; p < pairs; ++p) {
        const double angle =
            static_cast<double>(positions[i][component[p]]) * frequencies.radians[p];
        to[p] = static_cast<float>(frequencies.scale * std::cos(angle));
        to[pairs + p] = static_cast<float>(frequencies.scale * std::sin(angle));
      }
    }
  }
  words["turning_rows"] = float_words(table);
  return {};
}

Result<int64_t> read_pictures(const TensorMap& inputs, const GridFacts& grid, FeedWords& words) {
  const auto found = inputs.find("pixel_values");
  if (found == inputs.end()) return 0;
  const Shape& shape = found->second.shape;
  const bool fits = shape.size() == 4 && shape[0] >= 1 && shape[0] <= kMostPictures &&
                    shape[1] == grid.channels && shape[2] == grid.height && shape[3] == grid.width;
  if (!fits) {
    return invalid_argument(
        message({"[pixel_values] has shape ", shape_text(shape), ", but this model takes (N, ",
                 grid.channels, ", ", grid.height, ", ", grid.width, ") with N up to ",
                 kMostPictures, "; resize the images to that."}));
  }
  VKF_ASSIGN(const std::vector<float> values, found->second.to_floats());
  words["pixel_values"] = float_words(values);
  return shape[0];
}

}  // namespace vkformer
