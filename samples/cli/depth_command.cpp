// `vkformer depth`: a picture in, how far or near its pixels are out, as a picture or as numbers.
#include <algorithm>

#include "command_line.h"
#include "files.h"
#include "vkformer/depth.h"

namespace vkformer::cli {

namespace {

struct DepthCommandOptions {
  std::string model;
  std::string picture;
  std::string output;  // PNG file; empty: none
  std::string values;  // safetensors file; empty: none
  bool nan_check = false;
  ModelOptions load;
};

Status write_depths(const DepthMap& map, const DepthCommandOptions& options) {
  if (!options.values.empty()) {
    TensorMap tensors;
    tensors["depth"] = Tensor::from_floats({map.height, map.width}, map.values);
    const Status written = write_tensor_file(options.values, tensors);
    if (!written) return written;
  }
  return options.output.empty() ? Status{} : write_bytes(options.output, render_depth_png(map));
}

void print_depths(const CommonOptions& common, const DepthMap& map,
                  const DepthCommandOptions& options) {
  const auto [least, most] = std::minmax_element(map.values.begin(), map.values.end());
  const char* scale = map.scale == DepthMap::Scale::kMetric ? "metric" : "relative";
  if (common.json) {
    Json line;
    line["picture"] = options.picture;
    line["width"] = map.width;
    line["height"] = map.height;
    line["scale"] = scale;
    line["least"] = *least;
    line["most"] = *most;
    print_line(json_text(line));
    return;
  }
  print_line(options.picture + ": " + std::to_string(map.width) + " x " +
             std::to_string(map.height) + " pixels, " + scale + " depths from " +
             std::to_string(*least) + " to " + std::to_string(*most));
}

int run_depth(const CommonOptions& common, const DepthCommandOptions& options) {
  if (options.output.empty() && options.values.empty()) {
    return report_usage("[depth] writes files; name one with --output or --values.");
  }
  Result<Picture> picture = Picture::load(options.picture);
  if (!picture) return report(picture.error());
  const Result<Device> device = open_device(common);
  if (!device) return report_device(device.error());
  Result<DepthEstimator> estimator =
      with_progress(common, options.model, options.load, [&](const ModelOptions& watched) {
        TaskOptions task;
        task.model = watched;
        return DepthEstimator::load(*device, ModelSource::directory(options.model), task);
      });
  if (!estimator) return report(estimator.error().with_context("[depth]"));
  const auto estimate = [&] { return estimator->estimate({&*picture, 1}); };
  const Result<std::vector<DepthMap>> maps =
      options.nan_check ? without_nan(*device, estimate) : estimate();
  if (!maps) return report(maps.error());
  const Status written = write_depths(maps->front(), options);
  if (!written) return report(written.error());
  print_depths(common, maps->front(), options);
  return kExitOk;
}

}  // namespace

void add_depth_command(CLI::App& app, CommandLine& line) {
  CLI::App* command = app.add_subcommand(
      "depth", "Estimate how far or near each pixel of a picture is, as a picture or as numbers.");
  const auto options = std::make_shared<DepthCommandOptions>();
  add_model_argument(*command, line, options->model);
  add_file_option(*command, "PICTURE", options->picture, "the picture")->required();
  add_file_option(*command, "--output", options->output,
                  "PNG file to write: gray, the smallest value black, the largest white");
  add_file_option(*command, "--values", options->values,
                  "safetensors file to write: depth (height, width)");
  add_nan_check(*command, options->nan_check);
  add_model_options(*command, options->load);
  add_output_options(*command, line.common);
  add_device_options(*command, line.common);
  add_examples(*command,
               "  vkformer depth DIR street.jpg --output depth.png\n"
               "  vkformer depth DIR street.jpg --values depth.safetensors --json\n");
  command->callback([&line, options] {
    line.run = [&line, options] { return run_depth(line.common, *options); };
  });
}

}  // namespace vkformer::cli
