// MPNet (Song et al., 2020). It is BERT without token types whose positions begin after the pad
// token's. It adds T5's bias by distance to the scores of every layer.
#include "base/message.h"
#include "model/blocks/bert_layers.h"
#include "model/config_reading.h"
#include "model/family_list.h"

namespace vkformer {
namespace {

// The pad token's id and the buckets are those of the reference implementation, whatever the
// configuration says.
constexpr int64_t kMpnetPad = 1;
constexpr T5Buckets kMpnetBuckets = {.buckets = 32, .max_distance = 128};

BertNames mpnet_names(int64_t layers) {
  BertNames names{.prefix = "mpnet.", .types = "", .pooler = "pooler.dense"};
  for (int64_t i = 0; i < layers; ++i) {
    names.layers.push_back("encoder.layer." + std::to_string(i));
  }
  names.layer.query = "attention.attn.q";
  names.layer.key = "attention.attn.k";
  names.layer.value = "attention.attn.v";
  names.layer.out = "attention.attn.o";
  names.layer.out_norm = "attention.LayerNorm";
  names.decoder = "lm_head.decoder";
  names.decoder_biases = {"lm_head.decoder.bias", "lm_head.bias"};
  names.ignored = {"lm_head.*", "classifier.*", "qa_outputs.*"};
  return names;
}

Result<BucketTable> read_mpnet_buckets(const JsonConfig& config) {
  VKF_ASSIGN(int64_t rows,
             get_size_or(config, "relative_attention_num_buckets", 32, kMostPositions));
  if (rows < kMpnetBuckets.buckets) {
    return invalid_file(message({"[relative_attention_num_buckets] in ", config.where(), " is ",
                                 rows, ", but the buckets of this family are ",
                                 kMpnetBuckets.buckets, "; the table needs a row for each"}));
  }
  return BucketTable{
      .tensor = "encoder.relative_attention_bias.weight", .rows = rows, .t5 = kMpnetBuckets};
}

}  // namespace

Result<std::unique_ptr<ModelFamily>> load_mpnet(const ModelFiles& files) {
  VKF_ASSIGN(BertConfig bert, read_bert_config(files, {.vocab = 30527, .types = 0}, "MPNetModel"));
  VKF_CHECK(set_positions_after_pad(files.config, kMpnetPad, bert));
  bert.names = mpnet_names(bert.block.stack.layers);
  VKF_ASSIGN(bert.names.distances, read_mpnet_buckets(files.config));
  add_roberta_head(bert);
  return make_bert(std::move(bert));
}

}  // namespace vkformer
