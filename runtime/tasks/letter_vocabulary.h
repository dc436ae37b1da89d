// LetterVocabulary: texts as the tokens of models that speak, one for each character with blanks
// between them, as transformers' VitsTokenizer makes them of vocab.json.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "vkformer/result.h"
#include "vkformer/token.h"

namespace vkformer {

// As tokenizer_config.json of a VitsTokenizer has them.
struct LetterSettings {
  std::string unknown = "<unk>";
  std::string pad = "<pad>";
  // Tokens beside the vocabulary's own, by their text.
  std::map<std::string, TokenId> added;
  std::string language;
  bool blanks = true;      // token 0 before, between and after characters
  bool normalizes = true;  // lower case, without what the vocabulary lacks
  bool phonemizes = true;  // the model reads phonemes
  bool romanizes = false;  // texts are Latin letters
};

class LetterVocabulary {
 public:
  // The content of vocab.json, an object of ids by token; `name` stands for the file in messages.
  static Result<LetterVocabulary> parse(std::string_view json, const std::string& name,
                                        LetterSettings settings);

  // Whether a text is letters, which a model of phonemes does not read, or phonemes already.
  enum class Written : uint8_t { kLetters, kPhonemes };
  // The tokens of a text. If it must be made phonemes or Latin letters first, the error is
  // kUnsupported. If no token is left of it, or the model has none for one of its characters, it is
  // kInvalidArgument.
  Result<std::vector<TokenId>> encode(const std::string& text, Written written) const;

 private:
  explicit LetterVocabulary(LetterSettings settings) : settings_(std::move(settings)) {}
  Result<std::string> normalized(const std::string& text) const;
  Result<std::string> prepared(const std::string& text, Written written) const;
  // The longest special token at the start of `rest`; empty: there is none.
  std::string special_at(std::string_view rest) const;
  Result<TokenId> id_of(const std::string& token) const;

  LetterSettings settings_;
  std::map<std::string, TokenId> ids_;
};

}  // namespace vkformer
