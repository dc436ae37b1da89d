// Data sheets: what is published of a GPU's rates.
#pragma once

#include <span>
#include <string_view>

#include "conformance/estimates/time_model.h"

namespace vkformer::estimates {

struct DataSheet {
  std::string_view chip;     // "navi31"
  std::string_view product;  // "Radeon RX 7900 XTX"
  std::string_view target;   // whose compiled kernels count, as tools/drivers names it
  GpuRates rates;
};

std::span<const DataSheet> data_sheets();
// Null for a chip without one.
const DataSheet* find_data_sheet(std::string_view chip);

}  // namespace vkformer::estimates
