// CtcVocabulary: what the classes of a CTC head stand for (Graves et al., "Connectionist temporal
// classification", 2006). It makes the text from the classes of all frames.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "vkformer/result.h"
#include "vkformer/tokenizer.h"

namespace vkformer {

class TokenizerEngine;

// A word, and the frames [begin, end) that it was heard in.
struct FrameWord {
  std::string text;
  size_t begin = 0;
  size_t end = 0;
};

struct FrameText {
  std::string text;
  std::vector<FrameWord> words;
};

// As tokenizer_config.json of a Wav2Vec2CTCTokenizer has them.
struct CtcSettings {
  std::string pad = "<pad>";  // the blank: no character
  std::string unknown = "<unk>";
  std::string delimiter = "|";  // between words
  std::string space = " ";      // what is written for it
  std::string language;         // target_lang, of a file of several vocabularies; empty: of one
  bool lowers = false;          // texts in lower case
};

class CtcVocabulary {
 public:
  // The content of vocab.json: an object of ids by token, or one such object for each language;
  // `name` stands for the file in messages.
  static Result<CtcVocabulary> parse(std::string_view json, const std::string& name,
                                     CtcSettings settings);

  // A token beside the vocabulary's own, which win.
  void add(TokenId id, std::string token) { tokens_.emplace(id, std::move(token)); }

  // The text of the best class of every frame: equal tokens in a row count once, then blanks are
  // omitted.
  Result<FrameText> decode(std::span<const TokenId> classes) const;

 private:
  explicit CtcVocabulary(CtcSettings settings) : settings_(std::move(settings)) {}

  CtcSettings settings_;
  std::map<TokenId, std::string> tokens_;
};

// The same with the tokens of a tokenizer.json, whose decoder writes the spaces between words.
Result<FrameText> decode_frames(const TokenizerEngine& tokenizer, TokenId blank,
                                std::span<const TokenId> classes);

}  // namespace vkformer
