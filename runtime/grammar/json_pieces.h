// JsonPieces: the parts of JSON texts as grammar nodes. Needs: GrammarTree, JsonTree.
//
// Strings hold no half surrogate pairs. Numbers have at most 15 digits, 15 decimals and two digits
// of exponent, so that every parser reads them without loss of range. White space is allowed after
// { [ , and : and before } and ] only: a space, or a line break with at most 20 spaces or tabs.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "grammar/grammar_tree.h"
#include "json/json_tree.h"

namespace vkformer {

class JsonPieces {
 public:
  static constexpr int64_t kMostInteger = 999'999'999'999'999;

  explicit JsonPieces(GrammarTree& tree) : tree_(tree) {}

  // White space that may stand there.
  uint32_t space();
  // One character of a string, of any kind or of some, escaped where JSON asks for it.
  uint32_t character();
  uint32_t character_of(const std::vector<CharRange>& ranges);
  // `content` between quotes.
  uint32_t quoted(uint32_t content);
  uint32_t string();
  uint32_t number();
  uint32_t integer();
  uint32_t value();
  uint32_t object();
  uint32_t array();
  // Exactly this value, without spaces.
  uint32_t exactly(const JsonTree& value);
  // A quoted name that is none of `names`, without escapes.
  uint32_t name_except(const std::vector<std::u32string>& names);
  // `first` and then any number of times a comma and `more`, between brackets such as "[]"; the
  // list may be empty.
  uint32_t list(const char* brackets, uint32_t first, uint32_t more);
  // A comma and what may follow it, and `part`.
  uint32_t after_comma(uint32_t part);
  // `content` between brackets such as "[]", with space inside.
  uint32_t bracketed(const char* brackets, uint32_t content);
  uint32_t digit() { return tree_.chars({{U'0', U'9'}}); }

 private:
  // A node that uses the rule of that name, which `make` gives a body the first time.
  template <class Make>
  uint32_t named(std::optional<uint32_t>& rule, const char* name, const Make& make);
  uint32_t except_from(const std::vector<std::u32string>& names, size_t at);

  GrammarTree& tree_;
  std::optional<uint32_t> space_, character_, string_, number_, integer_, value_, object_, array_;
};

}  // namespace vkformer
