#include "reproducible/spirv_arithmetic.h"

namespace vkformer {

using namespace spirv;

uint32_t SpirvIds::type(uint32_t op, Words operands) {
  const auto [found, added] = types_.try_emplace({op, operands}, bound_);
  if (added) {
    operands.insert(operands.begin(), make());
    put_instruction(declarations, op, operands);
  }
  return found->second;
}

uint32_t SpirvIds::constant(uint32_t type, uint32_t word) {
  const auto [found, added] = constants_.try_emplace({type, word}, bound_);
  if (added) put_instruction(declarations, kOpConstant, std::array{type, make(), word});
  return found->second;
}

void SpirvIds::learn(uint32_t op, std::span<const uint32_t> in) {
  if (op == kOpTypeFloat || op == kOpTypeInt || op == kOpTypeBool || op == kOpTypeFunction) {
    types_.try_emplace({op, Words(in.begin() + 1, in.end())}, in[0]);
  }
  if (op == kOpConstant && in.size() == 3) constants_.try_emplace({in[0], in[2]}, in[1]);
}

// Whether a product near the least normal number is zero depends on where a device rounds it, and
// it may make it zero or not. So the product with one factor 2^32 times as large decides. Where
// that factor overflows, the product is not near, or the other factor is 0 and this one no number.
SpirvArithmetic::F SpirvArithmetic::guarded_product(F x, F y) {
  x = guarded(x);
  y = guarded(y);
  const U word = bits(times(x, y));
  const U scaled = bits(times(times(x, f(0x1p32f)), y));
  const F size = from_bits(iand(scaled, u(~kSignBit)));
  // Of no number this is false.
  const B normal = truth(kOpFOrdLessThan, f(0x1.fffffep-95f).id, size.id);
  const U sign = iand(ixor(bits(x), bits(y)), u(kSignBit));
  const U least = pick(normal, u(kLeastNormalBits), u(0));
  const B is_near = below(iand(word, u(~kSignBit)), u(kLeastNormalBits + 1));
  const F result = from_bits(pick(is_near, ior(least, sign), word));
  ids_.set_clean(result.id);
  return result;
}

uint32_t SpirvArithmetic::put(uint32_t op, uint32_t type, const std::vector<uint32_t>& operands) {
  std::vector<uint32_t> words{type, ids_.make()};
  words.insert(words.end(), operands.begin(), operands.end());
  put_instruction(out_, op, words);
  return words[1];
}

}  // namespace vkformer
