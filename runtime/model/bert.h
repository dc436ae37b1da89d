// BERT (Devlin et al., 2018): the bare model with its pooler, and heads for masked words, classes
// of texts and tokens, and answers.
#pragma once

#include "model/model.h"

namespace vkformer {

Result<std::unique_ptr<ModelFamily>> load_bert(const ModelFiles& files);

}  // namespace vkformer
