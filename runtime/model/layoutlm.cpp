// LayoutLM (Xu et al., 2019): a BERT whose embedding adds where each token's box stands on its
// page.
#include "model/blocks/bert_layers.h"
#include "model/blocks/box_embedding.h"
#include "model/config_reading.h"
#include "model/family_list.h"

namespace vkformer {
namespace {

class LayoutForm : public EncoderForm {
 public:
  explicit LayoutForm(const BoxEmbedding& boxes) : boxes_(boxes) {}

  void add_rows(const std::string& prefix, WeightTable& table) const override {
    add_box_rows(boxes_, prefix + "embeddings.", table);
  }
  std::vector<std::string> input_names() const override { return {"bbox"}; }
  Status read_inputs(const TensorMap& inputs, ForwardInputs& result) const override {
    return read_boxes(boxes_, inputs, result);
  }
  Result<TensorId> after_lookup(ModelBuilder& builder, TensorId x) const override {
    return add_boxes(builder, x);
  }

 private:
  BoxEmbedding boxes_;
};

}  // namespace

Result<std::unique_ptr<ModelFamily>> load_layoutlm(const ModelFiles& files) {
  VKF_ASSIGN(BertConfig bert, read_bert_config(files, {}, "LayoutLMModel"));
  BoxEmbedding boxes{.corner_width = bert.facts.width, .size_width = bert.facts.width};
  VKF_ASSIGN(boxes.positions,
             get_size_or(files.config, "max_2d_position_embeddings", 1024, kMostPositions));
  bert.block.form = std::make_shared<LayoutForm>(boxes);
  bert.names = bert_names("layoutlm.", bert.block.stack.layers);
  add_bert_head(bert);
  return make_bert(std::move(bert));
}

}  // namespace vkformer
