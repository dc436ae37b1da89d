#include "attend_heads.h"

#include <algorithm>
#include <iterator>

namespace vkformer::cli {

namespace {

const char* state_name(AttentionHead::State state) {
  switch (state) {
    case AttentionHead::State::kCollapsed:
      return "collapsed";
    case AttentionHead::State::kSaturated:
      return "saturated";
    case AttentionHead::State::kUsual:
      break;
  }
  return "";
}

double share_of(const AttentionHead& head) {
  return head.rows > 0 ? head.entropy / head.most_entropy : 0.0;
}

// What is measured, one after the other.
std::vector<AttendInput> all_inputs(const HeadsOptions& options) {
  std::vector<AttendInput> inputs;
  for (const std::string& input : options.inputs) inputs.push_back({.input = input});
  if (!options.picture.empty()) inputs.push_back({.input = options.picture});
  if (!options.ids.empty()) inputs.push_back({.ids = options.ids});
  if (inputs.empty()) inputs.push_back({});
  return inputs;
}

Result<std::vector<AttentionHead>> measure_kind(AttendModel& model,
                                                const std::vector<AttendPass>& passes, MapKind kind,
                                                const HeadsOptions& options) {
  std::vector<std::vector<AttentionMeasurements>> sizes;
  for (const AttendPass& pass : passes) {
    auto one = model.measurements(pass, kind, options.limits.temperature);
    if (!one) return one.error();
    if (sizes.empty()) sizes.resize(one->size());
    if (sizes.size() != one->size()) {
      return Error{ErrorCode::kInvalidArgument,
                   "Layers have maps of " + std::to_string(one->size()) +
                       " sizes with one INPUT, but of " + std::to_string(sizes.size()) +
                       " with another; measure them one by one."};
    }
    for (size_t i = 0; i < sizes.size(); ++i) {
      std::move((*one)[i].begin(), (*one)[i].end(), std::back_inserter(sizes[i]));
    }
  }
  std::vector<AttentionHead> heads;
  for (const std::vector<AttentionMeasurements>& size : sizes) {
    const Result<std::vector<AttentionHead>> more = measure_attention_heads(size, options.limits);
    if (!more) return more.error();
    heads.insert(heads.end(), more->begin(), more->end());
  }
  std::stable_sort(heads.begin(), heads.end(), [](const AttentionHead& x, const AttentionHead& y) {
    return x.layer < y.layer;
  });
  return heads;
}

Result<std::vector<AttentionHead>> measure_all(AttendModel& model, const HeadsOptions& options) {
  std::vector<MapKind> kinds = attention_kinds(model.info());
  if (has_two_stacks(model.info()) && options.kind) kinds = {*options.kind};
  std::vector<AttendPass> passes;
  for (AttendInput& input : all_inputs(options)) {
    // A decoder is measured on the text itself, not on what it would write after it.
    input.generate = model.info().kind == ModelKind::kEncoderDecoder;
    Result<AttendPass> pass = model.prepare(input);
    if (!pass) return pass.error();
    passes.push_back(std::move(*pass));
  }
  std::vector<AttentionHead> heads;
  for (const MapKind kind : kinds) {
    Result<std::vector<AttentionHead>> more = measure_kind(model, passes, kind, options);
    // A recurrent encoder has no attention.
    if (!more && kinds.size() > 1 && more.error().code == ErrorCode::kNotFound) continue;
    if (!more) return more.error();
    heads.insert(heads.end(), more->begin(), more->end());
  }
  return heads;
}

void print_heads(const std::vector<AttentionHead>& heads) {
  print_line(padded("kind", 9) + padded("layer", 7) + padded("head", 6) + padded("entropy", 9) +
             padded("share", 7) + padded("variance", 12) + padded("predicted", 11) + "state");
  for (const AttentionHead& head : heads) {
    std::string line = padded(head.kind, 9) + padded(std::to_string(head.layer), 7) +
                       padded(std::to_string(head.head), 6);
    if (head.rows == 0) {
      print_line(line + "no row has two keys to choose from");
      continue;
    }
    line += padded(fixed(head.entropy, 4), 9) + padded(fixed(share_of(head), 3), 7) +
            padded(fixed(head.score_variance, 4), 12) +
            padded(fixed(head.predicted_entropy, 4), 11) + state_name(head.state);
    line.erase(line.find_last_not_of(' ') + 1);
    print_line(line);
  }
}

void print_heads_json(const std::vector<AttentionHead>& heads, const HeadsOptions& options) {
  Json json;
  json["temperature"] = options.limits.temperature;
  json["collapsed_above"] = options.limits.collapsed;
  json["saturated_below"] = options.limits.saturated;
  json["heads"] = Json::array();
  for (const AttentionHead& head : heads) {
    Json entry;
    entry["kind"] = head.kind;
    entry["layer"] = head.layer;
    entry["head"] = head.head;
    entry["rows"] = head.rows;
    entry["entropy"] = head.entropy;
    entry["most_entropy"] = head.most_entropy;
    entry["share"] = share_of(head);
    entry["score_variance"] = head.score_variance;
    entry["predicted_entropy"] = head.predicted_entropy;
    const std::string state = state_name(head.state);
    entry["state"] = state.empty() ? "usual" : state;
    json["heads"].push_back(std::move(entry));
  }
  print_json(json);
}

}  // namespace

void add_heads_options(CLI::App& command, HeadsOptions& options) {
  command.add_flag("--attention", options.asked,
                   "run the model and print entropy and score variance of every head");
  command.add_option("INPUT", options.inputs,
                     "with --attention: texts, or paths of pictures, WAV files or .safetensors "
                     "inputs; something built in if there are none");
  add_file_option(command, "--picture", options.picture, "with --attention: a picture file");
  command.add_option("--ids", options.ids, "with --attention: token ids, such as 5,17,2")
      ->delimiter(',')
      ->allow_extra_args(false);
  add_choice<MapKind>(command, "--kind", options.kind,
                      "with --attention: one kind of a model with an encoder and a decoder",
                      {"cross", "encoder", "decoder"});
  command.add_option("--temperature", options.limits.temperature,
                     "with --attention: divides all scores before the softmax");
  command.add_option("--collapsed", options.limits.collapsed,
                     "share of ln n above which a head's mean entropy is called collapsed: it "
                     "attends to everything alike");
  command.add_option("--saturated", options.limits.saturated,
                     "share of ln n below which a head's mean entropy is called saturated: it "
                     "attends to single keys");
}

int run_heads(const CommonOptions& common, const std::string& directory,
              const HeadsOptions& options) {
  const Result<ModelInfo> info = inspect_model(directory);
  if (!info) return report(info.error());
  if (const Status maps = check_has_maps(*info); !maps) return report(maps.error());
  const Result<Device> device = open_device(common);
  if (!device) return report_device(device.error());
  const Result<Model> loaded = load_model(common, *device, directory, options.load);
  if (!loaded) return report(loaded.error());
  Result<AttendModel> model = AttendModel::create(*loaded, directory);
  if (!model) return report(model.error());
  const Result<std::vector<AttentionHead>> heads = [&] {
    const Progress progress("measuring attention", common.progress());
    return measure_all(*model, options);
  }();
  if (!heads) return report(heads.error());
  if (common.json) {
    print_heads_json(*heads, options);
  } else {
    print_heads(*heads);
  }
  return kExitOk;
}

}  // namespace vkformer::cli
