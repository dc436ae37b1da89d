#include "chat/renderer.h"

#include <algorithm>
#include <array>
#include <ctime>

#include "chat/builtins.h"
#include "chat/fault.h"

namespace vkformer::chat {
namespace {

using Kind = Node::Kind;
using Type = Value::Type;

constexpr int kMostRenderDepth = 400;
constexpr size_t kMostOutput = 16u << 20;
constexpr int64_t kMostRange = 100'000;

// The variables of a block; inner ones hide outer ones.
struct Scope {
  Scope* outer = nullptr;
  std::vector<std::pair<std::string, Value>> variables;

  const Value* find(const std::string& name, StepCount& steps) const {
    for (const Scope* at = this; at != nullptr; at = at->outer) {
      steps.add(at->variables.size() / 16);
      for (const auto& [key, value] : at->variables) {
        if (key == name) return &value;
      }
    }
    return nullptr;
  }
  void set(const std::string& name, Value value, StepCount& steps) {
    steps.add(variables.size() / 16);
    for (auto& [key, old] : variables) {
      if (key != name) continue;
      old = std::move(value);
      return;
    }
    variables.emplace_back(name, std::move(value));
  }
};

// How a block ended.
enum class Flow : uint8_t { kOn, kBreak, kContinue };

class Renderer {
 public:
  explicit Renderer(const RenderInput& input) : now_(input.now) {
    globals_.variables = input.variables;
    top_.outer = &globals_;
  }

  std::string render(const Node& root) {
    std::string out;
    run(root, top_, out);
    return out;
  }

 private:
  struct Depth {
    explicit Depth(Renderer& owner) : renderer(owner) {
      if (++renderer.depth_ > kMostRenderDepth) fail("macros or expressions nest too deeply.");
    }
    ~Depth() { --renderer.depth_; }
    Renderer& renderer;
  };

  Flow run(const Node& node, Scope& scope, std::string& out) {
    const Depth depth(*this);
    try {
      return run_statement(node, scope, out);
    } catch (Fault& fault) {
      // The innermost statement says where.
      static constexpr std::string_view kFront = "[chat template] ";
      std::string& message = fault.error.message;
      if (message.compare(kFront.size(), 5, "line ") != 0) {
        message.insert(kFront.size(), "line " + std::to_string(node.line) + ": ");
      }
      throw;
    }
  }

  Flow run_statement(const Node& node, Scope& scope, std::string& out) {
    steps_.add(1);
    switch (node.kind) {
      case Kind::kBlock:
        for (const Node& part : node.parts) {
          const Flow flow = run(part, scope, out);
          if (flow != Flow::kOn) return flow;
        }
        return Flow::kOn;
      case Kind::kText:
        write(node.text, out);
        return Flow::kOn;
      case Kind::kOutput: {
        const Value value = evaluate(node.parts[0], scope);
        steps_.add(value.weight());
        write(to_text(value), out);
        return Flow::kOn;
      }
      case Kind::kIf:
        if (evaluate(node.parts[0], scope).is_true()) return run(node.parts[1], scope, out);
        return node.parts.size() > 2 ? run(node.parts[2], scope, out) : Flow::kOn;
      case Kind::kFor:
        return run_for(node, scope, out);
      case Kind::kSet:
        assign(node.parts[0], evaluate(node.parts[1], scope), scope);
        return Flow::kOn;
      case Kind::kMacro:
        scope.set(node.text, macro(node), steps_);
        return Flow::kOn;
      case Kind::kBreak:
        return Flow::kBreak;
      case Kind::kContinue:
        return Flow::kContinue;
      case Kind::kNothing:
        return Flow::kOn;
      default:
        return run_inner(node, scope, out);
    }
  }

