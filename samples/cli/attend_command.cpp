// `vkformer attend`: generates greedily, then shows what attended to what.
#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <memory>
#include <optional>
#include <span>

#include "command_line.h"
#include "text_inputs.h"
#include "vkformer/heat_map.h"
#include "vkformer/session.h"

namespace vkformer::cli {

namespace {

struct AttendOptions {
  std::string model;
  std::string text;
  std::string kind = "cross";
  std::string head = "all";
  std::string png;
  std::string range = "one";
  std::optional<int64_t> layer;
  ModelOptions load;
};

// The text on both sides, as labels, and the tensor with the weights.
struct Attended {
  std::vector<std::string> source;  // S
  std::vector<std::string> fed;     // T: what the decoder was given
  std::vector<std::string> output;  // T: what each of these positions produced
  std::string output_text;
  int64_t layer = 0;
  Tensor weights;  // (1, H, T, S)
};

struct Matrix {
  std::vector<float> values;
  int64_t rows = 0;
  int64_t columns = 0;
};

std::string token_label(const Tokenizer& tokenizer, int64_t id) {
  const auto token = tokenizer.id_to_token(static_cast<int32_t>(id));
  return token ? *token : "#" + std::to_string(id);
}

std::string tensor_name(const std::string& kind, int64_t layer) {
  return kind + "_attentions." + std::to_string(layer);
}

Result<int64_t> checked_layer(const ModelInfo& info, const AttendOptions& options) {
  const int64_t layers = options.kind == "encoder" ? info.encoder_layers : info.decoder_layers;
  const int64_t layer = options.layer.value_or(layers - 1);
  if (layer >= 0 && layer < layers) return layer;
  return Error{ErrorCode::kInvalidArgument,
               "[--layer] is " + std::to_string(layer) + ", but the " +
                   (options.kind == "encoder" ? "encoder" : "decoder") + " of [" + options.model +
                   "] has layers 0 to " + std::to_string(layers - 1) + "."};
}

// Greedy output first; then one pass over all of it at once, with the weights handed out.
Result<Attended> attend(const Tokenizer& tokenizer, const Model& model, Session& session,
                        const AttendOptions& options) {
  const Result<int64_t> layer = checked_layer(model.info(), options);
  if (!layer) return layer.error();
  const Result<Encoding> encoding =
      encode_input(tokenizer, {options.text, "TEXT"}, model.info().max_source, LongInput::kError);
  if (!encoding) return encoding.error();
  GenerateOptions settings = session.generation_defaults();
  settings.beams = 1;
  settings.return_sequences = 1;
  const std::vector<int64_t> source = wide_ids(encoding->ids);
  const Result<Generation> generation = session.generate({source}, settings);
  if (!generation) return generation.error();
  const std::vector<int64_t>& ids = generation->front().front().ids;
  Attended attended;
  attended.layer = *layer;
  const Result<std::string> text = decode_text(tokenizer, ids);
  if (!text) return text.error();
  attended.output_text = *text;
  attended.source = encoding->tokens;
  for (size_t t = 0; t + 1 < ids.size(); ++t) {
    attended.fed.push_back(token_label(tokenizer, ids[t]));
    attended.output.push_back(token_label(tokenizer, ids[t + 1]));
  }
  const std::span<const int64_t> fed(ids.data(), attended.fed.size());
  TensorMap inputs;
  inputs["input_ids"] = Tensor::from_ints({1, static_cast<int64_t>(source.size())}, source);
  inputs["decoder_input_ids"] = Tensor::from_ints({1, static_cast<int64_t>(fed.size())}, fed);
  Result<TensorMap> outputs = session.run(inputs, {.attentions = RunOptions::Attentions::kOn});
  if (!outputs) return outputs.error();
  const std::string name = tensor_name(options.kind, *layer);
  const auto found = outputs->find(name);
  if (found == outputs->end()) {
    return Error{ErrorCode::kUnsupported, "[" + options.model + "] gives no [" + name +
                                              "]; attend needs an encoder-decoder model."};
  }
  attended.weights = std::move(found->second);
  return attended;
}

// One head of the weights, or the mean over all.
Result<Matrix> pick_head(const Tensor& weights, const std::string& head) {
  const Result<std::vector<float>> values = weights.to_floats();
  if (!values) return values.error();
  if (weights.shape.size() != 4) {
    return Error{ErrorCode::kInternal,
                 "[attentions] have shape " + shape_text(weights.shape) + ", not (1, H, T, S)."};
  }
  const int64_t heads = weights.shape[1];
  Matrix matrix{{}, weights.shape[2], weights.shape[3]};
  const auto size = static_cast<size_t>(matrix.rows * matrix.columns);
  int64_t first = 0, last = heads - 1;
  if (head != "all") {
    const auto [end, code] = std::from_chars(head.data(), head.data() + head.size(), first);
    if (code != std::errc() || end != head.data() + head.size() || first < 0 || first >= heads) {
      return Error{ErrorCode::kInvalidArgument,
                   "[--head] is " + head + ", but the layer has heads 0 to " +
                       std::to_string(heads - 1) + "; or give all for their mean."};
    }
    last = first;
  }
  std::vector<double> sums(size, 0.0);
  for (int64_t h = first; h <= last; ++h) {
    const float* from = values->data() + static_cast<size_t>(h) * size;
    for (size_t i = 0; i < size; ++i) sums[i] += from[i];
  }
  for (const double sum : sums) {
    matrix.values.push_back(static_cast<float>(sum / static_cast<double>(last - first + 1)));
  }
  return matrix;
}

const std::vector<std::string>& row_labels(const Attended& attended, const std::string& kind) {
  return kind == "encoder" ? attended.source : attended.output;
}

const std::vector<std::string>& column_labels(const Attended& attended, const std::string& kind) {
  return kind == "decoder" ? attended.fed : attended.source;
}

// Terminal columns a label takes, near enough: its code points.
size_t label_width(const std::string& label) {
  return static_cast<size_t>(std::count_if(label.begin(), label.end(), [](char byte) {
    return (static_cast<unsigned char>(byte) & 0xC0) != 0x80;
  }));
}

void print_drawing(const Matrix& matrix, const std::vector<std::string>& rows,
                   const std::vector<std::string>& columns) {
  constexpr std::array<char, 10> shades = {' ', '.', ':', '-', '=', '+', '*', '#', '%', '@'};
  size_t left = 0, cell = 2;
  for (const std::string& label : rows) left = std::max(left, label_width(label));
  for (const std::string& label : columns) cell = std::max(cell, label_width(label) + 1);
  cell = std::min<size_t>(cell, 8);
  std::string header(left + 1, ' ');
  for (const std::string& label : columns) {
    header += label;
    header.append(cell > label_width(label) ? cell - label_width(label) : 1, ' ');
  }
  while (header.back() == ' ') header.pop_back();
  print_line(header);
  for (int64_t r = 0; r < matrix.rows; ++r) {
    std::string line = rows[static_cast<size_t>(r)];
    line.append(left + 1 - label_width(line), ' ');
    for (int64_t c = 0; c < matrix.columns; ++c) {
      const float value = matrix.values[static_cast<size_t>(r * matrix.columns + c)];
      const bool finite = std::isfinite(value);
      const auto shade =
          finite ? static_cast<size_t>(std::clamp(value, 0.0F, 1.0F) * 9.0F + 0.5F) : 0;
      line += std::string(cell - 1, finite ? shades[shade] : '?') + ' ';
    }
    while (line.back() == ' ') line.pop_back();
    print_line(line);
  }
}

void print_matrix_json(const Attended& attended, const AttendOptions& options,
                       const Matrix& matrix) {
  Json json;
  json["input"] = options.text;
  json["text"] = attended.output_text;
  json["kind"] = options.kind;
  json["layer"] = attended.layer;
  if (options.head == "all") {
    json["head"] = "all";
  } else {
    json["head"] = std::atoi(options.head.c_str());
  }
  json["rows"] = row_labels(attended, options.kind);
  json["columns"] = column_labels(attended, options.kind);
  json["matrix"] = Json::array();
  for (int64_t r = 0; r < matrix.rows; ++r) {
    const auto begin = matrix.values.begin() + r * matrix.columns;
    json["matrix"].push_back(std::vector<float>(begin, begin + matrix.columns));
  }
  print_json(json);
}

Status write_picture(const Attended& attended, const AttendOptions& options, Matrix matrix) {
  HeatMap map;
  map.values = std::move(matrix.values);
  map.rows = static_cast<int>(matrix.rows);
  map.columns = static_cast<int>(matrix.columns);
  map.row_labels = row_labels(attended, options.kind);
  map.column_labels = column_labels(attended, options.kind);
  map.title = options.kind + " attention, layer " + std::to_string(attended.layer) +
              (options.head == "all" ? ", mean over heads" : ", head " + options.head);
  HeatMapOptions drawing;
  drawing.range = options.range == "max" ? HeatMapRange::kZeroToMax : HeatMapRange::kZeroToOne;
  if (options.kind == "encoder") drawing.row_axis = "source";
  if (options.kind == "decoder") drawing.column_axis = "read so far";
  return write_heat_map_png(options.png, map, drawing);
}

int run_attend(const CommonOptions& common, const AttendOptions& options) {
  const Result<Tokenizer> tokenizer = Tokenizer::load(options.model);
  if (!tokenizer) return report(tokenizer.error());
  const Result<Device> device = open_device(common);
  if (!device) return report_device(device.error());
  const Result<Model> model = load_model(common, *device, options.model, options.load);
  if (!model) return report(model.error());
  Result<Session> session = Session::create(*model);
  if (!session) return report(session.error());
  const Result<Attended> attended = [&] {
    const Progress progress("attending", common.progress());
    return attend(*tokenizer, *model, *session, options);
  }();
  if (!attended) return report(attended.error());
  const Result<Matrix> matrix = pick_head(attended->weights, options.head);
  if (!matrix) return report(matrix.error());
  if (common.json) print_matrix_json(*attended, options, *matrix);
  if (!common.json && options.png.empty()) {
    print_drawing(*matrix, row_labels(*attended, options.kind),
                  column_labels(*attended, options.kind));
  }
  if (options.png.empty()) return kExitOk;
  const Status written = write_picture(*attended, options, *matrix);
  if (!written) return report(written.error());
  if (!common.quiet) print_message("wrote " + options.png + ".");
  return kExitOk;
}

}  // namespace

void add_attend_command(CLI::App& app, CommandLine& line) {
  CLI::App* command =
      app.add_subcommand("attend", "Generate greedily from a text and draw what attended to what.");
  const auto options = std::make_shared<AttendOptions>();
  command->add_option("MODEL", options->model, "model directory")->required();
  command->add_option("TEXT", options->text, "the input")->required();
  command->add_option("--layer", options->layer,
                      "layer, counted from 0: 1 is the second one; the last if not given");
  command->add_option("--head", options->head, "head, counted from 0, or all: the mean over heads");
  command
      ->add_option("--kind", options->kind,
                   "cross: output on source; encoder: source on source; decoder: output on the "
                   "decoder's input")
      ->check(CLI::IsMember({"cross", "encoder", "decoder"}));
  command->add_option("--png", options->png, "write a picture instead of drawing in text");
  command
      ->add_option("--range", options->range,
                   "darkest colour of the picture: one, or max: the largest weight")
      ->check(CLI::IsMember({"one", "max"}));
  add_model_options(*command, options->load);
  add_output_options(*command, line.common);
  add_device_options(*command, line.common);
  add_examples(*command,
               "  vkformer attend models/g2p-en attention --layer 1 --png attention.png\n"
               "  vkformer attend models/g2p-en attention --kind encoder --head 2\n"
               "  vkformer attend models/g2p-en attention --json\n");
  command->callback([&line, options] {
    line.run = [&line, options] { return run_attend(line.common, *options); };
  });
}

}  // namespace vkformer::cli
