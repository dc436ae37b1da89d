// JsonConfig: a JSON object of a model directory (config.json, generation_config.json), read by
// key.
//
// Threading: immutable; any thread may read, and copies share their content.
// Lifetime: owns its content; a nested object keeps the whole alive.
//
// A key whose value is null counts as missing. A value of the wrong type is an error that names
// file, key and the type found. A default stands in for missing keys only, never for wrong ones. A
// key that a file repeats has its last value.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "vkformer/result.h"

namespace vkformer {

class FileStore;

class JsonConfig {
 public:
  // Reads a file that holds one JSON object, of at most 64 MiB and nested at most 64 deep.
  static Result<JsonConfig> load(const std::string& path);
  // The same over text in memory; `where` stands for the path in messages.
  static Result<JsonConfig> parse(std::string_view text, const std::string& where);

  // The same over a file of a model.
  static Result<JsonConfig> load_from(const FileStore& files, const std::string& name);
  // Reads a file of a model that holds a list of objects (modules.json).
  static Result<std::vector<JsonConfig>> load_list(const FileStore& files, const std::string& name);

  // An object without keys.
  JsonConfig() = default;

  // Whether the key is there and not null.
  bool has(const std::string& key) const;
  // The keys that are not null, in name order.
  std::vector<std::string> keys() const;
  // The path, or what parse() was given.
  std::string where() const;

  // Integers may be written 1e3 or 5.0, but must be whole and fit 64 bits.
  Result<int64_t> get_int(const std::string& key) const;
  Result<int64_t> get_int_or(const std::string& key, int64_t fallback) const;
  Result<double> get_double(const std::string& key) const;
  Result<double> get_double_or(const std::string& key, double fallback) const;
  Result<bool> get_bool(const std::string& key) const;
  Result<bool> get_bool_or(const std::string& key, bool fallback) const;
  Result<std::string> get_string(const std::string& key) const;
  Result<std::string> get_string_or(const std::string& key, const std::string& fallback) const;

  // A single value counts as a list of one.
  Result<std::vector<int64_t>> get_int_list_or(const std::string& key,
                                               const std::vector<int64_t>& fallback) const;
  Result<std::vector<double>> get_double_list_or(const std::string& key,
                                                 const std::vector<double>& fallback) const;
  Result<std::vector<bool>> get_bool_list_or(const std::string& key,
                                             const std::vector<bool>& fallback) const;
  Result<std::vector<std::string>> get_string_list_or(
      const std::string& key, const std::vector<std::string>& fallback) const;
  // A list of lists of integers, such as bad_words_ids.
  Result<std::vector<std::vector<int64_t>>> get_int_lists_or(
      const std::string& key, const std::vector<std::vector<int64_t>>& fallback) const;
  // The same where a number may be null, which is -1 here: forced_decoder_ids.
  Result<std::vector<std::vector<int64_t>>> get_nullable_int_lists_or(
      const std::string& key, const std::vector<std::vector<int64_t>>& fallback) const;
  // A list of pairs, each a list of integers and a number, such as sequence_bias.
  using WeightedLists = std::vector<std::pair<std::vector<int64_t>, double>>;
  Result<WeightedLists> get_weighted_lists_or(const std::string& key,
                                              const WeightedLists& fallback) const;
  // A list of pairs, each a list of names and how often it follows itself, such as
  // [[["global", "local"], 2]]. Gives the names in a row, of which there may be `most`.
  Result<std::vector<std::string>> get_repeated_names_or(const std::string& key,
                                                         const std::vector<std::string>& fallback,
                                                         size_t most) const;

  // The nested object of that key: without keys if missing. If the value is something else, the
  // result's status() and every getter of it report so.
  JsonConfig object(const std::string& key) const;
  // Success, or why object() found no object.
  Status status() const;

 private:
  struct Node;
  explicit JsonConfig(std::shared_ptr<const Node> node) : node_(std::move(node)) {}

  std::shared_ptr<const Node> node_;  // null: an object without keys
};

}  // namespace vkformer
