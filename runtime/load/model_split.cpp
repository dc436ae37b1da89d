#include "load/model_split.h"

#include <algorithm>
#include <cctype>

namespace vkformer {
namespace {

bool is_number(const std::string& text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return std::isdigit(static_cast<unsigned char>(c)) != 0;
  });
}

}  // namespace

std::string place_of(const std::string& label) {
  size_t end = label.size();
  for (size_t begin = 0; begin < label.size();) {
    const size_t dot = std::min(label.find('.', begin), label.size());
    if (is_number(label.substr(begin, dot - begin))) {
      end = dot;
      break;
    }
    begin = dot + 1;
  }
  return label.substr(0, end);
}

size_t member_of_part(const std::string& place) {
  constexpr std::string_view kPart = "part.";
  if (!place.starts_with(kPart)) return 0;
  size_t part = 0;
  for (size_t i = kPart.size(); i < place.size() && place[i] != '.'; ++i) {
    part = 10 * part + static_cast<size_t>(place[i] - '0');
  }
  return part;
}

}  // namespace vkformer
