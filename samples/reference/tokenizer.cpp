// Examples of tokenizers.
#include <vkformer/tokenizer.h>

#include <cstdio>
#include <fstream>
#include <iterator>

#include "examples.h"

namespace {

vkformer::Status show_texts(const vkformer::Tokenizer& tokenizer) {
  //! [Tokenizer::encode Tokenizer::decode]
  // Text to token ids, and back.
  const auto encoding = tokenizer.encode("KING RICHARD:");
  if (!encoding) return encoding.error();
  const auto text = tokenizer.decode(encoding->ids);
  if (!text) return text.error();
  std::printf("%zu tokens of [%s]\n", encoding->ids.size(), text->c_str());
  //! [end]

  //! [Tokenizer::decode_stream DecodeStream::push DecodeStream::finish]
  // Prints a text while its tokens arrive, in whole characters.
  vkformer::DecodeStream stream = tokenizer.decode_stream();
  for (const vkformer::TokenId id : encoding->ids) {
    const auto piece = stream.push(id);
    if (!piece) return piece.error();
    std::printf("%s", piece->c_str());
  }
  const auto rest = stream.finish();
  if (!rest) return rest.error();
  std::printf("%s\n", rest->c_str());
  //! [end]

  //! [Tokenizer::encode_batch]
  // Two texts as the rows of one batch, each padded to 16 tokens.
  vkformer::EncodeOptions options;
  options.padding.mode = vkformer::PaddingMode::kToLength;
  options.padding.length = 16;
  options.padding.pad_id = 0;
  const std::vector<std::string> texts = {"O Romeo", "Farewell"};
  const auto rows = tokenizer.encode_batch(texts, options);
  if (!rows) return rows.error();
  for (const vkformer::Encoding& row : *rows) std::printf("%zu tokens\n", row.ids.size());
  //! [end]

  //! [Tokenizer::encode_pair]
  // Two texts that belong together, such as a question and its context.
  const auto pair = tokenizer.encode_pair("Who speaks?", "Juliet speaks.");
  if (!pair) return pair.error();
  std::printf("%zu tokens of two texts\n", pair->ids.size());
  //! [end]
  return expect(*text == "KING RICHARD:" && rows->front().ids.size() == 16, "the text again");
}

}  // namespace

vkformer::Status show_tokenizer(const Setting& setting) {
  const std::string directory = setting.models + "/shakespeare";
  //! [Tokenizer::load Tokenizer::vocab_size]
  // Loads the tokenizer of a model directory.
  const auto tokenizer = vkformer::Tokenizer::load(directory);
  if (!tokenizer) return tokenizer.error();
  std::printf("%zu tokens\n", tokenizer->vocab_size());
  //! [end]

  //! [Tokenizer::parse]
  // The same from the content of the file, as from a game's archive.
  std::ifstream file(directory + "/tokenizer.json", std::ios::binary);
  const std::string json{std::istreambuf_iterator<char>(file), {}};
  const auto parsed = vkformer::Tokenizer::parse(json);
  if (!parsed) return parsed.error();
  //! [end]

  //! [Tokenizer::id_to_token Tokenizer::token_to_id Tokenizer::token_bytes]
  // What one token is called, and which bytes it adds to a text.
  const std::optional<std::string> token = tokenizer->id_to_token(10);
  if (token) {
    const std::optional<vkformer::TokenId> id = tokenizer->token_to_id(*token);
    const auto bytes = tokenizer->token_bytes(id.value_or(0));
    if (!bytes) return bytes.error();
    std::printf("[%s]: %zu bytes\n", token->c_str(), bytes->size());
  }
  //! [end]
  const auto held = expect(token && tokenizer->token_to_id(*token) == 10, "the id of its token");
  if (!held) return held;
  return show_texts(*tokenizer);
}
