// ExpressionParser: the expressions of templates. Needs: Node, Token.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "chat/template_lexer.h"
#include "chat/template_tree.h"

namespace vkformer::chat {

std::vector<Node> list_of(Node first);
std::vector<Node> list_of(Node first, Node second);
std::vector<Node> list_of(Node first, Node second, Node third);

class ExpressionParser {
 protected:
  explicit ExpressionParser(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}

  static constexpr int kMostDepth = 150;
  // Operators, filters and subscripts in a row.
  static constexpr int kMostChain = 200;

  // Counts how deep expressions and blocks nest.
  struct Depth {
    explicit Depth(ExpressionParser& owner) : parser(owner) {
      if (++parser.depth_ > kMostDepth) parser.stop("expressions or blocks nest too deeply.");
    }
    ~Depth() { --parser.depth_; }
    ExpressionParser& parser;
  };

  const Token& peek(size_t ahead = 0) const {
    return tokens_[at_ + ahead < tokens_.size() ? at_ + ahead : tokens_.size() - 1];
  }
  [[noreturn]] void stop(const std::string& complaint) const;
  bool is_operator(std::string_view text) const;
  bool is_name(std::string_view text, size_t ahead = 0) const;
  bool take_operator(std::string_view text);
  bool take_name(std::string_view text);
  void need_operator(std::string_view text);
  void need(Token::Kind kind);
  std::string need_name();
  // A node of the current line.
  Node make(Node::Kind kind, std::vector<Node> parts = {}, std::string text = "") const;

  // One expression, or several with commas, which are a tuple. Before the `if` of a loop, a choice
  // is no part of it.
  enum class Choice : uint8_t { kIncluded, kExcluded };
  Node parse_tuple(Choice choice = Choice::kIncluded);
  Node parse_expression();
  // Filters and tests after a node, or one filter without its bar.
  Node parse_filters(Node node);
  Node parse_filter(Node of);

  std::vector<Token> tokens_;
  size_t at_ = 0;

 private:
  // Operators of one rank, from left to right.
  using Part = Node (ExpressionParser::*)();
  Node parse_binary(std::initializer_list<const char*> operators, Part part);
  Node parse_or();
  Node parse_and();
  Node parse_not();
  Node parse_compare();
  Node parse_sum();
  Node parse_join();
  Node parse_product();
  Node parse_power();
  Node parse_factor();
  Node parse_unary();
  Node parse_postfix(Node node);
  Node parse_subscript(Node object);
  void parse_arguments(Node& node);
  std::string parse_argument_name(const std::vector<std::string>& before);
  Node parse_test(Node of);
  Node literal(Value value) const;
  Node parse_primary();
  Node parse_word();
  Node parse_number();
  Node parse_items(const char* end);
  // Counts one more of a chain that began with `count` = 0.
  void lengthen(int& count) const;

  int depth_ = 0;
};

}  // namespace vkformer::chat
