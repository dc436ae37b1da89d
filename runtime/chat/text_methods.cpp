// Python's methods of strings.
#include <utf8proc.h>

#include <algorithm>
#include <array>

#include "base/utf8_step.h"
#include "chat/builtins.h"
#include "chat/fault.h"
#include "unicode/unicode.h"
#include "unicode/utf8.h"

namespace vkformer::chat {
namespace {

bool is_python_space(char32_t c) {
  return is_white_space(c) || (c >= 0x1C && c <= 0x1F);
}

bool is_letter(char32_t c) {
  if (c < 0x80) return (c >= U'a' && c <= U'z') || (c >= U'A' && c <= U'Z');
  const auto category = utf8proc_category(static_cast<utf8proc_int32_t>(c));
  return category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_LO;
}

char32_t upper(char32_t c) {
  return static_cast<char32_t>(utf8proc_toupper(static_cast<utf8proc_int32_t>(c)));
}
char32_t lower(char32_t c) {
  return static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c)));
}

std::string mapped(const std::string& text, char32_t (*map)(char32_t)) {
  std::u32string chars = characters(text);
  std::transform(chars.begin(), chars.end(), chars.begin(), map);
  return from_characters(chars);
}

// At most `most` cuts (none for a negative one); from the right for rsplit.
Value split(const std::string& text, const Arguments& arguments, bool from_right,
            StepCount& steps) {
  const Value* separator = arguments.find(0, "sep");
  const int64_t limit = arguments.integer(1, "maxsplit", -1);
  const bool by_space = separator == nullptr || separator->is(Value::Type::kNone);
  const std::u32string mark = by_space ? U"" : characters(arguments.text(0, "sep"));
  if (!by_space && mark.empty()) fail("split needs a separator that is not empty.");
  steps.add_search(text.size(), mark.size());
  std::u32string chars = characters(text);
  std::u32string back(mark.rbegin(), mark.rend());
  if (from_right) std::reverse(chars.begin(), chars.end());
  const std::u32string& sign = from_right ? back : mark;
  std::vector<std::u32string> parts;
  size_t at = 0;
  for (int64_t cuts = 0;; ++cuts) {
    if (by_space) {
      while (at < chars.size() && is_python_space(chars[at])) ++at;
      if (at == chars.size()) break;
    }
    size_t end = chars.size();
    if (limit < 0 || cuts < limit) {
      end = by_space
                ? static_cast<size_t>(std::find_if(chars.begin() + static_cast<std::ptrdiff_t>(at),
                                                   chars.end(), is_python_space) -
                                      chars.begin())
                : std::min(chars.find(sign, at), chars.size());
    }
    steps.add(4);  // its own value
    parts.push_back(chars.substr(at, end - at));
    if (by_space && (end == chars.size()) && limit >= 0 && cuts >= limit) {
      while (!parts.back().empty() && is_python_space(parts.back().back())) parts.back().pop_back();
    }
    if (end == chars.size()) break;
    at = by_space ? end : end + sign.size();
  }
  Value::List out;
  for (std::u32string& part : parts) {
    if (from_right) std::reverse(part.begin(), part.end());
    out.push_back(Value::string(from_characters(part)));
  }
  if (from_right) std::reverse(out.begin(), out.end());
  return Value::list(std::move(out));
}

Value split_lines(const std::string& text, bool keeps_ends, StepCount& steps) {
  Value::List out;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find_first_of("\n\r", at), text.size());
    size_t next = end < text.size() ? end + 1 : end;
    if (text.compare(end, 2, "\r\n") == 0) ++next;
    steps.add(4);  // its own value
    out.push_back(Value::string(text.substr(at, (keeps_ends ? next : end) - at)));
    at = next;
  }
  return Value::list(std::move(out));
}

// Whether the text begins or ends with an argument, or with one of a tuple of them.
Value has_end(const std::string& text, const Arguments& arguments, bool at_begin) {
  const Value one = arguments.get(0, "", Value::none());
  const Value::List many = one.is_list() ? one.as_list() : Value::List{one};
  for (const Value& part : many) {
    if (!part.is(Value::Type::kString)) fail("startswith and endswith take strings.");
    const std::string& end = part.as_string();
    if (at_begin ? text.starts_with(end) : text.ends_with(end)) return Value::boolean(true);
  }
  return Value::boolean(false);
}

