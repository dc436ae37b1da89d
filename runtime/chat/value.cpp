#include "chat/value.h"

#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/check.h"
#include "base/message.h"
#include "base/utf8_step.h"
#include "chat/fault.h"
#include "unicode/utf8.h"

namespace vkformer::chat {
namespace {

using Type = Value::Type;

constexpr int kMostValueDepth = 100;
constexpr size_t kMostWeight = 4u << 20;

void append_hex(uint32_t value, int digits, std::string& out) {
  for (int shift = 4 * (digits - 1); shift >= 0; shift -= 4) {
    out += "0123456789abcdef"[value >> shift & 15];
  }
}

// Neither a control, a separator, nor without a meaning.
bool is_printable(char32_t c) {
  const auto category = utf8proc_category(static_cast<utf8proc_int32_t>(c));
  return category != UTF8PROC_CATEGORY_CN && category < UTF8PROC_CATEGORY_ZS;
}

void append_quoted(std::string_view text, std::string& out) {
  const bool is_double = text.find('\'') != text.npos && text.find('"') == text.npos;
  const char quote = is_double ? '"' : '\'';
  out += quote;
  for (size_t at = 0; at < text.size();) {
    const Utf8Step step = utf8_step(text.substr(at));
    const char c = text[at];
    const char32_t value = step.valid ? utf8_value(text.substr(at), step.length) : 0;
    static constexpr std::string_view kNames = "nrt";
    static constexpr std::string_view kValues = "\n\r\t";
    const size_t found = step.length == 1 ? kValues.find(c) : kValues.npos;
    if (found != kValues.npos) {
      out += {'\\', kNames[found]};
    } else if (c == '\\' || c == quote) {
      out += {'\\', c};
    } else if (value != ' ' && !is_printable(value)) {
      const int digits = value < 0x100 ? 2 : value < 0x10000 ? 4 : 8;
      out += {'\\', digits == 2 ? 'x' : digits == 4 ? 'u' : 'U'};
      append_hex(value, digits, out);
    } else {
      out += text.substr(at, step.length);
    }
    at += step.length;
  }
  out += quote;
}

void append_float(double number, std::string& out) {
  if (std::isfinite(number)) return append_number(number, out);
  out += std::isnan(number) ? "nan" : number < 0 ? "-inf" : "inf";
}

void append_repr(const Value& value, std::string& out) {
  check_text_size(out.size());
  switch (value.type()) {
    case Type::kUndefined:
      out += "Undefined";
      return;
    case Type::kNone:
      out += "None";
      return;
    case Type::kBoolean:
      out += value.as_integer() ? "True" : "False";
      return;
    case Type::kInteger:
      out += std::to_string(value.as_integer());
      return;
    case Type::kFloat:
      append_float(value.as_real(), out);
      return;
    case Type::kString:
      append_quoted(value.as_string(), out);
      return;
    case Type::kFunction:
      out += "<function " + value.as_function().name + ">";
      return;
    case Type::kList:
    case Type::kTuple: {
      const bool is_list = value.is(Type::kList);
      out += is_list ? '[' : '(';
      for (size_t i = 0; i < value.as_list().size(); ++i) {
        if (i > 0) out += ", ";
        append_repr(value.as_list()[i], out);
      }
      if (!is_list && value.as_list().size() == 1) out += ',';
      out += is_list ? ']' : ')';
      return;
    }
    case Type::kDict:
    case Type::kNamespace:
      break;
  }
  out += '{';
  bool is_first = true;
  for (const auto& [key, member] : value.as_dict()) {
    if (!is_first) out += ", ";
    is_first = false;
    append_repr(key, out);
    out += ": ";
    append_repr(member, out);
  }
  out += '}';
}

void append_ascii(const std::string& text, std::string& out) {
  for (size_t at = 0; at < text.size();) {
    const Utf8Step step = utf8_step(std::string_view(text).substr(at));
    const char32_t c = step.valid ? utf8_value(std::string_view(text).substr(at), step.length) : 0;
    if (step.length == 1) {
      out += text[at];
    } else {
      const bool is_pair = c > 0xFFFF;
      out += "\\u";
      append_hex(is_pair ? 0xD800 + ((c - 0x10000) >> 10) : c, 4, out);
      if (is_pair) {
        out += "\\u";
        append_hex(0xDC00 + (c & 0x3FF), 4, out);
      }
    }
    at += step.length;
  }
}

class JsonWriter {
 public:
  explicit JsonWriter(const JsonStyle& style) : style_(style) {
    if (style_.between_items.empty()) style_.between_items = style_.indent < 0 ? ", " : ",";
  }

