#include "grammar/json_schema.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>

#include "base/check.h"
#include "base/message.h"
#include "grammar/json_formats.h"
#include "grammar/json_pattern.h"
#include "grammar/json_pieces.h"
#include "grammar/schema_merge.h"
#include "grammar/schema_numbers.h"
#include "unicode/utf8.h"

namespace vkformer {
namespace {

constexpr size_t kMostSchemaBytes = 4u << 20;
constexpr size_t kMostNameChars = 200;
constexpr size_t kMostProperties = 1000;
constexpr int kMostSchemaDepth = 100;
constexpr size_t kMostNodes = 1u << 20;
// Longer strings and lists are valid, but never written.
constexpr int64_t kMostCount = 4096;

class SchemaCompiler {
 public:
  SchemaCompiler(const JsonTree& root, GrammarTree& tree)
      : merger_(root), tree_(tree), pieces_(tree) {}

  // The rule of a schema that others refer to.
  Result<uint32_t> rule_of(const SchemaPlace& place, int depth) {
    const auto found = rules_.find(place.pointer);
    if (found != rules_.end()) return found->second;
    const uint32_t rule = tree_.add_rule(place.pointer, "JSON schema", 0);
    rules_.emplace(place.pointer, rule);
    VKF_ASSIGN(const uint32_t body, node_of(place, depth));
    tree_.rules[rule].body = body;
    return rule;
  }

 private:
  // The counts of a list or string.
  struct Counts {
    int64_t least = 0;
    int64_t most = INT64_MAX;
  };
  struct Member {
    uint32_t node = 0;  // `"name": value`
    bool is_required = false;
  };

  uint32_t nothing() { return tree_.choice({}); }
  uint32_t empty() { return tree_.sequence({}); }

  Result<uint32_t> node_of(const SchemaPlace& place, int depth) {
    if (depth > kMostSchemaDepth) {
      return place.not_supported(
          "schema", "nests deeper than " + std::to_string(kMostSchemaDepth) + " levels.");
    }
    if (tree_.nodes.size() + tree_.rules.size() > kMostNodes) {
      return place.not_supported("schema", "makes the grammar larger than the limit of " +
                                               std::to_string(kMostNodes) +
                                               " parts; use fewer alternatives and references.");
    }
    VKF_ASSIGN(const auto simple, simple_node(place, depth));
    if (simple) return *simple;
    VKF_ASSIGN(const auto plain, merger_.expand(place));
    std::vector<uint32_t> parts;
    for (const JsonTree& schema : plain) {
      VKF_ASSIGN(const uint32_t part, plain_node({&schema, place.pointer}, depth));
      parts.push_back(part);
    }
    return tree_.choice(std::move(parts));
  }

  // A schema of one combination and nothing else: its parts stay rules of their own, so that they
  // may refer to themselves.
  Result<std::optional<uint32_t>> simple_node(const SchemaPlace& place, int depth) {
    using Found = std::optional<uint32_t>;
    const JsonTree::Member* only = nullptr;
    for (const JsonTree::Member& member : place.schema->members) {
      VKF_ASSIGN(const bool describes, only_describes(place, member.first));
      if (describes) continue;
      if (only != nullptr) return Found();
      only = &member;
    }
    if (only == nullptr) return Found();
    const auto& [key, value] = *only;
    if (key == "$ref") {
      VKF_ASSIGN(const SchemaPlace target, merger_.resolve(place, value));
      VKF_ASSIGN(const uint32_t rule, rule_of(target, depth + 1));
      return Found(tree_.rule(rule));
    }
    if (key != "anyOf" && key != "oneOf" && key != "allOf") return Found();
    VKF_CHECK(SchemaMerger::check_list(place, key, value));
    if (key == "allOf" && value.items.size() > 1) return Found();
    if (key == "oneOf") VKF_CHECK(merger_.check_disjoint(place, value));
    std::vector<uint32_t> parts;
    for (size_t i = 0; i < value.items.size(); ++i) {
      const auto child = place.child(key + "/" + std::to_string(i), value.items[i]);
      VKF_ASSIGN(const uint32_t part, node_of(child, depth + 1));
      parts.push_back(part);
    }
    return Found(tree_.choice(std::move(parts)));
  }

