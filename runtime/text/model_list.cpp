// The kinds of token model this build knows.
#include <array>

#include "text/token_model.h"
#include "text/type_list.h"

namespace vkformer {
namespace {

constexpr std::array<TypeRow<std::unique_ptr<TokenModel>>, 4> kModels = {{
    {"WordLevel", parse_word_level_model},
    {"WordPiece", parse_word_piece_model},
    {"BPE", parse_bpe_model},
    {"Unigram", parse_unigram_model},
}};

}  // namespace

Result<std::unique_ptr<TokenModel>> parse_token_model(const JsonRef& json) {
  return parse_by_type<std::unique_ptr<TokenModel>>(kModels, json, 0, "model");
}

}  // namespace vkformer
