#include "reproducible/pin_arithmetic.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <string_view>

#include "base/message.h"
#include "kernels/spirv.h"
#include "reproducible/spirv_arithmetic.h"

namespace vkformer {
namespace {

using namespace spirv;
using A = SpirvArithmetic;

A::F negated(A& a, A::F x) {
  return a.from_bits(a.ixor(a.bits(x), a.u(kSignBit)));
}
A::F lesser(A& a, A::F x, A::F y) {
  return a.pick(a.smaller(y, x), y, x);
}
A::F greater(A& a, A::F x, A::F y) {
  return a.pick(a.smaller(x, y), y, x);
}
A::F one_by(A& a, A::F x) {
  return divide(a, a.f(1.0f), x);
}

A::F sign_of(A& a, A::F x) {
  const A::F zero = flush(a, x);
  const A::F below = a.pick(a.smaller(x, a.f(0.0f)), a.f(-1.0f), zero);
  return a.pick(a.smaller(a.f(0.0f), x), a.f(1.0f), below);
}

// An operation that becomes a function of scalars: SPIR-V's, or one of GLSL.std.450.
struct Replacement {
  bool extended;  // code is of GLSL.std.450
  uint32_t code;
  uint32_t arity;
  A::F (*body)(A& a, std::span<const A::F> x);
};
constexpr Replacement kReplacements[] = {
    {false, kOpFDiv, 2, [](A& a, std::span<const A::F> x) { return divide(a, x[0], x[1]); }},
    {false, kOpFNegate, 1, [](A& a, std::span<const A::F> x) { return negated(a, x[0]); }},
    {true, kExtFAbs, 1,
     [](A& a, std::span<const A::F> x) {
       return a.from_bits(a.iand(a.bits(x[0]), a.u(~kSignBit)));
     }},
    {true, kExtFSign, 1, [](A& a, std::span<const A::F> x) { return sign_of(a, x[0]); }},
    {true, kExtFloor, 1, [](A& a, std::span<const A::F> x) { return a.floor(x[0]); }},
    {true, kExtCeil, 1,
     [](A& a, std::span<const A::F> x) { return negated(a, a.floor(negated(a, x[0]))); }},
    {true, kExtExp, 1, [](A& a, std::span<const A::F> x) { return exponential(a, x[0]); }},
    {true, kExtLog, 1, [](A& a, std::span<const A::F> x) { return logarithm(a, x[0]); }},
    {true, kExtPow, 2, [](A& a, std::span<const A::F> x) { return power(a, x[0], x[1]); }},
    {true, kExtSqrt, 1, [](A& a, std::span<const A::F> x) { return square_root(a, x[0]); }},
    {true, kExtInverseSqrt, 1,
     [](A& a, std::span<const A::F> x) { return one_by(a, square_root(a, x[0])); }},
    {true, kExtFMin, 2, [](A& a, std::span<const A::F> x) { return lesser(a, x[0], x[1]); }},
    {true, kExtFMax, 2, [](A& a, std::span<const A::F> x) { return greater(a, x[0], x[1]); }},
    {true, kExtFClamp, 3,
     [](A& a, std::span<const A::F> x) { return lesser(a, greater(a, x[0], x[1]), x[2]); }},
    {true, kExtFMix, 3,
     [](A& a, std::span<const A::F> x) {
       return a.add(a.mul(x[0], a.sub(a.f(1.0f), x[2])), a.mul(x[1], x[2]));
     }},
};

const Replacement* replacement_of(bool extended, uint32_t code) {
  const auto* found =
      std::find_if(std::begin(kReplacements), std::end(kReplacements),
                   [&](const Replacement& r) { return r.extended == extended && r.code == code; });
  return found == std::end(kReplacements) ? nullptr : found;
}

// Of GLSL.std.450: those of integers, which stay.
bool is_of_integers(uint32_t code) {
  constexpr uint32_t kAll[] = {5, 7, 38, 39, 41, 42, 44, 45, 73, 74, 75};  // SAbs ... FindUMsb
  return std::find(std::begin(kAll), std::end(kAll), code) != std::end(kAll);
}

// Whether a kernel's operation on floats has no form here.
bool is_open(uint32_t op) {
  return (op >= kOpFRem && op <= kOpFMod) || (op >= kOpMatrixTimesScalar && op < kOpDot) ||
         op == kOpFConvert || op == kOpQuantizeToF16 || op == kOpGroupNonUniformFAdd ||
         op == kOpGroupNonUniformFMul || op == kOpGroupNonUniformFMin ||
         op == kOpGroupNonUniformFMax;
}

class Pinner {
 public:
  Pinner(std::span<const uint32_t> words, const ArithmeticModes& modes)
      : words_(words), modes_(modes), ids_(words[3]) {}

