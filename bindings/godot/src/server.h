// VkfServer: the engine's singleton for what all models share.
#pragma once

#include <memory>

#include "gd/classes.h"

namespace vkf_godot {

class Server : public gd::Instance {
 public:
  static std::unique_ptr<gd::Class> register_class();

 private:
  gd::Variant step(const gd::Arguments&);
};

}  // namespace vkf_godot
