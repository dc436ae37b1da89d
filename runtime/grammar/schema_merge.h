// Schemas without combinations: $ref, allOf, anyOf and oneOf are resolved into alternatives that
// hold plain keywords only. Needs: JsonTree, Result.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "json/json_tree.h"
#include "vkformer/result.h"

namespace vkformer {

// Sets of JSON types, as bits. A number that is whole is an integer.
using JsonTypes = uint32_t;
constexpr JsonTypes kNullType = 1, kBooleanType = 2, kIntegerType = 4, kFractionType = 8,
                    kStringType = 16, kArrayType = 32, kObjectType = 64, kAllTypes = 127;
JsonTypes type_of(const JsonTree& value);

// A schema and its JSON pointer, such as "#/properties/name".
struct SchemaPlace {
  const JsonTree* schema = nullptr;
  std::string pointer;

  SchemaPlace child(const std::string& key, const JsonTree& schema_there) const {
    return {&schema_there, pointer + "/" + key};
  }
  Error not_supported(const std::string& keyword, const std::string& complaint) const;
  Error malformed(const std::string& keyword, const std::string& complaint) const;
};

class SchemaMerger {
 public:
  // The document must outlive the merger.
  explicit SchemaMerger(const JsonTree& root) : root_(root) {}

  // The alternatives of a schema: objects of plain keywords, with "const" written as "enum"; none
  // for a schema that nothing satisfies.
  Result<std::vector<JsonTree>> expand(const SchemaPlace& place) const;
  // What "$ref" refers to.
  Result<SchemaPlace> resolve(const SchemaPlace& place, const JsonTree& reference) const;
  // The types that "type" and "enum" of a plain schema allow.
  Result<JsonTypes> types_of(const SchemaPlace& place) const;
  // An error unless no value satisfies two of the schemas.
  Status check_disjoint(const SchemaPlace& place, const JsonTree& schemas) const;
  // The list of schemas that a keyword must have.
  static Status check_list(const SchemaPlace& place, const std::string& keyword,
                           const JsonTree& list);

 private:
  // Counts work, an error beyond the limit: schemas can refer to others exponentially often.
  Status work(const SchemaPlace& place, size_t steps) const;
  Result<std::vector<JsonTree>> expand_here(const SchemaPlace& place) const;
  Result<std::vector<JsonTree>> plain_keywords(const SchemaPlace& place) const;
  Result<JsonTree> all_of(const SchemaPlace& place, JsonTree a, JsonTree b) const;
  Result<JsonTree> restricted_properties(const SchemaPlace& place, const JsonTree& to,
                                         const JsonTree& from) const;
  Result<std::vector<JsonTree>> product(const SchemaPlace& place, std::vector<JsonTree> left,
                                        const std::vector<JsonTree>& right) const;
  Result<JsonTree> merge(const SchemaPlace& place, JsonTree left, const JsonTree& right) const;
  Status merge_key(const SchemaPlace& place, JsonTree& left, const std::string& key,
                   const JsonTree& value) const;
  Result<bool> are_disjoint(const SchemaPlace& a, const SchemaPlace& b, int depth) const;
  Result<bool> plain_disjoint(const SchemaPlace& a, const SchemaPlace& b, int depth) const;
  Result<bool> objects_disjoint(const SchemaPlace& a, const SchemaPlace& b, int depth) const;

  const JsonTree& root_;
  mutable int levels_ = 0;  // calls of expand() that are under way
  mutable size_t work_ = 0;
};

// Whether a keyword only describes; an error for one that is not known.
Result<bool> only_describes(const SchemaPlace& place, const std::string& keyword);

}  // namespace vkformer