  // Blocks with a scope of their own.
  Flow run_inner(const Node& node, Scope& scope, std::string& out) {
    Scope inner;
    inner.outer = &scope;
    if (node.kind == Kind::kCallBlock) {
      inner.set("caller", macro(node.parts[1]), steps_);
      caller_scopes_.push_back(&inner);
      const Value made = evaluate(node.parts[0], inner);
      caller_scopes_.pop_back();
      write(to_text(made), out);
      return Flow::kOn;
    }
    if (node.kind == Kind::kWith) {
      for (size_t i = 1; i + 1 < node.parts.size(); i += 2) {
        inner.set(node.parts[i].text, evaluate(node.parts[i + 1], scope), steps_);
      }
      return run(node.parts[0], inner, out);
    }
    // The text of a block, perhaps filtered, to a variable or to the output.
    std::string text;
    const bool is_set = node.kind == Kind::kSetBlock;
    run(node.parts[1], inner, text);
    const Node& filter = node.parts[is_set ? 2 : 0];
    Value made = Value::string(std::move(text));
    if (filter.kind != Kind::kNothing) {
      inner.set("", std::move(made), steps_);
      made = evaluate(filter, inner);
    }
    if (is_set) {
      assign(node.parts[0], std::move(made), scope);
    } else {
      write(to_text(made), out);
    }
    return Flow::kOn;
  }

  void write(const std::string& text, std::string& out) {
    if (out.size() + text.size() > kMostOutput) {
      fail("the text is longer than the limit of " + std::to_string(kMostOutput) + " bytes.");
    }
    steps_.add(text.size() / 16);
    out += text;
  }

  void assign(const Node& target, Value value, Scope& scope) {
    if (target.kind == Kind::kName) return scope.set(target.text, std::move(value), steps_);
    if (target.kind == Kind::kAttribute) {
      const Value* owner = scope.find(target.parts[0].text, steps_);
      if (owner == nullptr || !owner->is(Type::kNamespace)) {
        fail("[" + target.parts[0].text + "] is no namespace; only their members can be set.");
      }
      steps_.add(owner->as_dict().size() / 16);
      Value copy = *owner;  // shares the namespace
      return copy.set_member(target.text, std::move(value));
    }
    const Value::List items = items_of(value, steps_);
    if (items.size() != target.parts.size()) {
      fail(std::to_string(target.parts.size()) + " names are set to " +
           std::to_string(items.size()) + " values.");
    }
    for (size_t i = 0; i < items.size(); ++i) assign(target.parts[i], items[i], scope);
  }

  Flow run_for(const Node& node, Scope& scope, std::string& out) {
    Value::List items = items_of(evaluate(node.parts[1], scope), steps_);
    if (node.parts[2].kind != Kind::kNothing) {
      std::erase_if(items, [&](const Value& item) {
        Scope inner;
        inner.outer = &scope;
        assign(node.parts[0], item, inner);
        return !evaluate(node.parts[2], inner).is_true();
      });
    }
    for (size_t i = 0; i < items.size(); ++i) {
      Scope inner;
      inner.outer = &scope;
      assign(node.parts[0], items[i], inner);
      inner.set("loop", loop_value(items, i), steps_);
      if (run(node.parts[3], inner, out) == Flow::kBreak) break;
    }
    if (items.empty() && node.parts.size() > 4) return run(node.parts[4], scope, out);
    return Flow::kOn;
  }

  static Value loop_value(const Value::List& items, size_t index) {
    const auto at = static_cast<int64_t>(index);
    const auto size = static_cast<int64_t>(items.size());
    Value::Members members;
    const auto add = [&](const char* name, Value value) {
      members.emplace_back(Value::string(name), std::move(value));
    };
    add("index", Value::integer(at + 1));
    add("index0", Value::integer(at));
    add("first", Value::boolean(at == 0));
    add("last", Value::boolean(at + 1 == size));
    add("length", Value::integer(size));
    add("revindex", Value::integer(size - at));
    add("revindex0", Value::integer(size - at - 1));
    add("previtem", at > 0 ? items[index - 1] : Value::undefined("loop.previtem"));
    add("nextitem", at + 1 < size ? items[index + 1] : Value::undefined("loop.nextitem"));
    add("depth", Value::integer(1));
    add("depth0", Value::integer(0));
    add("cycle",
        Value::function({"cycle", std::make_shared<const Value>(Value::integer(at)), nullptr}));
    return Value::dict(std::move(members));
  }

