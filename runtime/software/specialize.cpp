#include "software/specialize.h"

#include <array>
#include <map>
#include <optional>
#include <set>

#include "base/message.h"
#include "kernels/spirv.h"

namespace vkformer {
namespace {

using namespace spirv;

// Of words and truth values. SPIR-V leaves divisions by 0 and shifts beyond 31 undefined.
std::optional<uint32_t> computed(uint32_t op, std::span<const uint32_t> x) {
  if (op == kOpLogicalNot && x.size() == 1) return x[0] == 0 ? 1 : 0;
  if (op == kOpNot && x.size() == 1) return ~x[0];
  if (op == kOpSelect && x.size() == 3) return x[0] != 0 ? x[1] : x[2];
  if (x.size() != 2) return std::nullopt;
  const uint32_t a = x[0], b = x[1];
  switch (op) {
    case kOpIAdd:
      return a + b;
    case kOpISub:
      return a - b;
    case kOpIMul:
      return a * b;
    case kOpUDiv:
      return b != 0 ? a / b : 0;
    case kOpUMod:
      return b != 0 ? a % b : 0;
    case kOpLogicalOr:
    case kOpBitwiseOr:
      return a | b;
    case kOpLogicalAnd:
    case kOpBitwiseAnd:
      return a & b;
    case kOpIEqual:
      return a == b ? 1 : 0;
    case kOpINotEqual:
      return a != b ? 1 : 0;
    case kOpUGreaterThan:
      return a > b ? 1 : 0;
    case kOpUGreaterThanEqual:
      return a >= b ? 1 : 0;
    case kOpULessThan:
      return a < b ? 1 : 0;
    case kOpULessThanEqual:
      return a <= b ? 1 : 0;
    case kOpShiftRightLogical:
      return b < 32 ? a >> b : 0;
    case kOpShiftLeftLogical:
      return b < 32 ? a << b : 0;
    default:
      return std::nullopt;
  }
}

class Specializer {
 public:
  explicit Specializer(std::span<const uint32_t> values) : values_(values) {}

  Status take(uint32_t op, std::span<const uint32_t> in) {
    switch (op) {
      case kOpTypeBool:
        bools_.insert(in[0]);
        break;
      case kOpDecorate:
        if (in[1] != kSpecId) break;
        ids_[in[0]] = in[2];
        return {};
      case kOpConstantTrue:
      case kOpConstantFalse:
        known_[in[1]] = op == kOpConstantTrue ? 1 : 0;
        break;
      case kOpConstant:
        if (in.size() == 3) known_[in[1]] = in[2];
        break;
      case kOpSpecConstantTrue:
      case kOpSpecConstantFalse:
        put_constant(in[0], in[1], value_of(in[1], op == kOpSpecConstantTrue ? 1 : 0));
        return {};
      case kOpSpecConstant:
        if (in.size() != 3) return unknown(op);
        put_constant(in[0], in[1], value_of(in[1], in[2]));
        return {};
      case kOpSpecConstantComposite:
        put(kOpConstantComposite, in);
        return {};
      case kOpSpecConstantOp:
        return fold(in);
      default:
        break;
    }
    put(op, in);
    return {};
  }

  std::vector<uint32_t> words;

 private:
  static Error unknown(uint32_t op) {
    return internal_error(message({"[SPIR-V] operation ", op,
                                   " on specialization constants cannot be computed; add it to "
                                   "software/specialize.cpp"}));
  }

  uint32_t value_of(uint32_t result, uint32_t otherwise) const {
    const auto id = ids_.find(result);
    return id != ids_.end() && id->second < values_.size() ? values_[id->second] : otherwise;
  }

  void put(uint32_t op, std::span<const uint32_t> in) { put_instruction(words, op, in); }

  void put_constant(uint32_t type, uint32_t result, uint32_t value) {
    known_[result] = value;
    if (bools_.count(type) != 0) {
      put(value != 0 ? kOpConstantTrue : kOpConstantFalse, std::array{type, result});
    } else {
      put(kOpConstant, std::array{type, result, value});
    }
  }

  Status fold(std::span<const uint32_t> in) {
    std::vector<uint32_t> x;
    for (const uint32_t id : in.subspan(3)) {
      const auto value = known_.find(id);
      if (value == known_.end()) return unknown(in[2]);
      x.push_back(value->second);
    }
    const std::optional<uint32_t> value = computed(in[2], x);
    if (!value) return unknown(in[2]);
    put_constant(in[0], in[1], *value);
    return {};
  }

  std::span<const uint32_t> values_;
  std::set<uint32_t> bools_;            // types
  std::map<uint32_t, uint32_t> ids_;    // of specialization constants, by result id
  std::map<uint32_t, uint32_t> known_;  // constants of one word and truth values, by result id
};

}  // namespace

Result<std::vector<uint32_t>> specialize_spirv(std::span<const uint32_t> words,
                                               std::span<const uint32_t> values) {
  Specializer made(values);
  made.words.reserve(words.size());
  made.words.assign(words.begin(), words.begin() + kHeaderWords);
  for (size_t at = kHeaderWords; at < words.size();) {
    const size_t count = words[at] >> 16;
    VKF_CHECK(made.take(words[at] & 0xffffu, words.subspan(at + 1, count - 1)));
    at += count;
  }
  return std::move(made.words);
}

}  // namespace vkformer
