// The command line.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace sample {

struct Options {
  std::string model;
  std::vector<std::string> words;  // a text without quotation marks
  std::string text;
  int frames = 0;  // 0: until all has been said
  std::string size = "640x360";
  int width = 0, height = 0;  // of `size`
  int heads = 9;
  int voices = 3;
  double budget_us = 2000.0;
  int sessions = 1;    // that spell words at a time
  std::string watch;   // folder of a classifier that looks at the picture
  std::string story;   // folder of a model that writes in the background
  std::string report;  // file for numbers
  double fps = 30.0;
  std::string out;    // folder for PNG files
  std::string still;  // file of one frame
  int still_frame = -1;
  std::string gif;
  int gif_width = 480;
  std::string device;
  bool window = false;
};

// Reads the command line; absent where --help or an error was printed, and `exit_code` says which.
std::optional<Options> read_options(int argc, char** argv, int& exit_code);

}  // namespace sample
