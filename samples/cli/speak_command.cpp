// `vkformer speak`: a text in, a WAV file out.
#include <memory>

#include "command_line.h"
#include "vkformer/speak.h"

namespace vkformer::cli {

namespace {

struct SpeakCommandOptions {
  std::string model;
  std::string text;
  std::string output;
  ModelOptions load;
  SpeakOptions speak;
};

int run_speak(const CommonOptions& common, const SpeakCommandOptions& options) {
  const Result<Device> device = open_device(common);
  if (!device) return report_device(device.error());
  TaskOptions task;
  Result<Speaker> speaker =
      with_progress(common, options.model, options.load, [&](const ModelOptions& watched) {
        task.model = watched;
        return Speaker::load(*device, ModelSource::directory(options.model), task);
      });
  if (!speaker) return report(speaker.error());
  const Result<std::vector<Sound>> sounds = speaker->speak({&options.text, 1}, options.speak);
  if (!sounds) return report(sounds.error());
  const Sound& sound = sounds->front();
  const Status saved = save_wav(options.output, sound);
  if (!saved) return report(saved.error());
  const double seconds =
      static_cast<double>(sound.samples.size()) / static_cast<double>(sound.sampling_rate);
  if (common.json) {
    Json json;
    json["text"] = options.text;
    json["output"] = options.output;
    json["seconds"] = seconds;
    json["samples"] = sound.samples.size();
    json["sampling_rate"] = sound.sampling_rate;
    print_json(json);
  } else if (!common.quiet) {
    print_message(options.output + ": " + fixed(seconds, 2) + " seconds at " +
                  std::to_string(sound.sampling_rate) + " Hz, seed " +
                  std::to_string(options.speak.seed));
  }
  return kExitOk;
}

}  // namespace

void add_speak_command(CLI::App& app, CommandLine& line) {
  CLI::App* command = app.add_subcommand("speak", "Speak a text into a WAV file.");
  const auto options = std::make_shared<SpeakCommandOptions>();
  add_model_argument(*command, line, options->model);
  command->add_option("TEXT", options->text, "what to say")->required();
  add_file_option(*command, "--output", options->output, "WAV file to write, 16 bits, one channel")
      ->required();
  command->add_option("--rate", options->speak.speaking_rate,
                      "how fast: 2 speaks in half of the time");
  command->add_option("--noise", options->speak.noise, "randomness of the voice; 0: none");
  command->add_option("--duration-noise", options->speak.duration_noise,
                      "randomness of the length of each sound; 0: none");
  command->add_option("--speaker", options->speak.speaker,
                      "voice of a model with several, counted from 0");
  command->add_option("--seed", options->speak.seed, "the same seed gives the same speech");
  command->add_flag("--phonemes", options->speak.phonemes,
                    "TEXT is phonemes, for models that read these");
  add_model_options(*command, options->load);
  add_output_options(*command, line.common);
  add_device_options(*command, line.common);
  add_examples(*command,
               "  vkformer speak DIR 'attention is all you need' --output speech.wav\n"
               "  vkformer speak DIR 'the same again' --output again.wav --seed 7 --rate 0.9\n");
  command->callback([&line, options] {
    line.run = [&line, options] { return run_speak(line.common, *options); };
  });
}

}  // namespace vkformer::cli