  // The types that a plain schema is about, where it names none.
  static JsonTypes implied_types(const JsonTree& schema) {
    JsonTypes types = 0;
    for (const auto& [key, value] : schema.members) {
      if (key == "properties" || key == "required" || key == "additionalProperties" ||
          key == "minProperties" || key == "maxProperties") {
        types |= kObjectType;
      } else if (key.find("tems") != key.npos) {  // items, prefixItems, minItems, ...
        types |= kArrayType;
      } else if (key == "pattern" || key == "format" || key.ends_with("Length")) {
        types |= kStringType;
      } else if (key.ends_with("imum") || key == "multipleOf") {
        types |= kIntegerType | kFractionType;
      }
    }
    return types == 0 ? kAllTypes : types;
  }

  Result<uint32_t> plain_node(const SchemaPlace& place, int depth) {
    const JsonTree& schema = *place.schema;
    if (schema.members.empty()) return pieces_.value();
    VKF_ASSIGN(JsonTypes types, merger_.types_of(place));
    if (const JsonTree* values = schema.find("enum")) return enum_node(place, *values, types);
    if (schema.find("type") == nullptr) types = implied_types(schema);
    std::vector<uint32_t> parts;
    if (types & kNullType) parts.push_back(tree_.literal("null"));
    if (types & kBooleanType) {
      parts.push_back(tree_.choice({tree_.literal("true"), tree_.literal("false")}));
    }
    if (types & (kIntegerType | kFractionType)) {
      VKF_ASSIGN(const uint32_t node, schema_number(place, types, tree_, pieces_));
      parts.push_back(node);
    }
    if (types & kStringType) {
      VKF_ASSIGN(const uint32_t node, string_node(place));
      parts.push_back(node);
    }
    if (types & kArrayType) {
      VKF_ASSIGN(const uint32_t node, array_node(place, depth));
      parts.push_back(node);
    }
    if (types & kObjectType) {
      VKF_ASSIGN(const uint32_t node, object_node(place, depth));
      parts.push_back(node);
    }
    return tree_.choice(std::move(parts));
  }

  Result<uint32_t> enum_node(const SchemaPlace& place, const JsonTree& values, JsonTypes types) {
    for (const auto& [key, value] : place.schema->members) {
      if (key == "type" || key == "enum") continue;
      return place.not_supported(key,
                                 "is next to enum or const; omit the values that it "
                                 "does not allow instead.");
    }
    std::vector<uint32_t> parts;
    for (const JsonTree& value : values.items) {
      if (type_of(value) & types) parts.push_back(pieces_.exactly(value));
    }
    return tree_.choice(std::move(parts));
  }

  Result<Counts> counts_of(const SchemaPlace& place, const char* least, const char* most) const {
    Counts counts;
    for (const bool is_least : {true, false}) {
      const char* key = is_least ? least : most;
      const JsonTree* value = place.schema->find(key);
      if (value == nullptr) continue;
      const bool is_whole = value->is_number() && value->number == std::floor(value->number);
      if (!is_whole || value->number < 0 || value->number > 9e15) {
        return place.malformed(key, "must be an integer of 0 or more.");
      }
      (is_least ? counts.least : counts.most) = static_cast<int64_t>(value->number);
    }
    if (counts.least > kMostCount) {
      return place.not_supported(least, "is " + std::to_string(counts.least) + "; the limit is " +
                                            std::to_string(kMostCount) + ".");
    }
    return counts;
  }

  // A limit of repetitions for the part of `most` that is ever written.
  static uint32_t repeats(int64_t most) {
    if (most == INT64_MAX) return GrammarTree::kNoLimit;
    return static_cast<uint32_t>(std::min(most, kMostCount));
  }

