#include "host/window.h"

namespace sample {

vkformer::Result<std::unique_ptr<Window>> Window::open(int, int) {
  return vkformer::Error{
      vkformer::ErrorCode::kUnsupported,
      "This program was built without GLFW, so --window has none to open: install "
      "libglfw3-dev and build again, or write pictures with --out or --gif."};
}

}  // namespace sample
