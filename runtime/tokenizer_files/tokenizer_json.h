// Parts of a tokenizer.json, for tokenizers that other files hold.
//
// Threading: pure functions.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/file_store.h"

namespace vkformer {

// What tokenizer_config.json and the files beside it say; all of it may be missing.
struct TokenizerSettings {
  nlohmann::json config;  // tokenizer_config.json, or an empty object
  std::string label;      // for messages
  std::string kind;       // tokenizer_class without "Fast", or ""

  bool flag(const char* key, bool otherwise) const;
  std::string text(const char* key, const std::string& otherwise) const;
  // The content of a token that has that role: "bos_token".
  std::optional<std::string> token(const char* role) const;
};

// An error names the file and what is wrong in it.
Result<TokenizerSettings> read_tokenizer_settings(const FileStore& files);

// A token that is found in texts before anything else.
struct AddedToken {
  int64_t id = 0;
  std::string text;
  bool special = true;
  bool lstrip = false;  // takes the spaces before it
  bool rstrip = false;  // and those after it
};

// `known`, and those of added_tokens_decoder in their place.
Result<nlohmann::json> added_tokens_json(const TokenizerSettings& settings,
                                         std::vector<AddedToken> known);

// What is put around a text: tokens with their ids.
struct AroundText {
  std::vector<std::pair<std::string, int64_t>> before, after;
  bool pair_types = false;     // the second text of two is of type 1
  bool pair_begins = true;     // and begins as the first does
  bool twice_between = false;  // RoBERTa's two ends between two texts
};
// TemplateProcessing, or null where there is nothing.
nlohmann::json around_text(const AroundText& around);

nlohmann::json json_step(const char* type);
nlohmann::json json_sequence(const char* key, nlohmann::json steps);
// Replaces a text, or what matches a regular expression.
nlohmann::json json_replace(const char* kind, const std::string& from, const std::string& to);
nlohmann::json json_byte_level(bool prefix_space, bool cuts, bool trims);
// Cuts words by a pattern, and writes their bytes as byte-level BPE does.
nlohmann::json json_split(const std::string& pattern);
nlohmann::json json_bpe(nlohmann::json vocabulary, nlohmann::json merges);

// A tokenizer.json of these steps, any of which may be null.
struct TokenizerSteps {
  nlohmann::json normalizer, pre_tokenizer, post_processor, decoder, model, added;
};
std::string tokenizer_text(TokenizerSteps steps);

// The text that byte-level BPE has for bytes (Radford et al., 2019): a character for each.
std::string byte_level_text(std::string_view bytes);
// Bytes of base64 (RFC 4648); nothing where a text is none.
std::optional<std::string> bytes_of_base64(std::string_view text);
std::string base64_of(std::string_view bytes);
bool is_whole_utf8(std::string_view text);

// A file as text.
Result<std::string> read_text(const FileStore& files, const std::string& name);
// The same as JSON. An error names the file.
Result<nlohmann::json> read_json_file(const FileStore& files, const std::string& name);

}  // namespace vkformer
