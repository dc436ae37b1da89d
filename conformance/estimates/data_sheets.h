// Data sheets: what is published of a GPU's rates.
#pragma once

#include <span>
#include <string_view>

#include "conformance/estimates/recorded_gpus.h"
#include "conformance/estimates/time_model.h"

namespace vkformer::estimates {

struct DataSheet {
  std::string_view chip;     // "navi31"
  std::string_view product;  // "Radeon RX 7900 XTX"
  std::string_view target;   // whose compiled kernels count, as tools/drivers names it
  GpuRates rates;
  uint32_t stated_units = 0;  // DeviceCaps::compute_units; 0 where drivers do not state them
};

std::span<const DataSheet> data_sheets();
// Null for a chip without one.
const DataSheet* find_data_sheet(std::string_view chip);

// What plans for a chip are made for. A recording is of a driver without its GPU, which has any
// number of units: that of the chip comes from its sheet.
DeviceCaps caps_of(const DataSheet& sheet, const RecordedGpu& recorded);

}  // namespace vkformer::estimates
