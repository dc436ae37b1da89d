// Character properties of older Unicode versions. Some steps of tokenizer files are defined by
// implementations that carry such tables. A tokenizer must agree with the one that its model was
// trained with. A mark or a punctuation sign of a later version is an ordinary character there.
#pragma once

namespace vkformer {

// Category Mn in Unicode 8.0, for BertNormalizer.
bool is_nonspacing_mark_8(char32_t c);
// Categories Pc to Po in Unicode 8.0, for BertPreTokenizer and Punctuation.
bool is_punctuation_8(char32_t c);
// Categories Cc, Cf and Co in Unicode 8.0, for BertNormalizer: controls, formats and private use,
// but not unassigned characters.
bool is_other_8(char32_t c);
// Categories Mn, Mc and Me in Unicode 9.0, for StripAccents and the normalization forms.
bool is_mark_9(char32_t c);
// Whether a character has had a decomposition since after Unicode 9.0 only: not for the
// normalization forms.
bool is_decomposed_since_9(char32_t c);

}  // namespace vkformer
