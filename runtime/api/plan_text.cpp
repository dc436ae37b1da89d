#include "measure/plan_text.h"

#include "base/guarded.h"
#include "vkformer/model.h"

namespace vkformer {

Result<std::string> Model::plan_text(const PlanOptions& options) const {
  return guarded([&] { return vkformer::plan_text(*impl_, options); });
}

}  // namespace vkformer