  void write(const Value& value, int depth) {
    check_text_size(out.size());
    switch (value.type()) {
      case Type::kNone:
        out += "null";
        return;
      case Type::kBoolean:
        out += value.as_integer() ? "true" : "false";
        return;
      case Type::kInteger:
        out += std::to_string(value.as_integer());
        return;
      case Type::kFloat:
        append_number(value.as_real(), out);
        return;
      case Type::kString:
        write_string(value.as_string());
        return;
      case Type::kList:
      case Type::kTuple:
        return write_list(value, depth);
      case Type::kDict:
        return write_dict(value, depth);
      default:
        fail(std::string(value.type_name()) + " cannot be written as JSON.");
    }
  }

  std::string out;

 private:
  void write_string(const std::string& text) {
    std::string quoted;
    append_json_string(text, quoted);
    if (style_.only_ascii) return append_ascii(quoted, out);
    out += quoted;
  }

  void break_line(int depth) {
    if (style_.indent < 0) return;
    out += '\n';
    out.append(static_cast<size_t>(style_.indent) * static_cast<size_t>(depth), ' ');
  }

  void write_list(const Value& value, int depth) {
    out += '[';
    bool is_first = true;
    for (const Value& item : value.as_list()) {
      if (!is_first) out += style_.between_items;
      is_first = false;
      break_line(depth + 1);
      write(item, depth + 1);
    }
    if (!is_first) break_line(depth);
    out += ']';
  }

  void write_dict(const Value& value, int depth) {
    std::vector<const Value::Member*> members;
    for (const Value::Member& member : value.as_dict()) members.push_back(&member);
    if (style_.sorts_keys) {
      std::stable_sort(members.begin(), members.end(), [](const auto* a, const auto* b) {
        return to_text(a->first) < to_text(b->first);
      });
    }
    out += '{';
    for (size_t i = 0; i < members.size(); ++i) {
      if (i > 0) out += style_.between_items;
      break_line(depth + 1);
      const Value& key = members[i]->first;
      if (key.is(Type::kString)) {
        write_string(key.as_string());
      } else {
        out += '"';
        write(key, depth + 1);
        out += '"';
      }
      out += style_.after_keys;
      write(members[i]->second, depth + 1);
    }
    if (!members.empty()) break_line(depth);
    out += '}';
  }

