// Jinja's filters and tests.
#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "base/real_text.h"
#include "chat/builtins.h"
#include "chat/fault.h"

namespace vkformer::chat {
namespace {

using Type = Value::Type;

// An attribute such as "function.name", as map and selectattr take it.
Value deep_attribute(Value value, const std::string& path, StepCount& steps) {
  steps.add(path.size() / 16);
  for (size_t begin = 0; begin <= path.size();) {
    const size_t end = std::min(path.find('.', begin), path.size());
    const std::string name = path.substr(begin, end - begin);
    const bool is_index = !name.empty() && name.find_first_not_of("0123456789") == name.npos;
    value =
        item_of(value,
                is_index && name.size() < 10 ? Value::integer(static_cast<int64_t>(std::stol(name)))
                                             : Value::string(name),
                steps);
    begin = end + 1;
  }
  return value;
}

Arguments without_first(const Arguments& arguments, size_t count) {
  Arguments rest = arguments;
  rest.positional.erase(rest.positional.begin(),
                        rest.positional.begin() +
                            static_cast<std::ptrdiff_t>(std::min(count, rest.positional.size())));
  return rest;
}

Value map_items(const Value& value, const Arguments& arguments, StepCount& steps) {
  Value::List out;
  const Value* attribute = arguments.find(SIZE_MAX, "attribute");
  const Value* fallback = arguments.find(SIZE_MAX, "default");
  for (const Value& item : items_of(value, steps)) {
    if (attribute != nullptr) {
      Value found = deep_attribute(item, to_text(*attribute), steps);
      const bool is_missing = found.is(Type::kUndefined) && fallback != nullptr;
      out.push_back(is_missing ? *fallback : std::move(found));
    } else {
      out.push_back(apply_filter(arguments.text(0, ""), item, without_first(arguments, 1), steps));
    }
  }
  return Value::list(std::move(out));
}

// select, reject, selectattr and rejectattr.
Value select_items(const std::string& name, const Value& value, const Arguments& arguments,
                   StepCount& steps) {
  const bool by_attribute = name.ends_with("attr");
  const bool wanted = name.starts_with("select");
  const size_t place = by_attribute ? 1 : 0;
  Value::List out;
  for (const Value& item : items_of(value, steps)) {
    const Value tested = by_attribute ? deep_attribute(item, arguments.text(0, ""), steps) : item;
    const bool holds = arguments.positional.size() <= place
                           ? tested.is_true()
                           : apply_test(arguments.text(place, ""), tested,
                                        without_first(arguments, place + 1), steps);
    if (holds == wanted) out.push_back(item);
  }
  return Value::list(std::move(out));
}

// What sort, unique, min and max compare: text without case unless asked for.
Value sort_key(const Value& item, const Arguments& arguments, StepCount& steps) {
  const Value attribute = arguments.get(SIZE_MAX, "attribute", Value::none());
  const Value key =
      attribute.is(Type::kNone) ? item : deep_attribute(item, to_text(attribute), steps);
  const bool by_case = arguments.get(SIZE_MAX, "case_sensitive", Value()).is_true();
  if (!key.is(Type::kString) || by_case) return key;
  return *text_method(key.as_string(), "lower", {}, steps);
}

Value sort_items(const Value& value, const Arguments& arguments, StepCount& steps) {
  std::vector<std::pair<Value, Value>> keyed;
  for (const Value& item : items_of(value, steps)) {
    keyed.emplace_back(sort_key(item, arguments, steps), item);
  }
  for (size_t size = keyed.size(); size > 0; size /= 2) steps.add(value.weight());
  const bool falls = arguments.get(0, "reverse", Value()).is_true();
  std::stable_sort(keyed.begin(), keyed.end(), [&](const auto& a, const auto& b) {
    return falls ? is_less(b.first, a.first) : is_less(a.first, b.first);
  });
  Value::List out;
  for (auto& [key, item] : keyed) out.push_back(std::move(item));
  return Value::list(std::move(out));
}

Value unique_items(const Value& value, const Arguments& arguments, StepCount& steps) {
  Value::List keys;
  Value::List out;
  for (const Value& item : items_of(value, steps)) {
    const Value key = sort_key(item, arguments, steps);
    const bool is_plain = !key.is_list() && !key.is_dict();
    steps.add(keys.size() * (is_plain ? 1 + key.weight() / 16 : key.weight()));
    if (std::find(keys.begin(), keys.end(), key) != keys.end()) continue;
    keys.push_back(key);
    out.push_back(item);
  }
  return Value::list(std::move(out));
}

Value extreme_item(const Value& value, const Arguments& arguments, bool greatest,
                   StepCount& steps) {
  const Value sorted = sort_items(value, arguments, steps);
  if (sorted.as_list().empty()) return Value::undefined(greatest ? "max" : "min");
  return greatest ? sorted.as_list().back() : sorted.as_list().front();
}

Value sum_items(const Value& value, const Arguments& arguments, StepCount& steps) {
  const Value attribute = arguments.get(0, "attribute", Value::none());
  Value sum = arguments.get(1, "start", Value::integer(0));
  for (const Value& item : items_of(value, steps)) {
    sum = binary("+", sum,
                 attribute.is(Type::kNone) ? item : deep_attribute(item, to_text(attribute), steps),
                 steps);
  }
  return sum;
}

Value json_of(const Value& value, const Arguments& arguments, StepCount& steps) {
  arguments.check("tojson", 4, "ensure_ascii indent separators sort_keys");
  JsonStyle style;
  style.only_ascii = arguments.get(0, "ensure_ascii", Value()).is_true();
  style.indent = std::min<int64_t>(arguments.integer(1, "indent", -1), 64);
  const Value separators = arguments.get(2, "separators", Value::none());
  if (separators.is_list() && separators.as_list().size() == 2) {
    style.between_items = to_text(separators.as_list()[0]);
    style.after_keys = to_text(separators.as_list()[1]);
  }
  style.sorts_keys = arguments.get(3, "sort_keys", Value()).is_true();
  steps.add(value.weight());
  return Value::string(to_json(value, style));
}

Value number_of(const Value& value, const Arguments& arguments, bool whole) {
  const Value fallback = arguments.get(0, "default", whole ? Value::integer(0) : Value::real(0));
  if (value.is_number()) {
    if (!whole) return Value::real(value.as_real());
    if (value.is_integer()) return Value::integer(value.as_integer());
    const double real = value.as_real();
    return std::abs(real) < 9e18 ? Value::integer(static_cast<int64_t>(real)) : fallback;
  }
  if (!value.is(Type::kString)) return fallback;
  const std::string text = strip(value.as_string(), std::nullopt, Ends::kBoth);
  double real = 0;
  int64_t integer = 0;
  const char* end = text.data() + text.size();
  if (whole) {
    const auto read = std::from_chars(text.data(), end, integer);
    if (read.ec == std::errc() && read.ptr == end) return Value::integer(integer);
  }
  const auto read = read_real(text.data(), end, real);
  if (read.ec != std::errc() || read.ptr != end || !(std::abs(real) <= 9e18)) {
    return fallback;
  }
  return whole ? Value::integer(static_cast<int64_t>(real)) : Value::real(real);
}

Value rounded(const Value& value, const Arguments& arguments) {
  if (!value.is_number()) fail("round takes a number.");
  const auto places =
      static_cast<double>(std::clamp<int64_t>(arguments.integer(0, "precision", 0), -15, 15));
  const std::string method = to_text(arguments.get(1, "method", Value::string("common")));
  const double scale = std::pow(10.0, places);
  const double scaled = value.as_real() * scale;
  // Half to even, as Python rounds.
  const double whole = method == "ceil"    ? std::ceil(scaled)
                       : method == "floor" ? std::floor(scaled)
                                           : std::nearbyint(scaled);
  return Value::real(whole / scale);
}

std::string indented(const std::string& text, const Arguments& arguments) {
  const Value width = arguments.get(0, "width", Value::integer(4));
  const std::string margin =
      width.is(Type::kString)
          ? width.as_string()
          : std::string(
                static_cast<size_t>(std::clamp<int64_t>(arguments.integer(0, "width", 4), 0, 1000)),
                ' ');
  const bool first = arguments.get(1, "first", Value()).is_true();
  const bool blank = arguments.get(2, "blank", Value()).is_true();
  std::string out;
  for (size_t at = 0, line = 0; at <= text.size(); ++line) {
    const size_t end = std::min(text.find('\n', at), text.size());
    if (line > 0) out += '\n';
    check_text_size(out.size() + margin.size());
    if (line == 0 ? first : end > at || blank) out += margin;
    out.append(text, at, end - at);
    at = end + 1;
  }
  return out;
}

Value joined(const Value& value, const Arguments& arguments, StepCount& steps) {
  const std::string gap = to_text(arguments.get(0, "d", Value::string("")));
  const Value attribute = arguments.get(1, "attribute", Value::none());
  std::string out;
  bool is_first = true;
  for (const Value& item : items_of(value, steps)) {
    out += is_first ? "" : gap;
    out +=
        to_text(attribute.is(Type::kNone) ? item : deep_attribute(item, to_text(attribute), steps));
    check_text_size(out.size());
    is_first = false;
    steps.add(1 + gap.size() / 16 + item.weight());
  }
  return Value::string(std::move(out));
}

Value escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&#34;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        out += c;
    }
  }
  return Value::string(std::move(out));
}

