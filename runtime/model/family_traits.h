// What the families of family_list.def can do, as data: what tables and tests are made of. A trait
// is claimed only where a golden case shows it (tests/model/family_traits_test.cpp).
#pragma once

#include <span>
#include <vector>

#include "model/model.h"

namespace vkformer {

struct FamilyTraits {
  ModelKind kind = ModelKind::kEncoder;
  SourceKind source = SourceKind::kTokens;
  std::span<const HeadKind> heads;          // of the models that load
  MapCoverage maps = MapCoverage::kLayers;  // attention maps that a pass hands out
  // What makes its inputs of texts, images and audio: a model of tokenizer.json ("WordPiece"),
  // or the processor's part of preprocessor_config.json.
  const char* inputs = "";

  // A decoder with a language head.
  bool generates() const;
};

struct ListedFamily {
  const char* model_type = "";
  FamilyTraits traits;
};

// Every family, in the order of family_list.def.
std::vector<ListedFamily> listed_families();

}  // namespace vkformer
