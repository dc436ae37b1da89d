#include <algorithm>
#include <initializer_list>
#include <utility>

#include "chat/expression_parser.h"
#include "chat/fault.h"

namespace vkformer::chat {
namespace {

using Kind = Node::Kind;

constexpr size_t kMostBytes = 1u << 20;

class Parser : private ExpressionParser {
 public:
  explicit Parser(std::vector<Token> tokens) : ExpressionParser(std::move(tokens)) {}

  Node parse() {
    Node body = parse_body({});
    if (peek().kind != Token::Kind::kEnd) stop("[" + peek().text + "] ends nothing.");
    return body;
  }

 private:
  // Text and tags up to a block with one of these names, which is left there, or the end.
  Node parse_body(std::initializer_list<const char*> ends) {
    const Depth depth(*this);
    Node body = make(Kind::kBlock);
    while (peek().kind != Token::Kind::kEnd) {
      if (peek().kind == Token::Kind::kText) {
        body.parts.push_back(make(Kind::kText, {}, peek().text));
        ++at_;
      } else if (peek().kind == Token::Kind::kOutputBegin) {
        ++at_;
        Node node = make(Kind::kOutput);
        node.parts = list_of(parse_tuple());
        body.parts.push_back(std::move(node));
        need(Token::Kind::kOutputEnd);
      } else {
        ++at_;  // the block's begin
        for (const char* end : ends) {
          if (is_name(end)) return body;
        }
        body.parts.push_back(parse_statement());
      }
    }
    if (ends.size() > 0) stop("expected a block [" + std::string(*(ends.end() - 1)) + "].");
    return body;
  }
  void end_block(const char* name) {
    if (!take_name(name)) stop("expected [" + std::string(name) + "].");
    need(Token::Kind::kBlockEnd);
  }

  Node parse_statement() {
    const std::string name = need_name();
    if (name == "if") return parse_if();
    if (name == "for") return parse_for();
    if (name == "set") return parse_set();
    if (name == "macro") return parse_macro(need_name());
    if (name == "call") return parse_call_block();
    if (name == "filter") return parse_filter_block();
    if (name == "with") return parse_with();
    if (name == "generation") {  // marks what the assistant says, which changes no text
      need(Token::Kind::kBlockEnd);
      Node body = parse_body({"endgeneration"});
      end_block("endgeneration");
      return body;
    }
    if (name == "break" || name == "continue") {
      if (loops_ == 0) stop("[" + name + "] stands outside of a loop.");
      Node node = make(name == "break" ? Kind::kBreak : Kind::kContinue);
      need(Token::Kind::kBlockEnd);
      return node;
    }
    --at_;
    stop("[" + name + "] is no statement that chat templates may use.");
  }

  Node parse_if() {
    Node node = make(Kind::kIf);
    node.parts = list_of(parse_tuple());
    need(Token::Kind::kBlockEnd);
    node.parts.push_back(parse_body({"elif", "else", "endif"}));
    if (take_name("elif")) {
      const Depth depth(*this);
      node.parts.push_back(parse_if());
      return node;
    }
    if (take_name("else")) {
      need(Token::Kind::kBlockEnd);
      node.parts.push_back(parse_body({"endif"}));
    }
    end_block("endif");
    return node;
  }

  Node parse_for() {
    Node node = make(Kind::kFor);
    node.parts = list_of(parse_target());
    if (!take_name("in")) stop("expected [in].");
    node.parts.push_back(parse_tuple(Choice::kExcluded));
    node.parts.push_back(take_name("if") ? parse_expression() : make(Kind::kNothing));
    if (is_name("recursive")) stop("recursive loops are not supported.");
    need(Token::Kind::kBlockEnd);
    ++loops_;
    node.parts.push_back(parse_body({"else", "endfor"}));
    --loops_;
    if (take_name("else")) {
      need(Token::Kind::kBlockEnd);
      node.parts.push_back(parse_body({"endfor"}));
    }
    end_block("endfor");
    return node;
  }

  // One name, a name of a namespace, or several names.
  Node parse_target() {
    const Depth depth(*this);
    std::vector<Node> names;
    bool is_tuple = false;
    do {
      if (take_operator("(")) {
        names.push_back(parse_target());
        need_operator(")");
      } else if (names.empty() || peek().kind == Token::Kind::kName) {
        Node name = make(Kind::kName, {}, need_name());
        if (take_operator(".")) {
          name = make(Kind::kAttribute, list_of(std::move(name)), need_name());
        }
        names.push_back(std::move(name));
      } else {
        break;  // after a last comma
      }
      is_tuple = is_tuple || is_operator(",");
    } while (take_operator(","));
    return is_tuple ? make(Kind::kTuple, std::move(names)) : std::move(names.front());
  }

