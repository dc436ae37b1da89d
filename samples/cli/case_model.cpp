// Model cases: a forward pass with all its taps, then generation as case.json says.
#include <algorithm>

#include "case_command.h"
#include "files.h"
#include "vkformer/session.h"

namespace vkformer::cli {

namespace {

Error case_error(ErrorCode code, const std::string& message) {
  return {code, "[case.json] " + message};
}

// An integer or a list of integers; null and absence give an empty list.
Result<std::vector<int64_t>> id_list(const Json& object, const char* key) {
  std::vector<int64_t> ids;
  const auto found = object.find(key);
  if (found == object.end() || found->is_null()) return ids;
  const Json list = found->is_array() ? *found : Json::array({*found});
  for (const Json& id : list) {
    if (!id.is_number_integer()) {
      return case_error(ErrorCode::kInvalidFile,
                        std::string("has a \"") + key + "\" with something that is not a token.");
    }
    ids.push_back(id.get<int64_t>());
  }
  return ids;
}

// bad_words_ids: words of one token are tokens never chosen.
Status add_bad_words(const Json& settings, std::vector<int64_t>& suppress) {
  const auto found = settings.find("bad_words_ids");
  if (found == settings.end() || found->is_null()) return {};
  for (const Json& word : *found) {
    if (!word.is_array() || word.size() != 1 || !word[0].is_number_integer()) {
      return case_error(ErrorCode::kUnsupported,
                        "has \"bad_words_ids\" of more than one token; only single ones work.");
    }
    suppress.push_back(word[0].get<int64_t>());
  }
  return {};
}

Status read_tokens(const Json& settings, GenerateOptions& options) {
  const struct {
    const char* key;
    int64_t* value;
  } integers[] = {{"pad_token_id", &options.pad},
                  {"decoder_start_token_id", &options.decoder_start},
                  {"forced_bos_token_id", &options.forced_bos},
                  {"forced_eos_token_id", &options.forced_eos}};
  for (const auto& [key, value] : integers) {
    const Result<int64_t> read = json_integer(settings, key, *value, "case.json");
    if (!read) return read.error();
    *value = *read;
  }
  const struct {
    const char* key;
    std::vector<int64_t>* value;
  } lists[] = {{"eos_token_id", &options.eos},
               {"suppress_tokens", &options.suppress},
               {"begin_suppress_tokens", &options.begin_suppress}};
  for (const auto& [key, value] : lists) {
    Result<std::vector<int64_t>> read = id_list(settings, key);
    if (!read) return read.error();
    *value = std::move(*read);
  }
  return add_bad_words(settings, options.suppress);
}

Result<GenerateOptions> read_settings(const Json& settings) {
  GenerateOptions options;
  const Status tokens = read_tokens(settings, options);
  if (!tokens) return tokens.error();
  const Result<int64_t> length = json_integer(settings, "max_new_tokens", 20, "case.json");
  if (!length) return length.error();
  const Result<double> penalty = json_number(settings, "length_penalty", 1.0, "case.json");
  if (!penalty) return penalty.error();
  if (*length < 1 || *length > (1 << 20)) {
    return case_error(ErrorCode::kInvalidFile, "has \"max_new_tokens\" " + std::to_string(*length) +
                                                   ", which is not within 1 and 1048576.");
  }
  options.max_new_tokens = static_cast<int>(*length);
  options.length_penalty = *penalty;
  const auto early = settings.find("early_stopping");
  if (early != settings.end() && early->is_boolean()) {
    options.early_stopping = early->get<bool>() ? "true" : "false";
  } else if (early != settings.end() && early->is_string()) {
    options.early_stopping = early->get<std::string>();
  }
  return options;
}

// What generation starts from: the encoder's inputs.
Result<TensorMap> encoder_inputs(const TensorMap& inputs) {
  if (!inputs.contains("input_ids") || inputs.contains("generate.input_ids")) {
    return case_error(ErrorCode::kUnsupported,
                      "generates from something else than encoder input_ids (B,S).");
  }
  TensorMap encoder = {{"input_ids", inputs.at("input_ids")}};
  const auto mask = inputs.find("attention_mask");
  if (mask != inputs.end()) encoder.emplace(*mask);
  return encoder;
}

// (B, N): rows filled with `pad` up to the longest.
Tensor id_tensor(const Generation& generation, int64_t pad) {
  size_t width = 0;
  for (const auto& row : generation) width = std::max(width, row.front().ids.size());
  std::vector<int64_t> flat;
  for (const auto& row : generation) {
    const std::vector<int64_t>& ids = row.front().ids;
    flat.insert(flat.end(), ids.begin(), ids.end());
    flat.insert(flat.end(), width - ids.size(), pad);
  }
  return Tensor::from_ints({static_cast<int64_t>(generation.size()), static_cast<int64_t>(width)},
                           flat);
}

Status add_generation(Session& session, const TensorMap& inputs, const Json& settings,
                      TensorMap& outputs) {
  Result<GenerateOptions> options = read_settings(settings);
  if (!options) return options.error();
  const Result<TensorMap> encoder = encoder_inputs(inputs);
  if (!encoder) return encoder.error();
  const Result<Generation> greedy = session.generate_masked(*encoder, *options);
  if (!greedy) return greedy.error().with_context("[greedy_ids]");
  outputs["greedy_ids"] = id_tensor(*greedy, options->pad);
  const Result<int64_t> beams = json_integer(settings, "num_beams", 4, "case.json");
  if (!beams) return beams.error();
  if (*beams < 1 || *beams > 64) {
    return case_error(ErrorCode::kInvalidFile, "has \"num_beams\" " + std::to_string(*beams) +
                                                   ", which is not within 1 and 64.");
  }
  options->beams = static_cast<int>(*beams);
  const Result<Generation> searched = session.generate_masked(*encoder, *options);
  if (!searched) return searched.error().with_context("[beam4_ids]");
  outputs["beam4_ids"] = id_tensor(*searched, options->pad);
  std::vector<float> scores;
  for (const auto& row : *searched) scores.push_back(static_cast<float>(row.front().score));
  outputs["beam4_scores"] = Tensor::from_floats({static_cast<int64_t>(scores.size())}, scores);
  return {};
}

}  // namespace

Result<TensorMap> answer_model_case(const Device& device, const CaseOptions& options,
                                    const Json& settings) {
  const Result<Model> model = Model::load(device, options.path("model"), options.load);
  if (!model) return model.error();
  const Result<TensorMap> inputs = read_tensor_file(options.path("inputs.safetensors"));
  if (!inputs) return inputs.error();
  Result<Session> session = Session::create(*model);
  if (!session) return session.error();
  Result<TensorMap> outputs = session->run(
      *inputs,
      {.attentions = RunOptions::Attentions::kOn, .hidden_states = RunOptions::HiddenStates::kOn});
  if (!outputs) return outputs;
  const auto generation = settings.find("generation");
  if (generation == settings.end() || !generation->is_object()) return outputs;
  const Status generated = add_generation(*session, *inputs, *generation, *outputs);
  if (!generated) return generated.error();
  return outputs;
}

}  // namespace vkformer::cli
