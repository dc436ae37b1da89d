#include "options.h"

#include <CLI/CLI.hpp>
#include <cstdio>

#include "scene/gpu_data.h"

namespace sample {

namespace {

constexpr int kMostSide = 4096;  // pixels, which every device can draw

// "960x540" into width and height; a sentence on what is wrong, or nothing.
std::string read_size(const std::string& size, int& width, int& height) {
  char rest = 0;
  if (std::sscanf(size.c_str(), "%dx%d%c", &width, &height, &rest) != 2) {
    return "--size [" + size + "] is not WIDTHxHEIGHT, such as 960x540.";
  }
  if (width < 64 || height < 64 || width > kMostSide || height > kMostSide) {
    return "--size [" + size + "] has a side outside of 64 to " + std::to_string(kMostSide) +
           " pixels.";
  }
  return {};
}

void add_options(CLI::App& app, Options& options) {
  app.add_option("MODEL", options.model, "folder of the model, models/g2p-en")->required();
  app.add_option("WORD", options.words, "what the crowd says, word by word");
  app.add_option("--text", options.text, "the same as one text, in sentences");
  app.add_option("--frames", options.frames, "frames to draw; 0: until all has been said")
      ->check(CLI::Range(0, 1000000));
  app.add_option("--size", options.size, "WIDTHxHEIGHT in pixels")->capture_default_str();
  app.add_option("--heads", options.heads, "heads in the crowd")
      ->check(CLI::Range(1, kMostHeads))
      ->capture_default_str();
  app.add_option("--voices", options.voices, "conversations at a time")
      ->check(CLI::Range(1, kMostHeads))
      ->capture_default_str();
  app.add_option("--budget-us", options.budget_us, "microseconds of inference a frame")
      ->check(CLI::Range(1.0, 1e6))
      ->capture_default_str();
  app.add_option("--sessions", options.sessions, "sessions that spell words at a time")
      ->check(CLI::Range(1, kMostHeads))
      ->capture_default_str();
  app.add_option("--watch", options.watch,
                 "folder of a classifier that looks at the picture, such as models/digits");
  app.add_option("--story", options.story,
                 "folder of a model that writes in the background, such as models/shakespeare");
  app.add_option("--report", options.report, "JSON file for the numbers of the run");
  app.add_option("--fps", options.fps, "frames a second of the scene; the graph's limit")
      ->check(CLI::Range(1.0, 1000.0))
      ->capture_default_str();
  app.add_option("--out", options.out, "folder for a PNG file a frame");
  app.add_option("--still", options.still, "PNG file for one frame");
  app.add_option("--still-frame", options.still_frame, "which frame; the last without it");
  app.add_option("--gif", options.gif, "file for an animated GIF of every other frame");
  app.add_option("--gif-width", options.gif_width, "its width in pixels")
      ->check(CLI::Range(16, kMostSide))
      ->capture_default_str();
  app.add_option("--device", options.device, "part of the Vulkan device's name");
  app.add_flag("--window", options.window, "show it, in real time, until the window is closed");
}

}  // namespace

std::optional<Options> read_options(int argc, char** argv, int& exit_code) {
  Options options;
  CLI::App app{"A crowd of talking heads: a Vulkan renderer whose device also runs a Transformer."};
  add_options(app, options);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    exit_code = app.exit(error) == 0 ? 0 : 2;
    return std::nullopt;
  }
  std::string problem = read_size(options.size, options.width, options.height);
  if (!options.words.empty() && !options.text.empty()) {
    problem = "Words and --text were both given; the crowd can say one of them.";
  }
  if (!problem.empty()) {
    std::fprintf(stderr, "embed_renderer: %s\n", problem.c_str());
    exit_code = 2;
    return std::nullopt;
  }
  return options;
}

}  // namespace sample
