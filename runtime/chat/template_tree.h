// A parsed template. Needs: Value.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "chat/value.h"

namespace vkformer::chat {

struct Node {
  Node();
  Node(const Node& other) = delete;
  Node(Node&& other) noexcept;
  Node& operator=(const Node& other) = delete;
  Node& operator=(Node&& other) noexcept;
  ~Node();

  enum class Kind : uint8_t {
    // Statements.
    kBlock,        // parts in order
    kText,         // text
    kOutput,       // part 0
    kIf,           // part 0: condition, 1: body, 2: else
    kFor,          // part 0: target, 1: what to go through, 2: filter or kNothing, 3: body, 4: else
    kSet,          // part 0: target, 1: value
    kSetBlock,     // part 0: target, 1: body, 2: a filter of it or kNothing
    kMacro,        // text: name, names: parameters, part 0: body, then defaults of the last
                   // parameters; value: whether the body uses varargs (1) and kwargs (2), added up
    kCallBlock,    // part 0: call, 1: macro "caller"
    kFilterBlock,  // part 0: filter of kBody, 1: body
    kWith,         // part 0: body, then targets and values in turn
    kBreak,
    kContinue,
    kNothing,
    // Expressions. Arguments follow part 0; names holds theirs, "" for those by position, "*" and
    // "**" for a list and a dict of them.
    kLiteral,    // value
    kName,       // text
    kList,       // parts
    kTuple,      // parts
    kDict,       // keys and values in turn
    kAttribute,  // part 0, text
    kItem,       // part 0, part 1
    kSlice,      // part 0, then begin, end and step, each may be kNothing
    kCall,
    kFilter,    // text
    kTest,      // text
    kNot,       // part 0
    kNegative,  // part 0
    kPositive,  // part 0
    kBinary,    // text: operator
    kCompare,   // parts; names: the operators between them
    kAnd,
    kOr,
    kChoice,  // part 0 if part 1 else part 2
    kBody,    // the text that a block made
  };
  Kind kind = Kind::kNothing;
  int line = 0;
  std::string text;
  std::vector<std::string> names;
  std::vector<Node> parts;
  Value value;
};

// Throws a Fault.
Node parse_template(std::string_view source);

}  // namespace vkformer::chat
