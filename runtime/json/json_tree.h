// JsonTree: a JSON document whose objects keep the order of their members. Needs: Result.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "vkformer/result.h"

namespace vkformer {

struct JsonTree {
  enum class Type : uint8_t { kNull, kBoolean, kInteger, kNumber, kString, kArray, kObject };
  using Member = std::pair<std::string, JsonTree>;

  JsonTree();
  JsonTree(const JsonTree& other);
  JsonTree(JsonTree&& other) noexcept;
  JsonTree& operator=(const JsonTree& other);
  JsonTree& operator=(JsonTree&& other) noexcept;
  ~JsonTree();

  Type type = Type::kNull;
  bool boolean = false;
  int64_t integer = 0;
  double number = 0;  // of integers too
  std::string text;
  std::vector<JsonTree> items;
  std::vector<Member> members;

  bool is_object() const { return type == Type::kObject; }
  bool is_array() const { return type == Type::kArray; }
  bool is_string() const { return type == Type::kString; }
  bool is_number() const { return type == Type::kNumber || type == Type::kInteger; }
  // The member of an object, or null.
  const JsonTree* find(std::string_view key) const;
  // The type as messages name it: "an object".
  const char* type_name() const;
  // Numbers are equal by value, objects whatever the order of their members.
  bool operator==(const JsonTree& other) const;

  static JsonTree of_boolean(bool value);
  static JsonTree of_string(std::string value);
  static JsonTree of_object() { return of_type(Type::kObject); }
  static JsonTree of_array() { return of_type(Type::kArray); }
  static JsonTree of_type(Type type);
};

// Parses a document of at most `most_depth` levels; `name` opens messages. Integers beyond 64 bits
// become numbers. Of members with one key the last counts, at the first one's place.
Result<JsonTree> parse_json_tree(std::string_view text, const std::string& name,
                                 int most_depth = 64);

// Appends a string as JSON: quotes, backslashes and control characters escaped, nothing else.
void append_json_string(std::string_view text, std::string& out);
// Appends a number as Python's repr() writes it, which is the shortest one that is read back.
void append_number(double number, std::string& out);
// A document without any space.
std::string compact_json(const JsonTree& tree);

}  // namespace vkformer