  Result<std::vector<uint32_t>> run() {
    // Extensions come after capabilities, modes after entry points, decorations before types,
    // declarations before functions.
    size_t extensions_at = 0, modes_at = 0, types_at = 0, functions_at = 0;
    Status status;
    for_each_instruction(words_, [&](uint32_t op, std::span<const uint32_t> in) {
      const auto at = static_cast<size_t>(in.data() - words_.data()) - 1;
      if (extensions_at == 0 && op != kOpCapability) extensions_at = at;
      if (op == kOpEntryPoint) {
        entry_ = in[1];
        modes_at = at + in.size() + 1;
      }
      if (op == kOpExtInstImport && is_glsl(in)) extended_ = in[0];
      if (types_at == 0 && op >= kOpTypeVoid && op <= kOpTypePointer) types_at = at;
      if (functions_at == 0 && op == kOpFunction) functions_at = at;
      if (functions_at == 0) return learn(op, in);
      if (status) status = rewrite(op, in);
    });
    if (!status) return status.error();
    std::vector<uint32_t> out(words_.begin(), words_.begin() + kHeaderWords);
    take(out, kHeaderWords, extensions_at);
    put_capabilities(out);
    take(out, extensions_at, modes_at);
    put_modes(out);
    take(out, modes_at, types_at);
    put_all(out, ids_.decorations);
    take(out, types_at, functions_at);
    put_all(out, ids_.declarations);
    put_all(out, body_);
    put_all(out, functions_);
    out[3] = ids_.bound();
    return out;
  }

 private:
  static bool is_glsl(std::span<const uint32_t> in) {
    const std::string_view name(reinterpret_cast<const char*>(in.data() + 1), 4 * (in.size() - 1));
    return name.starts_with("GLSL.std.450");
  }
  static void put_all(std::vector<uint32_t>& out, const std::vector<uint32_t>& words) {
    out.insert(out.end(), words.begin(), words.end());
  }
  void take(std::vector<uint32_t>& out, size_t from, size_t to) const {
    const std::span<const uint32_t> part = words_.subspan(from, to - from);
    out.insert(out.end(), part.begin(), part.end());
  }

  // Each mode has a capability.
  struct Mode {
    bool on;
    uint32_t capability, mode;
  };
  std::array<Mode, 3> modes() const {
    return {Mode{modes_.flush_denormals, kDenormFlushToZero, kModeDenormFlushToZero},
            Mode{modes_.round_to_even, kRoundingModeRTE, kModeRoundingModeRTE},
            Mode{modes_.keep_specials, kSignedZeroInfNanPreserve, kModeSignedZeroInfNanPreserve}};
  }
  void put_capabilities(std::vector<uint32_t>& out) const {
    bool any = false;
    for (const Mode& m : modes()) {
      if (m.on) put_instruction(out, kOpCapability, std::array{m.capability});
      any = any || m.on;
    }
    if (!any) return;
    std::array<uint32_t, 6> name{};  // SPIR-V ends strings with a zero
    std::memcpy(name.data(), "SPV_KHR_float_controls", 22);
    put_instruction(out, kOpExtension, name);
  }
  void put_modes(std::vector<uint32_t>& out) const {
    for (const Mode& m : modes()) {
      if (m.on) put_instruction(out, kOpExecutionMode, std::array{entry_, m.mode, 32u});
    }
  }

  void learn(uint32_t op, std::span<const uint32_t> in) {
    ids_.learn(op, in);
    if (op >= kOpTypeVoid && op <= kOpTypeFunction) widths_[in[0]] = 1;
    if (op == kOpTypeVector) {
      widths_[in[0]] = in[2];
    } else if (in.size() > 1 && widths_.count(in[0]) != 0) {
      type_of_[in[1]] = in[0];
    }
  }

