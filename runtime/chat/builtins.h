// What templates can call: Jinja's filters and tests, Python's methods of strings, lists and dicts,
// and the functions that transformers adds. Needs: Value.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "chat/value.h"

namespace vkformer::chat {

// Counts steps, so that no template runs for ever.
class StepCount {
 public:
  // Throws a Fault beyond the limit.
  void add(size_t steps);
  // The steps of looking for a part of one size in a whole of another, both in bytes.
  void add_search(size_t whole, size_t part) { add((1 + whole / 16) * (1 + part / 16)); }

 private:
  size_t steps_ = 0;
};

struct Arguments {
  std::vector<Value> positional;
  std::vector<std::pair<std::string, Value>> named;

  // The argument at that place or of that name ("" for places only), or null.
  const Value* find(size_t place, std::string_view name) const;
  // The same with a default.
  Value get(size_t place, std::string_view name, Value fallback) const;
  int64_t integer(size_t place, std::string_view name, int64_t fallback) const;
  std::string text(size_t place, std::string_view name) const;
  // Throws a Fault unless there are at most that many and only these names.
  void check(std::string_view callee, size_t most, std::string_view names = "") const;
};

// Each throws a Fault for an unknown name and for values that it cannot take.
Value apply_filter(const std::string& name, const Value& value, const Arguments& arguments,
                   StepCount& steps);
bool apply_test(const std::string& name, const Value& value, const Arguments& arguments,
                StepCount& steps);
Value call_method(const Value& self, const std::string& name, const Arguments& arguments,
                  StepCount& steps);
// Whether values of that type have such a method.
bool has_method(const Value& self, std::string_view name);

// Python's operators and its access to attributes and items.
Value binary(std::string_view sign, const Value& left, const Value& right, StepCount& steps);
bool compare(std::string_view sign, const Value& left, const Value& right, StepCount& steps);
Value attribute_of(const Value& object, const std::string& name, StepCount& steps);
Value item_of(const Value& object, const Value& key, StepCount& steps);
Value slice_of(const Value& object, const Value& begin, const Value& end, const Value& step);
// What a loop goes through.
Value::List items_of(const Value& value, StepCount& steps);
// Whether left < right.
bool is_less(const Value& left, const Value& right);
// Throws the Fault of using what is undefined.
[[noreturn]] void fail_undefined(const Value& value);

// Text as characters, and back.
std::u32string characters(const std::string& text);
std::string from_characters(std::u32string_view text);
size_t length_of(const Value& value, StepCount& steps);

// The filters and methods of strings; nothing for other names.
std::optional<Value> text_method(const std::string& self, const std::string& name,
                                 const Arguments& arguments, StepCount& steps);
bool is_text_method(std::string_view name);
// Without the characters at both ends, or white space without `chars`.
enum class Ends : uint8_t { kBoth, kLeft, kRight };
std::string strip(const std::string& text, const std::optional<std::string>& chars, Ends ends);
std::string replace_all(const std::string& text, const std::string& from, const std::string& to,
                        int64_t most);
std::string capitalize(const std::string& text);
std::string title(const std::string& text);

}  // namespace vkformer::chat