// Filters of lists and other collections; nothing for other names.
std::optional<Value> list_filter(const std::string& name, const Value& value,
                                 const Arguments& arguments, StepCount& steps) {
  if (name == "length" || name == "count") {
    return Value::integer(static_cast<int64_t>(length_of(value, steps)));
  }
  if (name == "first" || name == "last") {
    const Value::List items = items_of(value, steps);
    if (items.empty()) return Value::undefined(name);
    return name == "first" ? items.front() : items.back();
  }
  if (name == "list") return Value::list(items_of(value, steps));
  if (name == "reverse") {
    Value::List items = items_of(value, steps);
    std::reverse(items.begin(), items.end());
    return value.is(Type::kString) ? joined(Value::list(std::move(items)), {}, steps)
                                   : Value::list(std::move(items));
  }
  if (name == "items" || name == "dictsort") {
    if (value.is(Type::kUndefined)) return Value::list({});
    if (!value.is_dict()) fail("[" + name + "] takes a dict.");
    const Value items = call_method(value, "items", {}, steps);
    return name == "items" ? items : sort_items(items, {}, steps);
  }
  if (name == "join") return joined(value, arguments, steps);
  if (name == "map") return map_items(value, arguments, steps);
  if (name == "select" || name == "reject" || name == "selectattr" || name == "rejectattr") {
    return select_items(name, value, arguments, steps);
  }
  if (name == "sort") return sort_items(value, arguments, steps);
  if (name == "unique") return unique_items(value, arguments, steps);
  if (name == "min" || name == "max") return extreme_item(value, arguments, name == "max", steps);
  if (name == "sum") return sum_items(value, arguments, steps);
  return std::nullopt;
}