  Node parse_set() {
    Node node = make(Kind::kSet);
    node.parts = list_of(parse_target());
    if (take_operator("=")) {
      node.parts.push_back(parse_tuple());
      need(Token::Kind::kBlockEnd);
      return node;
    }
    node.kind = Kind::kSetBlock;
    Node filter = is_operator("|") ? parse_filters(make(Kind::kBody)) : make(Kind::kNothing);
    need(Token::Kind::kBlockEnd);
    node.parts.push_back(parse_body({"endset"}));
    node.parts.push_back(std::move(filter));
    end_block("endset");
    return node;
  }

  // Parameters up to the closing bracket.
  void parse_parameters(Node& macro) {
    while (!take_operator(")")) {
      if (!macro.names.empty()) {
        need_operator(",");
        if (take_operator(")")) break;
      }
      macro.names.push_back(need_name());
      if (take_operator("=")) {
        macro.parts.push_back(parse_expression());
      } else if (macro.parts.size() > 1) {
        stop("a parameter without a default follows one that has a default.");
      }
    }
  }

  static bool uses(const Node& node, std::string_view name) {
    if (node.kind == Kind::kName && node.text == name) return true;
    return std::any_of(node.parts.begin(), node.parts.end(),
                       [&](const Node& part) { return uses(part, name); });
  }

  // Arguments that are no parameters are taken by a macro that looks at them.
  static Value taken_besides(const Node& macro) {
    int64_t taken = 0;
    for (const auto& [name, bit] : {std::pair("varargs", 1), std::pair("kwargs", 2)}) {
      const bool own = std::find(macro.names.begin(), macro.names.end(), name) != macro.names.end();
      if (!own && uses(macro.parts.front(), name)) taken += bit;
    }
    return Value::integer(taken);
  }

  Node parse_macro(std::string name) {
    Node node = make(Kind::kMacro, {}, std::move(name));
    node.parts.emplace_back();
    need_operator("(");
    parse_parameters(node);
    need(Token::Kind::kBlockEnd);
    const int loops = std::exchange(loops_, 0);
    node.parts.front() = parse_body({"endmacro"});
    loops_ = loops;
    end_block("endmacro");
    node.value = taken_besides(node);
    return node;
  }

  Node parse_call_block() {
    Node node = make(Kind::kCallBlock);
    Node caller = make(Kind::kMacro, {}, "caller");
    caller.parts.emplace_back();
    if (take_operator("(")) parse_parameters(caller);
    Node call = parse_expression();
    if (call.kind != Kind::kCall) stop("[call] needs the call of a macro.");
    need(Token::Kind::kBlockEnd);
    caller.parts.front() = parse_body({"endcall"});
    end_block("endcall");
    caller.value = taken_besides(caller);
    node.parts = list_of(std::move(call), std::move(caller));
    return node;
  }

  Node parse_filter_block() {
    Node node = make(Kind::kFilterBlock);
    Node filter = parse_filter(make(Kind::kBody));
    node.parts = list_of(parse_filters(std::move(filter)));
    need(Token::Kind::kBlockEnd);
    node.parts.push_back(parse_body({"endfilter"}));
    end_block("endfilter");
    return node;
  }

  Node parse_with() {
    Node node = make(Kind::kWith);
    node.parts.emplace_back();
    while (peek().kind != Token::Kind::kBlockEnd) {
      if (node.parts.size() > 1) need_operator(",");
      node.parts.push_back(make(Kind::kName, {}, need_name()));
      need_operator("=");
      node.parts.push_back(parse_expression());
    }
    need(Token::Kind::kBlockEnd);
    node.parts.front() = parse_body({"endwith"});
    end_block("endwith");
    return node;
  }

  int loops_ = 0;
};

}  // namespace

Node parse_template(std::string_view source) {
  if (source.size() > kMostBytes) {
    fail("the template has " + std::to_string(source.size()) + " bytes; the limit is " +
         std::to_string(kMostBytes) + ".");
  }
  return Parser(cut_template(source)).parse();
}

}  // namespace vkformer::chat
