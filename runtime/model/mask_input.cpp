#include "model/mask_input.h"

#include "base/check.h"
#include "base/message.h"

namespace vkformer {

Result<std::vector<uint8_t>> mask_flags(const std::string& name, const Tensor& mask) {
  const auto values = mask.to_ints();
  if (!values) return values.error().with_context("[" + name + "]");
  std::vector<uint8_t> flags(values->size());
  for (size_t i = 0; i < flags.size(); ++i) {
    const int64_t value = (*values)[i];
    if (value != 0 && value != 1) {
      return invalid_argument(message({"[", name, "] holds ", value, " at element ", i,
                                       ", but a mask holds 1 for a token that is attended and 0 "
                                       "for one that is masked."}));
    }
    flags[i] = static_cast<uint8_t>(value);
  }
  return flags;
}

}  // namespace vkformer
