#include "recording/preparation.h"

namespace vkformer {

Status prepare_now(Preparation& pass) {
  VKF_CHECK(pass.plan());
  VKF_CHECK(pass.record());
  return pass.finish();
}

}  // namespace vkformer