  A arithmetic() { return {ids_, body_, extended_, modes_.guard_denormals}; }

  // Component i of a value, where a scalar serves them all.
  uint32_t part(A& a, uint32_t value, uint32_t i, uint32_t type) {
    const auto whole = type_of_.find(value);
    const uint32_t width = whole == type_of_.end() ? 1 : widths_[whole->second];
    return width == 1 ? value : a.put(kOpCompositeExtract, type, {value, i});
  }
  A::F component(A& a, uint32_t value, uint32_t i) {
    return {part(a, value, i, ids_.float_type())};
  }

  // Gives `id` of `type` the value of its components.
  template <class Make>
  Status by_component(uint32_t type, uint32_t id, const Make& make) {
    A a = arithmetic();
    std::vector<uint32_t> parts{type, id};
    const uint32_t width = widths_[type];
    for (uint32_t i = 0; i < width; ++i) parts.push_back(make(a, i));
    if (width == 1 && ids_.is_clean(parts.back())) ids_.set_clean(id);
    put_instruction(body_, width == 1 ? kOpCopyObject : kOpCompositeConstruct, parts);
    return {};
  }

  // A call of the function that takes the operation's place.
  Status call(const Replacement& r, uint32_t type, uint32_t id,
              std::span<const uint32_t> operands) {
    const uint32_t function = function_of(r);
    return by_component(type, id, [&](A& a, uint32_t i) {
      std::vector<uint32_t> words{function};
      for (const uint32_t x : operands) words.push_back(component(a, x, i).id);
      return a.put(kOpFunctionCall, ids_.float_type(), words);
    });
  }

  uint32_t function_of(const Replacement& r) {
    const auto [found, added] = made_.try_emplace(&r, 0);
    if (!added) return found->second;
    const uint32_t f = ids_.float_type();
    return found->second = put_function(f, std::vector(r.arity, f), [&](A& a, const auto& x) {
             std::vector<A::F> values;
             for (const uint32_t id : x) values.push_back({id});
             return r.body(a, values).id;
           });
  }

  // Declares `result f(parameters)` after all others.
  template <class Body>
  uint32_t put_function(uint32_t result, const std::vector<uint32_t>& parameters,
                        const Body& body) {
    std::vector<uint32_t> signature{result};
    signature.insert(signature.end(), parameters.begin(), parameters.end());
    const uint32_t id = ids_.make();
    const uint32_t type = ids_.function_type(signature);
    put_instruction(functions_, kOpFunction, std::array{result, id, 0u, type});
    std::vector<uint32_t> values;
    for (const uint32_t parameter : parameters) {
      values.push_back(ids_.make());
      put_instruction(functions_, kOpFunctionParameter, std::array{parameter, values.back()});
    }
    put_instruction(functions_, kOpLabel, std::array{ids_.make()});
    A a(ids_, functions_, extended_, modes_.guard_denormals);
    put_instruction(functions_, kOpReturnValue, std::array{body(a, values)});
    put_instruction(functions_, kOpFunctionEnd, {});
    return id;
  }

  Status rewrite(uint32_t op, std::span<const uint32_t> in) {
    if (in.size() > 1 && widths_.count(in[0]) != 0) type_of_[in[1]] = in[0];
    switch (op) {
      case kOpFAdd:
        return rounded(op, in, &A::add);
      case kOpFSub:
        return rounded(op, in, &A::sub);
      case kOpFMul:
      case kOpVectorTimesScalar:
        return rounded(op, in, &A::mul);
      case kOpDot:
        return dot(in[0], in[1], in[2], in[3]);
      case kOpConvertUToF:
        return by_component(in[0], in[1], [&](A& a, uint32_t i) {
          return from_unsigned(a, A::U{part(a, in[2], i, ids_.word_type())}).id;
        });
      case kOpExtInst:
        if (in[2] == extended_) return rewrite_extended(in);
        break;
      default:
        break;
    }
    if (op >= kOpFOrdEqual && op <= kOpFUnordGreaterThanEqual && modes_.guard_denormals) {
      return compare(op, in);
    }
    if (const Replacement* r = replacement_of(false, op)) {
      return call(*r, in[0], in[1], in.subspan(2));
    }
    if (is_open(op)) return unknown(message({"operation ", op}));
    put_instruction(body_, op, in);
    return {};
  }

