#include "checkpoint/json_config.h"

#include <cmath>
#include <exception>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/check.h"
#include "base/message.h"
#include "checkpoint/file_store.h"
#include "checkpoint/message_text.h"

namespace vkformer {

using nlohmann::json;

struct JsonConfig::Node {
  std::shared_ptr<const json> root;
  const json* object = nullptr;  // inside root
  std::string where;
  std::string prefix;  // the keys that lead here, each followed by a dot
  std::optional<Error> broken;

  const json* find(const std::string& key) const {
    if (object == nullptr) return nullptr;
    const auto found = object->find(key);
    return found == object->end() || found->is_null() ? nullptr : &*found;
  }
  std::string key_text(const std::string& key) const { return bracketed(prefix + key); }
};

namespace {

constexpr size_t kMaxBytes = size_t{64} << 20;
constexpr int kMaxDepth = 64;
// Above this an f64 no longer tells whole numbers apart.
constexpr double kMaxExactInteger = 9007199254740992.0;

// Reads JSON without keeping it: the nesting depth, and where the syntax breaks.
class SyntaxCheck {
 public:
  bool null() { return true; }
  bool boolean(bool) { return true; }
  bool number_integer(int64_t) { return true; }
  bool number_unsigned(uint64_t) { return true; }
  bool number_float(double, const std::string&) { return true; }
  bool string(std::string&) { return true; }
  bool binary(std::vector<uint8_t>&) { return true; }
  bool key(std::string&) { return true; }
  bool start_object(size_t) { return enter(); }
  bool start_array(size_t) { return enter(); }
  bool end_object() { return leave(); }
  bool end_array() { return leave(); }
  bool parse_error(size_t position, const std::string& token, const json::exception&) {
    problem_ = "is not valid JSON near byte " + std::to_string(position) + ", at " +
               bracketed(token) + ".";
    return false;
  }
  const std::string& problem() const { return problem_; }

 private:
  bool enter() {
    if (++depth_ <= kMaxDepth) return true;
    problem_ = "is nested more than " + std::to_string(kMaxDepth) + " levels deep.";
    return false;
  }
  bool leave() {
    --depth_;
    return true;
  }