  Result<uint32_t> string_node(const SchemaPlace& place) {
    const JsonTree* pattern = place.schema->find("pattern");
    const JsonTree* format = place.schema->find("format");
    VKF_ASSIGN(const Counts counts, counts_of(place, "minLength", "maxLength"));
    if (pattern != nullptr && format != nullptr) {
      return place.not_supported("format", "stands beside pattern; keep one of them.");
    }
    if (pattern == nullptr && format == nullptr) {
      if (counts.least > counts.most) return nothing();
      if (counts.least == 0 && counts.most == INT64_MAX) return pieces_.string();
      return pieces_.quoted(tree_.repeat(pieces_.character(), static_cast<uint32_t>(counts.least),
                                         repeats(counts.most)));
    }
    const JsonTree& named = pattern != nullptr ? *pattern : *format;
    const char* keyword = pattern != nullptr ? "pattern" : "format";
    if (!named.is_string()) return place.malformed(keyword, "must be a string.");
    JsonText text;
    if (pattern != nullptr) {
      const std::string where =
          "pattern] at " + place.pointer + " of the JSON schema [" + named.text;
      VKF_ASSIGN(text, parse_json_pattern(named.text, where, tree_, pieces_));
    } else {
      const auto known = json_format(named.text, tree_, pieces_);
      if (!known) {
        return place.not_supported("format",
                                   "is '" + named.text + "'; " + kJsonFormats + " are supported.");
      }
      text = *known;
    }
    if (static_cast<uint64_t>(counts.least) > text.least ||
        (counts.most != INT64_MAX && static_cast<uint64_t>(counts.most) < text.most)) {
      return place.not_supported(
          keyword,
          "stands beside minLength or maxLength, which it does not already keep; write "
          "the limits into the pattern.");
    }
    return pieces_.quoted(text.node);
  }

  Result<uint32_t> array_node(const SchemaPlace& place, int depth) {
    const JsonTree* prefix = place.schema->find("prefixItems");
    const JsonTree* items = place.schema->find("items");
    if (const JsonTree* unique = place.schema->find("uniqueItems"); unique && unique->boolean) {
      return place.not_supported("uniqueItems", "is not supported; check it on the finished text.");
    }
    if (items != nullptr && items->is_array()) {
      return place.not_supported("items", "is a list; write prefixItems, as since draft 2020-12.");
    }
    VKF_ASSIGN(Counts counts, counts_of(place, "minItems", "maxItems"));
    std::vector<uint32_t> first;
    if (prefix != nullptr) {
      VKF_CHECK(SchemaMerger::check_list(place, "prefixItems", *prefix));
      if (prefix->items.size() > kMostProperties) {
        return place.not_supported("prefixItems",
                                   "has more than " + std::to_string(kMostProperties) + " items.");
      }
      for (size_t i = 0; i < prefix->items.size(); ++i) {
        const auto child = place.child("prefixItems/" + std::to_string(i), prefix->items[i]);
        VKF_ASSIGN(const uint32_t node, node_of(child, depth + 1));
        first.push_back(node);
      }
    }
    const auto fixed = static_cast<int64_t>(first.size());
    uint32_t rest = nothing();
    if (items != nullptr) {
      VKF_ASSIGN(rest, own_rule(place.child("items", *items), depth));
    } else if (prefix == nullptr || counts.least > fixed) {
      rest = pieces_.value();
    } else {
      counts.most = std::min(counts.most, fixed);
    }
    if (counts.least > counts.most) return nothing();
    return pieces_.bracketed("[]", items_node(first, rest, counts));
  }

  // The items of a list with their commas, and the space after the last.
  uint32_t items_node(const std::vector<uint32_t>& first, uint32_t rest, const Counts& counts) {
    const auto fixed = static_cast<int64_t>(first.size());
    // After the last fixed item, or instead of it; then from back to front.
    const auto count_left = [](int64_t count, int64_t done) {
      return count == INT64_MAX ? count : std::max<int64_t>(count - done, 0);
    };
    const auto more = [&](int64_t done) {
      const int64_t least = count_left(counts.least, done);
      return tree_.repeat(pieces_.after_comma(rest), static_cast<uint32_t>(least),
                          repeats(count_left(counts.most, done)));
    };
    if (fixed == 0) {
      if (counts.most == 0) return empty();
      const uint32_t list = tree_.sequence({rest, more(1), pieces_.space()});
      return counts.least == 0 ? tree_.optional(list) : list;
    }
    uint32_t tail = counts.most > fixed ? more(fixed) : empty();
    for (int64_t i = std::min(fixed, counts.most) - 1; i > 0; --i) {
      const uint32_t item = pieces_.after_comma(first[static_cast<size_t>(i)]);
      tail = tree_.sequence({item, tail});
      if (i >= counts.least) tail = tree_.optional(tail);
    }
    if (counts.most == 0) return empty();
    const uint32_t list = tree_.sequence({first.front(), tail, pieces_.space()});
    return counts.least == 0 ? tree_.optional(list) : list;
  }

