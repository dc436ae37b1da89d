#include "load/weight_places.h"

#include <algorithm>
#include <cctype>
#include <numeric>
#include <string>
#include <tuple>

namespace vkformer {
namespace {

// "decoder.3.self.qkv" is of layer "decoder.3"; -1: of none. Encoders come before decoders.
struct LayerPlace {
  int64_t number = -1;
  bool decoder = false;
};
LayerPlace layer_of(const std::string& name) {
  const size_t dot = name.find('.');
  if (dot == std::string::npos) return {};
  size_t end = dot + 1;
  while (end < name.size() && std::isdigit(static_cast<unsigned char>(name[end])) != 0) ++end;
  if (end == dot + 1 || end - dot > 9 || (end < name.size() && name[end] != '.')) return {};
  return {std::stoll(name.substr(dot + 1, end - dot - 1)), name.compare(0, dot, "decoder") == 0};
}

}  // namespace

std::vector<bool> weights_in_host_memory(const std::vector<PackedWeight>& weights,
                                         const std::vector<bool>& held, uint64_t most_bytes) {
  std::vector<bool> host(weights.size());
  const auto counts = [&](size_t i) { return held.empty() || held[i]; };
  uint64_t left = 0;
  for (size_t i = 0; i < weights.size(); ++i) left += counts(i) ? weights[i].bytes : 0;
  // Those of one turn go together.
  using Turn = std::tuple<int, bool, int64_t>;
  const auto turn_of = [&](size_t i) -> Turn {
    const LayerPlace layer = layer_of(weights[i].row.name);
    if (layer.number < 0) return {2, false, -static_cast<int64_t>(i)};
    return {weights[i].row.experts > 0 ? 0 : 1, !layer.decoder, -layer.number};
  };
  std::vector<size_t> order(weights.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return turn_of(a) < turn_of(b); });
  for (size_t next = 0; next < order.size() && left > most_bytes;) {
    const Turn turn = turn_of(order[next]);
    for (; next < order.size() && turn_of(order[next]) == turn; ++next) {
      if (!counts(order[next])) continue;
      host[order[next]] = true;
      left -= weights[order[next]].bytes;
    }
  }
  return host;
}

}  // namespace vkformer
