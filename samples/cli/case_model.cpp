// Model cases: a forward pass with all its taps, then generation as case.json says.
#include <algorithm>
#include <cmath>

#include "case_command.h"
#include "command_line.h"
#include "files.h"
#include "vkformer/session.h"

namespace vkformer::cli {

namespace {

Error case_error(ErrorCode code, const std::string& message) {
  return {code, "[case.json] " + message};
}

// An integer or a list of integers; null and absence give an empty list.
Result<std::vector<TokenId>> id_list(const Json& object, const char* key) {
  std::vector<TokenId> ids;
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
Status add_bad_words(const Json& settings, std::vector<TokenId>& suppress) {
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
    std::vector<TokenId>* value;
  } lists[] = {{"eos_token_id", &options.eos},
               {"suppress_tokens", &options.suppress},
               {"begin_suppress_tokens", &options.begin_suppress}};
  for (const auto& [key, value] : lists) {
    Result<std::vector<TokenId>> read = id_list(settings, key);
    if (!read) return read.error();
    *value = std::move(*read);
  }
  return add_bad_words(settings, options.suppress);
}

}  // namespace

Result<GenerateOptions> generation_of_case(const Json& settings) {
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
    options.early_stopping = early->get<bool>() ? EarlyStopping::kTrue : EarlyStopping::kFalse;
  } else if (early != settings.end() && early->is_string()) {
    const auto when = choice_from_name<EarlyStopping>(early->get<std::string>());
    if (!when) return when.error();
    options.early_stopping = *when;
  }
  return options;
}

