// Examples of audio, and of models that hear and speak.
#include <vkformer/audio.h>
#include <vkformer/speak.h>
#include <vkformer/transcribe.h>

#include <cstdio>

#include "examples.h"

using vkformer::ModelSource;

namespace {

vkformer::Status show_files(const Setting& setting) {
  const std::string path = setting.scratch + "/silence.wav";
  //! [resample_sound save_wav load_wav]
  // Writes a second of silence at 16,000 hertz, and reads it again.
  const vkformer::Sound silence = {std::vector<float>(48000), 48000};
  const auto resampled = vkformer::resample_sound(silence, 16000);
  if (!resampled) return resampled.error();
  const auto saved = vkformer::save_wav(path, *resampled);
  if (!saved) return saved.error();
  const auto loaded = vkformer::load_wav(path);
  if (!loaded) return loaded.error();
  std::printf("%zu samples at %d hertz\n", loaded->samples.size(), loaded->sampling_rate);
  //! [end]

  //! [encode_wav decode_wav_bytes]
  // The same in memory; the sound is read at 8,000 hertz.
  const auto bytes = vkformer::encode_wav(*resampled);
  if (!bytes) return bytes.error();
  const auto decoded = vkformer::decode_wav_bytes(*bytes, "archive/silence.wav", 8000);
  if (!decoded) return decoded.error();
  //! [end]
  return expect(loaded->samples.size() == 16000 && decoded->samples.size() == 8000,
                "a second of each");
}

vkformer::Status show_features(const std::string& directory, const vkformer::Sound& sound) {
  //! [LogMelExtractor::load LogMelExtractor::extract LogMelExtractor::sampling_rate]
  //! [LogMelExtractor::chunk_samples LogMelExtractor::mel_bands LogMelExtractor::frames]
  // Makes the input of a speech model: "input_features" (1, mel bands, frames).
  const auto extractor = vkformer::LogMelExtractor::load(directory);
  if (!extractor) return extractor.error();
  const auto features = extractor->extract(sound);
  if (!features) return features.error();
  std::printf("%.1f s of sound, %lld bands, %lld frames\n",
              static_cast<double>(extractor->chunk_samples()) / extractor->sampling_rate(),
              static_cast<long long>(extractor->mel_bands()),
              static_cast<long long>(extractor->frames()));
  //! [end]
  return expect(features->shape.back() == extractor->frames(), "all frames");
}

vkformer::Status show_speech(const Setting& setting, const std::vector<vkformer::Sound>& sounds) {
  const vkformer::Device& device = setting.device;
  const auto source = ModelSource::directory(setting.tasks + "/ctc");
  //! [Transcriber::load Transcriber::transcribe Transcriber::transcribe_words]
  // Writes down what is said, alone and with the times of words.
  auto transcriber = vkformer::Transcriber::load(device, source);
  if (!transcriber) return transcriber.error();
  const auto texts = transcriber->transcribe(sounds);
  if (!texts) return texts.error();
  std::puts(texts->front().c_str());
  const auto transcripts = transcriber->transcribe_words(sounds);
  if (!transcripts) return transcripts.error();
  for (const vkformer::SpokenWord& word : transcripts->front().words) {
    std::printf("%.2f s: %s\n", word.begin, word.text.c_str());
  }
  //! [end]

  const auto voice = ModelSource::directory(setting.tasks + "/speak");
  //! [Speaker::load Speaker::speak]
  // Speaks a text. The same seed gives the same speech.
  auto speaker = vkformer::Speaker::load(device, voice);
  if (!speaker) return speaker.error();
  vkformer::SpeakOptions options;
  options.seed = 7;
  const auto spoken = speaker->speak(std::vector<std::string>{"Hello, kind world!"}, options);
  if (!spoken) return spoken.error();
  std::printf("%zu samples\n", spoken->front().samples.size());
  //! [end]
  return expect(texts->front() == transcripts->front().text, "the same text twice");
}

}  // namespace

vkformer::Status show_sounds(const Setting& setting) {
  const auto files = show_files(setting);
  if (!files) return files;
  const auto sound = vkformer::load_wav(setting.tasks + "/sound-0.wav");
  if (!sound) return sound.error();
  const auto features = show_features(setting.tasks + "/speech", *sound);
  if (!features) return features;
  return show_speech(setting, {*sound});
}
