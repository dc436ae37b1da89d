// A small reader of the parts of SPIR-V (Khronos specification, version 1.x) that describe a
// compute shader's interface. Every word is read through a bounds-checked instruction.
#include "kernels/reflect.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "base/message.h"
#include "kernels/spirv.h"

namespace vkformer {
namespace {

using namespace spirv;

constexpr uint32_t kMagic = 0x07230203;
// More than any sane interface has; stops hostile modules early.
constexpr uint64_t kMaxPushBytes = 65536;
constexpr uint32_t kMaxBindings = 64;
constexpr int kMaxTypeVisits = 4096;
constexpr int kMaxTypeDepth = 32;
constexpr uint32_t kNone = ~0u;

enum Decoration : uint32_t {
  kBlock = 2,
  kBufferBlock = 3,
  kRowMajor = 4,
  kMatrixStride = 7,
  kBuiltIn = 11,
  kNonWritable = 24,
  kNonReadable = 25,
  kBinding = 33,
  kDescriptorSet = 34,
  kOffset = 35,
};

constexpr uint32_t kBuiltInWorkgroupSize = 25;
constexpr uint32_t kModelGlCompute = 5;
constexpr uint32_t kModeLocalSize = 17;
constexpr uint32_t kModeLocalSizeId = 38;
constexpr uint32_t kClassUniformConstant = 0;
constexpr uint32_t kClassUniform = 2;
constexpr uint32_t kClassPushConstant = 9;

Error malformed(const std::string& what) {
  return invalid_file(message({"[SPIR-V] ", what, "; compile the shader again"}));
}

// One instruction; operand(i) past its end is an absent value, never a read.
struct Instruction {
  uint32_t op = 0;
  std::span<const uint32_t> operands;

  uint32_t operand(size_t i) const { return i < operands.size() ? operands[i] : kNone; }
};

struct Decorations {
  std::map<uint32_t, uint32_t> values;  // decoration -> its first literal, 0 without one

  bool has(uint32_t d) const { return values.count(d) != 0; }
  std::optional<uint32_t> get(uint32_t d) const {
    auto it = values.find(d);
    if (it == values.end()) return std::nullopt;
    return it->second;
  }
};

struct Module {
  std::map<uint32_t, Instruction> defined;  // types, constants and variables, by result id
  std::map<uint32_t, Decorations> decorations;
  std::map<std::pair<uint32_t, uint32_t>, Decorations> members;
  std::vector<uint32_t> variables;
  int compute_entries = 0;
  std::optional<std::array<uint32_t, 3>> local_size;
  std::optional<std::array<uint32_t, 3>> local_size_ids;

