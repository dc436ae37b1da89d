#include "grammar/schema_merge.h"

#include <algorithm>
#include <array>

#include "base/check.h"
#include "base/message.h"

namespace vkformer {
namespace {

constexpr int kMostMergeDepth = 32;
constexpr size_t kMostAlternatives = 500;
constexpr size_t kMostCompared = 200;
constexpr size_t kMostWork = 2'000'000;  // parts of schemas that are copied or compared
constexpr size_t kExpandWork = 16;

using Trees = std::vector<JsonTree>;

constexpr std::array kDescribing = {"title",      "description", "default",   "examples", "example",
                                    "deprecated", "readOnly",    "writeOnly", "$comment", "$schema",
                                    "$defs",      "definitions", "$anchor"};
constexpr std::array kConstraining = {"type",
                                      "enum",
                                      "const",
                                      "properties",
                                      "required",
                                      "items",
                                      "prefixItems",
                                      "minItems",
                                      "maxItems",
                                      "additionalProperties",
                                      "minProperties",
                                      "maxProperties",
                                      "minLength",
                                      "maxLength",
                                      "pattern",
                                      "format",
                                      "minimum",
                                      "maximum",
                                      "exclusiveMinimum",
                                      "exclusiveMaximum",
                                      "multipleOf",
                                      "uniqueItems",
                                      "$ref",
                                      "allOf",
                                      "anyOf",
                                      "oneOf"};

template <size_t count>
bool is_among(const std::array<const char*, count>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

bool is_combination(const std::string& key) {
  return key == "$ref" || key == "allOf" || key == "anyOf" || key == "oneOf";
}

void set_member(JsonTree& object, const std::string& key, JsonTree value) {
  for (auto& [name, old] : object.members) {
    if (name == key) {
      old = std::move(value);
      return;
    }
  }
  object.members.emplace_back(key, std::move(value));
}

// The values of a tree.
size_t size_of(const JsonTree& tree) {
  size_t size = 1 + tree.text.size() / 64;
  for (const JsonTree& item : tree.items) size += size_of(item);
  for (const auto& [name, member] : tree.members) size += size_of(member);
  return size;
}

// The work of looking up each of one list in another.
size_t lookups(size_t wanted, size_t there) {
  return wanted * there / 16;
}

JsonTree common_items(const JsonTree& a, const JsonTree& b) {
  JsonTree out = JsonTree::of_array();
  for (const JsonTree& item : a.items) {
    if (std::find(b.items.begin(), b.items.end(), item) != b.items.end()) out.items.push_back(item);
  }
  return out;
}

JsonTree one_item(const JsonTree& value) {
  JsonTree list = JsonTree::of_array();
  list.items.push_back(value);
  return list;
}

JsonTree as_list(const JsonTree& value) {
  return value.is_array() ? value : one_item(value);
}

}  // namespace

JsonTypes type_of(const JsonTree& value) {
  switch (value.type) {
    case JsonTree::Type::kNull:
      return kNullType;
    case JsonTree::Type::kBoolean:
      return kBooleanType;
    case JsonTree::Type::kInteger:
      return kIntegerType;
    case JsonTree::Type::kNumber:
      return value.number == static_cast<double>(
                                 static_cast<int64_t>(std::clamp(value.number, -9e18, 9e18))) ||
                     std::abs(value.number) >= 9e18
                 ? kIntegerType
                 : kFractionType;
    case JsonTree::Type::kString:
      return kStringType;
    case JsonTree::Type::kArray:
      return kArrayType;
    case JsonTree::Type::kObject:
      break;
  }
  return kObjectType;
}

Error SchemaPlace::not_supported(const std::string& keyword, const std::string& complaint) const {
  return unsupported(message({"[", keyword, "] at ", pointer, " of the JSON schema ", complaint}));
}

Error SchemaPlace::malformed(const std::string& keyword, const std::string& complaint) const {
  return invalid_argument(
      message({"[", keyword, "] at ", pointer, " of the JSON schema ", complaint}));
}

Result<bool> only_describes(const SchemaPlace& place, const std::string& keyword) {
  if (keyword == "$id" && place.pointer == "#") return true;
  if (is_among(kDescribing, keyword)) return true;
  if (is_among(kConstraining, keyword)) return false;
  return place.not_supported(keyword,
                             "is a keyword that is not supported; leave it out, or check it on the "
                             "finished text.");
}

Status SchemaMerger::work(const SchemaPlace& place, size_t steps) const {
  work_ += steps;
  if (work_ <= kMostWork) return {};
  return place.not_supported("schema", "takes more than the limit of " + std::to_string(kMostWork) +
                                           " steps to combine with others; use fewer "
                                           "combinations and references inside of them.");
}

Result<JsonTree> SchemaMerger::all_of(const SchemaPlace& place, JsonTree a, JsonTree b) const {
  VKF_CHECK(work(place, size_of(a) + size_of(b)));
  int levels = 0;
  for (const JsonTree* at = a.find("allOf"); at != nullptr && !at->items.empty(); ++levels) {
    at = at->items.front().find("allOf");
  }
  if (levels > kMostMergeDepth) {
    return place.not_supported("allOf", "combines more than " + std::to_string(kMostMergeDepth) +
                                            " schemas of one place.");
  }
  JsonTree list = JsonTree::of_array();
  list.items.push_back(std::move(a));
  list.items.push_back(std::move(b));
  JsonTree schema = JsonTree::of_object();
  schema.members.emplace_back("allOf", std::move(list));
  return schema;
}

// The properties that `from` adds must satisfy the additionalProperties of `to`.
Result<JsonTree> SchemaMerger::restricted_properties(const SchemaPlace& place, const JsonTree& to,
                                                     const JsonTree& from) const {
  const JsonTree* limit = to.find("additionalProperties");
  const JsonTree* known = to.find("properties");
  JsonTree properties = *from.find("properties");
  if (known != nullptr) {
    VKF_CHECK(work(place, lookups(properties.members.size(), known->members.size())));
  }
  for (auto& [name, schema] : properties.members) {
    if (limit == nullptr || (known != nullptr && known->find(name) != nullptr)) continue;
    VKF_ASSIGN(schema, all_of(place, std::move(schema), *limit));
  }
  return properties;
}

Status SchemaMerger::check_list(const SchemaPlace& place, const std::string& keyword,
                                const JsonTree& list) {
  if (list.is_array() && !list.items.empty()) return {};
  return place.malformed(keyword, "must be a list of at least one schema.");
}

Result<SchemaPlace> SchemaMerger::resolve(const SchemaPlace& place,
                                          const JsonTree& reference) const {
  if (!reference.is_string()) return place.malformed("$ref", "must be a string.");
  const std::string& text = reference.text;
  if (text != "#" && !text.starts_with("#/")) {
    return place.not_supported("$ref", "refers to '" + text +
                                           "'; only places of the same schema, such as "
                                           "#/$defs/name, are supported.");
  }
  const JsonTree* at = &root_;
  for (size_t begin = 1; begin < text.size();) {
    const size_t end = std::min(text.find('/', begin + 1), text.size());
    std::string key = text.substr(begin + 1, end - begin - 1);
    for (size_t tilde = key.find('~'); tilde != key.npos; tilde = key.find('~', tilde + 1)) {
      const bool is_slash = key.compare(tilde, 2, "~1") == 0;
      if (is_slash || key.compare(tilde, 2, "~0") == 0) key.replace(tilde, 2, is_slash ? "/" : "~");
    }
    VKF_CHECK(work(place, 1 + at->members.size() / 64));
    const JsonTree* next = at->find(key);
    if (at->is_array()) {
      size_t index = key.empty() ? at->items.size() : 0;
      for (const char c : key) {
        const bool is_digit = c >= '0' && c <= '9' && index < at->items.size();
        index = is_digit ? index * 10 + static_cast<size_t>(c - '0') : at->items.size();
      }
      next = index < at->items.size() ? &at->items[index] : nullptr;
    }
    if (next == nullptr) {
      return place.malformed("$ref", "refers to '" + text + "', which the schema does not have.");
    }
    at = next;
    begin = end;
  }
  return SchemaPlace{at, text};
}

Status SchemaMerger::merge_key(const SchemaPlace& place, JsonTree& left, const std::string& key,
                               const JsonTree& value) const {
  const JsonTree* there = left.find(key);
  if (there == nullptr) {
    left.members.emplace_back(key, value);
    return {};
  }
  JsonTree old = *there;
  VKF_CHECK(work(place, lookups(old.members.size(), value.members.size())));
  if (old == value) return {};
  const bool is_least = key.starts_with("min") || key == "exclusiveMinimum";
  const bool is_most = key.starts_with("max") || key == "exclusiveMaximum";
  if (key == "type" || key == "enum") {
    JsonTree a = as_list(old);
    JsonTree b = as_list(value);
    for (JsonTree* list : {&a, &b}) {  // an integer is a number too
      const JsonTree number = JsonTree::of_string("number");
      const auto& items = list->items;
      if (key == "type" && std::find(items.begin(), items.end(), number) != items.end()) {
        list->items.push_back(JsonTree::of_string("integer"));
      }
    }
    VKF_CHECK(work(place, lookups(a.items.size(), b.items.size())));
    set_member(left, key, common_items(a, b));
  } else if (key == "required" && old.is_array() && value.is_array()) {
    const size_t names = old.items.size() + value.items.size();
    VKF_CHECK(work(place, lookups(value.items.size(), names)));
    for (const JsonTree& name : value.items) {
      if (std::find(old.items.begin(), old.items.end(), name) == old.items.end()) {
        old.items.push_back(name);
      }
    }
    set_member(left, key, std::move(old));
  } else if (is_least || is_most) {
    if (!value.is_number() || !old.is_number()) return place.malformed(key, "must be a number.");
    if ((value.number > old.number) == is_least) set_member(left, key, value);
  } else if (key == "properties") {
    const size_t names = old.members.size() + value.members.size();
    VKF_CHECK(work(place, lookups(value.members.size(), names)));
    for (const auto& [name, schema] : value.members) {
      const JsonTree* known = old.find(name);
      JsonTree both = schema;
      if (known != nullptr) {
        VKF_ASSIGN(both, all_of(place, *known, schema));
      }
      set_member(old, name, std::move(both));
    }
    set_member(left, key, std::move(old));
  } else if (key == "additionalProperties" || key == "items") {
    VKF_ASSIGN(JsonTree both, all_of(place, std::move(old), value));
    set_member(left, key, std::move(both));
  } else {
    return place.not_supported(
        key, "stands in two schemas that must both hold, which is not supported.");
  }
  return {};
}

Result<JsonTree> SchemaMerger::merge(const SchemaPlace& place, JsonTree left,
                                     const JsonTree& right) const {
  VKF_CHECK(work(place, size_of(left) + size_of(right)));
  const auto clash = [](const JsonTree& a, const JsonTree& b) {
    return a.find("prefixItems") != nullptr &&
           (b.find("items") != nullptr || b.find("prefixItems") != nullptr);
  };
  if (clash(left, right) || clash(right, left)) {
    return place.not_supported("prefixItems", "is combined with another schema's items.");
  }
  JsonTree added = right;
  if (right.find("properties") != nullptr) {
    VKF_ASSIGN(JsonTree properties, restricted_properties(place, left, right));
    set_member(added, "properties", std::move(properties));
  }
  if (left.find("properties") != nullptr) {
    VKF_ASSIGN(JsonTree properties, restricted_properties(place, right, left));
    set_member(left, "properties", std::move(properties));
  }
  for (const auto& [key, value] : added.members) VKF_CHECK(merge_key(place, left, key, value));
  return left;
}

Result<std::vector<JsonTree>> SchemaMerger::product(const SchemaPlace& place, Trees left,
                                                    const Trees& right) const {
  Trees out;
  if (left.size() * right.size() > kMostAlternatives) {
    return place.not_supported("anyOf", "combines with others into more than " +
                                            std::to_string(kMostAlternatives) + " alternatives.");
  }
  for (const JsonTree& a : left) {
    for (const JsonTree& b : right) {
      VKF_ASSIGN(JsonTree merged, merge(place, a, b));
      out.push_back(std::move(merged));
    }
  }
  return out;
}

Result<std::vector<JsonTree>> SchemaMerger::expand(const SchemaPlace& place) const {
  ++levels_;
  auto made = expand_here(place);
  --levels_;
  return made;
}

Result<std::vector<JsonTree>> SchemaMerger::expand_here(const SchemaPlace& place) const {
  VKF_CHECK(work(place, kExpandWork));
  const JsonTree& schema = *place.schema;
  if (schema.type == JsonTree::Type::kBoolean) {
    return schema.boolean ? Trees{JsonTree::of_object()} : Trees();
  }
  if (!schema.is_object()) {
    return invalid_argument(
        message({"[", place.pointer, "] of the JSON schema is ", schema.type_name(),
                 "; a schema is an object, true or false."}));
  }
  if (levels_ > kMostMergeDepth) {
    return place.not_supported("$ref",
                               "refers to itself beside other keywords, or schemas combine "
                               "deeper than " +
                                   std::to_string(kMostMergeDepth) + " levels.");
  }
  VKF_ASSIGN(Trees out, plain_keywords(place));
  for (const auto& [key, value] : schema.members) {
    if (!is_combination(key)) continue;
    if (key == "$ref") {
      VKF_ASSIGN(const SchemaPlace target, resolve(place, value));
      VKF_ASSIGN(const Trees parts, expand(target));
      VKF_ASSIGN(out, product(place, std::move(out), parts));
      continue;
    }
    VKF_CHECK(check_list(place, key, value));
    if (key == "oneOf") VKF_CHECK(check_disjoint(place, value));
    Trees options;
    for (size_t i = 0; i < value.items.size(); ++i) {
      const SchemaPlace part = place.child(key + "/" + std::to_string(i), value.items[i]);
      VKF_ASSIGN(const Trees parts, expand(part));
      if (key == "allOf") {
        VKF_ASSIGN(out, product(place, std::move(out), parts));
      } else {
        VKF_CHECK(work(place, parts.size()));
        options.insert(options.end(), parts.begin(), parts.end());
      }
    }
    if (key != "allOf") {
      VKF_ASSIGN(out, product(place, std::move(out), options));
    }
  }
  return out;
}

// The keywords that combine nothing, as one schema.
Result<std::vector<JsonTree>> SchemaMerger::plain_keywords(const SchemaPlace& place) const {
  Trees out = {JsonTree::of_object()};
  for (const auto& [key, value] : place.schema->members) {
    VKF_ASSIGN(const bool describes, only_describes(place, key));
    if (describes || is_combination(key)) continue;
    VKF_CHECK(work(place, size_of(value)));
    const bool is_constant = key == "const";
    VKF_CHECK(merge_key(place, out.front(), is_constant ? "enum" : key,
                        is_constant ? one_item(value) : value));
  }
  return out;
}

Result<JsonTypes> SchemaMerger::types_of(const SchemaPlace& place) const {
  JsonTypes types = kAllTypes;
  if (const JsonTree* named = place.schema->find("type")) {
    types = 0;
    for (const JsonTree& name : as_list(*named).items) {
      static constexpr std::array kNames = {"null",   "boolean", "integer", "number",
                                            "string", "array",   "object"};
      static constexpr std::array kBits = {
          kNullType,   kBooleanType, kIntegerType, kIntegerType | kFractionType,
          kStringType, kArrayType,   kObjectType};
      const auto found = std::find(kNames.begin(), kNames.end(), name.text);
      if (found == kNames.end()) {
        return place.malformed("type", "is '" + name.text + "', which is not a JSON type.");
      }
      types |= kBits[static_cast<size_t>(found - kNames.begin())];
    }
  }
  const JsonTree* values = place.schema->find("enum");
  if (values == nullptr) return types;
  if (!values->is_array()) return place.malformed("enum", "must be a list of values.");
  JsonTypes found = 0;
  for (const JsonTree& value : values->items) found |= type_of(value);
  return types & found;
}

Status SchemaMerger::check_disjoint(const SchemaPlace& place, const JsonTree& schemas) const {
  if (schemas.items.size() > kMostCompared) {
    return place.not_supported(
        "oneOf", "has more than " + std::to_string(kMostCompared) + " alternatives; use anyOf.");
  }
  for (size_t i = 0; i < schemas.items.size(); ++i) {
    for (size_t j = i + 1; j < schemas.items.size(); ++j) {
      const SchemaPlace a = place.child("oneOf/" + std::to_string(i), schemas.items[i]);
      const SchemaPlace b = place.child("oneOf/" + std::to_string(j), schemas.items[j]);
      VKF_ASSIGN(const bool disjoint, are_disjoint(a, b, 0));
      if (disjoint) continue;
      return place.not_supported(
          "oneOf", "has the alternatives " + std::to_string(i) + " and " + std::to_string(j) +
                       ", of which a value might satisfy both; use anyOf, or give them different "
                       "types or a required property with different constants.");
    }
  }
  return {};
}

Result<bool> SchemaMerger::are_disjoint(const SchemaPlace& a, const SchemaPlace& b,
                                        int depth) const {
  VKF_ASSIGN(const Trees left, expand(a));
  VKF_ASSIGN(const Trees right, expand(b));
  if (left.size() * right.size() > kMostAlternatives) return false;
  for (const JsonTree& x : left) {
    for (const JsonTree& y : right) {
      VKF_ASSIGN(const bool apart, plain_disjoint({&x, a.pointer}, {&y, b.pointer}, depth));
      if (!apart) return false;
    }
  }
  return true;
}

Result<bool> SchemaMerger::plain_disjoint(const SchemaPlace& a, const SchemaPlace& b,
                                          int depth) const {
  VKF_ASSIGN(const JsonTypes left, types_of(a));
  VKF_ASSIGN(const JsonTypes right, types_of(b));
  const JsonTypes common = left & right;
  if (common == 0) return true;
  const JsonTree* some = a.schema->find("enum");
  const JsonTree* others = b.schema->find("enum");
  if (some != nullptr && others != nullptr) {
    VKF_CHECK(work(a, lookups(some->items.size(), others->items.size())));
    return common_items(*some, *others).items.empty();
  }
  if (common != kObjectType || depth > 4) return false;
  VKF_ASSIGN(const bool one_way, objects_disjoint(a, b, depth));
  return one_way ? Result<bool>(true) : objects_disjoint(b, a, depth);
}

// Whether `a` asks for a property that `b` forbids, or allows with other values only.
Result<bool> SchemaMerger::objects_disjoint(const SchemaPlace& a, const SchemaPlace& b,
                                            int depth) const {
  const JsonTree* required = a.schema->find("required");
  const JsonTree* mine = a.schema->find("properties");
  const JsonTree* theirs = b.schema->find("properties");
  const JsonTree* others = b.schema->find("additionalProperties");
  if (required == nullptr) return false;
  const size_t known = (mine == nullptr ? 0 : mine->members.size()) +
                       (theirs == nullptr ? 0 : theirs->members.size());
  VKF_CHECK(work(a, lookups(required->items.size(), known)));
  for (const JsonTree& name : required->items) {
    const JsonTree* there = theirs == nullptr ? nullptr : theirs->find(name.text);
    if (there == nullptr) there = others;
    if (there == nullptr) continue;
    if (there->type == JsonTree::Type::kBoolean && !there->boolean) return true;
    const JsonTree* here = mine == nullptr ? nullptr : mine->find(name.text);
    if (here == nullptr) continue;
    const std::string key = "properties/" + name.text;
    VKF_ASSIGN(const bool apart,
               are_disjoint(a.child(key, *here), b.child(key, *there), depth + 1));
    if (apart) {
      // Both must have it: `b` may leave it out, but `a` does not.
      return true;
    }
  }
  return false;
}

}  // namespace vkformer
