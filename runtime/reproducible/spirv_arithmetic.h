// The arithmetic of functions.h as SPIR-V: each operation appends an instruction.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "kernels/spirv.h"
#include "reproducible/functions.h"

namespace vkformer {

// Ids of a module that grows: types and constants, once each, and decorations.
class SpirvIds {
 public:
  explicit SpirvIds(uint32_t bound) : bound_(bound) {}

  uint32_t make() { return bound_++; }
  uint32_t bound() const { return bound_; }
  // A type that the module has, or else one that is declared.
  uint32_t float_type() { return type(spirv::kOpTypeFloat, {32}); }
  uint32_t word_type() { return type(spirv::kOpTypeInt, {32, 0}); }
  uint32_t bool_type() { return type(spirv::kOpTypeBool, {}); }
  uint32_t function_type(std::vector<uint32_t> signature) {
    return type(spirv::kOpTypeFunction, std::move(signature));
  }
  uint32_t constant(uint32_t type, uint32_t word);
  // An operation of the module's own declarations.
  void learn(uint32_t op, std::span<const uint32_t> in);
  // A value that is known not to be denormal.
  bool is_clean(uint32_t id) const { return clean_.count(id) != 0; }
  void set_clean(uint32_t id) { clean_.insert(id); }
  void do_not_contract(uint32_t id) {
    spirv::put_instruction(decorations, spirv::kOpDecorate,
                           std::array{id, uint32_t{spirv::kNoContraction}});
  }

  std::vector<uint32_t> declarations, decorations;  // words that the module gets

 private:
  using Words = std::vector<uint32_t>;
  uint32_t type(uint32_t op, Words operands);

  uint32_t bound_;
  std::map<std::pair<uint32_t, Words>, uint32_t> types_;
  std::map<std::pair<uint32_t, uint32_t>, uint32_t> constants_;
  std::set<uint32_t> clean_;
};

class SpirvArithmetic {
 public:
  struct F {
    uint32_t id;
  };
  struct U {
    uint32_t id;
  };
  struct B {
    uint32_t id;
  };

  // Appends to `out`; `extended` is the id of GLSL.std.450.
  SpirvArithmetic(SpirvIds& ids, std::vector<uint32_t>& out, uint32_t extended, bool guards)
      : ids_(ids), out_(out), extended_(extended), guards_(guards) {}

  // Precondition: not denormal.
  F f(float x) {
    const F result{ids_.constant(ids_.float_type(), std::bit_cast<uint32_t>(x))};
    ids_.set_clean(result.id);
    return result;
  }
  U u(uint32_t x) { return {ids_.constant(ids_.word_type(), x)}; }
  F add(F x, F y) { return rounded(spirv::kOpFAdd, x, y); }
  F sub(F x, F y) { return rounded(spirv::kOpFSub, x, y); }
  F mul(F x, F y) { return guards_ ? guarded_product(x, y) : rounded(spirv::kOpFMul, x, y); }
  F plus(F x, F y) { return rounded_only(spirv::kOpFAdd, x, y); }
  F minus(F x, F y) { return rounded_only(spirv::kOpFSub, x, y); }
  F times(F x, F y) { return rounded_only(spirv::kOpFMul, x, y); }
  U bits(F x) { return {put(spirv::kOpBitcast, ids_.word_type(), {x.id})}; }
  F from_bits(U x) { return {put(spirv::kOpBitcast, ids_.float_type(), {x.id})}; }
  F to_float(U x) { return {put(spirv::kOpConvertSToF, ids_.float_type(), {x.id})}; }
  U to_word(F x) { return {put(spirv::kOpConvertFToS, ids_.word_type(), {x.id})}; }
  F floor(F x) {
    // Of a denormal, this is -1 or 0 as the device takes it.
    return {put(spirv::kOpExtInst, ids_.float_type(),
                {extended_, spirv::kExtFloor, flush(*this, x).id})};
  }
  U iadd(U x, U y) { return word(spirv::kOpIAdd, x, y); }
  U isub(U x, U y) { return word(spirv::kOpISub, x, y); }
  U imul(U x, U y) { return word(spirv::kOpIMul, x, y); }
  U iand(U x, U y) { return word(spirv::kOpBitwiseAnd, x, y); }
  U ior(U x, U y) { return word(spirv::kOpBitwiseOr, x, y); }
  U ixor(U x, U y) { return word(spirv::kOpBitwiseXor, x, y); }
  U shift_left(U x, U y) { return word(spirv::kOpShiftLeftLogical, x, y); }
  U shift_right(U x, U y) { return word(spirv::kOpShiftRightLogical, x, y); }
  B equal(U x, U y) { return truth(spirv::kOpIEqual, x.id, y.id); }
  B below(U x, U y) { return truth(spirv::kOpULessThan, x.id, y.id); }
  B less(U x, U y) { return truth(spirv::kOpSLessThan, x.id, y.id); }
  B smaller(F x, F y) { return truth(spirv::kOpFOrdLessThan, guarded(x).id, guarded(y).id); }
  B both(B x, B y) { return truth(spirv::kOpLogicalAnd, x.id, y.id); }
  B either(B x, B y) { return truth(spirv::kOpLogicalOr, x.id, y.id); }
  F pick(B b, F x, F y) { return {put(spirv::kOpSelect, ids_.float_type(), {b.id, x.id, y.id})}; }
  U pick(B b, U x, U y) { return {put(spirv::kOpSelect, ids_.word_type(), {b.id, x.id, y.id})}; }

  // A value that operations of the device may read.
  F guarded(F x) {
    if (!guards_ || ids_.is_clean(x.id)) return x;
    const F result = flush(*this, x);
    ids_.set_clean(result.id);
    return result;
  }
  // Any other instruction with a result.
  uint32_t put(uint32_t op, uint32_t type, const std::vector<uint32_t>& operands);

 private:
  F rounded_only(uint32_t op, F x, F y) {
    const F result{put(op, ids_.float_type(), {x.id, y.id})};
    ids_.do_not_contract(result.id);
    return result;
  }
  F rounded(uint32_t op, F x, F y) { return guarded(rounded_only(op, guarded(x), guarded(y))); }
  F guarded_product(F x, F y);
  U word(uint32_t op, U x, U y) { return {put(op, ids_.word_type(), {x.id, y.id})}; }
  B truth(uint32_t op, uint32_t x, uint32_t y) { return {put(op, ids_.bool_type(), {x, y})}; }

  SpirvIds& ids_;
  std::vector<uint32_t>& out_;
  uint32_t extended_;
  bool guards_;
};

}  // namespace vkformer