Value find(const std::string& text, const std::string& part, bool from_right, bool must) {
  const std::u32string chars = characters(text);
  const size_t found = from_right ? chars.rfind(characters(part)) : chars.find(characters(part));
  if (found == chars.npos && must) fail("index found nothing.");
  return Value::integer(found == chars.npos ? -1 : static_cast<int64_t>(found));
}

Value all_chars(const std::string& text, bool (*holds)(char32_t)) {
  const std::u32string chars = characters(text);
  return Value::boolean(!chars.empty() && std::all_of(chars.begin(), chars.end(), holds));
}

bool has_case(const std::string& text, char32_t (*map)(char32_t)) {
  return mapped(text, map) == text && mapped(text, upper) != mapped(text, lower);
}

int64_t count_of(const std::string& text, const std::string& part) {
  if (part.empty()) return static_cast<int64_t>(characters(text).size()) + 1;
  int64_t count = 0;
  for (size_t at = 0; (at = text.find(part, at)) != text.npos; at += part.size()) ++count;
  return count;
}

Value partition(const std::string& text, const std::string& mark, StepCount& steps) {
  steps.add_search(text.size(), mark.size());
  if (mark.empty()) fail("partition needs a separator that is not empty.");
  const size_t at = text.find(mark);
  const bool found = at != text.npos;
  return Value::list({Value::string(text.substr(0, at)), Value::string(found ? mark : ""),
                      Value::string(found ? text.substr(at + mark.size()) : "")},
                     Value::Type::kTuple);
}

constexpr std::array kMethods = {
    "strip",    "lstrip", "rstrip",       "split",        "rsplit",     "splitlines", "startswith",
    "endswith", "upper",  "lower",        "title",        "capitalize", "replace",    "find",
    "rfind",    "index",  "count",        "isdigit",      "isalpha",    "isspace",    "isupper",
    "islower",  "join",   "removeprefix", "removesuffix", "partition",  "isalnum",    "swapcase"};

// The methods that only look.
std::optional<Value> looking_method(const std::string& self, const std::string& name,
                                    const Arguments& arguments, StepCount& steps) {
  const auto digit = [](char32_t c) {
    return utf8proc_category(static_cast<utf8proc_int32_t>(c)) == UTF8PROC_CATEGORY_ND;
  };
  if (name == "startswith" || name == "endswith") {
    return has_end(self, arguments, name == "startswith");
  }
  if (name == "find" || name == "rfind" || name == "index") {
    steps.add_search(self.size(), arguments.text(0, "").size());
    return find(self, arguments.text(0, ""), name == "rfind", name == "index");
  }
  if (name == "count") {
    steps.add_search(self.size(), arguments.text(0, "").size());
    return Value::integer(count_of(self, arguments.text(0, "")));
  }
  if (name == "isdigit") return all_chars(self, digit);
  if (name == "isalpha") return all_chars(self, is_letter);
  if (name == "isalnum") {
    return all_chars(self, [](char32_t c) { return is_letter(c) || is_numeric(c); });
  }
  if (name == "isspace") return all_chars(self, is_python_space);
  if (name == "isupper") return Value::boolean(has_case(self, upper));
  if (name == "islower") return Value::boolean(has_case(self, lower));
  return std::nullopt;
}

}  // namespace

std::u32string characters(const std::string& text) {
  auto decoded = decode_utf8(text, "text of a template");
  if (!decoded) fail("a text is not valid UTF-8.");
  return std::move(decoded).value();
}

std::string from_characters(std::u32string_view text) {
  return encode_utf8(text);
}

std::string strip(const std::string& text, const std::optional<std::string>& chars, Ends ends) {
  const std::u32string all = characters(text);
  const std::u32string set = chars ? characters(*chars) : U"";
  const auto goes = [&](char32_t c) {
    return chars ? set.find(c) != set.npos : is_python_space(c);
  };
  size_t begin = 0;
  size_t end = all.size();
  while (ends != Ends::kRight && begin < end && goes(all[begin])) ++begin;
  while (ends != Ends::kLeft && end > begin && goes(all[end - 1])) --end;
  return from_characters(std::u32string_view(all).substr(begin, end - begin));
}