  int depth_ = 0;
  std::string problem_;
};

// "a string", for messages.
std::string kind_of(const json& value) {
  switch (value.type()) {
    case json::value_t::null:
      return "null";
    case json::value_t::object:
      return "an object";
    case json::value_t::array:
      return "a list of " + std::to_string(value.size());
    case json::value_t::string:
      return "the string " + bracketed(*value.get_ptr<const std::string*>());
    case json::value_t::boolean:
      return *value.get_ptr<const bool*>() ? "true" : "false";
    case json::value_t::number_integer:
    case json::value_t::number_unsigned:
    case json::value_t::number_float:
      return "the number " + value.dump();
    default:
      return "of unknown type";
  }
}

// The readers give nothing if the value is of another type; kExpected then says what it should be.

struct IntReader {
  using Value = int64_t;
  static constexpr const char* kExpected = "a whole number of 64 bits";
  static std::optional<int64_t> read(const json& value) {
    // An unsigned number is also an integer to the library, so it comes first.
    if (const auto* number = value.get_ptr<const json::number_unsigned_t*>()) {
      if (*number > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) return {};
      return static_cast<int64_t>(*number);
    }
    if (const auto* number = value.get_ptr<const json::number_integer_t*>()) return *number;
    const auto* number = value.get_ptr<const json::number_float_t*>();
    if (number == nullptr || std::fabs(*number) > kMaxExactInteger) return {};
    if (std::trunc(*number) != *number) return {};
    return static_cast<int64_t>(*number);
  }
};

struct DoubleReader {
  using Value = double;
  static constexpr const char* kExpected = "a number";
  static std::optional<double> read(const json& value) {
    if (const auto* number = value.get_ptr<const json::number_unsigned_t*>()) {
      return static_cast<double>(*number);
    }
    if (const auto* number = value.get_ptr<const json::number_integer_t*>()) {
      return static_cast<double>(*number);
    }
    if (const auto* number = value.get_ptr<const json::number_float_t*>()) return *number;
    return read_special(value);
  }
  // Infinity, which JSON lacks, as newer files spell it: {"__float__": "Infinity"}.
  static std::optional<double> read_special(const json& value) {
    if (!value.is_object() || value.size() != 1 || !value.contains("__float__")) return {};
    const json& text = value["__float__"];
    if (text == "Infinity") return std::numeric_limits<double>::infinity();
    if (text == "-Infinity") return -std::numeric_limits<double>::infinity();
    return {};
  }
};

struct BoolReader {
  using Value = bool;
  static constexpr const char* kExpected = "true or false";
  static std::optional<bool> read(const json& value) {
    if (const auto* flag = value.get_ptr<const bool*>()) return *flag;
    return {};
  }
};

struct StringReader {
  using Value = std::string;
  static constexpr const char* kExpected = "a string";
  static std::optional<std::string> read(const json& value) {
    if (const auto* text = value.get_ptr<const std::string*>()) return *text;
    return {};
  }
};

template <class Reader>
Result<typename Reader::Value> read_value(const json& value, const std::string& label) {
  auto result = Reader::read(value);
  if (result) return std::move(*result);
  return invalid_file(
      message({label, " is ", kind_of(value), ", where ", Reader::kExpected, " must be."}));
}

template <class Reader>
Result<std::vector<typename Reader::Value>> read_list(const json& value, const std::string& label) {
  std::vector<typename Reader::Value> list;
  if (!value.is_array()) {
    VKF_ASSIGN(auto single, read_value<Reader>(value, label));
    list.push_back(std::move(single));
    return list;
  }
  for (size_t i = 0; i < value.size(); ++i) {
    VKF_ASSIGN(auto item,
               read_value<Reader>(value[i], label + ", element " + std::to_string(i) + ","));
    list.push_back(std::move(item));
  }
  return list;
}

// null is -1.
struct IntOrNullReader {
  using Value = int64_t;
  static constexpr const char* kExpected = "a whole number of 64 bits or null";
  static std::optional<int64_t> read(const json& value) {
    return value.is_null() ? -1 : IntReader::read(value);
  }
};

template <class Reader>
Result<std::vector<std::vector<int64_t>>> read_lists(const json& value, const std::string& label) {
  if (!value.is_array()) {
    return invalid_file(
        message({label, " is ", kind_of(value), ", where a list of lists must be."}));
  }
  std::vector<std::vector<int64_t>> lists;
  for (size_t i = 0; i < value.size(); ++i) {
    const std::string element = label + ", element " + std::to_string(i) + ",";
    if (!value[i].is_array()) {
      return invalid_file(message({element, " is ", kind_of(value[i]), ", where a list must be."}));
    }
    VKF_ASSIGN(auto list, read_list<Reader>(value[i], element));
    lists.push_back(std::move(list));
  }
  return lists;
}

// Calls `take` with both halves of every pair in a list, and a label for messages.
template <class Take>
Status for_pairs(const json& value, const std::string& label, const char* what, Take take) {
  if (!value.is_array()) {
    return invalid_file(
        message({label, " is ", kind_of(value), ", where a list of pairs must be."}));
  }
  for (size_t i = 0; i < value.size(); ++i) {
    const std::string element = label + ", element " + std::to_string(i) + ",";
    if (!value[i].is_array() || value[i].size() != 2) {
      return invalid_file(
          message({element, " is ", kind_of(value[i]), ", where a pair of ", what, " must be."}));
    }
    VKF_CHECK(take(value[i][0], value[i][1], element));
  }
  return {};
}

// [[["global", "local"], 2]] -> global, local, global, local.
Result<std::vector<std::string>> read_repeated(const json& value, const std::string& label,
                                               size_t most) {
  std::vector<std::string> all;
  const auto repeat = [&](const json& list, const json& times,
                          const std::string& element) -> Status {
    VKF_ASSIGN(const auto names, read_list<StringReader>(list, element));
    VKF_ASSIGN(const int64_t count, read_value<IntReader>(times, element));
    if (count < 0 || (!names.empty() && static_cast<uint64_t>(count) > most / names.size()) ||
        all.size() + names.size() * static_cast<size_t>(names.empty() ? 0 : count) > most) {
      return invalid_file(message({element, " repeats its names ", count, " times; there may be ",
                                   most, " names in all."}));
    }
    if (names.empty()) return {};
    for (int64_t n = 0; n < count; ++n) all.insert(all.end(), names.begin(), names.end());
    return {};
  };
  VKF_CHECK(for_pairs(value, label, "names and a count", repeat));
  return all;
}

// [[[5, 7], -2.5]]
Result<JsonConfig::WeightedLists> read_weighted(const json& value, const std::string& label) {
  JsonConfig::WeightedLists all;
  const auto add = [&](const json& list, const json& weight, const std::string& element) -> Status {
    VKF_ASSIGN(auto ids, read_list<IntReader>(list, element));
    VKF_ASSIGN(const double number, read_value<DoubleReader>(weight, element));
    all.emplace_back(std::move(ids), number);
    return {};
  };
  VKF_CHECK(for_pairs(value, label, "integers and a number", add));
  return all;
}

// The value of `key` through `read`, which gets the value and its label for messages; `fallback`
// if it is missing, or an error without one.
template <class Value, class Node, class Read>
Result<Value> lookup(const Node* node, const std::string& key, const Value* fallback, Read read) {
  if (node != nullptr && node->broken) return *node->broken;
  const json* found = node != nullptr ? node->find(key) : nullptr;
  const std::string where = node != nullptr ? node->where : std::string("an empty object");
  const std::string label =
      "File [" + where + "]: key " + (node != nullptr ? node->key_text(key) : bracketed(key));
  try {
    if (found != nullptr) return read(*found, label);
    if (fallback != nullptr) return *fallback;
    return Error{ErrorCode::kInvalidFile, label + " is missing; the model needs it."};
  } catch (const std::exception&) {
    return Error{ErrorCode::kOutOfMemory, label + " does not fit into memory."};
  }
}

}  // namespace

Result<JsonConfig> JsonConfig::load(const std::string& path) {
  VKF_ASSIGN(const MappedFile file, MappedFile::open(path));
  const auto bytes = file.bytes();
  return parse({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, path);
}

namespace {

// The text with infinities, which Python writes as bare words, in their newer spelling
// (DoubleReader).
std::string with_spelled_infinities(std::string_view text) {
  std::string result;
  bool quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted && c == '\\' && i + 1 < text.size()) {
      result += c;
      result += text[++i];
      continue;
    }
    if (c == '"') quoted = !quoted;
    size_t length = 0;
    for (const std::string_view word : {"Infinity", "-Infinity"}) {
      if (!quoted && text.substr(i).starts_with(word)) length = word.size();
    }
    if (length == 0) {
      result += c;
      continue;
    }
    result.append("{\"__float__\": \"").append(text.substr(i, length)).append("\"}");
    i += length - 1;
  }
  return result;
}

// The tree of a text, its size and depth within limits.
Result<std::shared_ptr<const json>> parse_tree(std::string_view text, const std::string& label) {
  if (text.size() > kMaxBytes) {
    return invalid_file(message({label, "has ", text.size(), " bytes, above the limit ", kMaxBytes,
                                 " for a configuration."}));
  }
  // The parser would take a zero byte for the end and ignore what follows.
  if (text.find('\0') != std::string_view::npos) {
    return invalid_file(label + "holds a zero byte; it is not JSON.");
  }
  try {
    // Depth is checked before a tree is built: copies and destructors of a deep tree recurse.
    const bool special = text.find("Infinity") != text.npos;
    const std::string rewritten = special ? with_spelled_infinities(text) : std::string();
    if (special) text = rewritten;
    SyntaxCheck syntax;
    if (!json::sax_parse(text.begin(), text.end(), &syntax)) {
      return invalid_file(label + syntax.problem());
    }
    return std::shared_ptr<const json>(
        std::make_shared<json>(json::parse(text.begin(), text.end(), nullptr, false)));
  } catch (const std::exception&) {
    return Error{ErrorCode::kOutOfMemory, label + "does not fit into memory."};
  }
}

}  // namespace

