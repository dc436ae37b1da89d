#include "plan/matmul_choice.h"

#include <iterator>

namespace vkformer {
namespace {

constexpr const char* kNames[] = {"rows",    "stream", "wide",  "literal", "slabs",    "stationary",
                                  "strided", "tiled",  "units", "dots",    "dot_tiles"};

}  // namespace

const char* strategy_name(MatmulStrategy strategy) {
  return kNames[static_cast<size_t>(strategy)];
}

std::optional<MatmulStrategy> strategy_from_name(std::string_view name) {
  for (size_t i = 0; i < std::size(kNames); ++i) {
    if (name == kNames[i]) return static_cast<MatmulStrategy>(i);
  }
  return std::nullopt;
}

std::string choice_text(const MatmulChoice& c) {
  std::string text = strategy_name(c.strategy);
  const auto add = [&](uint32_t number, char before) {
    if (number != 0) text += before + std::to_string(number);
  };
  add(c.rows, ' ');
  add(c.lanes, c.rows != 0 ? 'x' : ' ');
  add(c.slices, 'x');
  return text;
}

}  // namespace vkformer
