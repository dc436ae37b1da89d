#include "chat/expression_parser.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "base/real_text.h"
#include "chat/fault.h"

namespace vkformer::chat {
namespace {

using Kind = Node::Kind;

}  // namespace

Node::Node() = default;
Node::Node(Node&& other) noexcept = default;
Node& Node::operator=(Node&& other) noexcept = default;
Node::~Node() = default;

std::vector<Node> list_of(Node first) {
  std::vector<Node> out;
  out.push_back(std::move(first));
  return out;
}

std::vector<Node> list_of(Node first, Node second) {
  std::vector<Node> out = list_of(std::move(first));
  out.push_back(std::move(second));
  return out;
}

std::vector<Node> list_of(Node first, Node second, Node third) {
  std::vector<Node> out = list_of(std::move(first), std::move(second));
  out.push_back(std::move(third));
  return out;
}

void ExpressionParser::stop(const std::string& complaint) const {
  fail(complaint, peek().line);
}
bool ExpressionParser::is_operator(std::string_view text) const {
  return peek().kind == Token::Kind::kOperator && peek().text == text;
}

bool ExpressionParser::is_name(std::string_view text, size_t ahead) const {
  return peek(ahead).kind == Token::Kind::kName && peek(ahead).text == text;
}

bool ExpressionParser::take_operator(std::string_view text) {
  if (!is_operator(text)) return false;
  ++at_;
  return true;
}

bool ExpressionParser::take_name(std::string_view text) {
  if (!is_name(text)) return false;
  ++at_;
  return true;
}

void ExpressionParser::need_operator(std::string_view text) {
  if (!take_operator(text)) {
    stop("expected '" + std::string(text) + "' but found [" + peek().text + "].");
  }
}

std::string ExpressionParser::need_name() {
  if (peek().kind != Token::Kind::kName) stop("expected a name.");
  return tokens_[at_++].text;
}

void ExpressionParser::need(Token::Kind kind) {
  if (peek().kind != kind) {
    stop("expected the end of a tag or expression but found [" + peek().text + "].");
  }
  ++at_;
}

Node ExpressionParser::make(Kind kind, std::vector<Node> parts, std::string text) const {
  Node node;
  node.kind = kind;
  node.line = peek().line;
  node.text = std::move(text);
  node.parts = std::move(parts);
  return node;
}
void ExpressionParser::lengthen(int& count) const {
  if (++count > kMostChain) stop("an expression has too many parts in a row.");
}

Node ExpressionParser::parse_tuple(Choice choice) {
  const bool with_choice = choice == Choice::kIncluded;
  Node first = with_choice ? parse_expression() : parse_or();
  if (!is_operator(",")) return first;
  Node tuple = make(Kind::kTuple, list_of(std::move(first)));
  while (take_operator(",")) {
    const Token::Kind next = peek().kind;
    if (next == Token::Kind::kOutputEnd || next == Token::Kind::kBlockEnd || is_operator(")")) {
      break;
    }
    tuple.parts.push_back(with_choice ? parse_expression() : parse_or());
  }
  return tuple;
}

Node ExpressionParser::parse_expression() {
  const Depth depth(*this);
  Node node = parse_or();
  for (int count = 0; take_name("if"); lengthen(count)) {
    Node condition = parse_or();
    Node other = take_name("else") ? parse_expression() : make(Kind::kNothing);
    node = make(Kind::kChoice, list_of(std::move(node), std::move(condition), std::move(other)));
  }
  return node;
}

Node ExpressionParser::parse_or() {
  Node node = parse_and();
  for (int count = 0; take_name("or"); lengthen(count))
    node = make(Kind::kOr, list_of(std::move(node), parse_and()));
  return node;
}

Node ExpressionParser::parse_and() {
  Node node = parse_not();
  for (int count = 0; take_name("and"); lengthen(count))
    node = make(Kind::kAnd, list_of(std::move(node), parse_not()));
  return node;
}

Node ExpressionParser::parse_not() {
  const Depth depth(*this);
  if (is_name("not") && !is_name("in", 1)) {
    ++at_;
    return make(Kind::kNot, list_of(parse_not()));
  }
  return parse_compare();
}

Node ExpressionParser::parse_compare() {
  Node node = make(Kind::kCompare, list_of(parse_sum()));
  while (true) {
    static constexpr std::array kOperators = {"==", "!=", "<=", ">=", "<", ">"};
    const auto found = std::find_if(kOperators.begin(), kOperators.end(),
                                    [&](const char* text) { return is_operator(text); });
    if (found != kOperators.end()) {
      ++at_;
      node.names.push_back(*found);
    } else if (take_name("in")) {
      node.names.push_back("in");
    } else if (is_name("not") && is_name("in", 1)) {
      at_ += 2;
      node.names.push_back("not in");
    } else {
      break;
    }
    node.parts.push_back(parse_sum());
  }
  if (node.names.empty()) return Node(std::move(node.parts.front()));
  return node;
}

Node ExpressionParser::parse_binary(std::initializer_list<const char*> operators, Part part) {
  Node node = (this->*part)();
  for (int count = 0;; lengthen(count)) {
    const auto found = std::find_if(operators.begin(), operators.end(),
                                    [&](const char* text) { return is_operator(text); });
    if (found == operators.end()) return node;
    ++at_;
    node = make(Kind::kBinary, list_of(std::move(node), (this->*part)()), *found);
  }
}

Node ExpressionParser::parse_sum() {
  return parse_binary({"+", "-"}, &ExpressionParser::parse_join);
}
Node ExpressionParser::parse_join() {
  return parse_binary({"~"}, &ExpressionParser::parse_product);
}
Node ExpressionParser::parse_product() {
  return parse_binary({"*", "//", "/", "%"}, &ExpressionParser::parse_power);
}
Node ExpressionParser::parse_power() {
  return parse_binary({"**"}, &ExpressionParser::parse_factor);
}
Node ExpressionParser::parse_factor() {
  return parse_filters(parse_unary());
}

Node ExpressionParser::parse_unary() {
  const Depth depth(*this);
  if (take_operator("-")) return make(Kind::kNegative, list_of(parse_unary()));
  if (take_operator("+")) return make(Kind::kPositive, list_of(parse_unary()));
  return parse_postfix(parse_primary());
}

Node ExpressionParser::parse_postfix(Node node) {
  for (int count = 0;; lengthen(count)) {
    if (take_operator(".")) {
      if (peek().kind == Token::Kind::kInteger) {
        node = make(Kind::kItem, list_of(std::move(node), parse_primary()));
      } else {
        node = make(Kind::kAttribute, list_of(std::move(node)), need_name());
      }
    } else if (take_operator("[")) {
      node = parse_subscript(std::move(node));
    } else if (is_operator("(")) {
      node = make(Kind::kCall, list_of(std::move(node)));
      parse_arguments(node);
    } else {
      return node;
    }
  }
}

Node ExpressionParser::parse_subscript(Node object) {
  Node slice = make(Kind::kSlice, list_of(std::move(object)));
  bool is_slice = false;
  for (int i = 0; i < 3; ++i) {
    const bool is_empty = is_operator(":") || is_operator("]");
    slice.parts.push_back(is_empty ? make(Kind::kNothing) : parse_expression());
    if (i == 2 || !take_operator(":")) break;
    is_slice = true;
  }
  need_operator("]");
  slice.parts.resize(is_slice ? 4 : 2);
  if (is_slice) return slice;
  if (slice.parts[1].kind == Kind::kNothing) stop("[] needs an index.");
  slice.kind = Kind::kItem;
  return slice;
}

// The name of the next argument: "" by position, "*" and "**" for those in a list and in a dict.
// Those by position come before all others, one list before the dict, and the dict last.
std::string ExpressionParser::parse_argument_name(const std::vector<std::string>& before) {
  const bool has_dict = !before.empty() && before.back() == "**";
  const bool has_list = std::find(before.begin(), before.end(), "*") != before.end();
  const bool by_position_only = std::all_of(before.begin(), before.end(),
                                            [](const std::string& name) { return name.empty(); });
  std::string name;
  bool allowed = !has_dict;
  if (take_operator("*")) {
    name = "*";
    allowed = allowed && !has_list;
  } else if (take_operator("**")) {
    name = "**";
  } else if (peek().kind == Token::Kind::kName && peek(1).kind == Token::Kind::kOperator &&
             peek(1).text == "=") {
    name = need_name();
    need_operator("=");
  } else {
    allowed = by_position_only;
  }
  if (!allowed) {
    stop("arguments by position must come first, then names and one *, then one ** at the end.");
  }
  return name;
}

// With their brackets, after part 0.
void ExpressionParser::parse_arguments(Node& node) {
  need_operator("(");
  while (!take_operator(")")) {
    if (!node.names.empty()) {
      need_operator(",");
      if (take_operator(")")) break;
    }
    node.names.push_back(parse_argument_name(node.names));
    node.parts.push_back(parse_expression());
  }
}

Node ExpressionParser::parse_filter(Node of) {
  Node node = make(Kind::kFilter, list_of(std::move(of)), need_name());
  if (is_operator("(")) parse_arguments(node);
  return node;
}

// Filters, tests and calls of what they give.
Node ExpressionParser::parse_filters(Node node) {
  for (int count = 0;; lengthen(count)) {
    if (take_operator("|")) {
      node = parse_filter(std::move(node));
    } else if (take_name("is")) {
      node = parse_test(std::move(node));
    } else {
      return node;
    }
  }
}

Node ExpressionParser::parse_test(Node of) {
  const bool is_inverse = take_name("not");
  Node node = make(Kind::kTest, list_of(std::move(of)), need_name());
  const Token::Kind next = peek().kind;
  const bool is_word = next == Token::Kind::kName && !is_name("else") && !is_name("or") &&
                       !is_name("and") && !is_name("is") && !is_name("if") && !is_name("not") &&
                       !is_name("in");
  if (is_operator("(")) {
    parse_arguments(node);
  } else if (is_word || next == Token::Kind::kString || next == Token::Kind::kInteger ||
             next == Token::Kind::kFloat || is_operator("[") || is_operator("{")) {
    node.names.push_back("");
    node.parts.push_back(parse_postfix(parse_primary()));
  }
  if (is_inverse) return make(Kind::kNot, list_of(std::move(node)));
  return node;
}

Node ExpressionParser::literal(Value value) const {
  Node node = make(Kind::kLiteral);
  node.value = std::move(value);
  return node;
}

Node ExpressionParser::parse_primary() {
  const Depth depth(*this);
  const Token& token = peek();
  switch (token.kind) {
    case Token::Kind::kName:
      return parse_word();
    case Token::Kind::kString: {
      std::string text;
      for (; peek().kind == Token::Kind::kString; ++at_) text += peek().text;
      return literal(Value::string(std::move(text)));
    }
    case Token::Kind::kInteger:
    case Token::Kind::kFloat:
      return parse_number();
    default:
      break;
  }
  if (take_operator("(")) {
    if (take_operator(")")) return make(Kind::kTuple);
    Node node = parse_tuple();
    need_operator(")");
    return node;
  }
  if (take_operator("[")) return parse_items("]");
  if (take_operator("{")) return parse_items("}");
  stop("expected an expression but found [" + token.text + "].");
}

Node ExpressionParser::parse_word() {
  const std::string name = need_name();
  if (name == "true" || name == "True") return literal(Value::boolean(true));
  if (name == "false" || name == "False") return literal(Value::boolean(false));
  if (name == "none" || name == "None") return literal(Value::none());
  return make(Kind::kName, {}, name);
}

Node ExpressionParser::parse_number() {
  const Token& token = tokens_[at_++];
  const char* begin = token.text.data();
  const char* end = begin + token.text.size();
  int64_t integer = 0;
  double real = 0;
  const bool is_integer = token.kind == Token::Kind::kInteger;
  const auto read = is_integer ? std::from_chars(begin, end, integer) : read_real(begin, end, real);
  if (read.ec != std::errc()) fail("the number " + token.text + " is out of range.", token.line);
  return literal(is_integer ? Value::integer(integer) : Value::real(real));
}

// The items of a list, or the keys and values of a dict.
Node ExpressionParser::parse_items(const char* end) {
  const bool is_dict = *end == '}';
  Node node = make(is_dict ? Kind::kDict : Kind::kList);
  while (!take_operator(end)) {
    if (!node.parts.empty()) {
      need_operator(",");
      if (take_operator(end)) break;
    }
    node.parts.push_back(parse_expression());
    if (!is_dict) continue;
    need_operator(":");
    node.parts.push_back(parse_expression());
  }
  return node;
}

}  // namespace vkformer::chat