std::optional<Value> text_filter(const std::string& name, const Value& value,
                                 const Arguments& arguments, StepCount& steps) {
  static constexpr std::array kNames = {"trim",       "upper",   "lower",  "title",
                                        "capitalize", "replace", "string", "safe",
                                        "indent",     "escape",  "e",      "forceescape"};
  if (std::find(kNames.begin(), kNames.end(), name) == kNames.end()) return std::nullopt;
  steps.add(1 + value.weight());
  const std::string text = to_text(value);
  if (name == "trim") return text_method(text, "strip", arguments, steps);
  if (name == "indent") return Value::string(indented(text, arguments));
  if (name == "string" || name == "safe") return Value::string(text);
  if (name == "escape" || name == "e" || name == "forceescape") return escaped(text);
  if (name == "title") return Value::string(title(text));
  return text_method(text, name, arguments, steps);
}

}  // namespace

const Value* Arguments::find(size_t place, std::string_view name) const {
  if (place < positional.size()) return &positional[place];
  for (const auto& [key, value] : named) {
    if (!name.empty() && key == name) return &value;
  }
  return nullptr;
}

Value Arguments::get(size_t place, std::string_view name, Value fallback) const {
  const Value* found = find(place, name);
  return found != nullptr ? *found : std::move(fallback);
}

int64_t Arguments::integer(size_t place, std::string_view name, int64_t fallback) const {
  const Value* found = find(place, name);
  if (found == nullptr || found->is(Type::kNone)) return fallback;
  if (!found->is_integer()) fail("[" + std::string(name) + "] must be an integer.");
  return found->as_integer();
}

