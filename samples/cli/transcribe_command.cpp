// `vkformer transcribe` and `vkformer caption`: audio or images in, texts out.
#include "readable.h"
#include "task_command.h"
#include "vkformer/transcribe.h"

namespace vkformer::cli {

namespace {

struct TranscribeCommandOptions {
  TaskCommandOptions task;
  TranscribeOptions transcribe;
  bool words = false;
};

struct CaptionCommandOptions {
  TaskCommandOptions task;
  TextOptions text;
};

Result<std::vector<Json>> texts_json(const Result<std::vector<std::string>>& texts) {
  if (!texts) return texts.error();
  std::vector<Json> answers(texts->size());
  for (size_t i = 0; i < answers.size(); ++i) answers[i]["text"] = (*texts)[i];
  return answers;
}

Result<std::vector<Json>> words_json(const Result<std::vector<Transcript>>& transcripts) {
  if (!transcripts) return transcripts.error();
  std::vector<Json> answers;
  for (const Transcript& transcript : *transcripts) {
    Json& answer = answers.emplace_back();
    answer["text"] = transcript.text;
    answer["words"] = Json::array();
    for (const SpokenWord& word : transcript.words) {
      answer["words"].push_back({{"word", word.text}, {"begin", word.begin}, {"end", word.end}});
    }
  }
  return answers;
}

Result<std::vector<Json>> transcribe(Transcriber& transcriber, const std::vector<Json>& inputs,
                                     const TranscribeCommandOptions& options) {
  std::vector<Sound> sounds;
  for (const Json& input : inputs) {
    const Result<std::string> path = text_field(input, "sound");
    if (!path) return path.error();
    Result<Sound> sound = load_wav(*path);
    if (!sound) return sound.error();
    sounds.push_back(std::move(*sound));
  }
  if (options.words) return words_json(transcriber.transcribe_words(sounds, options.transcribe));
  return texts_json(transcriber.transcribe(sounds, options.transcribe));
}

int run_transcribe(const CommonOptions& common, const TranscribeCommandOptions& options) {
  return run_task_command(
      common, options.task,
      {.command = "transcribe",
       .plain_key = "sound",
       .readable = options.words ? readable_words : readable_text},
      [&](const Device& device, const ModelSource& source,
          const TaskOptions& task) -> Result<AnswerInputs> {
        Result<Transcriber> loaded = Transcriber::load(device, source, task);
        if (!loaded) return loaded.error();
        const auto transcriber = std::make_shared<Transcriber>(std::move(*loaded));
        return AnswerInputs([transcriber, &options](const std::vector<Json>& inputs) {
          return transcribe(*transcriber, inputs, options);
        });
      });
}

int run_caption(const CommonOptions& common, const CaptionCommandOptions& options) {
  return run_task_command(
      common, options.task,
      {.command = "caption", .plain_key = "picture", .readable = readable_text},
      [&](const Device& device, const ModelSource& source,
          const TaskOptions& task) -> Result<AnswerInputs> {
        Result<Captioner> loaded = Captioner::load(device, source, task);
        if (!loaded) return loaded.error();
        const auto captioner = std::make_shared<Captioner>(std::move(*loaded));
        return AnswerInputs(
            [captioner, &options](const std::vector<Json>& inputs) -> Result<std::vector<Json>> {
              const Result<std::vector<Picture>> pictures = picture_fields(inputs);
              if (!pictures) return pictures.error();
              return texts_json(captioner->caption(*pictures, options.text));
            });
      });
}

}  // namespace

void add_transcribe_command(CLI::App& app, CommandLine& line) {
  CLI::App* command = app.add_subcommand(
      "transcribe", "Write down what is said in WAV files: one JSON object a line, in order.");
  const auto options = std::make_shared<TranscribeCommandOptions>();
  options->task.batch = 8;
  add_task_options(*command, options->task, line, "SOUND");
  command->add_option("--language", options->transcribe.language,
                      "the language spoken, such as en; otherwise the model finds out");
  add_choice<SpeechTask>(*command, "--task", options->transcribe.task, "what to do");
  add_short_search_options(*command, options->transcribe.beams, options->transcribe.max_new_tokens);
  command->add_flag("--words", options->words, "also give each word with its times in seconds");
  add_examples(*command,
               "  vkformer transcribe DIR talk.wav --language en\n"
               "  vkformer transcribe DIR talk.wav --words\n"
               "  vkformer transcribe DIR --input sounds.jsonl --output texts.jsonl --resume\n");
  command->callback([&line, options] {
    line.run = [&line, options] { return run_transcribe(line.common, *options); };
  });
}

void add_caption_command(CLI::App& app, CommandLine& line) {
  CLI::App* command =
      app.add_subcommand("caption", "Describe pictures: one JSON object a line, in order.");
  const auto options = std::make_shared<CaptionCommandOptions>();
  options->task.batch = 8;
  add_task_options(*command, options->task, line, "PICTURE");
  add_search_options(*command, options->text);
  command->add_option("--prefix", options->text.prefix, "what every description begins with");
  add_examples(*command,
               "  vkformer caption DIR holiday.jpg --beams 4\n"
               "  vkformer caption DIR holiday.jpg --prefix 'a photo of'\n");
  command->callback([&line, options] {
    line.run = [&line, options] { return run_caption(line.common, *options); };
  });
}

}  // namespace vkformer::cli