  JsonStyle style_;
};

}  // namespace

void fail(const std::string& complaint, int line) {
  const std::string place = line > 0 ? "line " + std::to_string(line) + ": " : "";
  throw Fault{invalid_argument(message({"[chat template] ", place, complaint}))};
}

void check_text_size(size_t size) {
  if (size <= kMostText) return;
  fail("a text of " + std::to_string(size) + " bytes or more is longer than the limit of " +
       std::to_string(kMostText) + " bytes.");
}

// Out of line, because copies are everywhere and each would be a piece of code.
Value::Value() = default;
Value::Value(const Value& other) = default;
Value::Value(Value&& other) noexcept = default;
Value& Value::operator=(const Value& other) = default;
Value& Value::operator=(Value&& other) noexcept = default;
Value::~Value() = default;
Value::Value(Type type) : type_(type) {}

Value Value::with_data(Type type) {
  Value value(type);
  value.data_ = std::make_shared<Data>();
  return value;
}

void Value::hold(const Value& value) {
  const int depth = value.data_ ? value.data_->depth + 1 : 1;
  data_->depth = std::max(data_->depth, depth);
  data_->weight += value.weight();
  const bool holds = value.is(Type::kNamespace) || (value.data_ && value.data_->holds_namespace);
  data_->holds_namespace = data_->holds_namespace || holds;
  if (depth > kMostValueDepth) {
    fail("a value nests deeper than the limit of " + std::to_string(kMostValueDepth) + " levels.");
  }
  if (data_->weight > kMostWeight) {
    fail("a value holds more than the limit of " + std::to_string(kMostWeight) + " others.");
  }
}

Value Value::undefined(std::string name) {
  Value value = with_data(Type::kUndefined);
  value.data_->text = std::move(name);
  return value;
}

Value Value::boolean(bool truth) {
  Value value(Type::kBoolean);
  value.integer_ = truth ? 1 : 0;
  return value;
}

Value Value::integer(int64_t number) {
  Value value(Type::kInteger);
  value.integer_ = number;
  return value;
}

Value Value::real(double number) {
  Value value(Type::kFloat);
  value.real_ = number;
  return value;
}

Value Value::string(std::string text) {
  Value value = with_data(Type::kString);
  value.data_->weight += text.size() / 16;
  value.data_->text = std::move(text);
  return value;
}

Value Value::list(List items, Type type) {
  Value value = with_data(type);
  for (const Value& item : items) value.hold(item);
  value.data_->items = std::move(items);
  return value;
}

Value Value::dict(Members members, Type type) {
  Value value = with_data(type);
  for (const auto& [key, member] : members) {
    value.hold(key);
    value.hold(member);
  }
  value.data_->members = std::move(members);
  return value;
}

Value Value::function(Function function) {
  Value value = with_data(Type::kFunction);
  if (function.self) value.hold(*function.self);
  value.data_->function = std::move(function);
  return value;
}

Value Value::from_json(const JsonTree& tree) {
  switch (tree.type) {
    case JsonTree::Type::kNull:
      return none();
    case JsonTree::Type::kBoolean:
      return boolean(tree.boolean);
    case JsonTree::Type::kInteger:
      return integer(tree.integer);
    case JsonTree::Type::kNumber:
      return real(tree.number);
    case JsonTree::Type::kString:
      return string(tree.text);
    case JsonTree::Type::kArray: {
      List items;
      for (const JsonTree& item : tree.items) items.push_back(from_json(item));
      return list(std::move(items));
    }
    case JsonTree::Type::kObject:
      break;
  }
  Members members;
  for (const auto& [key, member] : tree.members) {
    members.emplace_back(string(key), from_json(member));
  }
  return dict(std::move(members));
}

void Value::set_member(const std::string& key, Value value) {
  hold(value);
  if (data_->holds_namespace) fail("a namespace cannot hold a namespace.");
  for (auto& [name, old] : data_->members) {
    if (name.is(Type::kString) && name.as_string() == key) {
      data_->weight -= std::min(data_->weight, old.weight());
      old = std::move(value);
      return;
    }
  }
  data_->members.emplace_back(string(key), std::move(value));
}

const Value* Value::find(const Value& key) const {
  for (const auto& [name, value] : data_->members) {
    if (name == key) return &value;
  }
  return nullptr;
}

const Value* Value::find(std::string_view key) const {
  for (const auto& [name, value] : data_->members) {
    if (name.is(Type::kString) && name.as_string() == key) return &value;
  }
  return nullptr;
}

bool Value::is_true() const {
  switch (type_) {
    case Type::kUndefined:
    case Type::kNone:
      return false;
    case Type::kBoolean:
    case Type::kInteger:
      return integer_ != 0;
    case Type::kFloat:
      return real_ != 0;
    case Type::kString:
      return !data_->text.empty();
    case Type::kList:
    case Type::kTuple:
      return !data_->items.empty();
    case Type::kDict:
      return !data_->members.empty();
    default:
      return true;
  }
}

bool Value::operator==(const Value& other) const {
  if (is_number() && other.is_number()) {
    return is_integer() && other.is_integer() ? integer_ == other.integer_
                                              : as_real() == other.as_real();
  }
  if (type_ != other.type_) return false;
  if (type_ == Type::kNone || type_ == Type::kUndefined || data_ == other.data_) return true;
  switch (type_) {
    case Type::kString:
      return data_->text == other.data_->text;
    case Type::kList:
    case Type::kTuple:
      return data_->items == other.data_->items;
    case Type::kDict:
      if (data_->members.size() != other.data_->members.size()) return false;
      for (const auto& [key, value] : data_->members) {
        const Value* there = other.find(key);
        if (there == nullptr || !(value == *there)) return false;
      }
      return true;
    default:
      return false;
  }
}

const char* Value::type_name() const {
  static constexpr std::array kNames = {
      "an undefined value", "none",   "a truth value", "an integer", "a number",
      "a string",           "a list", "a tuple",       "a dict",     "a namespace",
      "a function"};
  return kNames[static_cast<size_t>(type_)];
}

std::string to_text(const Value& value) {
  if (value.is(Type::kString)) return value.as_string();
  if (value.is(Type::kUndefined)) return "";
  return to_repr(value);
}

std::string to_repr(const Value& value) {
  std::string out;
  append_repr(value, out);
  return out;
}

std::string to_json(const Value& value, const JsonStyle& style) {
  JsonWriter writer(style);
  writer.write(value, 0);
  return std::move(writer.out);
}

}  // namespace vkformer::chat
