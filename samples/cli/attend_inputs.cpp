#include "attend_inputs.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numbers>

#include "files.h"
#include "text_inputs.h"

namespace vkformer::cli {

namespace {

constexpr const char* kSentence = "The quick brown fox jumps over the lazy dog.";
// Tokens that are shown to a model without a tokenizer, and pixels a side without a picture.
constexpr int64_t kDefaultTokens = 16, kDefaultSide = 224;
// Tokens that a model that is one decoder writes unless asked otherwise.
constexpr int kDefaultNewTokens = 16;
// Tokens that other models write where nothing says how many.
constexpr int kMostUnlimitedTokens = 64;

bool ends_with(const std::string& text, const char* end) {
  return text.ends_with(end);
}

// Colors that differ from place to place, so that patches differ.
Result<Picture> default_picture(int side) {
  std::vector<uint8_t> rgb;
  for (int y = 0; y < side; ++y) {
    for (int x = 0; x < side; ++x) {
      const bool inside =
          (x - side / 3) * (x - side / 3) + (y - side / 2) * (y - side / 2) < side * side / 25;
      rgb.push_back(static_cast<uint8_t>(inside ? 230 : 255 * x / side));
      rgb.push_back(static_cast<uint8_t>(inside ? 60 : 255 * y / side));
      rgb.push_back(static_cast<uint8_t>(inside ? 40 : 160));
    }
  }
  return Picture::from_rgb(side, side, rgb);
}

// A second of a rising tone.
Sound default_sound() {
  Sound sound;
  for (int i = 0; i < sound.sampling_rate; ++i) {
    const double t = static_cast<double>(i) / sound.sampling_rate;
    sound.samples.push_back(
        static_cast<float>(0.5 * std::sin(2 * std::numbers::pi * (300 + 200 * t) * t)));
  }
  return sound;
}

// config.json's entry for the stack that sees pictures: an integer, or the first of a list.
int64_t picture_size(const Json& config, const char* key) {
  const Json* from = &config;
  for (const char* stack : {"encoder", "vision_config"}) {
    if (!from->contains(key) && config.contains(stack)) from = &config[stack];
  }
  if (!from->is_object() || !from->contains(key)) return 0;
  const Json& value = (*from)[key];
  if (value.is_number_integer()) return value.get<int64_t>();
  if (value.is_array() && !value.empty() && value[0].is_number_integer()) {
    return value[0].get<int64_t>();
  }
  return 0;
}

std::string tensor_prefix(const std::string& kind) {
  return kind == "self" ? "attentions." : kind + "_attentions.";
}

// One label for each of `count` tokens, or none at all.
std::vector<std::string> fitted(std::vector<std::string> labels, int count) {
  const auto size = static_cast<size_t>(count);
  if (labels.empty() || labels.size() > size) return {};
  // Families that work in windows or chunks fill their inputs up.
  labels.resize(size, "<pad>");
  return labels;
}

std::vector<std::string> patch_labels(const AttendPass& pass, int count) {
  const int extra = count - pass.patch_rows * pass.patch_columns;
  if (extra < 0 || extra > kMostExtraTokens) return {};
  std::vector<std::string> labels;
  for (int i = 0; i < extra; ++i)
    labels.push_back(i == 0 ? "[CLS]" : "[+" + std::to_string(i) + "]");
  for (int r = 0; r < pass.patch_rows; ++r) {
    for (int c = 0; c < pass.patch_columns; ++c) {
      labels.push_back(std::to_string(r) + "," + std::to_string(c));
    }
  }
  return labels;
}

std::vector<std::string> source_labels(const AttendPass& pass, int count) {
  if (pass.patch_rows > 0) return patch_labels(pass, count);
  if (pass.seconds == 0) return fitted(pass.source, count);
  std::vector<std::string> labels;
  for (int i = 0; i < count; ++i) labels.push_back(fixed(pass.seconds * i / count, 2) + "s");
  return labels;
}

// The number at the end of an output's name.
int64_t layer_of(const std::string& name) {
  int64_t layer = 0;
  const char* end = name.data() + name.size();
  std::from_chars(name.data() + name.rfind('.') + 1, end, layer);
  return layer;
}

int64_t last_layer(const TensorMap& outputs) {
  int64_t last = 0;
  for (const auto& output : outputs) last = std::max(last, layer_of(output.first));
  return last;
}

// Maps of one size each, the last layer's first.
std::vector<TensorMap> by_size(TensorMap outputs) {
  std::vector<TensorMap> sizes;
  while (!outputs.empty()) {
    auto output = outputs.extract(outputs.begin());
    const auto found = std::find_if(sizes.begin(), sizes.end(), [&](const TensorMap& size) {
      return size.begin()->second.shape == output.mapped().shape;
    });
    (found == sizes.end() ? sizes.emplace_back() : *found).insert(std::move(output));
  }
  std::sort(sizes.begin(), sizes.end(),
            [](const TensorMap& x, const TensorMap& y) { return last_layer(x) > last_layer(y); });
  return sizes;
}

// Scores up to a constant for each row, which changes no variance: softmax is exp(score) over a
// sum. For attention that has no softmax these are the scores of one that would give its weights.
void take_logarithms(AttentionMaps& maps) {
  for (AttentionLayer& layer : maps.layers) {
    for (float& value : layer.values) value = std::log(std::max(value, 0.0F));
  }
}

// Of the layers of `maps`, which hold all heads of one item: (H,T) each.
Result<std::vector<std::vector<float>>> entropies_of(const TensorMap& outputs,
                                                     const AttentionMaps& maps, int64_t item) {
  std::string prefix = tensor_prefix(maps.kind);
  prefix.replace(prefix.find("attentions."), std::string::npos, "attention_entropy.");
  const ptrdiff_t size = ptrdiff_t{maps.heads} * maps.rows;
  std::vector<std::vector<float>> all;
  for (const AttentionLayer& layer : maps.layers) {
    const std::string name = prefix + std::to_string(layer.layer);
    const auto found = outputs.find(name);
    if (found == outputs.end()) {
      return Error{ErrorCode::kUnsupported, "The model hands out no [" + name + "]."};
    }
    const Result<std::vector<float>> values = found->second.to_floats();
    if (!values) return values.error();
    const auto first = values->begin() + size * item;
    all.emplace_back(first, first + size);
  }
  return all;
}

// Keeps one head where the session could not be asked for it alone.
Status keep_head(int64_t head, AttentionMaps& maps) {
  if (head < 0) return {};
  if (maps.heads > 1 && head >= maps.heads) {
    return Error{ErrorCode::kInvalidArgument, "[--head] is " + std::to_string(head) + ", but the " +
                                                  maps.kind + " attention has heads 0 to " +
                                                  std::to_string(maps.heads - 1) + "."};
  }
  if (maps.heads > 1) {
    const size_t size = static_cast<size_t>(maps.rows) * static_cast<size_t>(maps.columns);
    for (AttentionLayer& layer : maps.layers) {
      const auto first = layer.values.begin() + static_cast<ptrdiff_t>(size) * head;
      layer.values = std::vector<float>(first, first + static_cast<ptrdiff_t>(size));
    }
  }
  maps.heads = 1;
  maps.first_head = static_cast<int>(head);
  return {};
}

Error nothing_to_read(const std::string& model, const std::string& source) {
  return {ErrorCode::kInvalidArgument,
          "[" + model + "] reads " + source +
              "; give a .safetensors file that holds its inputs by name."};
}

}  // namespace

bool has_two_stacks(const ModelInfo& info) {
  return info.kind == ModelKind::kEncoderDecoder ||
         (info.kind == ModelKind::kEncoder && info.encoder_layers > 0 && info.decoder_layers > 0);
}

std::vector<MapKind> attention_kinds(const ModelInfo& info) {
  if (!has_two_stacks(info)) return {MapKind::kSelf};
  // Its decoder samples features at a few points: weights of samples are not a map of keys.
  if (info.family == "rt_detr") return {MapKind::kEncoder, MapKind::kDecoder};
  return {MapKind::kCross, MapKind::kEncoder, MapKind::kDecoder};
}

int64_t attention_layers(const ModelInfo& info, MapKind kind) {
  if (kind == MapKind::kCross && info.kind != ModelKind::kEncoderDecoder) return 0;
  if (!has_two_stacks(info)) return std::max(info.encoder_layers, info.decoder_layers);
  return kind == MapKind::kEncoder ? info.encoder_layers : info.decoder_layers;
}

int64_t attention_heads(const ModelInfo& info, MapKind kind) {
  if (!has_two_stacks(info)) return std::max(info.encoder_heads, info.decoder_heads);
  return kind == MapKind::kEncoder ? info.encoder_heads : info.decoder_heads;
}

Status check_has_maps(const ModelInfo& info) {
  for (const ModelFamilyFacts& facts : model_family_facts()) {
    if (facts.family != info.family || facts.attention_maps == MapCoverage::kLayers) continue;
    return Error{ErrorCode::kUnsupported,
                 "[" + info.family + "] " +
                     (facts.attention_maps == MapCoverage::kStages
                          ? "attends within windows, a map for each; there is none of the whole "
                            "picture to show. vkformer run --attentions writes the windows' maps."
                          : "hands out no attention maps; see vkformer families --json.")};
  }
  return {};
}

Result<AttendModel> AttendModel::create(const Model& model, const std::string& directory) {
  Result<Session> session = Session::create(model);
  if (!session) return session.error();
  Result<Json> config = read_json_file(model_config_file(directory));
  if (!config) return config.error();
  AttendModel result(model, std::move(*session), directory);
  result.config_ = std::move(*config);
  return result;
}

Result<const Tokenizer*> AttendModel::tokenizer() {
  if (!tokenizer_) {
    Result<Tokenizer> loaded = Tokenizer::load(directory_);
    if (!loaded) return loaded.error();
    tokenizer_ = std::move(*loaded);
  }
  return &*tokenizer_;
}

std::string AttendModel::label(TokenId id) {
  const Result<const Tokenizer*> words = tokenizer();
  if (words) {
    if (const auto token = (*words)->id_to_token(id)) return *token;
  }
  return "#" + std::to_string(id);
}

std::vector<std::string> AttendModel::labels(const std::vector<TokenId>& ids) {
  std::vector<std::string> names;
  for (const TokenId id : ids) names.push_back(label(id));
  return names;
}

Result<std::vector<TokenId>> AttendModel::token_ids(const std::string& text,
                                                    SpecialTokens special_tokens) {
  const Result<const Tokenizer*> words = tokenizer();
  if (!words) return words.error();
  const Result<Encoding> encoding = (*words)->encode(text, {.special_tokens = special_tokens});
  if (!encoding) return encoding.error();
  return encoding->ids;
}

Status AttendModel::read_source(const AttendInput& input, AttendPass& pass) {
  const SourceKind source = info().source;
  if (ends_with(input.input, ".safetensors")) return read_file(input.input, pass);
  if (source == SourceKind::kTokens) return read_tokens(input, pass);
  if (!input.ids.empty()) {
    return Error{ErrorCode::kInvalidArgument,
                 "[--ids] was given, but [" + directory_ + "] reads " + choice_name(source) + "."};
  }
  if (source == SourceKind::kPictures) return read_picture(input, pass);
  if (source == SourceKind::kFeatures) return read_sound(input, pass);
  return nothing_to_read(directory_, choice_name(source));
}

Status AttendModel::read_tokens(const AttendInput& input, AttendPass& pass) {
  std::vector<TokenId> ids = input.ids;
  const bool built_in = ids.empty() && input.input.empty();
  if (built_in && !tokenizer()) {
    const int64_t limit = info().max_source > 0 ? info().max_source : kDefaultTokens;
    for (int64_t i = 0; i < std::min(limit, kDefaultTokens); ++i) {
      ids.push_back((7 * i + 11) % std::max<int64_t>(info().source_vocab, 1));
    }
  }
  if (ids.empty()) {
    // A decoder goes on with its prompt: what comes after it is part of the same text.
    std::string text = built_in ? kSentence : input.input;
    if (info().kind == ModelKind::kDecoder && input.target) text += *input.target;
    const Result<const Tokenizer*> words = tokenizer();
    if (!words) return words.error();
    const Result<Encoding> encoding =
        encode_input(**words, {text, "INPUT"}, info().max_source,
                     built_in ? LongInput::kTruncate : LongInput::kError);
    if (!encoding) return encoding.error();
    ids = encoding->ids;
  }
  if (ids.empty()) {
    return Error{ErrorCode::kInvalidArgument, "[INPUT] has no tokens; there is nothing to attend."};
  }
  pass.source = labels(ids);
  pass.inputs["input_ids"] = Tensor::from_ints({1, static_cast<int64_t>(ids.size())}, ids);
  return {};
}

// Models that come without preprocessor_config.json are shown pictures as ViT's are.
Result<PictureProcessor> AttendModel::picture_processor() {
  if (file_exists(directory_ + "/preprocessor_config.json")) {
    return PictureProcessor::load(directory_);
  }
  const int64_t side = picture_size(config_, "image_size");
  PictureSettings settings;
  settings.width = settings.height = static_cast<int>(side > 0 ? side : kDefaultSide);
  return PictureProcessor::from_settings(settings);
}

Status AttendModel::read_picture(const AttendInput& input, AttendPass& pass) {
  const Result<PictureProcessor> processor = picture_processor();
  if (!processor) return processor.error();
  Result<Picture> picture = input.input.empty() ? default_picture(static_cast<int>(kDefaultSide))
                                                : Picture::load(input.input);
  if (!picture) return picture.error();
  Result<Tensor> pixels = processor->process(std::span(&*picture, 1));
  if (!pixels) return pixels.error();
  Result<PictureRegion> region =
      seen_region(processor->settings(), picture->width(), picture->height());
  if (!region) return region.error();
  const int64_t patch = picture_size(config_, "patch_size");
  const int64_t height = pixels->shape[2], width = pixels->shape[3];
  if (patch > 0 && patch <= height && patch <= width) {
    pass.patch_rows = static_cast<int>(height / patch);
    pass.patch_columns = static_cast<int>(width / patch);
    // What does not fill a patch is not seen.
    region->width *= static_cast<double>(width / patch * patch) / static_cast<double>(width);
    region->height *= static_cast<double>(height / patch * patch) / static_cast<double>(height);
  }
  pass.region = *region;
  pass.picture = std::move(*picture);
  pass.inputs["pixel_values"] = std::move(*pixels);
  return {};
}

Status AttendModel::read_sound(const AttendInput& input, AttendPass& pass) {
  const Result<LogMelExtractor> extractor = LogMelExtractor::load(directory_);
  if (!extractor) return extractor.error();
  const Result<Sound> sound = input.input.empty()
                                  ? Result<Sound>(default_sound())
                                  : load_wav(input.input, extractor->sampling_rate());
  if (!sound) return sound.error();
  Result<Tensor> features = extractor->extract(*sound);
  if (!features) return features.error();
  pass.seconds = static_cast<double>(extractor->chunk_samples()) /
                 static_cast<double>(extractor->sampling_rate());
  pass.inputs["input_features"] = std::move(*features);
  return {};
}

Status AttendModel::read_file(const std::string& path, AttendPass& pass) {
  Result<TensorMap> tensors = read_tensor_file(path);
  if (!tensors) return tensors.error();
  pass.inputs = std::move(*tensors);
  const auto found = pass.inputs.find("input_ids");
  if (found == pass.inputs.end()) return {};
  const Result<std::vector<TokenId>> ids = found->second.to_ints();
  if (!ids) return ids.error().with_context("[input_ids] of " + path);
  pass.source = labels(*ids);
  return {};
}

GenerateOptions AttendModel::settings(const AttendInput& input, const AttendPass& pass) const {
  GenerateOptions settings = session_.generation_defaults();
  settings.beams = 1;
  settings.return_sequences = 1;
  const auto& known = info().prompt_tokens;
  if (const auto language = known.find("<|" + input.language + "|>"); language != known.end()) {
    settings.decoder_prompt = {settings.decoder_start, language->second};
    for (const char* name : {"transcribe", "notimestamps"}) {
      const auto token = known.find(name);
      if (token != known.end()) settings.decoder_prompt.push_back(token->second);
    }
  }
  const bool alone = info().kind == ModelKind::kDecoder;
  int64_t usual = alone ? kDefaultNewTokens : settings.max_new_tokens;
  // A model without a length in its files would write as long as it has positions.
  if (usual == 0) usual = kMostUnlimitedTokens;
  const size_t prompt = alone ? pass.source.size() : settings.decoder_prompt.size();
  const int64_t room = info().max_target - std::max(static_cast<int64_t>(prompt), int64_t{1});
  settings.max_new_tokens =
      input.max_new_tokens.value_or(static_cast<int>(std::clamp<int64_t>(room, 1, usual)));
  return settings;
}

Result<std::vector<TokenId>> AttendModel::generated(const AttendInput& input,
                                                    const AttendPass& pass) {
  const Result<Generation> generation =
      session_.generate_masked(pass.inputs, settings(input, pass));
  if (!generation) return generation.error();
  return generation->front().front().ids;
}

// What the decoder of an encoder-decoder reads and produces: a generation, or the target.
Status AttendModel::add_target(const AttendInput& input, AttendPass& pass) {
  std::vector<TokenId> ids;
  if (input.target) {
    const GenerateOptions options = settings(input, pass);
    ids = options.decoder_prompt;
    if (ids.empty()) ids = {options.decoder_start};
    if (options.forced_bos >= 0) ids.push_back(options.forced_bos);
    const Result<std::vector<TokenId>> target = token_ids(*input.target, SpecialTokens::kExclude);
    if (!target) return target.error();
    ids.insert(ids.end(), target->begin(), target->end());
    if (!options.eos.empty()) ids.push_back(options.eos.front());
  } else {
    const Result<std::vector<TokenId>> made = generated(input, pass);
    if (!made) return made.error();
    ids = *made;
  }
  if (ids.size() < 2) ids.push_back(ids.front());
  const std::vector<TokenId> fed(ids.begin(), ids.end() - 1);
  pass.fed = labels(fed);
  pass.output = labels({ids.begin() + 1, ids.end()});
  if (const Result<const Tokenizer*> words = tokenizer()) {
    const Result<std::string> text = (*words)->decode(ids);
    if (!text) return text.error();
    pass.text = *text;
  }
  pass.inputs["decoder_input_ids"] = Tensor::from_ints({1, static_cast<int64_t>(fed.size())}, fed);
  return {};
}

// The prompt and what a decoder writes after it. The last token that it writes is never read.
Status AttendModel::continue_prompt(const AttendInput& input, AttendPass& pass) {
  const Result<std::vector<TokenId>> ids = generated(input, pass);
  if (!ids) return ids.error();
  const auto prompt = static_cast<ptrdiff_t>(pass.source.size());
  const bool wrote = static_cast<ptrdiff_t>(ids->size()) > prompt;
  const std::vector<TokenId> fed(ids->begin(), ids->end() - (wrote ? 1 : 0));
  if (const Result<const Tokenizer*> words = tokenizer()) {
    const std::vector<TokenId> behind(ids->begin() + prompt, ids->end());
    const Result<std::string> text = (*words)->decode(behind);
    if (!text) return text.error();
    pass.text = *text;
  }
  pass.source = labels(fed);
  pass.inputs["input_ids"] = Tensor::from_ints({1, static_cast<int64_t>(fed.size())}, fed);
  return {};
}

Result<AttendPass> AttendModel::prepare(const AttendInput& input) {
  if (!input.generate && !input.target && info().kind == ModelKind::kEncoderDecoder &&
      !ends_with(input.input, ".safetensors")) {
    return Error{ErrorCode::kInvalidArgument, "[--no-generate] leaves the decoder of [" +
                                                  directory_ +
                                                  "] without input; give --target TEXT as well."};
  }
  if (input.target && info().kind == ModelKind::kEncoder) {
    return Error{ErrorCode::kInvalidArgument, "[--target] was given, but [" + directory_ +
                                                  "] is an encoder and produces no text."};
  }
  AttendPass pass;
  pass.writes = info().kind == ModelKind::kEncoderDecoder;
  if (const Status read = read_source(input, pass); !read) return read.error();
  if (info().kind == ModelKind::kEncoderDecoder && pass.inputs.count("decoder_input_ids") == 0) {
    if (const Status added = add_target(input, pass); !added) return added.error();
  }
  const bool room = static_cast<int64_t>(pass.source.size()) < info().max_target;
  const bool continues = info().kind == ModelKind::kDecoder && input.generate && !input.target &&
                         info().head == HeadKind::kLanguage && pass.inputs.size() == 1 && room;
  if (continues && pass.inputs.count("input_ids") == 1) {
    if (const Status added = continue_prompt(input, pass); !added) return added.error();
  }
  return pass;
}

void AttendModel::name_tokens(const AttendPass& pass, AttentionMaps& maps) const {
  const bool both = info().kind == ModelKind::kEncoderDecoder;
  if (has_two_stacks(info()) && !both) {
    // Objects and prompts have no names. What counts as many tokens as there are patches is these.
    const int patches = pass.patch_rows * pass.patch_columns;
    if (maps.rows == patches) maps.row_labels = patch_labels(pass, maps.rows);
    if (maps.columns == patches) maps.column_labels = patch_labels(pass, maps.columns);
    return;
  }
  const bool behind = both && (maps.kind == "cross" || maps.kind == "decoder");
  // Perceiver's latents attend across without being tokens, Linformer's keys are mixtures.
  const bool latents = !both && maps.kind == "cross";
  const bool mixtures = maps.kind != "cross" && maps.rows != maps.columns;
  maps.row_labels = behind    ? fitted(pass.output, maps.rows)
                    : latents ? std::vector<std::string>()
                              : source_labels(pass, maps.rows);
  if (mixtures) return;
  maps.column_labels =
      maps.kind == "decoder" ? fitted(pass.fed, maps.columns) : source_labels(pass, maps.columns);
}

// Takes the outputs of a kind, of all layers or of one.
Result<TensorMap> AttendModel::take_kind(TensorMap& outputs, MapKind kind, int64_t layer) const {
  const std::string prefix = tensor_prefix(choice_name(kind));
  TensorMap found;
  for (auto output = outputs.begin(); output != outputs.end();) {
    const auto next = std::next(output);
    if (output->first.starts_with(prefix)) found.insert(outputs.extract(output));
    output = next;
  }
  if (found.empty()) return attention_maps_from(found, kind).error();
  if (layer == kAllLayers) return found;
  const int64_t last = last_layer(found);
  auto one = found.extract(prefix + std::to_string(layer == kLastLayer ? last : layer));
  if (one.empty()) {
    return Error{ErrorCode::kNotFound, "[--layer] is " + std::to_string(layer) + ", but the " +
                                           choice_name(kind) + " attention has layers 0 to " +
                                           std::to_string(last) + "."};
  }
  TensorMap chosen;
  chosen.insert(std::move(one));
  return chosen;
}

// One window, prompt or item of each layer, with labels.
Result<AttentionMaps> AttendModel::one_item(const AttendPass& pass, const AttendChoice& choice,
                                            MapKind kind, const TensorMap& outputs) const {
  int64_t items = 1;
  for (const auto& [name, tensor] : outputs) {
    items = std::max(items, tensor.shape[0]);
    if (items == 1 || choice.item) continue;
    return Error{ErrorCode::kInvalidArgument,
                 "[" + name + "] has shape " + shape_text(tensor.shape) +
                     ", a map for each window, prompt or item of a batch; choose one with --item "
                     "0 to " +
                     std::to_string(items - 1) + "."};
  }
  // Of several sizes those of one item are that item's.
  const bool only = items == 1 && choice.sizes == AttendChoice::Sizes::kApart;
  Result<AttentionMaps> maps =
      attention_maps_from(outputs, kind, only ? 0 : choice.item.value_or(0));
  if (!maps) return maps;
  if (const Status kept = keep_head(choice.head, *maps); !kept) return kept.error();
  name_tokens(pass, *maps);
  return maps;
}

Result<std::vector<AttentionMaps>> AttendModel::maps(const AttendPass& pass,
                                                     const AttendChoice& choice) {
  RunOptions options;
  options.attentions = true;
  // The session counts layers of stacks. Attention across may have more, or be numbered apart.
  const bool apart = info().kind == ModelKind::kEncoder && !has_two_stacks(info()) &&
                     choice.kinds.front() == MapKind::kCross;
  const int64_t layers = std::max(info().encoder_layers, info().decoder_layers);
  const bool one_layer = choice.layer >= 0 && choice.layer < layers && !apart;
  options.attention_layer = one_layer ? static_cast<int>(choice.layer) : -1;
  // Both stacks are asked for the same head, which one of them may not have.
  const int64_t common = has_two_stacks(info())
                             ? std::min(info().encoder_heads, info().decoder_heads)
                             : std::max(info().encoder_heads, info().decoder_heads);
  if (choice.head < common) options.attention_head = static_cast<int>(choice.head);
  options.temperature = choice.temperature;
  Result<TensorMap> outputs = session_.run(pass.inputs, options);
  if (!outputs) return outputs.error();
  std::vector<AttentionMaps> all;
  for (const MapKind kind : choice.kinds) {
    Result<TensorMap> found = take_kind(*outputs, kind, choice.layer);
    const bool absent = !found && found.error().code == ErrorCode::kNotFound;
    if (absent && choice.kinds.size() > 1) continue;
    if (!found) return found.error().with_context("[" + directory_ + "]");
    std::vector<TensorMap> sizes;
    if (choice.sizes == AttendChoice::Sizes::kApart) {
      sizes = by_size(std::move(*found));
    } else {
      sizes.push_back(std::move(*found));
    }
    for (const TensorMap& size : sizes) {
      Result<AttentionMaps> maps = one_item(pass, choice, kind, size);
      if (!maps) return maps.error().with_context("[" + directory_ + "]");
      if (sizes.size() > 1) {
        maps->kind += " (" + std::to_string(maps->rows) + " x " + std::to_string(maps->columns);
        maps->kind += ")";
      }
      all.push_back(std::move(*maps));
    }
  }
  if (!all.empty()) return all;
  return Error{ErrorCode::kUnsupported,
               "[" + directory_ + "] hands out no attention maps of what was asked for."};
}

Result<std::vector<std::vector<AttentionMeasurements>>> AttendModel::measurements(
    const AttendPass& pass, MapKind kind, double temperature) {
  RunOptions options;
  options.attentions = true;
  options.attention_values = RunOptions::AttentionValues::kScores;
  options.temperature = temperature;
  Result<TensorMap> scores = session_.run(pass.inputs, options);
  const bool logarithms = !scores && scores.error().code == ErrorCode::kUnsupported;
  if (logarithms) {
    options.attention_values = RunOptions::AttentionValues::kProbabilities;
    scores = session_.run(pass.inputs, options);
  }
  if (!scores) return scores.error();
  Result<TensorMap> found = take_kind(*scores, kind, kAllLayers);
  if (!found) return found.error().with_context("[" + directory_ + "]");
  const Result<TensorMap> outputs =
      session_.run(pass.inputs, {.entropy = true, .temperature = temperature});
  if (!outputs) return outputs.error();
  std::vector<std::vector<AttentionMeasurements>> all;
  for (const TensorMap& size : by_size(std::move(*found))) {
    std::vector<AttentionMeasurements>& items = all.emplace_back();
    for (int64_t item = 0; item < size.begin()->second.shape[0]; ++item) {
      Result<AttentionMaps> maps = attention_maps_from(size, kind, item);
      if (!maps) return maps.error();
      if (logarithms) take_logarithms(*maps);
      Result<std::vector<std::vector<float>>> entropies = entropies_of(*outputs, *maps, item);
      if (!entropies) return entropies.error().with_context("[" + directory_ + "]");
      items.push_back({std::move(*maps), std::move(*entropies)});
    }
  }
  return all;
}

}  // namespace vkformer::cli
