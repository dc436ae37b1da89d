#include "json/json_tree.h"

#include <array>
#include <charconv>
#include <cmath>
#include <unordered_map>

#include "base/check.h"
#include "base/message.h"
#include "base/real_text.h"
#include "base/utf8_step.h"
#include "unicode/utf8.h"

namespace vkformer {
namespace {

using Type = JsonTree::Type;

class TreeParser {
 public:
  TreeParser(std::string_view text, const std::string& name, int most_depth)
      : text_(text), name_(name), most_depth_(most_depth) {}

  Result<JsonTree> parse() {
    JsonTree tree;
    VKF_CHECK(parse_value(tree, 0));
    skip_space();
    if (at_ < text_.size()) return error("more text follows the document");
    return tree;
  }

 private:
  Error error(const std::string& complaint) const {
    return invalid_file(message({"[", name_, "] is not valid JSON: ", complaint, " at byte ", at_,
                                 " of ", text_.size(), "."}));
  }
  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  void skip_space() {
    while (at_ < text_.size() && std::string_view(" \t\r\n").find(text_[at_]) != text_.npos) ++at_;
  }
  bool take(std::string_view word) {
    if (!text_.substr(at_).starts_with(word)) return false;
    at_ += word.size();
    return true;
  }

  Status parse_value(JsonTree& out, int depth) {
    if (depth > most_depth_) {
      return error("values nest deeper than the limit of " + std::to_string(most_depth_));
    }
    skip_space();
    const char c = peek();
    if (c == '{') return parse_object(out, depth);
    if (c == '[') return parse_array(out, depth);
    if (c == '"') {
      out.type = Type::kString;
      return parse_string(out.text);
    }
    if (take("true")) {
      out = JsonTree::of_boolean(true);
    } else if (take("false")) {
      out = JsonTree::of_boolean(false);
    } else if (!take("null")) {
      return parse_number(out);
    }
    return {};
  }

  Status parse_object(JsonTree& out, int depth) {
    out.type = Type::kObject;
    ++at_;
    skip_space();
    if (take("}")) return {};
    std::unordered_map<std::string, size_t> places;
    while (true) {
      skip_space();
      if (peek() != '"') return error("expected the name of a member");
      std::string key;
      VKF_CHECK(parse_string(key));
      skip_space();
      if (!take(":")) return error("expected ':'");
      const auto [place, is_new] = places.emplace(key, out.members.size());
      const size_t index = place->second;
      if (is_new) out.members.emplace_back(std::move(key), JsonTree());
      out.members[index].second = JsonTree();
      VKF_CHECK(parse_value(out.members[index].second, depth + 1));
      skip_space();
      if (take("}")) return {};
      if (!take(",")) return error("expected ',' or '}'");
    }
  }

  Status parse_array(JsonTree& out, int depth) {
    out.type = Type::kArray;
    ++at_;
    skip_space();
    if (take("]")) return {};
    while (true) {
      out.items.emplace_back();
      VKF_CHECK(parse_value(out.items.back(), depth + 1));
      skip_space();
      if (take("]")) return {};
      if (!take(",")) return error("expected ',' or ']'");
    }
  }

  Status parse_number(JsonTree& out) {
    const size_t begin = at_;
    const auto digits = [&] {
      const size_t first = at_;
      while (peek() >= '0' && peek() <= '9') ++at_;
      return at_ > first;
    };
    take("-");
    bool good = take("0") || digits();
    out.type = Type::kInteger;
    if (take(".")) {
      out.type = Type::kNumber;
      good = digits() && good;
    }
    if (take("e") || take("E")) {
      out.type = Type::kNumber;
      if (!take("+")) take("-");
      good = digits() && good;
    }
    if (!good) {
      at_ = begin;
      return error("expected a value");
    }
    const char* first = text_.data() + begin;
    const char* last = text_.data() + at_;
    if (read_real(first, last, out.number).ec != std::errc()) {
      return error("a number is out of range");
    }
    if (out.type == Type::kInteger && std::from_chars(first, last, out.integer).ec != std::errc()) {
      out.type = Type::kNumber;
    }
    return {};
  }

  Result<char32_t> parse_unit() {
    uint32_t value = 0;
    const std::string_view digits = text_.substr(at_, 4);
    const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
    if (digits.size() < 4 || read.ptr != digits.data() + 4) return error("expected four digits");
    at_ += 4;
    return static_cast<char32_t>(value);
  }

  Status parse_escape(std::string& out) {
    static constexpr std::string_view kNames = "\"\\/bfnrt";
    static constexpr std::string_view kValues = "\"\\/\b\f\n\r\t";
    const size_t found = kNames.find(peek());
    if (peek() != '\0' && found != kNames.npos) {
      ++at_;
      out += kValues[found];
      return {};
    }
    if (!take("u")) return error("unknown escape");
    VKF_ASSIGN(char32_t c, parse_unit());
    if (c >= 0xD800 && c < 0xDC00 && take("\\u")) {
      VKF_ASSIGN(const char32_t low, parse_unit());
      c = low >= 0xDC00 && low < 0xE000 ? 0x10000 + ((c - 0xD800) << 10) + (low - 0xDC00) : 0xD800;
    }
    if (c >= 0xD800 && c < 0xE000) return error("half of a surrogate pair stands alone");
    append_utf8(out, c);
    return {};
  }