std::string replace_all(const std::string& text, const std::string& from, const std::string& to,
                        int64_t most) {
  std::string out;
  size_t at = 0;
  for (int64_t count = 0; most < 0 || count < most; ++count) {
    if (from.empty()) {  // an empty text is before, between and after all characters
      out += to;
      if (at >= text.size()) return out;
      const size_t length = utf8_step(std::string_view(text).substr(at)).length;
      out.append(text, at, length);
      at += length;
      continue;
    }
    const size_t found = text.find(from, at);
    if (found == text.npos) break;
    out.append(text, at, found - at);
    out += to;
    at = found + from.size();
  }
  return out.append(text, std::min(at, text.size()));
}

std::string capitalize(const std::string& text) {
  std::u32string chars = characters(text);
  for (size_t i = 0; i < chars.size(); ++i) chars[i] = i == 0 ? upper(chars[i]) : lower(chars[i]);
  return from_characters(chars);
}

std::string title(const std::string& text) {
  std::u32string chars = characters(text);
  bool inside = false;
  for (char32_t& c : chars) {
    const bool letter = is_letter(c);
    c = inside ? lower(c) : upper(c);
    inside = letter;
  }
  return from_characters(chars);
}

bool is_text_method(std::string_view name) {
  return std::find(kMethods.begin(), kMethods.end(), name) != kMethods.end();
}

std::optional<Value> text_method(const std::string& self, const std::string& name,
                                 const Arguments& arguments, StepCount& steps) {
  steps.add(1 + self.size() / 16);
  arguments.check(name, 3, "sep maxsplit keepends count old new chars");
  if (auto looked = looking_method(self, name, arguments, steps)) return looked;
  const auto made = [](std::string text) { return Value::string(std::move(text)); };
  if (name == "strip" || name == "lstrip" || name == "rstrip") {
    const Value* given = arguments.find(0, "chars");
    std::optional<std::string> chars;
    if (given != nullptr && !given->is(Value::Type::kNone)) chars = arguments.text(0, "chars");
    if (chars) steps.add_search(self.size(), chars->size());
    return made(strip(self, chars,
                      name == "strip"    ? Ends::kBoth
                      : name == "lstrip" ? Ends::kLeft
                                         : Ends::kRight));
  }
  if (name == "split" || name == "rsplit") return split(self, arguments, name == "rsplit", steps);
  if (name == "splitlines") {
    return split_lines(self, arguments.get(0, "keepends", Value()).is_true(), steps);
  }
  if (name == "upper") return made(replace_all(mapped(self, upper), "\xC3\x9F", "SS", -1));
  if (name == "lower") return made(mapped(self, lower));
  if (name == "swapcase") {
    return made(mapped(self, [](char32_t c) { return upper(c) == c ? lower(c) : upper(c); }));
  }
  if (name == "title") return made(title(self));
  if (name == "capitalize") return made(capitalize(self));
  if (name == "partition") return partition(self, arguments.text(0, "sep"), steps);
  if (name == "replace") {
    const std::string from = arguments.text(0, "old");
    const std::string to = arguments.text(1, "new");
    steps.add_search(self.size(), from.size());
    const auto places = static_cast<size_t>(count_of(self, from));
    steps.add(places * (1 + to.size() / 16));
    check_text_size(self.size() + places * to.size());
    return made(replace_all(self, from, to, arguments.integer(2, "count", -1)));
  }
  if (name == "removeprefix" || name == "removesuffix") {
    const std::string part = arguments.text(0, "");
    if (name == "removeprefix" && self.starts_with(part)) return made(self.substr(part.size()));
    if (name == "removesuffix" && self.ends_with(part)) {
      return made(self.substr(0, self.size() - part.size()));
    }
    return made(self);
  }
  if (name == "join") {
    std::string out;
    bool is_first = true;
    for (const Value& item : items_of(arguments.get(0, "", Value()), steps)) {
      if (!item.is(Value::Type::kString)) fail("join takes strings.");
      steps.add(1 + (self.size() + item.as_string().size()) / 16);
      check_text_size(out.size() + self.size() + item.as_string().size());
      out += (is_first ? "" : self) + item.as_string();
      is_first = false;
    }
    return made(std::move(out));
  }
  return std::nullopt;
}

}  // namespace vkformer::chat
