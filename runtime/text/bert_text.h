// The pieces of tokenizer files that BERT brought: its normalizer, pre-tokenizer, post-processors
// and the WordPiece decoder. Needs: the interfaces of those steps.
#pragma once

#include <memory>

#include "text/decoders.h"
#include "text/normalizers.h"
#include "text/post_processors.h"
#include "text/pre_tokenizers.h"

namespace vkformer {

// Cleans control characters, sets CJK ideographs apart, strips accents, lower-cases.
Result<std::unique_ptr<TextNormalizer>> parse_bert_normalizer(const JsonRef& json, int depth);

// Words between white space, punctuation one by one.
Result<std::unique_ptr<PreTokenizer>> parse_bert_pre_tokenizer(const JsonRef& json, int depth);

// [CLS] A [SEP] B [SEP].
Result<std::unique_ptr<PostProcessor>> parse_bert_processing(const JsonRef& json, int depth);

// <s> A </s> </s> B </s>, after the spaces around byte-level tokens are taken out of their ranges.
Result<std::unique_ptr<PostProcessor>> parse_roberta_processing(const JsonRef& json, int depth);

// Joins tokens by spaces, continuing ones without; cleanup removes spaces before punctuation.
Result<std::unique_ptr<TokenDecoder>> parse_word_piece_decoder(const JsonRef& json, int depth);

}  // namespace vkformer