  static Value macro(const Node& node) { return Value::function({node.text, nullptr, &node}); }

  Value call_macro(const Node& node, const Arguments& arguments) {
    // Macros see the template's own variables, and the block of a call sees those around it.
    Scope scope;
    scope.outer = &top_;
    Scope* hidden = nullptr;  // the block's own caller is not there inside of it
    if (node.text == "caller" && !caller_scopes_.empty()) {
      hidden = caller_scopes_.back();
      caller_scopes_.pop_back();
      scope.outer = hidden->outer;
    } else if (!caller_scopes_.empty()) {
      if (const Value* caller = caller_scopes_.back()->find("caller", steps_))
        scope.set("caller", *caller, steps_);
    }
    take_besides(node, arguments, scope);
    const size_t without_default = node.names.size() - (node.parts.size() - 1);
    for (size_t i = 0; i < node.names.size(); ++i) {
      const Value* given = arguments.find(i, node.names[i]);
      Value value = Value::undefined(node.names[i]);
      if (given != nullptr) {
        value = *given;
      } else if (i >= without_default) {
        value = evaluate(node.parts[1 + i - without_default], scope);
      }
      scope.set(node.names[i], std::move(value), steps_);
    }
    std::string out;
    run(node.parts[0], scope, out);
    if (hidden != nullptr) caller_scopes_.push_back(hidden);
    return Value::string(std::move(out));
  }

  // Arguments that are no parameters: the variables varargs and kwargs of a macro that uses them,
  // else an error.
  void take_besides(const Node& node, const Arguments& arguments, Scope& scope) {
    const int64_t taken = node.value.as_integer();
    const auto& given = arguments.positional;
    const size_t own = std::min(node.names.size(), given.size());
    // A parameter that has its value by position takes none by name.
    const auto open = node.names.begin() + static_cast<ptrdiff_t>(own);
    std::string names;
    for (auto name = open; name != node.names.end(); ++name) names += *name + " ";
    if ((taken & 2) != 0) {
      Value::Members rest;
      for (const auto& [name, value] : arguments.named) {
        if (std::find(open, node.names.end(), name) != node.names.end()) continue;
        names += name + " ";
        rest.emplace_back(Value::string(name), value);
      }
      steps_.add(rest.size());
      scope.set("kwargs", Value::dict(std::move(rest)), steps_);
    }
    if ((taken & 1) != 0) {
      Value::List rest(given.begin() + static_cast<ptrdiff_t>(own), given.end());
      steps_.add(rest.size());
      scope.set("varargs", Value::list(std::move(rest), Type::kTuple), steps_);
    }
    arguments.check(node.text, (taken & 1) != 0 ? given.size() : node.names.size(), names);
  }

  // The members of a dict as named arguments.
  void add_named(const Value& from, Arguments& arguments) {
    constexpr size_t kMostNamed = 1000;  // each is looked for among the others
    if (!from.is_dict()) fail("what follows ** must be a dict.");
    if (from.as_dict().size() > kMostNamed) fail("a dict after ** has more than 1,000 members.");
    for (const auto& [key, value] : from.as_dict()) {
      if (!key.is(Type::kString)) fail("the keys of a dict after ** must be strings.");
      const std::string& name = key.as_string();
      if (arguments.find(SIZE_MAX, name) != nullptr) {
        fail("the argument [" + name + "] is given twice.");
      }
      arguments.named.emplace_back(name, value);
    }
  }

