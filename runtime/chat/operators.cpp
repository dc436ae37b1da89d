// Python's operators, and its access to attributes, items and slices.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "chat/builtins.h"
#include "chat/fault.h"

namespace vkformer::chat {
namespace {

using Type = Value::Type;

constexpr size_t kMostSteps = 5'000'000;

constexpr std::array kDictMethods = {"get", "items", "keys", "values"};
constexpr std::array kListMethods = {"index", "count"};
// Python has them, but the sandbox of chat templates forbids them.
constexpr std::array kChanging = {"append",  "extend", "insert", "remove",     "clear",  "sort",
                                  "reverse", "pop",    "update", "setdefault", "popitem"};

template <size_t count>
bool is_among(const std::array<const char*, count>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

[[noreturn]] void fail_operands(std::string_view sign, const Value& left, const Value& right) {
  for (const Value* value : {&left, &right}) {
    if (value->is(Type::kUndefined)) fail_undefined(*value);
  }
  fail("'" + std::string(sign) + "' does not take " + left.type_name() + " and " +
       right.type_name() + ".");
}

int64_t floor_divide(int64_t a, int64_t b) {
  const int64_t quotient = a / b;
  return a % b != 0 && (a < 0) != (b < 0) ? quotient - 1 : quotient;
}

Value integer_power(int64_t base, int64_t exponent) {
  if (exponent < 0) {
    return Value::real(std::pow(static_cast<double>(base), static_cast<double>(exponent)));
  }
  int64_t out = 1;
  for (; exponent > 0; --exponent) {
    if (__builtin_mul_overflow(out, base, &out)) fail("an integer is beyond 64 bits.");
    if (out == 0 || out == 1) break;
    if (out == -1 && base == -1) return Value::integer(exponent % 2 == 1 ? -1 : 1);
  }
  return Value::integer(out);
}

Value integers(std::string_view sign, int64_t a, int64_t b) {
  int64_t out = 0;
  bool overflows = false;
  if (sign == "+") {
    overflows = __builtin_add_overflow(a, b, &out);
  } else if (sign == "-") {
    overflows = __builtin_sub_overflow(a, b, &out);
  } else if (sign == "*") {
    overflows = __builtin_mul_overflow(a, b, &out);
  } else if (sign == "**") {
    return integer_power(a, b);
  } else {
    if (b == 0) fail("a division by zero.");
    if (sign == "/") return Value::real(static_cast<double>(a) / static_cast<double>(b));
    overflows = b == -1 && a == std::numeric_limits<int64_t>::min();
    if (!overflows) out = sign == "//" ? floor_divide(a, b) : a - floor_divide(a, b) * b;
  }
  if (overflows) fail("an integer is beyond 64 bits.");
  return Value::integer(out);
}

Value reals(std::string_view sign, double a, double b) {
  if (sign == "+") return Value::real(a + b);
  if (sign == "-") return Value::real(a - b);
  if (sign == "*") return Value::real(a * b);
  if (sign == "**") return Value::real(std::pow(a, b));
  if (b == 0) fail("a division by zero.");
  if (sign == "/") return Value::real(a / b);
  const double quotient = std::floor(a / b);
  return Value::real(sign == "//" ? quotient : a - quotient * b);
}

Value repeated(const Value& value, int64_t times, StepCount& steps) {
  const size_t count = static_cast<size_t>(std::max<int64_t>(times, 0));
  const bool is_text = value.is(Type::kString);
  const size_t size = is_text ? value.as_string().size() : value.as_list().size();
  if (size != 0 && count > kMostText / size) fail("a repetition is too large.");
  steps.add(count * (is_text ? 1 + size / 16 : size));
  std::string text;
  Value::List items;
  for (size_t i = 0; i < count; ++i) {
    if (is_text) {
      text += value.as_string();
    } else {
      items.insert(items.end(), value.as_list().begin(), value.as_list().end());
    }
  }
  return is_text ? Value::string(std::move(text)) : Value::list(std::move(items), value.type());
}

bool contains(const Value& container, const Value& item, StepCount& steps) {
  if (container.is(Type::kString)) {
    if (!item.is(Type::kString)) fail("'in' looks for strings in a string.");
    steps.add_search(container.as_string().size(), item.as_string().size());
    return container.as_string().find(item.as_string()) != std::string::npos;
  }
  if (container.is_dict()) return container.find(item) != nullptr;
  const Value::List items = items_of(container, steps);
  return std::find(items.begin(), items.end(), item) != items.end();
}

// A part of a slice as an index from 0 to `size`, or what stands for a missing one.
int64_t bound(const Value& value, int64_t size, int64_t missing, int64_t step) {
  if (value.is(Type::kNone)) return missing;
  if (!value.is_integer()) fail("slices take integers.");
  int64_t at = value.as_integer();
  if (at < 0) at += size;
  return std::clamp(at, step < 0 ? int64_t{-1} : int64_t{0}, step < 0 ? size - 1 : size);
}

}  // namespace

void StepCount::add(size_t steps) {
  steps_ += steps;
  if (steps_ > kMostSteps || steps > kMostSteps) {
    fail("the template takes more than the limit of " + std::to_string(kMostSteps) +
         " steps; it may run for ever.");
  }
}

void fail_undefined(const Value& value) {
  fail("[" + value.name() + "] is undefined.");
}

Value binary(std::string_view sign, const Value& left, const Value& right, StepCount& steps) {
  steps.add(1);
  if (sign == "~") {
    std::string text = to_text(left) + to_text(right);
    if (text.size() > kMostText) fail("a text is too long.");
    steps.add(text.size() / 16 + left.weight() + right.weight());
    return Value::string(std::move(text));
  }
  if (left.is_number() && right.is_number()) {
    return left.is_integer() && right.is_integer()
               ? integers(sign, left.as_integer(), right.as_integer())
               : reals(sign, left.as_real(), right.as_real());
  }
  const bool texts = left.is(Type::kString) && right.is(Type::kString);
  if (sign == "+" && texts) {
    if (left.as_string().size() + right.as_string().size() > kMostText) fail("a text is too long.");
    steps.add((left.as_string().size() + right.as_string().size()) / 16);
    return Value::string(left.as_string() + right.as_string());
  }
  if (sign == "+" && left.is_list() && left.type() == right.type()) {
    Value::List items = left.as_list();
    items.insert(items.end(), right.as_list().begin(), right.as_list().end());
    steps.add(items.size());
    return Value::list(std::move(items), left.type());
  }
  const auto repeats = [](const Value& a, const Value& b) {
    return (a.is(Type::kString) || a.is_list()) && b.is_integer();
  };
  if (sign == "*" && repeats(left, right)) return repeated(left, right.as_integer(), steps);
  if (sign == "*" && repeats(right, left)) return repeated(right, left.as_integer(), steps);
  fail_operands(sign, left, right);
}

bool is_less(const Value& left, const Value& right) {
  if (left.is_number() && right.is_number()) {
    return left.is_integer() && right.is_integer() ? left.as_integer() < right.as_integer()
                                                   : left.as_real() < right.as_real();
  }
  if (left.is(Type::kString) && right.is(Type::kString)) {
    return left.as_string() < right.as_string();
  }
  if (left.is_list() && left.type() == right.type()) {
    return std::lexicographical_compare(left.as_list().begin(), left.as_list().end(),
                                        right.as_list().begin(), right.as_list().end(), is_less);
  }
  fail_operands("<", left, right);
}

bool compare(std::string_view sign, const Value& left, const Value& right, StepCount& steps) {
  steps.add(left.weight() + right.weight());
  const auto holds = [](const Value& value) { return value.is_list() || value.is_dict(); };
  // Members are looked up one by one.
  if (holds(left) && holds(right)) steps.add((left.weight() / 8) * (right.weight() / 8));
  if (sign == "==") return left == right;
  if (sign == "!=") return !(left == right);
  if (sign == "in") return contains(right, left, steps);
  if (sign == "not in") return !contains(right, left, steps);
  if (sign == "<") return is_less(left, right);
  if (sign == ">") return is_less(right, left);
  return sign == "<=" ? !is_less(right, left) : !is_less(left, right);
}

bool has_method(const Value& self, std::string_view name) {
  if (self.is(Type::kString)) return is_text_method(name);
  const bool changes = is_among(kChanging, name);
  if (self.is(Type::kDict)) return is_among(kDictMethods, name) || changes;
  return self.is_list() && (is_among(kListMethods, name) || changes);
}

Value call_method(const Value& self, const std::string& name, const Arguments& arguments,
                  StepCount& steps) {
  if (self.is(Type::kString)) {
    if (auto made = text_method(self.as_string(), name, arguments, steps)) return *made;
  } else if (is_among(kChanging, name)) {
    fail("[" + name + "] would change a value, which chat templates may not.");
  } else if (self.is(Type::kDict)) {
    steps.add(1 + self.as_dict().size());
    if (name == "get") {
      const Value* found = self.find(arguments.get(0, "", Value::none()));
      return found != nullptr ? *found : arguments.get(1, "default", Value::none());
    }
    Value::List out;
    for (const auto& [key, value] : self.as_dict()) {
      out.push_back(name == "keys"     ? key
                    : name == "values" ? value
                                       : Value::list({key, value}, Type::kTuple));
    }
    return Value::list(std::move(out));
  } else if (self.is_list()) {
    steps.add(1 + self.weight());
    const Value item = arguments.get(0, "", Value::none());
    if (item.is_dict() || item.is_list()) steps.add((self.weight() / 8) * (item.weight() / 8));
    int64_t count = 0;
    for (size_t i = 0; i < self.as_list().size(); ++i) {
      if (!(self.as_list()[i] == item)) continue;
      if (name == "index") return Value::integer(static_cast<int64_t>(i));
      ++count;
    }
    if (name == "index") fail("index found nothing.");
    return Value::integer(count);
  }
  fail("[" + name + "] is no method of " + self.type_name() + ".");
}

Value attribute_of(const Value& object, const std::string& name, StepCount& steps) {
  if (object.is(Type::kUndefined)) fail_undefined(object);
  if (has_method(object, name)) {
    return Value::function({name, std::make_shared<const Value>(object), nullptr});
  }
  if (object.is_dict()) {
    steps.add(object.as_dict().size() / 16);
    if (const Value* found = object.find(name)) return *found;
  }
  return Value::undefined(name);
}

Value item_of(const Value& object, const Value& key, StepCount& steps) {
  if (object.is(Type::kUndefined)) fail_undefined(object);
  if (object.is_dict()) {
    const bool is_plain = !key.is_list() && !key.is_dict();
    steps.add(object.as_dict().size() / 16 * (is_plain ? 1 + key.weight() / 16 : key.weight()));
    if (const Value* found = object.find(key)) return *found;
  } else if (key.is_integer() && (object.is_list() || object.is(Type::kString))) {
    const auto size = static_cast<int64_t>(length_of(object, steps));
    const int64_t at = key.as_integer() < 0 ? key.as_integer() + size : key.as_integer();
    if (at >= 0 && at < size) {
      const auto index = static_cast<size_t>(at);
      if (object.is_list()) return object.as_list()[index];
      steps.add(object.as_string().size() / 16);
      return Value::string(from_characters(characters(object.as_string()).substr(index, 1)));
    }
  }
  if (key.is(Type::kString)) return attribute_of(object, key.as_string(), steps);
  return Value::undefined(to_text(key));
}

Value slice_of(const Value& object, const Value& begin, const Value& end, const Value& step) {
  if (object.is(Type::kUndefined)) fail_undefined(object);
  const bool is_text = object.is(Type::kString);
  if (!is_text && !object.is_list()) fail(std::string("slices of ") + object.type_name() + ".");
  if (!step.is(Type::kNone) && !step.is_integer()) fail("slices take integers.");
  const int64_t by = step.is(Type::kNone) ? 1 : step.as_integer();
  if (by == 0) fail("a slice has the step 0.");
  const std::u32string chars = is_text ? characters(object.as_string()) : U"";
  const auto size = static_cast<int64_t>(is_text ? chars.size() : object.as_list().size());
  const int64_t first = bound(begin, size, by < 0 ? size - 1 : 0, by);
  const int64_t last = bound(end, size, by < 0 ? -1 : size, by);
  std::u32string text;
  Value::List items;
  for (int64_t at = first; by < 0 ? at > last : at < last;) {
    if (is_text) {
      text += chars[static_cast<size_t>(at)];
    } else {
      items.push_back(object.as_list()[static_cast<size_t>(at)]);
    }
    if (__builtin_add_overflow(at, by, &at)) break;
  }
  return is_text ? Value::string(from_characters(text))
                 : Value::list(std::move(items), object.type());
}

size_t length_of(const Value& value, StepCount& steps) {
  if (value.is(Type::kString)) {
    steps.add(value.as_string().size() / 16);
    return characters(value.as_string()).size();
  }
  if (value.is_list()) return value.as_list().size();
  if (value.is_dict()) return value.as_dict().size();
  if (value.is(Type::kUndefined)) return 0;
  fail(std::string(value.type_name()) + " has no length.");
}

Value::List items_of(const Value& value, StepCount& steps) {
  Value::List out;
  if (value.is_list()) {
    out = value.as_list();
  } else if (value.is(Type::kString)) {
    steps.add(value.as_string().size());
    for (const char32_t c : characters(value.as_string())) {
      out.push_back(Value::string(from_characters({&c, 1})));
    }
  } else if (value.is_dict()) {
    for (const auto& [key, member] : value.as_dict()) out.push_back(key);
  } else if (!value.is(Type::kUndefined)) {
    fail(std::string(value.type_name()) + " cannot be gone through.");
  }
  steps.add(out.size());
  return out;
}

}  // namespace vkformer::chat