  Status parse_string(std::string& out) {
    ++at_;
    while (peek() != '"') {
      if (at_ >= text_.size()) return error("a string has no end");
      if (static_cast<unsigned char>(peek()) < 0x20) {
        return error("a string holds a control character");
      }
      if (take("\\")) {
        VKF_CHECK(parse_escape(out));
        continue;
      }
      const Utf8Step step = utf8_step(text_.substr(at_));
      if (!step.valid) return error("a string is not valid UTF-8");
      out += text_.substr(at_, step.length);
      at_ += step.length;
    }
    ++at_;
    return {};
  }

  std::string_view text_;
  const std::string& name_;
  int most_depth_;
  size_t at_ = 0;
};

void append_compact(const JsonTree& tree, std::string& out) {
  switch (tree.type) {
    case Type::kNull:
      out += "null";
      break;
    case Type::kBoolean:
      out += tree.boolean ? "true" : "false";
      break;
    case Type::kInteger:
      out += std::to_string(tree.integer);
      break;
    case Type::kNumber:
      append_number(tree.number, out);
      break;
    case Type::kString:
      append_json_string(tree.text, out);
      break;
    case Type::kArray:
      out += '[';
      for (size_t i = 0; i < tree.items.size(); ++i) {
        if (i > 0) out += ',';
        append_compact(tree.items[i], out);
      }
      out += ']';
      break;
    case Type::kObject:
      out += '{';
      for (size_t i = 0; i < tree.members.size(); ++i) {
        if (i > 0) out += ',';
        append_json_string(tree.members[i].first, out);
        out += ':';
        append_compact(tree.members[i].second, out);
      }
      out += '}';
      break;
  }
}

}  // namespace

// Out of line, because each copy would be a large piece of code.
JsonTree::JsonTree() = default;
JsonTree::JsonTree(const JsonTree& other) = default;
JsonTree::JsonTree(JsonTree&& other) noexcept = default;
JsonTree& JsonTree::operator=(const JsonTree& other) = default;
JsonTree& JsonTree::operator=(JsonTree&& other) noexcept = default;
JsonTree::~JsonTree() = default;

const JsonTree* JsonTree::find(std::string_view key) const {
  for (const Member& member : members) {
    if (member.first == key) return &member.second;
  }
  return nullptr;
}

const char* JsonTree::type_name() const {
  static constexpr std::array kNames = {"null",     "a boolean", "an integer", "a number",
                                        "a string", "an array",  "an object"};
  return kNames[static_cast<size_t>(type)];
}

bool JsonTree::operator==(const JsonTree& other) const {
  if (is_number() && other.is_number()) {
    const bool integers = type == Type::kInteger && other.type == Type::kInteger;
    return integers ? integer == other.integer : number == other.number;
  }
  if (type != other.type || members.size() != other.members.size()) return false;
  for (const Member& member : members) {
    const JsonTree* match = other.find(member.first);
    if (match == nullptr || !(member.second == *match)) return false;
  }
  return boolean == other.boolean && text == other.text && items == other.items;
}

JsonTree JsonTree::of_type(Type type) {
  JsonTree tree;
  tree.type = type;
  return tree;
}

JsonTree JsonTree::of_boolean(bool value) {
  JsonTree tree = of_type(Type::kBoolean);
  tree.boolean = value;
  return tree;
}

JsonTree JsonTree::of_string(std::string value) {
  JsonTree tree = of_type(Type::kString);
  tree.text = std::move(value);
  return tree;
}

Result<JsonTree> parse_json_tree(std::string_view text, const std::string& name, int most_depth) {
  return TreeParser(text, name, most_depth).parse();
}

void append_json_string(std::string_view text, std::string& out) {
  static constexpr std::string_view kNames = "\"\\bfnrt";
  static constexpr std::string_view kValues = "\"\\\b\f\n\r\t";
  out += '"';
  for (const char c : text) {
    const size_t found = kValues.find(c);
    if (found != kValues.npos) {
      out += {'\\', kNames[found]};
    } else if (static_cast<unsigned char>(c) < 0x20) {
      static constexpr std::string_view kDigits = "0123456789abcdef";
      out += "\\u00";
      out += {kDigits[static_cast<size_t>(c) / 16], kDigits[static_cast<size_t>(c) % 16]};
    } else {
      out += c;
    }
  }
  out += '"';
}

void append_number(double number, std::string& out) {
  if (!std::isfinite(number)) {
    out += std::isnan(number) ? "NaN" : number < 0 ? "-Infinity" : "Infinity";
    return;
  }
  const double size = std::abs(number);
  const bool is_plain = size == 0 || (size >= 1e-4 && size < 1e16);
  std::array<char, 40> digits{};
  const auto end =
      std::to_chars(digits.data(), digits.data() + digits.size(), number,
                    is_plain ? std::chars_format::fixed : std::chars_format::scientific);
  const std::string_view made(digits.data(), static_cast<size_t>(end.ptr - digits.data()));
  out += made;
  if (is_plain && made.find('.') == made.npos) out += ".0";
}

std::string compact_json(const JsonTree& tree) {
  std::string out;
  append_compact(tree, out);
  return out;
}

}  // namespace vkformer
