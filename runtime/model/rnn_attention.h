// Recurrent sequence-to-sequence models, where attention began: RNNsearch (Bahdanau et al., "Neural
// machine translation by jointly learning to align and translate", 2014), the models of Luong et
// al. ("Effective approaches to attention-based neural machine translation", 2015), and without
// attention Sutskever et al. ("Sequence to sequence learning with neural networks", 2014).
// docs/recurrent_models.md has configuration, weights and formulas.
#pragma once

#include "model/model.h"

namespace vkformer {

Result<std::unique_ptr<ModelFamily>> load_rnn_attention(const ModelFiles& files);

}  // namespace vkformer