std::string Arguments::text(size_t place, std::string_view name) const {
  const Value* found = find(place, name);
  if (found == nullptr || !found->is(Type::kString)) {
    fail("argument " + std::to_string(place + 1) + " must be a string.");
  }
  return found->as_string();
}

void Arguments::check(std::string_view callee, size_t most, std::string_view names) const {
  const std::string name(callee);
  if (positional.size() > most) fail("[" + name + "] takes fewer arguments.");
  for (const auto& [key, value] : named) {
    if ((" " + std::string(names) + " ").find(" " + key + " ") == std::string::npos) {
      fail("[" + name + "] has no argument [" + key + "].");
    }
  }
}

Value apply_filter(const std::string& name, const Value& value, const Arguments& arguments,
                   StepCount& steps) {
  steps.add(1);
  if (name == "default" || name == "d") {
    const bool also_false = arguments.get(1, "boolean", Value()).is_true();
    const bool keeps = also_false ? value.is_true() : !value.is(Type::kUndefined);
    return keeps ? value : arguments.get(0, "default_value", Value::string(""));
  }
  if (name == "tojson") return json_of(value, arguments, steps);
  if (auto made = text_filter(name, value, arguments, steps)) return *made;
  if (auto made = list_filter(name, value, arguments, steps)) return *made;
  if (name == "int" || name == "float") return number_of(value, arguments, name == "int");
  if (name == "round") return rounded(value, arguments);
  if (name == "abs" && value.is_number()) {
    return value.is_integer()
               ? (value.as_integer() < 0 ? binary("-", Value::integer(0), value, steps) : value)
               : Value::real(std::abs(value.as_real()));
  }
  if (name == "attr") return attribute_of(value, arguments.text(0, "name"), steps);
  fail("there is no filter [" + name + "] for " + value.type_name() + ".");
}

bool apply_test(const std::string& name, const Value& value, const Arguments& arguments,
                StepCount& steps) {
  steps.add(1);
  static constexpr std::array<std::pair<const char*, const char*>, 13> kComparisons = {{
      {"==", "=="},
      {"eq", "=="},
      {"equalto", "=="},
      {"!=", "!="},
      {"ne", "!="},
      {"<", "<"},
      {"lt", "<"},
      {"lessthan", "<"},
      {">", ">"},
      {"gt", ">"},
      {"<=", "<="},
      {"le", "<="},
      {"in", "in"},
  }};
  for (const auto& [test, sign] : kComparisons) {
    if (name == test) return compare(sign, value, arguments.get(0, "", Value()), steps);
  }
  if (name == "greaterthan") return compare(">", value, arguments.get(0, "", Value()), steps);
  if (name == "ge" || name == ">=")
    return compare(">=", value, arguments.get(0, "", Value()), steps);
  if (name == "sameas") {
    const Value other = arguments.get(0, "", Value());
    return value.type() == other.type() && value == other;
  }
  if (name == "defined") return !value.is(Type::kUndefined);
  if (name == "undefined") return value.is(Type::kUndefined);
  if (name == "none") return value.is(Type::kNone);
  if (name == "string") return value.is(Type::kString);
  if (name == "mapping") return value.is(Type::kDict);
  const bool is_collection = value.is(Type::kString) || value.is_list() || value.is(Type::kDict) ||
                             value.is(Type::kUndefined);
  if (name == "iterable" || name == "sequence") return is_collection;
  if (name == "number") return value.is_number();
  if (name == "integer") return value.is(Type::kInteger);
  if (name == "float") return value.is(Type::kFloat);
  if (name == "boolean") return value.is(Type::kBoolean);
  if (name == "true") return value.is(Type::kBoolean) && value.is_true();
  if (name == "false") return value.is(Type::kBoolean) && !value.is_true();
  if (name == "callable") return value.is(Type::kFunction);
  if (name == "upper" || name == "lower") {
    return text_method(to_text(value), "is" + name, {}, steps)->is_true();
  }
  if (name == "odd" || name == "even" || name == "divisibleby") {
    const Value by = name == "divisibleby" ? arguments.get(0, "", Value()) : Value::integer(2);
    return binary("%", value, by, steps).is_true() == (name == "odd");
  }
  fail("there is no test [" + name + "].");
}

}  // namespace vkformer::chat