  Status rounded(uint32_t op, std::span<const uint32_t> in, A::F (A::*make)(A::F, A::F)) {
    if (modes_.guard_denormals) {
      return by_component(in[0], in[1], [&](A& a, uint32_t i) {
        return (a.*make)(component(a, in[2], i), component(a, in[3], i)).id;
      });
    }
    put_instruction(body_, op, in);
    ids_.do_not_contract(in[1]);
    return {};
  }

  Status dot(uint32_t type, uint32_t id, uint32_t x, uint32_t y) {
    const uint32_t width = widths_[type_of_[x]];
    return by_component(type, id, [&](A& a, uint32_t) {
      A::F sum = a.mul(component(a, x, 0), component(a, y, 0));
      for (uint32_t i = 1; i < width; ++i) {
        sum = a.add(sum, a.mul(component(a, x, i), component(a, y, i)));
      }
      return sum.id;
    });
  }

  Status compare(uint32_t op, std::span<const uint32_t> in) {
    return by_component(in[0], in[1], [&](A& a, uint32_t i) {
      return a.put(op, ids_.bool_type(),
                   {a.guarded(component(a, in[2], i)).id, a.guarded(component(a, in[3], i)).id});
    });
  }

  Status rewrite_extended(std::span<const uint32_t> in) {
    const uint32_t type = in[0], id = in[1], code = in[3];
    const std::span<const uint32_t> x = in.subspan(4);
    if (code == kExtFma) {
      if (modes_.guard_denormals) {
        return by_component(type, id, [&](A& a, uint32_t i) {
          return a.add(a.mul(component(a, x[0], i), component(a, x[1], i)), component(a, x[2], i))
              .id;
        });
      }
      A a = arithmetic();
      const uint32_t product = a.put(kOpFMul, type, {x[0], x[1]});
      ids_.do_not_contract(product);
      ids_.do_not_contract(id);
      put_instruction(body_, kOpFAdd, std::array{type, id, product, x[2]});
      return {};
    }
    if (code == kExtUnpackHalf2x16) {
      if (unpack_ == 0) {
        unpack_ = put_function(ids_.float_type(), {ids_.word_type()}, [](A& a, const auto& halves) {
          return from_half(a, A::U{halves[0]}).id;
        });
      }
      return by_component(type, id, [&](A& a, uint32_t i) {
        const A::U word{x[0]};
        const A::U half = i == 0 ? a.iand(word, a.u(0xffff)) : a.shift_right(word, a.u(16));
        return a.put(kOpFunctionCall, ids_.float_type(), {unpack_, half.id});
      });
    }
    if (code == kExtPackHalf2x16) {
      A a = arithmetic();
      const A::U low = to_half(a, component(a, x[0], 0));
      const A::U high = to_half(a, component(a, x[0], 1));
      const A::U word = a.ior(low, a.shift_left(high, a.u(16)));
      put_instruction(body_, kOpCopyObject, std::array{type, id, word.id});
      return {};
    }
    if (const Replacement* r = replacement_of(true, code)) return call(*r, type, id, x);
    if (!is_of_integers(code)) return unknown(message({"GLSL.std.450 function ", code}));
    put_instruction(body_, kOpExtInst, in);
    return {};
  }

  static Error unknown(const std::string& what) {
    return internal_error(message({"[SPIR-V] ", what,
                                   " has no reproducible form; add one to "
                                   "reproducible/pin_arithmetic.cpp"}));
  }

  std::span<const uint32_t> words_;
  ArithmeticModes modes_;
  SpirvIds ids_;
  uint32_t entry_ = 0, extended_ = 0;
  std::map<uint32_t, uint32_t> widths_;   // components of each type
  std::map<uint32_t, uint32_t> type_of_;  // of values
  std::map<const Replacement*, uint32_t> made_;
  uint32_t unpack_ = 0;
  std::vector<uint32_t> body_, functions_;
};

}  // namespace

Result<std::vector<uint32_t>> pin_arithmetic(std::span<const uint32_t> words,
                                             const ArithmeticModes& modes) {
  return Pinner(words, modes).run();
}

}  // namespace vkformer
