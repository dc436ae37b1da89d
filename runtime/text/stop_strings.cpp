#include "vkformer/stop_strings.h"

#include <algorithm>
#include <utility>

namespace vkformer {
namespace {

// How many characters at the end of `text` begin `stop` without being all of it.
size_t begun(const std::string& text, const std::string& stop) {
  for (size_t n = std::min(text.size(), stop.size() - 1); n > 0; --n) {
    if (text.compare(text.size() - n, n, stop, 0, n) == 0) return n;
  }
  return 0;
}

}  // namespace

StopStrings::StopStrings(std::vector<std::string> stops) : stops_(std::move(stops)) {
  std::erase(stops_, std::string());
}

std::string StopStrings::push(std::string_view piece) {
  if (stopped_) return {};
  held_ += piece;
  // The one that is complete first, so that it does not matter how the text is cut into pieces.
  size_t end = std::string::npos;
  size_t begin = 0;
  size_t keep = 0;
  for (const std::string& stop : stops_) {
    keep = std::max(keep, begun(held_, stop));
    const size_t at = held_.find(stop);
    if (at == std::string::npos || at + stop.size() > end) continue;
    begin = at + stop.size() < end ? at : std::min(begin, at);
    end = at + stop.size();
  }
  if (end != std::string::npos) {
    stopped_ = true;
    return std::exchange(held_, {}).substr(0, begin);
  }
  std::string certain = held_.substr(0, held_.size() - keep);
  held_.erase(0, certain.size());
  return certain;
}

std::string StopStrings::finish() {
  return std::exchange(held_, {});
}

}  // namespace vkformer
