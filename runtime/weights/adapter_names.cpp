#include "weights/adapter_names.h"

#include "base/check.h"
#include "base/message.h"
#include "checkpoint/message_text.h"

namespace vkformer {

Result<std::string> adapted_tensor(const Checkpoint& checkpoint,
                                   const std::vector<std::string>& names, const std::string& name,
                                   const std::string& where) {
  for (std::string rest = name;;) {
    if (checkpoint.find(rest) != nullptr) return rest;
    std::vector<std::string> longer;
    for (const std::string& known : names) {
      if (known.ends_with("." + rest)) longer.push_back(known);
    }
    if (longer.size() == 1) return longer[0];
    const size_t dot = rest.find('.');
    // What is left must say more than the kind of a module.
    if (!longer.empty() || dot == std::string::npos || rest.find('.', dot + 1) == rest.rfind('.')) {
      break;
    }
    rest = rest.substr(dot + 1);
  }
  return invalid_file(
      message({where, " changes ", bracketed(name),
               ", which the model does not have; the adapter is of another model."}));
}

}  // namespace vkformer