Result<JsonConfig> JsonConfig::parse(std::string_view text, const std::string& where) {
  const std::string label = "File [" + where + "] ";
  VKF_ASSIGN(std::shared_ptr<const json> root, parse_tree(text, label));
  if (!root->is_object()) {
    return invalid_file(message({label, "holds ", kind_of(*root), ", where an object must be."}));
  }
  auto node = std::make_shared<Node>();
  node->object = root.get();
  node->root = std::move(root);
  node->where = where;
  return JsonConfig(std::move(node));
}

Result<JsonConfig> JsonConfig::load_from(const FileStore& files, const std::string& name) {
  VKF_ASSIGN(const MappedFile file, files.open(name));
  const auto bytes = file.bytes();
  return parse({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, file.path());
}

Result<std::vector<JsonConfig>> JsonConfig::load_list(const FileStore& files,
                                                      const std::string& name) {
  VKF_ASSIGN(const MappedFile file, files.open(name));
  const auto bytes = file.bytes();
  const std::string path = file.path();
  const std::string label = "File [" + path + "] ";
  VKF_ASSIGN(std::shared_ptr<const json> root,
             parse_tree({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, label));
  if (!root->is_array()) {
    return invalid_file(message({label, "holds ", kind_of(*root), ", where a list must be."}));
  }
  std::vector<JsonConfig> list;
  for (size_t i = 0; i < root->size(); ++i) {
    if (!(*root)[i].is_object()) {
      return invalid_file(message(
          {label, "has ", kind_of((*root)[i]), " as entry ", i, ", where an object must be."}));
    }
    auto node = std::make_shared<Node>();
    node->root = root;
    node->object = &(*root)[i];
    node->where = path;
    node->prefix = std::to_string(i) + ".";
    list.push_back(JsonConfig(std::move(node)));
  }
  return list;
}

bool JsonConfig::has(const std::string& key) const {
  return node_ != nullptr && node_->find(key) != nullptr;
}

std::vector<std::string> JsonConfig::keys() const {
  std::vector<std::string> names;
  if (node_ == nullptr || node_->object == nullptr) return names;
  for (const auto& [name, value] : node_->object->items()) {
    if (!value.is_null()) names.push_back(name);
  }
  return names;
}

std::string JsonConfig::where() const {
  return node_ != nullptr ? node_->where : std::string();
}

Status JsonConfig::status() const {
  if (node_ != nullptr && node_->broken) return *node_->broken;
  return {};
}

JsonConfig JsonConfig::object(const std::string& key) const {
  if (node_ == nullptr || node_->broken) return *this;
  auto nested = std::make_shared<Node>();
  nested->root = node_->root;
  nested->where = node_->where;
  nested->prefix = node_->prefix + key + ".";
  const json* found = node_->find(key);
  if (found != nullptr && !found->is_object()) {
    nested->broken = invalid_file(message({"File [", node_->where, "]: key ", node_->key_text(key),
                                           " is ", kind_of(*found), ", where an object must be."}));
  } else {
    nested->object = found;
  }
  return JsonConfig(std::move(nested));
}

Result<int64_t> JsonConfig::get_int(const std::string& key) const {
  return lookup<int64_t>(node_.get(), key, nullptr, read_value<IntReader>);
}
Result<int64_t> JsonConfig::get_int_or(const std::string& key, int64_t fallback) const {
  return lookup<int64_t>(node_.get(), key, &fallback, read_value<IntReader>);
}
Result<double> JsonConfig::get_double(const std::string& key) const {
  return lookup<double>(node_.get(), key, nullptr, read_value<DoubleReader>);
}
Result<double> JsonConfig::get_double_or(const std::string& key, double fallback) const {
  return lookup<double>(node_.get(), key, &fallback, read_value<DoubleReader>);
}
Result<bool> JsonConfig::get_bool(const std::string& key) const {
  return lookup<bool>(node_.get(), key, nullptr, read_value<BoolReader>);
}
Result<bool> JsonConfig::get_bool_or(const std::string& key, bool fallback) const {
  return lookup<bool>(node_.get(), key, &fallback, read_value<BoolReader>);
}
Result<std::string> JsonConfig::get_string(const std::string& key) const {
  return lookup<std::string>(node_.get(), key, nullptr, read_value<StringReader>);
}
Result<std::string> JsonConfig::get_string_or(const std::string& key,
                                              const std::string& fallback) const {
  return lookup<std::string>(node_.get(), key, &fallback, read_value<StringReader>);
}

Result<std::vector<int64_t>> JsonConfig::get_int_list_or(
    const std::string& key, const std::vector<int64_t>& fallback) const {
  return lookup<std::vector<int64_t>>(node_.get(), key, &fallback, read_list<IntReader>);
}
Result<std::vector<double>> JsonConfig::get_double_list_or(
    const std::string& key, const std::vector<double>& fallback) const {
  return lookup<std::vector<double>>(node_.get(), key, &fallback, read_list<DoubleReader>);
}
Result<std::vector<bool>> JsonConfig::get_bool_list_or(const std::string& key,
                                                       const std::vector<bool>& fallback) const {
  return lookup<std::vector<bool>>(node_.get(), key, &fallback, read_list<BoolReader>);
}
Result<std::vector<std::string>> JsonConfig::get_string_list_or(
    const std::string& key, const std::vector<std::string>& fallback) const {
  return lookup<std::vector<std::string>>(node_.get(), key, &fallback, read_list<StringReader>);
}
Result<std::vector<std::vector<int64_t>>> JsonConfig::get_int_lists_or(
    const std::string& key, const std::vector<std::vector<int64_t>>& fallback) const {
  return lookup<std::vector<std::vector<int64_t>>>(node_.get(), key, &fallback,
                                                   read_lists<IntReader>);
}
Result<std::vector<std::vector<int64_t>>> JsonConfig::get_nullable_int_lists_or(
    const std::string& key, const std::vector<std::vector<int64_t>>& fallback) const {
  return lookup<std::vector<std::vector<int64_t>>>(node_.get(), key, &fallback,
                                                   read_lists<IntOrNullReader>);
}

Result<JsonConfig::WeightedLists> JsonConfig::get_weighted_lists_or(
    const std::string& key, const WeightedLists& fallback) const {
  return lookup<WeightedLists>(node_.get(), key, &fallback, read_weighted);
}

Result<std::vector<std::string>> JsonConfig::get_repeated_names_or(
    const std::string& key, const std::vector<std::string>& fallback, size_t most) const {
  const auto read = [most](const json& value, const std::string& label) {
    return read_repeated(value, label, most);
  };
  return lookup<std::vector<std::string>>(node_.get(), key, &fallback, read);
}

}  // namespace vkformer