  const Instruction* find(uint32_t id) const {
    auto it = defined.find(id);
    return it == defined.end() ? nullptr : &it->second;
  }
  const Decorations& decorated(uint32_t id) const {
    static const Decorations kNothing;
    auto it = decorations.find(id);
    return it == decorations.end() ? kNothing : it->second;
  }
  const Decorations& member(uint32_t id, uint32_t index) const {
    static const Decorations kNothing;
    auto it = members.find({id, index});
    return it == members.end() ? kNothing : it->second;
  }
};

// Index of the operand that holds the result id, for the instructions that are kept.
int result_operand(uint32_t op) {
  switch (op) {
    case kOpTypeInt:
    case kOpTypeFloat:
    case kOpTypeVector:
    case kOpTypeMatrix:
    case kOpTypeArray:
    case kOpTypeRuntimeArray:
    case kOpTypeStruct:
    case kOpTypePointer:
      return 0;
    case kOpConstant:
    case kOpConstantComposite:
    case kOpSpecConstantTrue:
    case kOpSpecConstantFalse:
    case kOpSpecConstant:
    case kOpSpecConstantComposite:
    case kOpVariable:
      return 1;
    default:
      return -1;
  }
}

Status take_instruction(Module& module, const Instruction& in) {
  const int result = result_operand(in.op);
  if (result >= 0) {
    if (in.operands.size() <= static_cast<size_t>(result)) {
      return malformed("instruction " + std::to_string(in.op) + " is cut short");
    }
    const uint32_t id = in.operand(static_cast<size_t>(result));
    module.defined[id] = in;
    if (in.op == kOpVariable) module.variables.push_back(id);
    return {};
  }
  switch (in.op) {
    case kOpEntryPoint:
      if (in.operand(0) == kModelGlCompute) ++module.compute_entries;
      break;
    case kOpExecutionMode:
    case kOpExecutionModeId: {
      const bool literal = in.op == kOpExecutionMode && in.operand(1) == kModeLocalSize;
      const bool ids = in.op == kOpExecutionModeId && in.operand(1) == kModeLocalSizeId;
      if (!literal && !ids) break;
      if (in.operands.size() < 5) return malformed("the local size has less than three numbers");
      const std::array<uint32_t, 3> size = {in.operand(2), in.operand(3), in.operand(4)};
      (literal ? module.local_size : module.local_size_ids) = size;
      break;
    }
    case kOpDecorate:
      if (in.operands.size() < 2) return malformed("a decoration is cut short");
      module.decorations[in.operand(0)].values[in.operand(1)] =
          in.operands.size() > 2 ? in.operand(2) : 0;
      break;
    case kOpMemberDecorate:
      if (in.operands.size() < 3) return malformed("a member decoration is cut short");
      module.members[{in.operand(0), in.operand(1)}].values[in.operand(2)] =
          in.operands.size() > 3 ? in.operand(3) : 0;
      break;
    case kOpDecorationGroup:
      return malformed("decoration groups are not supported");
    default:
      break;
  }
  return {};
}

Result<Module> read_module(std::span<const uint32_t> words) {
  if (words.size() < kHeaderWords) {
    return malformed("the module has " + std::to_string(words.size()) +
                     " words, less than its header of 5");
  }
  if (words[0] != kMagic) return malformed("the magic number is wrong");
  Module module;
  size_t at = kHeaderWords;
  while (at < words.size()) {
    const uint32_t count = words[at] >> 16;
    if (count == 0 || count > words.size() - at) {
      return malformed("the instruction at word " + std::to_string(at) + " claims " +
                       std::to_string(count) + " words, but " + std::to_string(words.size() - at) +
                       " are left");
    }
    VKF_CHECK(take_instruction(module, {words[at] & 0xffffu, words.subspan(at + 1, count - 1)}));
    at += count;
  }
  if (module.compute_entries != 1) {
    return malformed("the module has " + std::to_string(module.compute_entries) +
                     " compute entry points, not one");
  }
  return module;
}

// Sizes in bytes of explicitly laid out types. The visit budget ends cyclic and exploding types.
class TypeSizer {
 public:
  explicit TypeSizer(const Module& module) : module_(module) {}

  Result<uint64_t> size_of(uint32_t type, const Decorations& member, int depth) {
    const Instruction* in = module_.find(type);
    if (!in || depth > kMaxTypeDepth || ++visits_ > kMaxTypeVisits) {
      return malformed("the push constant block has a missing, cyclic or too deep type");
    }
    switch (in->op) {
      case kOpTypeInt:
      case kOpTypeFloat:
        if (in->operand(1) == 0 || in->operand(1) > 64) return malformed("a number has no width");
        return uint64_t{in->operand(1)} / 8;
      case kOpTypeVector:
        return multiple(*in, member, depth, std::nullopt);
      case kOpTypeMatrix:
        return matrix(*in, member, depth);
      case kOpTypeArray: {
        auto stride = module_.decorated(type).get(kArrayStride);
        if (!stride) return malformed("an array in the push constant block has no stride");
        return multiple(*in, member, depth, stride);
      }
      case kOpTypeStruct:
        return structure(type, *in, depth);
      default:
        return malformed("the push constant block holds a type without a size");
    }
  }

 private:
  Result<uint64_t> limited(uint64_t bytes) {
    if (bytes > kMaxPushBytes) return malformed("the push constant block exceeds 65536 bytes");
    return bytes;
  }

  // Element type in operand 1; count in operand 2, literal for vectors, an id for arrays.
  Result<uint64_t> multiple(const Instruction& in, const Decorations& member, int depth,
                            std::optional<uint32_t> stride) {
    uint64_t count = in.operand(2);
    if (in.op == kOpTypeArray) {
      const Instruction* length = module_.find(in.operand(2));
      if (!length || length->op != kOpConstant || length->operands.size() < 3) {
        return malformed("an array in the push constant block has no constant length");
      }
      count = length->operand(2);
    }
    uint64_t each = 0;
    if (stride) {
      each = *stride;
    } else {
      VKF_ASSIGN(each, size_of(in.operand(1), member, depth + 1));
    }
    if (count > kMaxPushBytes || each > kMaxPushBytes) return limited(kMaxPushBytes + 1);
    return limited(each * count);
  }

