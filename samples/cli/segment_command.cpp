// `vkformer segment`: a picture with points and boxes in, masks of what they are in out.
#include <charconv>

#include "command_line.h"
#include "files.h"
#include "vkformer/segment.h"

namespace vkformer::cli {

namespace {

struct SegmentCommandOptions {
  std::string model;
  std::string picture;
  std::vector<std::string> points;   // X,Y
  std::vector<std::string> outside;  // X,Y
  std::string box;                   // L,T,R,B; empty: none
  std::string output;                // PNG file with the picture; empty: none
  std::string masks;                 // safetensors file; empty: none
  SegmentOptions segment;
  bool nan_check = false;
  ModelOptions load;
};

// Numbers between commas, as many as `count`.
Result<std::vector<double>> read_numbers(const std::string& flag, const std::string& text,
                                         size_t count) {
  std::vector<double> numbers;
  const char* at = text.data();
  const char* end = at + text.size();
  while (at <= end) {
    double value = 0;
    const auto [next, code] = std::from_chars(at, end, value);
    if (code != std::errc() || (next != end && *next != ',')) break;
    numbers.push_back(value);
    at = next + 1;
  }
  if (at > end && numbers.size() == count) return numbers;
  return Error{ErrorCode::kInvalidArgument, "[" + flag + "] is '" + text + "', but must be " +
                                                std::to_string(count) +
                                                " numbers of pixels with commas in between."};
}

Result<MaskPrompt> mask_prompt_of(const SegmentCommandOptions& options) {
  MaskPrompt prompt;
  const struct {
    const char* flag;
    const std::vector<std::string>& texts;
    PromptPoint::Side side;
  } kinds[] = {{"--point", options.points, PromptPoint::Side::kInside},
               {"--outside", options.outside, PromptPoint::Side::kOutside}};
  for (const auto& [flag, texts, side] : kinds) {
    for (const std::string& text : texts) {
      const Result<std::vector<double>> place = read_numbers(flag, text, 2);
      if (!place) return place.error();
      prompt.points.push_back({(*place)[0], (*place)[1], side});
    }
  }
  if (options.box.empty()) return prompt;
  const Result<std::vector<double>> sides = read_numbers("--box", options.box, 4);
  if (!sides) return sides.error();
  prompt.box = {(*sides)[0], (*sides)[1], (*sides)[2], (*sides)[3]};
  return prompt;
}

Status write_masks(const Picture& picture, const std::vector<PictureMask>& masks,
                   const SegmentCommandOptions& options) {
  if (!options.masks.empty()) {
    Tensor tensor = Tensor::zeros(
        DType::kU8, {static_cast<int64_t>(masks.size()), picture.height(), picture.width()});
    std::vector<float> scores;
    std::byte* to = tensor.bytes.data();
    for (const PictureMask& mask : masks) {
      for (const uint8_t inside : mask.inside) *to++ = std::byte{inside};
      scores.push_back(static_cast<float>(mask.score));
    }
    TensorMap tensors;
    tensors["masks"] = std::move(tensor);
    tensors["scores"] = Tensor::from_floats({static_cast<int64_t>(scores.size())}, scores);
    const Status written = write_tensor_file(options.masks, tensors);
    if (!written) return written;
  }
  if (options.output.empty()) return {};
  return write_bytes(options.output, render_masks_png(picture, masks));
}

void print_masks(const CommonOptions& common, const std::vector<PictureMask>& masks,
                 const SegmentCommandOptions& options) {
  Json line;
  line["picture"] = options.picture;
  line["masks"] = Json::array();
  std::string text = options.picture + ":";
  for (const PictureMask& mask : masks) {
    int64_t pixels = 0;
    for (const uint8_t inside : mask.inside) pixels += inside;
    Json entry;
    entry["score"] = mask.score;
    entry["pixels"] = pixels;
    line["masks"].push_back(std::move(entry));
    text += " " + std::to_string(pixels) + " pixels (score " + std::to_string(mask.score) + ")";
  }
  print_line(common.json ? json_text(line) : text);
}

int run_segment(const CommonOptions& common, const SegmentCommandOptions& options) {
  const Result<MaskPrompt> prompt = mask_prompt_of(options);
  if (!prompt) return report_usage(prompt.error().message);
  if (prompt->points.empty() && !prompt->box) {
    return report_usage("[segment] needs a --point or a --box, in pixels of the picture.");
  }
  Result<Picture> picture = Picture::load(options.picture);
  if (!picture) return report(picture.error());
  const Result<Device> device = open_device(common);
  if (!device) return report_device(device.error());
  Result<Segmenter> segmenter =
      with_progress(common, options.model, options.load, [&](const ModelOptions& watched) {
        TaskOptions task;
        task.model = watched;
        return Segmenter::load(*device, ModelSource::directory(options.model), task);
      });
  if (!segmenter) return report(segmenter.error().with_context("[segment]"));
  const auto segment = [&] { return segmenter->segment(*picture, {&*prompt, 1}, options.segment); };
  const Result<std::vector<std::vector<PictureMask>>> found =
      options.nan_check ? without_nan(*device, segment) : segment();
  if (!found) return report(found.error());
  const Status written = write_masks(*picture, found->front(), options);
  if (!written) return report(written.error());
  print_masks(common, found->front(), options);
  return kExitOk;
}

}  // namespace

void add_segment_command(CLI::App& app, CommandLine& line) {
  CLI::App* command = app.add_subcommand(
      "segment", "Find masks of the objects at points or in a box of a picture.");
  const auto options = std::make_shared<SegmentCommandOptions>();
  add_model_argument(*command, line, options->model);
  add_file_option(*command, "PICTURE", options->picture, "the picture")->required();
  command
      ->add_option("--point", options->points,
                   "X,Y in pixels: inside what is wanted; may be repeated")
      ->allow_extra_args(false);
  command
      ->add_option("--outside", options->outside, "X,Y in pixels: outside of it; may be repeated")
      ->allow_extra_args(false);
  command->add_option("--box", options->box, "LEFT,TOP,RIGHT,BOTTOM in pixels: around it");
  command->add_option("--top", options->segment.top, "masks, the best ones; 0: all")
      ->check(CLI::Range(0, 1 << 20));
  add_file_option(*command, "--output", options->output,
                  "PNG file to write: the picture with the masks laid over it");
  add_file_option(*command, "--masks", options->masks,
                  "safetensors file to write: masks (n, height, width) and scores (n)");
  add_nan_check(*command, options->nan_check);
  add_model_options(*command, options->load);
  add_output_options(*command, line.common);
  add_device_options(*command, line.common);
  add_examples(*command,
               "  vkformer segment DIR street.jpg --point 320,200 --output mask.png\n"
               "  vkformer segment DIR street.jpg --box 10,20,300,400 --outside 50,50 --json\n");
  command->callback([&line, options] {
    line.run = [&line, options] { return run_segment(line.common, *options); };
  });
}

}  // namespace vkformer::cli
