#include "model/family_traits.h"

#include <algorithm>

namespace vkformer {

bool FamilyTraits::generates() const {
  return kind != ModelKind::kEncoder &&
         std::find(heads.begin(), heads.end(), HeadKind::kLanguage) != heads.end();
}

const char* kind_name(ModelKind kind) {
  constexpr const char* kNames[] = {"encoder", "decoder", "encoder-decoder"};
  return kNames[static_cast<size_t>(kind)];
}

const char* source_name(SourceKind source) {
  constexpr const char* kNames[] = {"tokens", "pictures", "features", "arrays"};
  return kNames[static_cast<size_t>(source)];
}

const char* head_name(HeadKind head) {
  constexpr const char* kNames[] = {"none",   "language", "masked",       "sequence",
                                    "tokens", "spans",    "discriminator"};
  return kNames[static_cast<size_t>(head)];
}

const char* maps_name(FamilyTraits::Maps maps) {
  constexpr const char* kNames[] = {"none", "stages", "layers"};
  return kNames[static_cast<size_t>(maps)];
}

}  // namespace vkformer
