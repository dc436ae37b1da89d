// The kinds of token model this build knows, and the vocabulary table they share.
#include <array>

#include "text/token_model.h"
#include "text/type_list.h"

namespace vkformer {
namespace {

constexpr std::array<TypeRow<std::unique_ptr<TokenModel>>, 1> kModels = {{
    {"WordLevel", parse_word_level_model},
}};

}  // namespace

Result<std::unique_ptr<TokenModel>> parse_token_model(const JsonRef& json) {
  return parse_by_type<std::unique_ptr<TokenModel>>(kModels, json, 0, "model");
}

void TokenTable::add(std::string token, int32_t id) {
  const auto place = ids_.emplace(std::move(token), id).first;
  tokens_.emplace(id, &place->first);
}

std::optional<int32_t> TokenTable::id_of(std::string_view token) const {
  const auto found = ids_.find(token);
  return found == ids_.end() ? std::nullopt : std::optional<int32_t>(found->second);
}

const std::string* TokenTable::token_of(int32_t id) const {
  const auto found = tokens_.find(id);
  return found == tokens_.end() ? nullptr : found->second;
}

Result<TokenTable> parse_token_table(const JsonRef& json) {
  if (!json.node().is_object()) return json.wrong_type("an object of tokens and ids");
  TokenTable table;
  for (const auto& [token, value] : json.node().items()) {
    const JsonRef entry(value, json.path() + "[" + token + "]");
    VKF_ASSIGN(const int64_t wide, entry.integer(0, INT32_MAX));
    const auto id = static_cast<int32_t>(wide);
    if (const std::string* other = table.token_of(id)) {
      return entry.malformed("has the id " + std::to_string(id) + ", which token [" + *other +
                             "] has already; ids must be unique.");
    }
    table.add(token, id);
  }
  return table;
}

}  // namespace vkformer