  Arguments arguments_of(const Node& node, Scope& scope) {
    Arguments arguments;
    for (size_t i = 0; i < node.names.size(); ++i) {
      Value value = evaluate(node.parts[i + 1], scope);
      const std::string& name = node.names[i];
      if (name == "*") {
        for (Value& item : items_of(value, steps_)) arguments.positional.push_back(std::move(item));
      } else if (name == "**") {
        add_named(value, arguments);
      } else if (name.empty()) {
        arguments.positional.push_back(std::move(value));
      } else {
        arguments.named.emplace_back(name, std::move(value));
      }
    }
    return arguments;
  }

  Value call(const Value& callee, const Arguments& arguments) {
    if (callee.is(Type::kUndefined)) fail_undefined(callee);
    if (!callee.is(Type::kFunction)) fail(std::string(callee.type_name()) + " cannot be called.");
    const Value::Function& function = callee.as_function();
    if (function.macro != nullptr) return call_macro(*function.macro, arguments);
    if (function.self == nullptr) return call_global(function.name, arguments);
    if (function.name != "cycle") {
      return call_method(*function.self, function.name, arguments, steps_);
    }
    if (arguments.positional.empty()) fail("cycle needs something to go through.");
    const auto at = static_cast<size_t>(function.self->as_integer());
    return arguments.positional[at % arguments.positional.size()];
  }

  static constexpr std::array kGlobals = {"range", "dict", "namespace", "raise_exception",
                                          "strftime_now"};

  Value call_global(const std::string& name, const Arguments& arguments) {
    if (name == "range") return range(arguments);
    if (name == "raise_exception") {
      fail("the template refuses the conversation: " +
           to_text(arguments.get(0, "message", Value::string("no reason given"))));
    }
    if (name == "strftime_now") return Value::string(formatted_time(arguments.text(0, "format")));
    Value::Members members;
    if (const Value* from = arguments.find(0, "")) {
      if (!from->is_dict()) fail("[" + name + "] takes a dict or named values.");
      members = from->as_dict();
      steps_.add(members.size());
    }
    const Type type = name == "dict" ? Type::kDict : Type::kNamespace;
    Value made = Value::dict(std::move(members), Type::kNamespace);
    // A new namespace first: named values replace those of the dict.
    for (const auto& [key, value] : arguments.named) made.set_member(key, value);
    return type == Type::kNamespace ? made : Value::dict(made.as_dict());
  }

  Value range(const Arguments& arguments) {
    arguments.check("range", 3);
    const bool has_begin = arguments.positional.size() > 1;
    const int64_t begin = has_begin ? arguments.integer(0, "", 0) : 0;
    const int64_t end = arguments.integer(has_begin ? 1 : 0, "", 0);
    const int64_t step = arguments.integer(2, "", 1);
    if (step == 0) fail("range has the step 0.");
    Value::List out;
    for (int64_t at = begin; step > 0 ? at < end : at > end;) {
      if (out.size() >= kMostRange) {
        fail("range is longer than the limit of " + std::to_string(kMostRange) + ".");
      }
      out.push_back(Value::integer(at));
      if (__builtin_add_overflow(at, step, &at)) break;
    }
    steps_.add(out.size());
    return Value::list(std::move(out));
  }

  std::string formatted_time(const std::string& format) const {
    const std::time_t now = now_ ? static_cast<std::time_t>(*now_) : std::time(nullptr);
    std::tm parts{};
#if defined(_WIN32)
    if (localtime_s(&parts, &now) != 0) fail("the time is out of range.");
#else
    if (localtime_r(&now, &parts) == nullptr) fail("the time is out of range.");
#endif
    std::array<char, 256> text{};
    const size_t size = std::strftime(text.data(), text.size(), format.c_str(), &parts);
    return std::string(text.data(), size);
  }

  Value variable(const std::string& name, const Scope& scope) {
    if (const Value* found = scope.find(name, steps_)) return *found;
    if (std::find(kGlobals.begin(), kGlobals.end(), name) != kGlobals.end()) {
      return Value::function({name, nullptr, nullptr});
    }
    return Value::undefined(name);
  }