  Result<uint64_t> matrix(const Instruction& in, const Decorations& member, int) {
    auto stride = member.get(kMatrixStride);
    const Instruction* column = module_.find(in.operand(1));
    if (!stride || !column || column->op != kOpTypeVector) {
      return malformed("a matrix in the push constant block has no stride or no columns");
    }
    const uint64_t vectors = member.has(kRowMajor) ? column->operand(2) : in.operand(2);
    if (vectors > 4 || *stride > kMaxPushBytes) return limited(kMaxPushBytes + 1);
    return limited(vectors * *stride);
  }

  Result<uint64_t> structure(uint32_t type, const Instruction& in, int depth) {
    uint64_t end = 0;
    for (uint32_t i = 0; i + 1 < in.operands.size(); ++i) {
      const Decorations& member = module_.member(type, i);
      auto offset = member.get(kOffset);
      if (!offset) {
        return malformed("member " + std::to_string(i) + " of the push block has no offset");
      }
      VKF_ASSIGN(uint64_t bytes, size_of(in.operand(i + 1), member, depth + 1));
      end = std::max(end, *offset + bytes);
    }
    return limited(end);
  }

  const Module& module_;
  int visits_ = 0;
};

bool every_member_has(const Module& module, uint32_t type, const Instruction& in, uint32_t what) {
  if (in.operands.size() < 2) return false;
  for (uint32_t i = 0; i + 1 < in.operands.size(); ++i) {
    if (!module.member(type, i).has(what)) return false;
  }
  return true;
}

// Binding 0 of set 1: an array of buffers without a length, which are only read.
Status add_table(const Module& module, const Instruction& variable, const Decorations& on,
                 KernelInterface& out) {
  const Instruction* pointer = module.find(variable.operand(0));
  const Instruction* array = pointer ? module.find(pointer->operand(2)) : nullptr;
  const uint32_t block = array ? array->operand(1) : kNone;
  const Instruction* type = module.find(block);
  const bool read =
      type && (on.has(kNonWritable) || every_member_has(module, block, *type, kNonWritable));
  if (on.get(kBinding).value_or(kNone) != 0 || variable.operand(2) != kClassStorageBuffer ||
      !array || array->op != kOpTypeRuntimeArray || !type || type->op != kOpTypeStruct || !read) {
    return malformed(
        "descriptor set 1 may hold one array of readonly storage buffers, without a length, at "
        "binding 0");
  }
  out.has_table = true;
  return {};
}

// The block of a buffer variable: a struct, not an array of descriptors.
Result<uint32_t> block_of(const Module& module, const Instruction& variable) {
  const Instruction* pointer = module.find(variable.operand(0));
  if (!pointer || pointer->op != kOpTypePointer) return malformed("a variable has no pointer type");
  const Instruction* type = module.find(pointer->operand(2));
  if (!type || type->op != kOpTypeStruct) {
    return malformed("a buffer variable is no block; arrays of descriptors are not supported");
  }
  return pointer->operand(2);
}

Status add_binding(const Module& module, uint32_t id, const Instruction& variable,
                   KernelInterface& out) {
  const Decorations& on = module.decorated(id);
  const uint32_t set = on.get(kDescriptorSet).value_or(0);
  if (set == 1) return add_table(module, variable, on, out);
  VKF_ASSIGN(const uint32_t block, block_of(module, variable));
  const Instruction& type = *module.find(block);
  auto binding = on.get(kBinding);
  if (!binding || *binding >= kMaxBindings) {
    return malformed("a buffer variable has no binding below 64");
  }
  if (set != 0) {
    return malformed("binding " + std::to_string(*binding) +
                     " is in neither descriptor set 0 nor 1");
  }
  KernelBinding found;
  found.binding = *binding;
  const bool storage =
      variable.operand(2) == kClassStorageBuffer || module.decorated(block).has(kBufferBlock);
  found.type = storage ? BindingType::kStorage : BindingType::kUniform;
  found.readonly =
      !storage || on.has(kNonWritable) || every_member_has(module, block, type, kNonWritable);
  found.writeonly =
      storage && (on.has(kNonReadable) || every_member_has(module, block, type, kNonReadable));
  for (KernelBinding& other : out.bindings) {
    if (other.binding != found.binding) continue;
    if (other.type != found.type) {
      return malformed("binding " + std::to_string(*binding) + " is both storage and uniform");
    }
    other.readonly = other.readonly && found.readonly;
    other.writeonly = other.writeonly && found.writeonly;
    return {};
  }
  out.bindings.push_back(found);
  return {};
}

Status read_variables(const Module& module, KernelInterface& out) {
  for (uint32_t id : module.variables) {
    const Instruction& variable = *module.find(id);
    if (variable.op != kOpVariable) return malformed("two definitions share an id");
    switch (variable.operand(2)) {
      case kClassStorageBuffer:
      case kClassUniform:
        VKF_CHECK(add_binding(module, id, variable, out));
        break;
      case kClassPushConstant: {
        VKF_ASSIGN(const uint32_t block, block_of(module, variable));
        VKF_ASSIGN(const uint64_t bytes, TypeSizer(module).size_of(block, {}, 0));
        out.push_bytes = std::max(out.push_bytes, static_cast<uint32_t>(bytes));
        break;
      }
      case kClassUniformConstant:
        return malformed("images and samplers are not supported");
      default:
        break;
    }
  }
  std::sort(out.bindings.begin(), out.bindings.end(),
            [](const KernelBinding& a, const KernelBinding& b) { return a.binding < b.binding; });
  bool table_found = !out.has_table;
  for (size_t i = 0; i < out.bindings.size(); ++i) {
    if (out.bindings[i].binding != i) {
      // What a table is made of is bound, too, though nothing may read it except by the table.
      if (!std::exchange(table_found, true)) {
        KernelBinding whole;
        whole.binding = static_cast<uint32_t>(i);
        whole.readonly = true;
        out.bindings.insert(out.bindings.begin() + static_cast<std::ptrdiff_t>(i), whole);
        continue;
      }
      return malformed("binding " + std::to_string(i) +
                       " is missing; number the bindings from 0 without gaps and use them all");
    }
  }
  return {};
}

// One axis of the workgroup size, given by a constant's id.
Status read_axis(const Module& module, uint32_t id, size_t axis, KernelInterface& out) {
  const Instruction* constant = module.find(id);
  if (!constant || (constant->op != kOpConstant && constant->op != kOpSpecConstant) ||
      constant->operands.size() < 3) {
    return malformed("axis " + std::to_string(axis) + " of the local size is no plain constant");
  }
  out.local_size[axis] = constant->operand(2);
  if (constant->op == kOpSpecConstant) {
    out.local_size_spec_id[axis] = module.decorated(id).get(kSpecId).value_or(kNone);
  }
  return {};
}

Status read_local_size(const Module& module, KernelInterface& out) {
  // The built-in composite wins over the execution modes.
  for (const auto& [id, on] : module.decorations) {
    if (on.get(kBuiltIn) != kBuiltInWorkgroupSize) continue;
    const Instruction* composite = module.find(id);
    if (!composite || composite->operands.size() != 5 ||
        (composite->op != kOpConstantComposite && composite->op != kOpSpecConstantComposite)) {
      return malformed("the WorkgroupSize built-in is no composite of three constants");
    }
    for (size_t axis = 0; axis < 3; ++axis) {
      VKF_CHECK(read_axis(module, composite->operand(2 + axis), axis, out));
    }
    return {};
  }
  if (module.local_size_ids) {
    for (size_t axis = 0; axis < 3; ++axis) {
      VKF_CHECK(read_axis(module, (*module.local_size_ids)[axis], axis, out));
    }
    return {};
  }
  if (!module.local_size) return malformed("the module states no local size");
  out.local_size = *module.local_size;
  return {};
}

}  // namespace

Result<KernelInterface> reflect_spirv(std::span<const uint32_t> words) {
  VKF_ASSIGN(const Module module, read_module(words));
  KernelInterface out;
  VKF_CHECK(read_variables(module, out));
  VKF_CHECK(read_local_size(module, out));
  for (uint32_t size : out.local_size) {
    if (size == 0) return malformed("an axis of the local size is 0");
  }
  for (const auto& [id, on] : module.decorations) {
    auto spec = on.get(kSpecId);
    if (spec && module.find(id)) out.spec_ids.push_back(*spec);
  }
  std::sort(out.spec_ids.begin(), out.spec_ids.end());
  out.spec_ids.erase(std::unique(out.spec_ids.begin(), out.spec_ids.end()), out.spec_ids.end());
  return out;
}

}  // namespace vkformer
