// Explicit lists of the types a tokenizer file may name. Needs: JsonRef.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/check.h"
#include "json/json_access.h"

namespace vkformer {

// Sequences within sequences, at most.
inline constexpr int kMaxSequenceDepth = 16;

// One row of a list: the name in the file and the function that reads such an object. `depth`
// counts the sequences around it.
template <class Component>
struct TypeRow {
  std::string_view type;
  Result<Component> (*parse)(const JsonRef& json, int depth);
};

// Reads the object by the row that its "type" names; an unknown type is kUnsupported. `kind` says
// what is being read: "normalizer".
template <class Component>
Result<Component> parse_by_type(std::span<const TypeRow<Component>> rows, const JsonRef& json,
                                int depth, std::string_view kind) {
  if (depth > kMaxSequenceDepth) {
    return json.malformed("is nested in more than " + std::to_string(kMaxSequenceDepth) +
                          " sequences, the limit.");
  }
  VKF_ASSIGN(const auto member, json.member("type"));
  VKF_ASSIGN(const auto type, member.text());
  std::string known;
  for (const auto& row : rows) {
    if (row.type == type) return row.parse(json, depth);
    known += (known.empty() ? "" : ", ") + std::string(row.type);
  }
  return json.not_supported("The " + std::string(kind) + " type [" + type +
                            "] is not supported; this build knows " + known + ".");
}

// Reads the array `key` of a Sequence, each element with `parse_one`, and calls `add` on each.
template <class ParseOne, class Add>
Status parse_each(const JsonRef& json, std::string_view key, ParseOne parse_one, Add add) {
  VKF_ASSIGN(const auto list, json.member(key));
  VKF_ASSIGN(const size_t count, list.array_size());
  for (size_t i = 0; i < count; ++i) {
    VKF_ASSIGN(auto one, parse_one(list.element(i)));
    add(std::move(one));
  }
  return {};
}

}  // namespace vkformer
