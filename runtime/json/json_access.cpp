#include "json/json_access.h"

#include "base/check.h"
#include "base/message.h"
#include "unicode/utf8.h"

namespace vkformer {
namespace {

// Real tokenizer files nest to about 6.
constexpr int kMaxDepth = 64;

// Whether brackets outside of strings nest deeper than the limit. Nothing deep may be built: copies
// and destructors of a deep tree recurse. A separate scan costs little, where the parser's callback
// asks at the end of an object for each of its siblings.
bool is_too_deep(std::string_view text) {
  int depth = 0;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;
      if (c == '"') in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '{' || c == '[') {
      if (++depth > kMaxDepth) return true;
    } else if (c == '}' || c == ']') {
      --depth;
    }
  }
  return false;
}

}  // namespace

Error JsonRef::malformed(const std::string& complaint) const {
  return invalid_file(message({"[", path_, "] ", complaint}));
}

Error JsonRef::not_supported(const std::string& complaint) const {
  return unsupported(message({"[", path_, "] ", complaint}));
}

Error JsonRef::wrong_type(std::string_view wanted) const {
  return malformed("is of JSON type " + std::string(node_->type_name()) + "; it must be " +
                   std::string(wanted) + ".");
}

Result<std::optional<JsonRef>> JsonRef::optional_member(std::string_view key) const {
  if (!node_->is_object()) return wrong_type("an object");
  const auto found = node_->find(key);
  if (found == node_->end() || found->is_null()) return std::optional<JsonRef>();
  const std::string separator = path_.ends_with(':') ? " " : ".";
  return std::optional<JsonRef>(JsonRef(*found, path_ + separator + std::string(key)));
}

Result<JsonRef> JsonRef::member(std::string_view key) const {
  VKF_ASSIGN(auto found, optional_member(key));
  if (!found) return malformed("has no [" + std::string(key) + "], which it needs.");
  return std::move(*found);
}

Result<size_t> JsonRef::array_size() const {
  if (!node_->is_array()) return wrong_type("an array");
  return node_->size();
}

JsonRef JsonRef::element(size_t index) const {
  return {(*node_)[index], path_ + "[" + std::to_string(index) + "]"};
}

Result<std::string> JsonRef::text() const {
  const auto* value = node_->get_ptr<const std::string*>();
  if (value == nullptr) return wrong_type("a string");
  return *value;
}

Result<std::u32string> JsonRef::code_points() const {
  VKF_ASSIGN(const auto value, text());
  return decode_utf8(value, "string [" + path_ + "]");
}

Result<bool> JsonRef::boolean() const {
  const auto* value = node_->get_ptr<const bool*>();
  if (value == nullptr) return wrong_type("true or false");
  return *value;
}

Result<int64_t> JsonRef::integer(int64_t low, int64_t high) const {
  const std::string wanted =
      "an integer from " + std::to_string(low) + " to " + std::to_string(high);
  const auto* number = node_->get_ptr<const int64_t*>();
  const auto* natural = node_->get_ptr<const uint64_t*>();
  if (natural != nullptr) {
    if (*natural <= static_cast<uint64_t>(INT64_MAX)) {
      const auto value = static_cast<int64_t>(*natural);
      if (value >= low && value <= high) return value;
    }
    return malformed("is " + std::to_string(*natural) + "; it must be " + wanted + ".");
  }
  if (number == nullptr) return wrong_type(wanted);
  if (*number >= low && *number <= high) return *number;
  return malformed("is " + std::to_string(*number) + "; it must be " + wanted + ".");
}

Result<bool> JsonRef::boolean_or(std::string_view key, bool fallback) const {
  // Without naming its place, which takes longer and which only errors need.
  if (node_->is_object()) {
    const auto found = node_->find(key);
    if (found == node_->end()) return fallback;
    if (const auto* value = found->get_ptr<const bool*>()) return *value;
  }
  VKF_ASSIGN(const auto found, optional_member(key));
  return found ? found->boolean() : Result<bool>(fallback);
}

Result<int64_t> JsonRef::count_or(std::string_view key, int64_t fallback) const {
  VKF_ASSIGN(const auto found, optional_member(key));
  return found ? found->integer(0, INT32_MAX) : Result<int64_t>(fallback);
}

Result<std::string> JsonRef::text_or(std::string_view key, std::string_view fallback) const {
  VKF_ASSIGN(const auto found, optional_member(key));
  return found ? found->text() : Result<std::string>(std::string(fallback));
}

Result<nlohmann::json> parse_json(std::string_view text, const std::string& name) {
  using nlohmann::json;
  if (is_too_deep(text)) {
    return invalid_file(message({"[", name, "] nests deeper than the limit of ", kMaxDepth,
                                 " levels; it is not a tokenizer file."}));
  }
  try {
    return json::parse(text.begin(), text.end());
  } catch (const json::exception& fault) {
    // Without the name of its exception, "[json.exception.parse_error.101] ". The parser quotes
    // what it read last, which can be the rest of the file, and any bytes.
    const std::string_view said = fault.what();
    const size_t name_end = said.starts_with('[') ? said.find("] ") : std::string_view::npos;
    std::string reason(said.substr(name_end == std::string_view::npos ? 0 : name_end + 2, 200));
    for (char& c : reason) c = c >= ' ' && c <= '~' ? c : '?';
    return invalid_file(message({"[", name, "] is not valid JSON (", reason,
                                 "); the file is damaged or was cut short, fetch it again."}));
  }
}

}  // namespace vkformer