  // A schema as a rule, so that what is inside is matched alike wherever it is used.
  Result<uint32_t> own_rule(const SchemaPlace& place, int depth) {
    VKF_ASSIGN(const uint32_t body, node_of(place, depth + 1));
    return tree_.rule(tree_.add_rule(place.pointer, "JSON schema", body));
  }

  Result<uint32_t> member_node(const SchemaPlace& place, const std::string& name, int depth) {
    VKF_ASSIGN(const uint32_t value, node_of(place, depth + 1));
    const uint32_t key = pieces_.exactly(JsonTree::of_string(name));
    const uint32_t body = tree_.sequence({key, tree_.literal(":"), pieces_.space(), value});
    return tree_.rule(tree_.add_rule(place.pointer, "JSON schema", body));
  }

  static Error too_many_properties(const SchemaPlace& place, size_t count) {
    return place.not_supported("properties", "names " + std::to_string(count) +
                                                 " properties; the limit is " +
                                                 std::to_string(kMostProperties) + ".");
  }

  Result<uint32_t> object_node(const SchemaPlace& place, int depth) {
    const JsonTree none = JsonTree::of_object();
    const JsonTree no_names = JsonTree::of_array();
    const JsonTree any = JsonTree::of_boolean(true);
    const JsonTree* properties = place.schema->find("properties");
    const JsonTree* required = place.schema->find("required");
    const JsonTree* extra = place.schema->find("additionalProperties");
    if (properties != nullptr && !properties->is_object()) {
      return place.malformed("properties", "must be an object of schemas.");
    }
    if (required != nullptr && !required->is_array()) {
      return place.malformed("required", "must be a list of names.");
    }
    if (properties == nullptr) properties = &none;
    if (required == nullptr) required = &no_names;
    for (const size_t count : {properties->members.size(), required->items.size()}) {
      if (count > kMostProperties) return too_many_properties(place, count);
    }
    JsonTree all = *properties;
    for (const JsonTree& name : required->items) {
      if (!name.is_string()) return place.malformed("required", "must be a list of names.");
      if (all.find(name.text) == nullptr) {
        all.members.emplace_back(name.text, extra != nullptr ? *extra : any);
      }
    }
    if (all.members.size() > kMostProperties) {
      return too_many_properties(place, all.members.size());
    }
    const bool is_open = extra != nullptr
                             ? extra->type != JsonTree::Type::kBoolean || extra->boolean
                             : all.members.empty();
    VKF_ASSIGN(const auto members, members_of(place, all, *required, depth));
    VKF_ASSIGN(const int64_t most_extra,
               extra_count(place, all, *required, is_open ? INT64_MAX : 0));
    uint32_t extra_member = nothing();
    if (is_open && most_extra > 0) {
      VKF_ASSIGN(extra_member, extra_node(place, all, extra != nullptr ? *extra : any, depth));
    }
    return pieces_.bracketed("{}", members_node(members, extra_member, most_extra));
  }

  Result<std::vector<Member>> members_of(const SchemaPlace& place, const JsonTree& all,
                                         const JsonTree& required, int depth) {
    std::vector<Member> members;
    for (const auto& [name, schema] : all.members) {
      const auto& names = required.items;
      const bool is_required =
          std::find(names.begin(), names.end(), JsonTree::of_string(name)) != names.end();
      VKF_ASSIGN(const uint32_t node,
                 member_node(place.child("properties/" + name, schema), name, depth));
      const bool is_forbidden = schema.type == JsonTree::Type::kBoolean && !schema.boolean;
      if (is_required || !is_forbidden) members.push_back({node, is_required});
    }
    return members;
  }

