#include "model/family_traits.h"

#include <algorithm>

namespace vkformer {

bool FamilyTraits::generates() const {
  return kind != ModelKind::kEncoder &&
         std::find(heads.begin(), heads.end(), HeadKind::kLanguage) != heads.end();
}

}  // namespace vkformer
