// The explicit list of model families: one row each.
#include "base/check.h"
#include "model/albert.h"
#include "model/bart.h"
#include "model/bert.h"
#include "model/bloom.h"
#include "model/cvt.h"
#include "model/deit.h"
#include "model/distilbert.h"
#include "model/electra.h"
#include "model/gpt2.h"
#include "model/gpt_neo.h"
#include "model/gpt_neox.h"
#include "model/llama.h"
#include "model/m2m_100.h"
#include "model/marian.h"
#include "model/modernbert.h"
#include "model/roberta.h"
#include "model/sentence_files.h"
#include "model/swin.h"
#include "model/t5.h"
#include "model/transformer.h"
#include "model/vision_encoder_decoder.h"
#include "model/vit.h"
#include "model/whisper.h"

namespace vkformer {
namespace {

struct FamilyRow {
  const char* model_type;  // as config.json spells it
  Result<std::unique_ptr<ModelFamily>> (*load)(const ModelFiles& files);
};

constexpr FamilyRow kFamilies[] = {
    {"bert", load_bert},
    {"distilbert", load_distilbert},
    {"albert", load_albert},
    {"electra", load_electra},
    {"modernbert", load_modernbert},
    {"roberta", load_roberta},
    {"xlm-roberta", load_roberta},
    {"marian", load_marian},
    {"bart", load_bart},
    {"mbart", load_mbart},
    {"m2m_100", load_m2m_100},
    {"t5", load_t5},
    {"mt5", load_mt5},
    {"whisper", load_whisper},
    {"bloom", load_bloom},
    {"gpt2", load_gpt2},
    {"gpt_neo", load_gpt_neo},
    {"gpt_neox", load_gpt_neox},
    {"llama", load_llama},
    {"mistral", load_mistral},
    {"qwen2", load_qwen2},
    {"transformer", load_transformer},
    {"vit", load_vit},
    {"deit", load_deit},
    {"swin", load_swin},
    {"cvt", load_cvt},
    {"vision-encoder-decoder", load_vision_encoder_decoder},
};

}  // namespace

std::vector<std::string> family_names() {
  std::vector<std::string> names;
  for (const FamilyRow& row : kFamilies) names.emplace_back(row.model_type);
  return names;
}

Result<std::unique_ptr<ModelFamily>> load_family(const FileStore& store) {
  ModelFiles files;
  VKF_ASSIGN(files.config, JsonConfig::load_from(store, "config.json"));
  if (store.has("generation_config.json")) {
    VKF_ASSIGN(files.generation, JsonConfig::load_from(store, "generation_config.json"));
  }
  VKF_ASSIGN(files.sentence, read_sentence_files(store));
  VKF_ASSIGN(std::string type, files.config.get_string("model_type"));
  for (const FamilyRow& row : kFamilies) {
    if (type == row.model_type) return row.load(files);
  }
  std::string known;
  for (const std::string& name : family_names()) known += (known.empty() ? "" : ", ") + name;
  return unsupported("[model_type] '" + type + "' of " + files.config.where() +
                     " is not supported yet; supported are " + known);
}

}  // namespace vkformer
