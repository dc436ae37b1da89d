#include "model/blocks/shifted_windows.h"

namespace vkformer {
namespace {

// Which of the three strips a line of the rolled grid belongs to. They are whole windows, the rest
// of the last window, or what the roll brought round from the other side.
int64_t strip(int64_t at, int64_t length, int64_t window, int64_t shift) {
  if (at < length - window) return 0;
  return at < length - shift ? 1 : 2;
}

// Regions of the rolled grid by window, (windows, area).
std::vector<int64_t> regions(const WindowGrid& g) {
  const int64_t height = g.rows() * g.window;
  const int64_t width = g.columns() * g.window;
  std::vector<int64_t> values;
  for (int64_t w = 0; w < g.windows(); ++w) {
    for (int64_t t = 0; t < g.area(); ++t) {
      const int64_t y = w / g.columns() * g.window + t / g.window;
      const int64_t x = w % g.columns() * g.window + t % g.window;
      values.push_back(3 * strip(y, height, g.window, g.shift) +
                       strip(x, width, g.window, g.shift));
    }
  }
  return values;
}

}  // namespace

std::vector<uint32_t> window_rows(const WindowGrid& g, int64_t batch) {
  const int64_t height = g.rows() * g.window;
  const int64_t width = g.columns() * g.window;
  std::vector<uint32_t> list;
  for (int64_t b = 0; b < batch; ++b) {
    for (int64_t w = 0; w < g.windows(); ++w) {
      for (int64_t t = 0; t < g.area(); ++t) {
        const int64_t y = (w / g.columns() * g.window + t / g.window + g.shift) % height;
        const int64_t x = (w % g.columns() * g.window + t % g.window + g.shift) % width;
        const bool inside = y < g.tokens.height && x < g.tokens.width;
        const int64_t row = (b * g.tokens.height + y) * g.tokens.width + x;
        list.push_back(inside ? static_cast<uint32_t>(row) : ~0u);
      }
    }
  }
  return list;
}

std::vector<uint32_t> unwindow_rows(const WindowGrid& g, int64_t batch) {
  const int64_t height = g.rows() * g.window;
  const int64_t width = g.columns() * g.window;
  std::vector<uint32_t> list;
  for (int64_t b = 0; b < batch; ++b) {
    for (int64_t t = 0; t < g.tokens.count(); ++t) {
      const int64_t y = (t / g.tokens.width + height - g.shift) % height;
      const int64_t x = (t % g.tokens.width + width - g.shift) % width;
      const int64_t window = b * g.windows() + y / g.window * g.columns() + x / g.window;
      const int64_t row = window * g.area() + y % g.window * g.window + x % g.window;
      list.push_back(static_cast<uint32_t>(row));
    }
  }
  return list;
}

std::vector<uint32_t> merge_rows(const GridSize& tokens, int64_t batch) {
  const GridSize merged = {(tokens.height + 1) / 2, (tokens.width + 1) / 2};
  std::vector<uint32_t> list;
  for (int64_t b = 0; b < batch; ++b) {
    for (int64_t t = 0; t < 4 * merged.count(); ++t) {
      const int64_t y = t / 4 / merged.width * 2 + t % 2;
      const int64_t x = t / 4 % merged.width * 2 + t % 4 / 2;
      const bool inside = y < tokens.height && x < tokens.width;
      const int64_t row = (b * tokens.height + y) * tokens.width + x;
      list.push_back(inside ? static_cast<uint32_t>(row) : ~0u);
    }
  }
  return list;
}

std::vector<float> window_biases(const WindowGrid& g, std::span<const uint32_t> index,
                                 std::span<const float> table, int64_t heads) {
  const auto area = static_cast<size_t>(g.area());
  const std::vector<int64_t> region = g.shift > 0 ? regions(g) : std::vector<int64_t>();
  const size_t slices = g.shift > 0 ? static_cast<size_t>(g.windows()) : 1;
  std::vector<float> biases;
  biases.reserve(slices * static_cast<size_t>(heads) * area * area);
  for (size_t w = 0; w < slices; ++w) {
    for (size_t h = 0; h < static_cast<size_t>(heads); ++h) {
      for (size_t pair = 0; pair < area * area; ++pair) {
        const float bias = table[index[pair] * static_cast<size_t>(heads) + h];
        const bool apart =
            !region.empty() && region[w * area + pair / area] != region[w * area + pair % area];
        biases.push_back(apart ? bias - 100.0f : bias);
      }
    }
  }
  return biases;
}

}  // namespace vkformer
