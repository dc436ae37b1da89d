#include "c_api/support.h"

using namespace vkformer;

vkf_status vkf_grammar_from_gbnf(const char* text, const char* root, vkf_grammar** grammar,
                                 vkf_error* error) {
  return make_handle(grammar, error, [&] {
    need(text, "text");
    return handle(vkf_grammar{take(Grammar::from_gbnf(text, text_or(root, "root")))});
  });
}

vkf_status vkf_grammar_from_json_schema(const char* schema, vkf_grammar** grammar,
                                        vkf_error* error) {
  return make_handle(grammar, error, [&] {
    need(schema, "schema");
    return handle(vkf_grammar{take(Grammar::from_json_schema(schema))});
  });
}

void vkf_grammar_free(vkf_grammar* grammar) {
  delete grammar;
}

vkf_status vkf_grammar_matches(const vkf_grammar* grammar, const char* text, int32_t* matches,
                               vkf_error* error) {
  return guard(error, [&] {
    need_all({{grammar, "grammar"}, {text, "text"}, {matches, "matches"}});
    *matches = take(grammar->grammar.matches(text)) ? 1 : 0;
  });
}

vkf_status vkf_constraint_create(const vkf_grammar* grammar, const vkf_tokenizer* tokenizer,
                                 int64_t width, vkf_ids ends, vkf_constraint** constraint,
                                 vkf_error* error) {
  return make_handle(constraint, error, [&] {
    need_all({{grammar, "grammar"}, {tokenizer, "tokenizer"}});
    const std::vector<TokenId> ids = read_ids(ends, "end tokens");
    const GrammarVocabulary vocabulary =
        take(GrammarVocabulary::create(*tokenizer->tokenizer, width, ids));
    return handle(vkf_constraint{std::make_shared<GrammarConstraint>(
        take(GrammarConstraint::create(grammar->grammar, vocabulary)))});
  });
}

void vkf_constraint_free(vkf_constraint* constraint) {
  delete constraint;
}
