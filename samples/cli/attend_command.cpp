// `vkformer attend`: shows what attended to what, in any model that hands out attention maps.
#include <algorithm>
#include <charconv>
#include <memory>

#include "attend_output.h"
#include "command_line.h"

namespace vkformer::cli {

namespace {

constexpr int64_t kAllHeads = -1;

// "cross, encoder and decoder".
std::string kinds_text(const std::vector<MapKind>& kinds) {
  std::string text;
  for (size_t i = 0; i < kinds.size(); ++i) {
    if (i > 0) text += i + 1 == kinds.size() ? " and " : ", ";
    text += choice_name(kinds[i]);
  }
  return text;
}

// The kind that the options ask for, by the name that this model's outputs have.
Result<MapKind> chosen_kind(const ModelInfo& info, const AttendOptions& options) {
  const std::vector<MapKind> kinds = attention_kinds(info);
  const bool two = has_two_stacks(info);
  if (!options.kind) return two && options.rollout ? MapKind::kEncoder : kinds.front();
  const MapKind kind = *options.kind;
  if (std::find(kinds.begin(), kinds.end(), kind) != kinds.end()) return kind;
  const MapKind own = info.kind == ModelKind::kEncoder ? MapKind::kEncoder : MapKind::kDecoder;
  if (!two && kind == own) return MapKind::kSelf;
  // Perceiver's latents attend to its tokens.
  if (!two && info.kind == ModelKind::kEncoder && kind == MapKind::kCross) return kind;
  return Error{ErrorCode::kInvalidArgument, std::string("[--kind] is ") + choice_name(kind) +
                                                ", but [" + options.model + "] has maps of kind " +
                                                kinds_text(kinds) + "."};
}

Result<int64_t> chosen_head(const ModelInfo& info, const AttendOptions& options, MapKind kind) {
  if (options.head == "all") return kAllHeads;
  const int64_t heads = attention_heads(info, kind);
  int64_t head = 0;
  const char* end = options.head.data() + options.head.size();
  const auto parsed = std::from_chars(options.head.data(), end, head);
  if (parsed.ec == std::errc() && parsed.ptr == end && head >= 0 && head < heads) return head;
  return Error{ErrorCode::kInvalidArgument,
               "[--head] is " + options.head + ", but the layer has heads 0 to " +
                   std::to_string(heads - 1) + "; or give all for their mean."};
}

Status check_layer(const ModelInfo& info, const AttendOptions& options, MapKind kind) {
  const int64_t layers = attention_layers(info, kind);
  if (!options.layer) return {};
  if (*options.layer < 0) {
    return Error{ErrorCode::kInvalidArgument, "[--layer] is " + std::to_string(*options.layer) +
                                                  ", but layers count from 0; give 0 or more."};
  }
  if (layers == 0 || *options.layer < layers) return {};
  std::string stack = kind == MapKind::kCross ? "decoder" : choice_name(kind);
  if (!has_two_stacks(info)) stack = choice_name(info.kind);
  return Error{ErrorCode::kInvalidArgument,
               "[--layer] is " + std::to_string(*options.layer) + ", but the " + stack + " of [" +
                   options.model + "] has layers 0 to " + std::to_string(layers - 1) + "."};
}

// What the options say that no model can do; empty: nothing.
std::string usage_error(const AttendOptions& options) {
  const bool nothing = options.input.input.empty() && options.input.ids.empty();
  if (nothing) return "attend needs an INPUT, or --ids.";
  if (!options.input.input.empty() && !options.input.ids.empty()) {
    return "attend takes an INPUT or --ids, not both.";
  }
  if (!options.rollout) return "";
  if (options.kind == MapKind::kCross)
    return "--rollout is of self-attention; --kind cross is not.";
  if (options.layer || options.head != "all") {
    return "--rollout is over all layers and the mean over heads; leave --layer and --head out.";
  }
  return options.grid.empty() ? "" : "--grid shows layers and heads, --rollout has neither.";
}

// All that was computed, and the one map to show.
struct Attended {
  std::vector<AttentionMaps> all;
  AttentionMaps shown;
};

// The chosen layer, or the last one, with one head or the mean over all.
Result<AttentionMaps> one_map(const AttentionMaps& maps, const AttendOptions& options) {
  if (options.rollout) return attention_rollout(maps);
  AttentionMaps one = maps;
  const auto wanted = [&](const AttentionLayer& layer) { return layer.layer == options.layer; };
  auto found = std::find_if(one.layers.begin(), one.layers.end(), wanted);
  if (found == one.layers.end()) found = one.layers.end() - 1;
  const AttentionLayer layer = std::move(*found);
  one.layers = {layer};
  if (options.head != "all") return one;
  return mean_over_heads(one);
}

Result<Attended> attend(AttendModel& model, const AttendPass& pass, const AttendOptions& options) {
  const ModelInfo& info = model.info();
  const Result<MapKind> kind = chosen_kind(info, options);
  if (!kind) return kind.error();
  if (const Status layer = check_layer(info, options, *kind); !layer) return layer.error();
  const Result<int64_t> head = chosen_head(info, options, *kind);
  if (!head) return head.error();
  const bool pages = !options.html.empty(), all_layers = pages || !options.grid.empty();
  AttendChoice choice{
      .kinds = {*kind}, .head = *head, .item = options.item, .temperature = options.temperature};
  // A page without further wishes shows all that there is.
  if (pages && !options.kind && !options.rollout) choice.kinds = attention_kinds(info);
  if (pages && !options.rollout) choice.sizes = AttendChoice::Sizes::kApart;
  if (!options.rollout && (options.layer || !all_layers)) {
    const int64_t layers = attention_layers(info, *kind);
    choice.layer = options.layer.value_or(layers > 0 ? layers - 1 : kLastLayer);
  }
  Result<std::vector<AttentionMaps>> maps = model.maps(pass, choice);
  if (!maps) return maps.error();
  const auto first = std::find_if(maps->begin(), maps->end(), [&](const AttentionMaps& m) {
    return m.kind.starts_with(choice_name(*kind));
  });
  Result<AttentionMaps> shown = one_map(first == maps->end() ? maps->front() : *first, options);
  if (!shown) return shown.error();
  if (options.rollout) maps->insert(maps->begin(), *shown);  // a page opens on its first map
  return Attended{std::move(*maps), std::move(*shown)};
}

Status write_files(const AttendPass& pass, const AttendOptions& options, const Attended& made,
                   std::vector<std::string>& written) {
  const auto write = [&](const std::string& path, const auto& make) -> Status {
    if (path.empty()) return {};
    const Status done = make();
    if (done) written.push_back(path);
    return done;
  };
  Status done = write(options.png, [&] { return write_map_png(pass, options, made.shown); });
  if (done) done = write(options.grid, [&] { return write_grid(options, made.all.front()); });
  if (done) done = write(options.overlay, [&] { return write_overlay(pass, options, made.shown); });
  if (done) done = write(options.html, [&] { return write_html(options, made.all); });
  return done;
}

int run_attend(const CommonOptions& common, const AttendOptions& options) {
  if (const std::string wrong = usage_error(options); !wrong.empty()) return report_usage(wrong);
  const Result<ModelInfo> info = inspect_model(options.model);
  if (!info) return report(info.error());
  if (const Status maps = check_has_maps(*info); !maps) return report(maps.error());
  if (const Result<MapKind> kind = chosen_kind(*info, options); !kind) {
    return report_usage(kind.error().message);
  }
  const Result<Device> device = open_device(common);
  if (!device) return report_device(device.error());
  const Result<Model> loaded = load_model(common, *device, options.model, options.load);
  if (!loaded) return report(loaded.error());
  Result<AttendModel> model = AttendModel::create(*loaded, options.model);
  if (!model) return report(model.error());
  Result<AttendPass> pass = model->prepare(options.input);
  if (!pass) return report(pass.error());
  const Result<Attended> made = [&] {
    const Progress progress("attending", common.progress());
    return attend(*model, *pass, options);
  }();
  if (!made) return report(made.error());
  if (common.json) print_map_json(*pass, options, made->shown);
  if (!common.json && !options.writes_files()) print_map(made->shown);
  std::vector<std::string> written;
  const Status done = write_files(*pass, options, *made, written);
  for (const std::string& path : written) {
    if (!common.quiet) print_message("wrote " + path + ".");
  }
  return done ? kExitOk : report(done.error());
}

void add_input_options(CLI::App& command, AttendInput& input) {
  command.add_option("INPUT", input.input,
                     "a text; or a picture, a WAV file, or inputs by name in a .safetensors file");
  command.add_option("--ids", input.ids, "token ids instead of a text: 5,17,2")
      ->delimiter(',')
      ->allow_extra_args(false);
  command.add_flag_callback(
      "--no-generate", [&input] { input.generate = false; },
      "show the input alone; an encoder-decoder needs --target");
  command.add_option_function<std::string>(
      "--target", [&input](const std::string& text) { input.target = text; },
      "text that the decoder reads, instead of generating");
  command.add_option_function<int>(
      "--max-new-tokens", [&input](int tokens) { input.max_new_tokens = tokens; },
      "tokens to generate at most; 16 with a model that is one decoder");
  command.add_option("--language", input.language, "of speech, such as en");
}

void add_view_options(CLI::App& command, AttendOptions& options) {
  add_choice<MapKind>(
      command, "--kind", options.kind,
      "self: tokens on tokens; with an encoder and a decoder cross: output on source, encoder: "
      "source on source, decoder: output on what the decoder read");
  command.add_option("--layer", options.layer,
                     "layer, counted from 0: 1 is the second one; the last if not given");
  command.add_option("--head", options.head, "head, counted from 0, or all: the mean over heads");
  command.add_option("--item", options.item,
                     "which of several maps of a layer, counted from 0: a window, a prompt of a "
                     "segmenter, an item of a batch");
  command.add_flag("--rollout", options.rollout,
                   "the flow through all layers, with residual connections, instead of one layer");
  command.add_option("--temperature", options.temperature,
                     "divides all scores of attention before the softmax");
  add_file_option(command, "--png", options.png, "write a picture instead of drawing in text");
  add_file_option(command, "--grid", options.grid,
                  "write a picture of all layers and heads, or of one layer's heads");
  add_file_option(command, "--overlay", options.overlay,
                  "write the input picture with attention in red over it");
  command.add_option("--query", options.query,
                     "token whose attention --overlay shows; the first one if not given");
  add_file_option(command, "--html", options.html,
                  "write a page for a browser, with everything in it");
  command
      .add_option("--range", options.range,
                  "darkest color of --png and --grid: one, or max: the largest weight")
      ->check(CLI::IsMember({"one", "max"}));
}

}  // namespace

void add_attend_command(CLI::App& app, CommandLine& line) {
  CLI::App* command = app.add_subcommand(
      "attend", "Run a model on an input and show what attended to what, in text or pictures.");
  const auto options = std::make_shared<AttendOptions>();
  add_model_argument(*command, line, options->model);
  add_input_options(*command, options->input);
  add_view_options(*command, *options);
  add_model_options(*command, options->load);
  add_output_options(*command, line.common);
  add_device_options(*command, line.common);
  add_examples(*command,
               "  vkformer attend models/g2p-en attention --layer 1 --png attention.png\n"
               "  vkformer attend models/g2p-en attention --kind encoder --head 2\n"
               "  vkformer attend models/g2p-en attention --html attention.html\n"
               "  vkformer attend DIR photo.jpg --rollout --overlay seen.png\n");
  command->callback([&line, options] {
    line.run = [&line, options] { return run_attend(line.common, *options); };
  });
}

}  // namespace vkformer::cli
