// Attention by matrix units (shaders/attention_units.comp, and attention_units_nv.comp with
// VK_NV_cooperative_matrix2): when it is chosen, and how it is launched.
#pragma once

#include <optional>
#include <vector>

#include "ops/attention.h"

namespace vkformer {

// How a workgroup shares out its queries: every subgroup has as many as a unit has rows.
struct AttentionUnits {
  MatrixUnit unit;
  uint32_t subgroups = 1;
  uint32_t parts = 1;     // lanes that share the softmax of a row
  bool in_units = false;  // scores and weights stay in the units' registers

  KernelId kernel() const;
  uint32_t rows() const { return subgroups * unit.m; }  // queries of a workgroup
  bool operator==(const AttentionUnits&) const = default;
};

// The table: by what attention of a precision takes matrix units on a device. nullopt: by none.
std::optional<AttentionUnits> attention_units(const DeviceCaps& caps, const AttentionAttrs& attrs,
                                              Precision precision);

// Specialization constants.
SpecConstants attention_units_spec(const DeviceCaps& caps, const AttentionAttrs& attrs,
                                   const AttentionUnits& units);

}  // namespace vkformer
