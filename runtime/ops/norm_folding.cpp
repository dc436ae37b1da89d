#include "ops/norm_folding.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "params/matmul.h"
#include "params/norm.h"

namespace vkformer {
namespace {

// What a dispatch of a norm does, if it is one that products know.
struct Norm {
  uint32_t kind;      // kNormRms or kNormLayer
  uint32_t x, gains;  // buffers
  uint32_t y;
  NormParams params;
};

std::optional<Norm> norm_of(const Dispatch& d) {
  switch (d.kernel) {
    case KernelId::rms_norm_row__f32_f32_f32:
    case KernelId::rms_norm_row__f32_f32_f32_subgroup:
      return Norm{kNormRms, d.bindings[0].buffer, d.bindings[1].buffer, d.bindings[2].buffer,
                  d.push_as<NormParams>()};
    case KernelId::layer_norm_row__f32_f32_f32:
    case KernelId::layer_norm_row__f32_f32_f32_subgroup:
      if (d.constants_as<LayerNormConstants>().has_residual != 0)
        return {};  // of a sum with a residual, which others read, too
      return Norm{kNormLayer, d.bindings[0].buffer, d.bindings[2].buffer, d.bindings[3].buffer,
                  d.push_as<NormParams>()};
    default:
      return {};
  }
}

bool takes_norms(KernelId kernel) {
  switch (kernel) {
    case KernelId::matmul_rows__f32_f32_f32:
    case KernelId::matmul_rows__f32_f16_f32:
    case KernelId::matmul_rows__f32_blocks_f32:
    case KernelId::matmul_rows__f32_f32_f32_int64:
    case KernelId::matmul_rows__f32_f16_f32_int64:
    case KernelId::matmul_rows__f32_blocks_f32_int64:
    case KernelId::matmul_rows__f32_f32_f32_fp16:
    case KernelId::matmul_rows__f32_f16_f32_fp16:
      return true;
    default:
      return false;
  }
}

// Whether the product reads y, all of it and nothing else, as its rows.
bool takes(const Dispatch& d, const Norm& norm) {
  if (!takes_norms(d.kernel) || d.bindings[0].buffer != norm.y || d.bindings[1].buffer == norm.y)
    return false;
  const auto p = d.push_as<MatmulParams>();
  return p.c_offset == kMatmulNone && p.a_offset == 0 && p.m == norm.params.rows &&
         p.k == norm.params.width && p.a_row_stride == p.k && d.groups[2] == 1;
}

// Whether that is less work than a dispatch and a barrier, which take some microseconds. Unmeasured
// but on software devices, where it gains nothing: there the norm stays, so that a row has the same
// bits whatever the batch. GPUs have kernels of their own for so many rows in any case, and a
// choice by the columns alone adds no other border between them.
bool is_cheap(const Dispatch& d, const DeviceCaps& caps) {
  constexpr uint32_t kMostRows = 4;                 // of the first row of the GPUs' table
  constexpr uint64_t kMostElementsOfRow = 1 << 19;  // that all workgroups read again
  const auto p = d.push_as<MatmulParams>();
  return caps.device_class != DeviceClass::kSoftware && p.m <= kMostRows &&
         uint64_t{d.groups[0]} * p.k <= kMostElementsOfRow;
}

bool binds(const Dispatch& d, uint32_t buffer) {
  return std::any_of(d.bindings.begin(), d.bindings.end(),
                     [&](const BoundBuffer& b) { return b.buffer == buffer; });
}

bool writes(const Dispatch& d, uint32_t buffer) {
  return std::any_of(d.bindings.begin(), d.bindings.end(), [&](const BoundBuffer& b) {
    return b.buffer == buffer && b.access != Access::kRead;
  });
}

// The products that read what dispatch `index` writes; empty if some reader cannot take it over, or
// would find x overwritten.
std::vector<size_t> takers(const Plan& plan, size_t index, const Norm& norm,
                           const DeviceCaps& caps) {
  std::vector<size_t> found;
  bool x_changed = false;
  for (size_t i = 0; i < plan.dispatches.size(); ++i) {
    const Dispatch& d = plan.dispatches[i];
    if (i == index) continue;
    if (binds(d, norm.y)) {
      if (i < index || x_changed || !takes(d, norm) || !is_cheap(d, caps)) return {};
      found.push_back(i);
    }
    x_changed = x_changed || (i > index && writes(d, norm.x));
  }
  return found;
}

void take_over(Dispatch& d, const Norm& norm) {
  d.bindings[0].buffer = norm.x;
  d.bindings[2].buffer = norm.gains;
  auto fields = d.constants_as<MatmulRowsConstants>();
  fields.norm = norm.kind;
  d.set_constants(fields);
  auto params = d.push_as<MatmulParams>();
  params.norm_epsilon = norm.params.epsilon;
  d.set_push(params);
  d.flops += 8.0 * d.groups[0] * params.m * params.k;
}

}  // namespace

void fold_norms(Plan& plan, const DeviceCaps& caps) {
  if (!plan.is_step()) return;
  for (size_t i = 0; i < plan.dispatches.size();) {
    const std::optional<Norm> norm = norm_of(plan.dispatches[i]);
    std::vector<size_t> products;
    if (norm && plan.buffers[norm->y].source == BufferSource::kArena)
      products = takers(plan, i, *norm, caps);
    if (products.empty()) {
      ++i;
      continue;
    }
    for (const size_t product : products) take_over(plan.dispatches[product], *norm);
    plan.buffers[norm->y].bytes = 0;  // nobody is left to use it
    plan.dispatches.erase(plan.dispatches.begin() + static_cast<std::ptrdiff_t>(i));
  }
}

}  // namespace vkformer
