// Value: what a template computes with, after Python's types. Needs: JsonTree.
//
// Values are immutable but for namespaces, so copies share their content. None nests deeper or
// holds more than a limit, and no namespace is inside of one: what walks through a value ends.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "json/json_tree.h"

namespace vkformer::chat {

// Bytes of a text that a template makes.
constexpr size_t kMostText = 16u << 20;
// Throws a Fault beyond it.
void check_text_size(size_t size);

struct Node;

class Value {
 public:
  enum class Type : uint8_t {
    kUndefined,
    kNone,
    kBoolean,
    kInteger,
    kFloat,
    kString,
    kList,
    kTuple,
    kDict,
    kNamespace,  // a dict that `set` may change
    kFunction,
  };
  using List = std::vector<Value>;
  using Member = std::pair<Value, Value>;
  using Members = std::vector<Member>;

  // Something that can be called: a global function or filter by name, a method of `self`, or a
  // macro.
  struct Function {
    std::string name;
    std::shared_ptr<const Value> self;
    const Node* macro = nullptr;
  };

  Value();
  Value(const Value& other);
  Value(Value&& other) noexcept;
  Value& operator=(const Value& other);
  Value& operator=(Value&& other) noexcept;
  ~Value();
  static Value undefined(std::string name);
  static Value none() { return Value(Type::kNone); }
  static Value boolean(bool value);
  static Value integer(int64_t value);
  static Value real(double value);
  static Value string(std::string value);
  static Value list(List items, Type type = Type::kList);
  static Value dict(Members members, Type type = Type::kDict);
  static Value function(Function function);
  static Value from_json(const JsonTree& tree);

  Type type() const { return type_; }
  bool is(Type type) const { return type_ == type; }
  bool is_list() const { return type_ == Type::kList || type_ == Type::kTuple; }
  bool is_dict() const { return type_ == Type::kDict || type_ == Type::kNamespace; }
  // Numbers as Python counts them: truth values too.
  bool is_integer() const { return type_ == Type::kInteger || type_ == Type::kBoolean; }
  bool is_number() const { return is_integer() || type_ == Type::kFloat; }

  // Preconditions: the type that the name says.
  int64_t as_integer() const { return integer_; }
  double as_real() const { return is_integer() ? static_cast<double>(integer_) : real_; }
  const std::string& as_string() const { return data_->text; }
  const List& as_list() const { return data_->items; }
  const Members& as_dict() const { return data_->members; }
  const Function& as_function() const { return data_->function; }
  // The name of what is undefined.
  const std::string& name() const { return data_->text; }
  // Precondition: a namespace.
  void set_member(const std::string& key, Value value);
  // The value of a key, or null.
  const Value* find(const Value& key) const;
  const Value* find(std::string_view key) const;

  bool is_true() const;
  // Python's ==.
  bool operator==(const Value& other) const;
  // About how many values it holds, and sixteen characters count as one.
  size_t weight() const { return data_ ? data_->weight : 1; }
  // The type as messages name it: "a list".
  const char* type_name() const;

 private:
  struct Data {
    std::string text;
    List items;
    Members members;
    Function function;
    size_t weight = 1;
    int depth = 0;
    bool holds_namespace = false;
  };
  // Takes note of a value that this one holds from now on.
  void hold(const Value& value);
  explicit Value(Type type);
  static Value with_data(Type type);

  Type type_ = Type::kUndefined;
  int64_t integer_ = 0;
  double real_ = 0;
  std::shared_ptr<Data> data_;
};

// Python's str() and repr().
std::string to_text(const Value& value);
std::string to_repr(const Value& value);

// How Python's json.dumps() writes: `indent` spaces a level, or one line for a negative one.
struct JsonStyle {
  int64_t indent = -1;
  std::string between_items;  // ", " where empty, or "," where indented
  std::string after_keys = ": ";
  bool sorts_keys = false;
  bool only_ascii = false;
};
std::string to_json(const Value& value, const JsonStyle& style);

}  // namespace vkformer::chat
