// Guarded reading of JSON: every access is checked and every error names the place in the file.
// Needs: Result, nlohmann JSON.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "vkformer/result.h"

namespace vkformer {

// A value of a JSON document and its path, such as "tokenizer.json: model.vocab". A view: the
// document must outlive it.
class JsonRef {
 public:
  JsonRef(const nlohmann::json& node, std::string path) : node_(&node), path_(std::move(path)) {}

  const nlohmann::json& node() const { return *node_; }
  const std::string& path() const { return path_; }

  // A member of an object; an error when this is no object or the member is absent.
  Result<JsonRef> member(std::string_view key) const;
  // The same, but nothing for an absent or null member.
  Result<std::optional<JsonRef>> optional_member(std::string_view key) const;
  // An array's length.
  Result<size_t> array_size() const;
  // Precondition: array_size() is good and index below it.
  JsonRef element(size_t index) const;

  Result<std::string> text() const;
  // The string's code points.
  Result<std::u32string> code_points() const;
  Result<bool> boolean() const;
  // An integer within [low, high].
  Result<int64_t> integer(int64_t low, int64_t high) const;

  // Members with a default for an absent or null one.
  Result<bool> boolean_or(std::string_view key, bool fallback) const;
  Result<int64_t> count_or(std::string_view key, int64_t fallback) const;
  Result<std::string> text_or(std::string_view key, std::string_view fallback) const;

  // "[path] <complaint>" as a kInvalidFile or kUnsupported error.
  Error malformed(const std::string& complaint) const;
  Error not_supported(const std::string& complaint) const;
  // "[path] is a number; it must be <wanted>."
  Error wrong_type(std::string_view wanted) const;

 private:
  const nlohmann::json* node_;
  std::string path_;
};

// Parses a document. `name` opens the paths of its values. Deeply nested, truncated and otherwise
// malformed text is an error.
Result<nlohmann::json> parse_json(std::string_view text, const std::string& name);

}  // namespace vkformer
