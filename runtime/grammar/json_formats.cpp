#include "grammar/json_formats.h"

namespace vkformer {
namespace {

// Patterns of RFC 3339, RFC 9562 and RFC 2673 (dotted quads).
constexpr const char* kDate =
    "[12]\\d{3}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12]\\d|3[01])|(?:0[469]|11)-(?:0[1-9]|[12]\\d|30)|"
    "02-(?:0[1-9]|1\\d|2[0-8]))";
constexpr const char* kTime =
    "(?:[01]\\d|2[0-3]):[0-5]\\d:[0-5]\\d(?:\\.\\d{1,6})?(?:Z|[+-](?:[01]\\d|2[0-3]):[0-5]\\d)";
constexpr const char* kUuid = "[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}";
constexpr const char* kIpv4 =
    "(?:(?:\\d|[1-9]\\d|1\\d\\d|2[0-4]\\d|25[0-5])\\.){3}(?:\\d|[1-9]\\d|1\\d\\d|2[0-4]\\d|25[0-5]"
    ")";

}  // namespace

const char* const kJsonFormats = "date, time, date-time, uuid and ipv4";

std::optional<JsonText> json_format(std::string_view name, GrammarTree& tree, JsonPieces& pieces) {
  std::string pattern;
  if (name == "date") pattern = kDate;
  if (name == "time") pattern = kTime;
  if (name == "date-time") pattern = std::string(kDate) + "T" + kTime;
  if (name == "uuid") pattern = kUuid;
  if (name == "ipv4") pattern = kIpv4;
  if (pattern.empty()) return std::nullopt;
  auto made = parse_json_pattern("^" + pattern + "$", "format", tree, pieces);
  return made ? std::optional<JsonText>(*made) : std::nullopt;
}

}  // namespace vkformer
