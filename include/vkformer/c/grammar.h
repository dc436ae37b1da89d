// c/grammar.h: grammars and chat templates.
// The rules of the C interface are in vkformer.h.
#ifndef VKFORMER_C_GRAMMAR_H
#define VKFORMER_C_GRAMMAR_H

#include "vkformer/c/source.h"
#include "vkformer/c/tokenizer.h"
#include "vkformer/c/values.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct vkf_grammar vkf_grammar;
typedef struct vkf_constraint vkf_constraint;

// What may be written: GBNF, whose whole text matches the rule `root` (null: "root"), or JSON that
// is valid for a schema. [any]
VKFORMER_API vkf_status vkf_grammar_from_gbnf(const char* text, const char* root,
                                              vkf_grammar** grammar, vkf_error* error);
VKFORMER_API vkf_status vkf_grammar_from_json_schema(const char* schema, vkf_grammar** grammar,
                                                     vkf_error* error);
VKFORMER_API void vkf_grammar_free(vkf_grammar* grammar);
// Whether the grammar matches the whole text. [any]
VKFORMER_API vkf_status vkf_grammar_matches(const vkf_grammar* grammar, const char* text,
                                            int32_t* matches, vkf_error* error);
// A grammar with the tokens of a model, whose logits are `width` wide; `ends` are its end tokens.
// [any]
VKFORMER_API vkf_status vkf_constraint_create(const vkf_grammar* grammar,
                                              const vkf_tokenizer* tokenizer, int64_t width,
                                              vkf_ids ends, vkf_constraint** constraint,
                                              vkf_error* error);
VKFORMER_API void vkf_constraint_free(vkf_constraint* constraint);

typedef struct vkf_chat_template vkf_chat_template;
// Never changes.
typedef struct vkf_message {
  const char* role;  // "system", "user", "assistant"
  const char* content;
} vkf_message;
// A model's chat template. [any]
VKFORMER_API vkf_status vkf_chat_template_load(const char* directory,
                                               vkf_chat_template** chat_template, vkf_error* error);
// [any]
VKFORMER_API vkf_status vkf_chat_template_load_from(const vkf_source* source,
                                                    vkf_chat_template** chat_template,
                                                    vkf_error* error);
// One by its text; null: no special tokens, else a JSON object such as {"bos_token": "<s>"}. [any]
VKFORMER_API vkf_status vkf_chat_template_parse(const char* text, const char* special_tokens,
                                                vkf_chat_template** chat_template,
                                                vkf_error* error);
VKFORMER_API void vkf_chat_template_free(vkf_chat_template* chat_template);
// The conversation as a text that ends where the model is to answer. Special tokens are part of it.
// [any]
VKFORMER_API vkf_status vkf_chat_template_render(const vkf_chat_template* chat_template,
                                                 const vkf_message* messages, size_t count,
                                                 vkf_bytes** text, vkf_error* error);

#ifdef __cplusplus
}
#endif

#endif  // VKFORMER_C_GRAMMAR_H
