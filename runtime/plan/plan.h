// A plan: everything Vulkan will do for one pass, as printable data. Dispatches come from ops/;
// memory offsets and barriers are derived here; the vulkan room only executes it.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kernels/catalogue.h"
#include "plan/device_caps.h"
#include "vkformer/tensor.h"

namespace vkformer {

enum class Access : uint8_t { kRead, kWrite, kReadWrite };

// Where a planned buffer's memory comes from.
enum class BufferSource : uint8_t { kArena, kExternal, kConstant };

// One logical buffer of the plan; ids are the graph's tensor ids, then scratch added by operators.
struct PlanBuffer {
  std::string name;
  BufferSource source = BufferSource::kArena;
  uint64_t bytes = 0;
  uint64_t offset = 0;         // in the arena; filled by plan_memory
  uint32_t constant = 0;       // index in the weight table, for kConstant
  std::vector<int64_t> shape;  // of the tensor; empty for scratch
  DType dtype = DType::kF32;   // of the tensor
};

struct BoundBuffer {
  uint32_t buffer = 0;  // index in Plan::buffers
  Access access = Access::kRead;
  // The bytes that are bound, where a dispatch sees a part of a buffer beyond the device's largest
  // binding; no bytes: all of it.
  uint64_t offset = 0;
  uint64_t bytes = 0;
};

// Values of the specialization constants 0, 1, 2, ..., and which list they belong to
// (shaders/params/constants.h).
struct SpecConstants {
  std::vector<uint32_t> values;
  std::string_view list;
};
template <class T>
SpecConstants constants(const T& fields) {
  const auto words = std::bit_cast<std::array<uint32_t, sizeof(T) / sizeof(uint32_t)>>(fields);
  return {{words.begin(), words.end()}, T::kListName};
}

// One vkCmdDispatch. Binding i of the kernel is bindings[i].
struct Dispatch {
  KernelId kernel{};
  const char* op = "";  // the operator it was lowered from, ops/op_list.def
  std::string label;
  std::vector<BoundBuffer> bindings;
  std::vector<std::byte> push;  // at most 128 bytes
  std::vector<uint32_t> spec;   // SpecConstants::values
  std::string_view spec_list;   // SpecConstants::list
  // The kernel computes the same bits on every device (reproducible/pin_arithmetic.h).
  bool reproducible = false;
  // Of a kernel with a table (set 1), the binding whose buffer it has in parts, and how long a part
  // is. Part i begins i parts after the buffer's begin; only whole ones are there.
  uint32_t table_binding = 0;
  uint32_t table_part_bytes = 0;  // 0: the kernel has no table
  std::array<uint32_t, 3> groups = {1, 1, 1};
  // In a decoding step, the axis whose group count is ceil(live slots / slots_per_group) times
  // groups[axis]-independent 1. It is taken indirectly. -1 where the count does not depend on live
  // slots.
  int live_axis = -1;
  uint32_t slots_per_group = 1;
  double flops = 0;  // upper bound, operations
  double bytes = 0;  // upper bound, bytes moved

  template <class T>
  void set_push(const T& params) {
    push.resize(sizeof(T));
    std::memcpy(push.data(), &params, sizeof(T));
  }
  // What set_push was given, of the same type.
  template <class T>
  T push_as() const {
    T params{};
    std::memcpy(&params, push.data(), std::min(sizeof(T), push.size()));
    return params;
  }
  void set_constants(SpecConstants set) {
    spec = std::move(set.values);
    spec_list = set.list;
  }
  template <class T>
  void set_constants(const T& fields) {
    set_constants(constants(fields));
  }
  // What set_constants was given, of the same type.
  template <class T>
  T constants_as() const {
    std::array<uint32_t, sizeof(T) / sizeof(uint32_t)> words{};
    std::copy_n(spec.begin(), std::min(words.size(), spec.size()), words.begin());
    return std::bit_cast<T>(words);
  }
};

// One dispatch must wait for another's writes (or reads, before writing over them).
struct Barrier {
  uint32_t before_dispatch = 0;        // index in Plan::dispatches
  bool write_after_read_only = false;  // an execution dependency suffices
  std::vector<uint32_t> buffers;       // whose hazards it resolves; for the dump
};

// Nodes that one node does together (ops/fusion.h).
struct Fusion {
  const char* pattern = "";  // "linear + activation"
  std::string label;         // of the first node
  uint32_t count = 1;        // nodes that took the first one over

  bool operator==(const Fusion&) const = default;
};

struct Plan {
  std::vector<Fusion> fusions;
  std::vector<PlanBuffer> buffers;
  std::vector<Dispatch> dispatches;
  std::vector<Barrier> barriers;  // ascending before_dispatch
  uint64_t arena_bytes = 0;
  uint64_t arena_naive_bytes = 0;  // what it would be without reuse
  uint64_t arena_bound_bytes = 0;  // most bytes alive at one dispatch: no arena can be smaller
  uint32_t row_capacity = 0;       // of a decoding step; 0 otherwise

  bool is_step() const { return row_capacity > 0; }
  double flops() const;
  double bytes() const;
  // One line per fusion, buffer and dispatch, barriers in between.
  std::string dump() const;
};

// Gives every arena buffer an offset such that buffers alive at the same time do not overlap.
// Aligned to `alignment` bytes. The best of greedy by size, greedy by breadth (both Pisarchyk and
// Lee, 2020, "Efficient memory management for deep neural net inference") and first come.
void plan_memory(Plan& plan, uint64_t alignment);

// Derives the barriers from the declared accesses: read after write, write after write and write
// after read on buffers that overlap in memory. Must follow plan_memory.
void plan_barriers(Plan& plan);

}  // namespace vkformer
