#include "vkformer/tuning.h"

#include "base/guarded.h"
#include "base/handle_access.h"
#include "measure/tuning.h"

namespace vkformer {

Result<TuneReport> tune_device(const Device& device, const TuneOptions& options) {
  return guarded([&] { return tune_matmul(HandleAccess::impl(device), options); });
}

}  // namespace vkformer