  // How many members there may be beside the named ones.
  Result<int64_t> extra_count(const SchemaPlace& place, const JsonTree& all,
                              const JsonTree& required, int64_t open) const {
    VKF_ASSIGN(const Counts counts, counts_of(place, "minProperties", "maxProperties"));
    std::set<std::string_view> names;
    for (const JsonTree& name : required.items) names.insert(name.text);
    if (counts.least > static_cast<int64_t>(names.size())) {
      return place.not_supported("minProperties",
                                 "asks for more than the required ones, which is not supported.");
    }
    if (counts.most == INT64_MAX) return open;
    const auto named = static_cast<int64_t>(all.members.size());
    if (counts.most < named) {
      return place.not_supported("maxProperties",
                                 "is less than the properties that are named, which is not "
                                 "supported; make those that are wanted required.");
    }
    return std::min(open, counts.most - named);
  }

  Result<uint32_t> extra_node(const SchemaPlace& place, const JsonTree& all, const JsonTree& schema,
                              int depth) {
    uint32_t key = pieces_.string();
    if (!all.members.empty()) {
      std::vector<std::u32string> names;
      for (const auto& [name, ignored] : all.members) {
        VKF_ASSIGN(auto chars, decode_utf8(name, "property name"));
        if (chars.size() > kMostNameChars) {
          return place.not_supported("properties", "has a name of more than " +
                                                       std::to_string(kMostNameChars) +
                                                       " characters beside additional properties.");
        }
        names.push_back(std::move(chars));
      }
      key = pieces_.name_except(names);
    }
    VKF_ASSIGN(const uint32_t value,
               node_of(place.child("additionalProperties", schema), depth + 1));
    const uint32_t body = tree_.sequence({key, tree_.literal(":"), pieces_.space(), value});
    return tree_.rule(tree_.add_rule(place.pointer + "/additionalProperties", "JSON schema", body));
  }

  // All members in order, the optional ones there or not, and commas between them.
  uint32_t members_node(const std::vector<Member>& members, uint32_t extra, int64_t most_extra) {
    uint32_t tail = empty();  // what may follow member i
    std::vector<uint32_t> first;
    if (most_extra > 0) {
      const uint32_t more = pieces_.after_comma(extra);
      tail = tree_.repeat(more, 0, repeats(most_extra));
      first.push_back(tree_.sequence(
          {extra,
           tree_.repeat(more, 0, repeats(most_extra == INT64_MAX ? most_extra : most_extra - 1))}));
    }
    bool may_be_empty = true;
    for (size_t i = members.size(); i-- > 0;) {
      // A rule for every tail keeps the grammar linear in the number of properties.
      const uint32_t rest = tree_.rule(tree_.add_rule("members", "JSON schema", tail));
      const uint32_t whole = tree_.sequence({members[i].node, rest});
      const uint32_t later = pieces_.after_comma(whole);
      if (members[i].is_required) {
        first.clear();
        may_be_empty = false;
        tail = later;
      } else {
        tail = tree_.choice({later, rest});
      }
      first.push_back(whole);
    }
    if (first.empty()) return empty();
    const uint32_t list = tree_.sequence({tree_.choice(std::move(first)), pieces_.space()});
    return may_be_empty ? tree_.optional(list) : list;
  }

  SchemaMerger merger_;
  GrammarTree& tree_;
  JsonPieces pieces_;
  std::map<std::string, uint32_t> rules_;  // by pointer
};

}  // namespace

Result<GrammarTree> parse_json_schema(std::string_view schema) {
  if (schema.size() > kMostSchemaBytes) {
    return invalid_argument(
        message({"[schema] has ", schema.size(), " bytes; the limit is ", kMostSchemaBytes, "."}));
  }
  VKF_ASSIGN(const JsonTree document, parse_json_tree(schema, "JSON schema"));
  GrammarTree tree;
  SchemaCompiler compiler(document, tree);
  VKF_ASSIGN(tree.root, compiler.rule_of({&document, "#"}, 0));
  return tree;
}

}  // namespace vkformer