  Value evaluate(const Node& node, Scope& scope) {
    const Depth depth(*this);
    steps_.add(1);
    const auto part = [&](size_t i) { return evaluate(node.parts[i], scope); };
    switch (node.kind) {
      case Kind::kNothing:
        return Value::undefined("");
      case Kind::kLiteral:
        return node.value;
      case Kind::kName:
        return variable(node.text, scope);
      case Kind::kBody:
        return variable("", scope);
      case Kind::kAttribute:
        return attribute_of(part(0), node.text, steps_);
      case Kind::kItem: {
        const Value object = part(0);
        return item_of(object, part(1), steps_);
      }
      case Kind::kCall: {
        const Value callee = part(0);
        return call(callee, arguments_of(node, scope));
      }
      case Kind::kFilter: {
        const Value value = part(0);
        return apply_filter(node.text, value, arguments_of(node, scope), steps_);
      }
      case Kind::kTest: {
        const Value value = part(0);
        return Value::boolean(apply_test(node.text, value, arguments_of(node, scope), steps_));
      }
      case Kind::kNot:
        return Value::boolean(!part(0).is_true());
      case Kind::kAnd: {
        Value left = part(0);
        return left.is_true() ? part(1) : left;
      }
      case Kind::kOr: {
        Value left = part(0);
        return left.is_true() ? left : part(1);
      }
      case Kind::kChoice:
        return part(part(1).is_true() ? 0 : 2);
      default:
        return evaluate_more(node, scope);
    }
  }

  Value evaluate_more(const Node& node, Scope& scope) {
    const auto part = [&](size_t i) { return evaluate(node.parts[i], scope); };
    const auto bound = [&](size_t i) {
      return node.parts[i].kind == Kind::kNothing ? Value::none() : part(i);
    };
    switch (node.kind) {
      case Kind::kList:
      case Kind::kTuple: {
        Value::List items;
        for (const Node& item : node.parts) items.push_back(evaluate(item, scope));
        return Value::list(std::move(items), node.kind == Kind::kList ? Type::kList : Type::kTuple);
      }
      case Kind::kDict:
        return dict_of(node, scope);
      case Kind::kSlice: {
        const Value object = part(0);
        steps_.add(object.weight());
        const Value begin = bound(1);
        const Value end = bound(2);
        return slice_of(object, begin, end, bound(3));
      }
      case Kind::kNegative:
        return binary("-", Value::integer(0), part(0), steps_);
      case Kind::kPositive:
        return binary("+", Value::integer(0), part(0), steps_);
      case Kind::kBinary: {
        const Value left = part(0);
        return binary(node.text, left, part(1), steps_);
      }
      case Kind::kCompare: {
        Value left = part(0);
        for (size_t i = 0; i < node.names.size(); ++i) {
          Value right = part(i + 1);
          if (!compare(node.names[i], left, right, steps_)) return Value::boolean(false);
          left = std::move(right);
        }
        return Value::boolean(true);
      }
      default:
        fail("a statement stands in place of an expression.");
    }
  }

  Value dict_of(const Node& node, Scope& scope) {
    Value::Members members;
    for (size_t i = 0; i + 1 < node.parts.size(); i += 2) {
      const Value key = evaluate(node.parts[i], scope);
      if (key.is_list() || key.is_dict()) fail("a key of a dict must be a plain value.");
      Value value = evaluate(node.parts[i + 1], scope);
      steps_.add(members.size() / 16 * (1 + key.weight() / 16));
      const auto found = std::find_if(members.begin(), members.end(),
                                      [&](const auto& member) { return member.first == key; });
      if (found != members.end()) {
        found->second = std::move(value);
      } else {
        members.emplace_back(key, std::move(value));
      }
    }
    return Value::dict(std::move(members));
  }

  std::optional<int64_t> now_;
  Scope globals_;
  Scope top_;
  std::vector<Scope*> caller_scopes_;
  StepCount steps_;
  int depth_ = 0;
};

}  // namespace

std::string render_template(const Node& root, const RenderInput& input) {
  return Renderer(input).render(root);
}

}  // namespace vkformer::chat
