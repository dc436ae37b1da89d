// `vkformer bench --estimate` and `vkformer bench models --estimate`.
#pragma once

#include <string>

#include "bench_models.h"

namespace vkformer::cli {

// Rows as `bench models` has them, of the chip by that name (estimate.h), or of "device": the one
// that `common` chooses, by its measured roofline. Sizes and formats are those of `options`.
int run_bench_estimate(const CommonOptions& common, const std::string& name,
                       const ModelBenchOptions& options, const ReportFiles& files);

}  // namespace vkformer::cli