namespace {

// What the names of a decoder's prompts begin with, beside the inputs of a pass.
constexpr const char* kPrompts = "generate.";

// What generation starts from: a decoder's prompts, or an encoder's inputs.
struct Start {
  TensorMap inputs;
  // Of prompts: the rows as the case has them (B, P), padded, and how many tokens of each are real.
  std::vector<std::vector<TokenId>> rows;
  std::vector<size_t> real;
};

Status read_prompt_rows(Start& start) {
  const Tensor& ids = start.inputs.at("input_ids");
  const Result<std::vector<TokenId>> values = ids.to_ints();
  if (!values) return values.error();
  std::vector<int64_t> mask(values->size(), 1);
  const auto given = start.inputs.find("attention_mask");
  if (given != start.inputs.end()) {
    Result<std::vector<TokenId>> read = given->second.to_ints();
    if (!read) return read.error();
    mask = std::move(*read);
  }
  if (ids.shape.size() != 2 || mask.size() != values->size()) {
    return case_error(ErrorCode::kInvalidFile,
                      "generates from generate.input_ids, which must be (B,P) as its mask.");
  }
  const auto width = static_cast<size_t>(ids.shape[1]);
  for (size_t begin = 0; begin < values->size(); begin += width) {
    const auto from = values->begin() + static_cast<ptrdiff_t>(begin);
    start.rows.emplace_back(from, from + static_cast<ptrdiff_t>(width));
    start.real.push_back(0);
    for (size_t i = begin; i < begin + width; ++i) start.real.back() += mask[i] != 0 ? 1 : 0;
  }
  return {};
}

// Whether an input of a pass is the decoder's, which a generation writes itself. It is so by its
// name, or because the encoder reads pictures and no tokens.
bool is_decoder_input(const ModelInfo& info, const std::string& name) {
  if (name.starts_with("decoder_")) return true;
  const bool captions =
      info.kind == ModelKind::kEncoderDecoder && info.source == SourceKind::kPictures;
  return captions && (name == "input_ids" || name == "attention_mask");
}

Result<Start> generation_start(const ModelInfo& info, const TensorMap& inputs) {
  Start start;
  const std::string prefix = kPrompts;
  const bool prompts = inputs.contains(prefix + "input_ids");
  for (const auto& [name, tensor] : inputs) {
    if (prompts && name.starts_with(prefix)) {
      start.inputs.emplace(name.substr(prefix.size()), tensor);
    } else if (!prompts && !is_decoder_input(info, name)) {
      start.inputs.emplace(name, tensor);
    } else if (prompts && (name.starts_with("pixel_") || name.starts_with("image_"))) {
      // Images are the same ones in the pass and in the prompts.
      start.inputs.emplace(name, tensor);
    }
  }
  if (!prompts) return start;
  const Status read = read_prompt_rows(start);
  if (!read) return read.error();
  return start;
}

// (B, N): rows filled with `pad` up to the longest; prompts with the padding the case has.
Tensor id_tensor(const Generation& generation, const Start& start, int64_t pad) {
  std::vector<std::vector<TokenId>> rows;
  for (size_t i = 0; i < generation.size(); ++i) {
    std::vector<TokenId> ids = generation[i].front().ids;
    if (!start.rows.empty()) {
      std::vector<TokenId> row = start.rows[i];
      row.insert(row.end(), ids.begin() + static_cast<ptrdiff_t>(start.real[i]), ids.end());
      ids = std::move(row);
    }
    rows.push_back(std::move(ids));
  }
  size_t width = 0;
  for (const auto& row : rows) width = std::max(width, row.size());
  std::vector<TokenId> flat;
  for (const auto& row : rows) {
    flat.insert(flat.end(), row.begin(), row.end());
    flat.insert(flat.end(), width - row.size(), pad);
  }
  return Tensor::from_ints({static_cast<int64_t>(rows.size()), static_cast<int64_t>(width)}, flat);
}

Status add_generation(const ModelInfo& info, Session& session, const TensorMap& inputs,
                      const Json& settings, TensorMap& outputs) {
  Result<GenerateOptions> options = generation_of_case(settings);
  if (!options) return options.error();
  const Result<Start> start = generation_start(info, inputs);
  if (!start) return start.error();
  const Result<Generation> greedy = session.generate_masked(start->inputs, *options);
  if (!greedy) return greedy.error().with_context("[greedy_ids]");
  outputs["greedy_ids"] = id_tensor(*greedy, *start, options->pad);
  const Result<int64_t> beams = json_integer(settings, "num_beams", 4, "case.json");
  if (!beams) return beams.error();
  if (*beams < 1 || *beams > kMostBeams) {
    return case_error(ErrorCode::kInvalidFile, "has \"num_beams\" " + std::to_string(*beams) +
                                                   ", which is not within 1 and " +
                                                   std::to_string(kMostBeams) + ".");
  }
  options->beams = static_cast<int>(*beams);
  const Result<Generation> searched = session.generate_masked(start->inputs, *options);
  if (!searched) return searched.error().with_context("[beam4_ids]");
  outputs["beam4_ids"] = id_tensor(*searched, *start, options->pad);
  std::vector<float> scores;
  for (const auto& row : *searched) scores.push_back(static_cast<float>(row.front().score));
  outputs["beam4_scores"] = Tensor::from_floats({static_cast<int64_t>(scores.size())}, scores);
  return {};
}

// What sentence-transformers gives besides the embedding: token_embeddings (B,S,D) and
// cosine_similarity (B,B).
Status add_similarity(TensorMap& outputs) {
  const auto found = outputs.find("sentence_embedding");
  if (found == outputs.end()) return {};
  const Result<std::vector<float>> values = found->second.to_floats();
  if (!values) return values.error();
  const auto batch = static_cast<size_t>(found->second.shape[0]);
  const auto width = static_cast<size_t>(found->second.shape[1]);
  const auto product = [&](size_t a, size_t b) {
    double sum = 0;
    for (size_t d = 0; d < width; ++d) {
      sum += static_cast<double>((*values)[a * width + d]) * (*values)[b * width + d];
    }
    return sum;
  };
  std::vector<float> similarity;
  for (size_t a = 0; a < batch; ++a) {
    for (size_t b = 0; b < batch; ++b) {
      const double norms = std::sqrt(product(a, a) * product(b, b));
      similarity.push_back(static_cast<float>(product(a, b) / std::max(norms, 1e-12)));
    }
  }
  const auto rows = static_cast<int64_t>(batch);
  outputs["cosine_similarity"] = Tensor::from_floats({rows, rows}, similarity);
  const auto states = outputs.find("last_hidden_state");
  if (states != outputs.end()) outputs.insert_or_assign("token_embeddings", states->second);
  return {};
}

}  // namespace

Result<TensorMap> answer_model_case(const Device& device, const CaseOptions& options,
                                    const Json& settings) {
  const Result<Model> model = Model::load(device, options.path("model"), options.load);
  if (!model) return model.error();
  const Result<TensorMap> inputs = read_tensor_file(options.path("inputs.safetensors"));
  if (!inputs) return inputs.error();
  Result<Session> session = Session::create(*model, {.cache = options.cache});
  if (!session) return session.error();
  TensorMap of_pass = *inputs;  // without the prompts of a generation
  std::erase_if(of_pass, [](const auto& item) { return item.first.starts_with(kPrompts); });
  Result<TensorMap> outputs = session->run(of_pass, {.attentions = true, .hidden_states = true});
  if (!outputs) return outputs;
  const Status similarity = add_similarity(*outputs);
  if (!similarity) return similarity.error();
  const auto generation = settings.find("generation");
  if (generation == settings.end() || !generation->is_object()) return outputs;
  const Status generated = add_generation(model->info(), *session, *inputs, *generation, *outputs);
  if (!generated) return generated.error();
  return outputs;
}

}  // namespace vkformer::cli
