#include <limits>

#include "passes.h"

namespace vkf_godot {
namespace {

using gd::Variant;

// One stretch of sound, as long as the model hears at once.
class SpeechJob : public TextJob {
 public:
  SpeechJob(std::vector<float> samples, int rate, std::string language, bool translate,
            TextSettings settings)
      : TextJob("", std::move(settings), false),
        samples_(std::move(samples)),
        rate_(rate),
        language_(std::move(language)),
        translate_(translate) {}

 public:
  vkf_status start(vkf_session* session, vkf_error* error) override {
    if (!hears_language_) return TextJob::start(session, error);
    return vkf_session_start(session, heard_.get(), nullptr, error);
  }

  vkf_status finish(vkf_session* session, vkf_error* error) override {
    more_ = hears_language_;
    return hears_language_ ? take_language(session, error) : TextJob::finish(session, error);
  }
  bool more() const override { return more_; }

 protected:
  std::string make_inputs() override {
    if (model().sounds() == nullptr) {
      return "[" + model().name() +
             "] reads no log-mel features; name a model of the Whisper family.";
    }
    Error error;
    auto info = sized<vkf_log_mel_info>();
    vkf_log_mel_get_info(model().sounds(), &info, error);
    const double most = static_cast<double>(info.chunk_samples) / info.sampling_rate;
    if (static_cast<double>(samples_.size()) > most * rate_) {
      return "[samples] last " + std::to_string(static_cast<double>(samples_.size()) / rate_) +
             " s, but this model hears at most " + std::to_string(most) +
             " s at once; pass stretches of at most that length.";
    }
    if (std::string wrong = make_prompt(); !wrong.empty()) return wrong;
    Sound sound;
    // `sound` has its handle at the end of this statement.
    if (vkf_sound_create(samples_.data(), samples_.size(), rate_, made(sound), error) != VKF_OK) {
      return error.message();
    }
    if (vkf_log_mel_run(model().sounds(), sound.get(), made(inputs_), error) != VKF_OK) {
      return error.message();
    }
    if (!hears_language_) return "";
    if (vkf_log_mel_run(model().sounds(), sound.get(), made(heard_), error) != VKF_OK) {
      return error.message();
    }
    return set_ids(heard_, "decoder_input_ids", {prompt_ids_[0]});
  }

  void change(vkf_generate_options& options) override {
    options.decoder_prompt = {prompt_ids_.data(), prompt_ids_.size()};
  }

 private:
  // Start, language, task, "no timestamps", as vkformer's own transcription has them. The language
  // is to be heard where nobody names one. An error, or "".
  std::string make_prompt() {
    Error error;
    auto defaults = sized<vkf_generate_options>();
    if (vkf_session_generation_defaults(seat->session.get(), &defaults, error) != VKF_OK) {
      return error.message();
    }
    const std::vector<std::pair<std::string, int64_t>> languages = model().languages();
    const bool asks = !language_.empty() || translate_;
    const vkf_ids given = defaults.decoder_prompt;
    prompt_ids_ = {defaults.decoder_start};
    if (!asks && (languages.empty() || given.count > 1)) {
      if (given.count > 0) prompt_ids_.assign(given.ids, given.ids + given.count);
    } else {
      int64_t language = 0, task = 0;
      const char* name = translate_ ? "translate" : "transcribe";
      if (languages.empty() || !model().prompt_token(name, task)) {
        return std::string("[") + model().name() + "] has no token for the task \"" + name +
               "\" or for languages; it is a model of one language. Leave [language] empty and "
               "[translate] off.";
      }
      hears_language_ = language_.empty();
      if (!hears_language_ && !model().prompt_token(language_, language)) {
        std::string known;
        for (const auto& [each, id] : languages) known += (known.empty() ? "" : ", ") + each;
        return "[language] is \"" + language_ + "\", but the model knows " + known + ".";
      }
      prompt_ids_.insert(prompt_ids_.end(), {language, task});
    }
    int64_t plain = 0;
    if (model().prompt_token("notimestamps", plain) && prompt_ids_.back() != plain) {
      prompt_ids_.push_back(plain);
    }
    return "";
  }

  // The likeliest language after the start token.
  vkf_status take_language(vkf_session* session, vkf_error* error) {
    std::vector<float> logits;
    if (const vkf_status status = finish_logits(session, logits, error); status != VKF_OK) {
      return status;
    }
    float best = -std::numeric_limits<float>::infinity();
    for (const auto& [name, id] : model().languages()) {
      const auto at = static_cast<size_t>(id);
      if (at >= logits.size() || !(logits[at] > best)) continue;
      best = logits[at];
      prompt_ids_[1] = id;
    }
    hears_language_ = false;
    return VKF_OK;
  }

  std::vector<float> samples_;
  int rate_;
  std::string language_;
  bool translate_;
  Tensors heard_;                // the same features, to hear the language by
  bool hears_language_ = false;  // in a pass that comes first
  bool more_ = false;
};

}  // namespace

Variant SpeechNode::transcribe(const gd::Arguments& given) {
  const int64_t rate = given[1].as_int();
  if (rate < 1 || rate > 1000000) {
    fail("[sampling_rate] is " + std::to_string(rate) +
         "; give samples per second, from 1 to 1,000,000.");
    return {};
  }
  std::vector<float> samples = given[0].as_floats();
  if (samples.empty()) {
    fail("[samples] is empty; give one channel of sound, -1 to 1.");
    return {};
  }
  submit(std::make_shared<SpeechJob>(std::move(samples), static_cast<int>(rate), language_,
                                     translate_, settings_));
  return {};
}

// 8 or 16 bits, one channel or two.
Variant SpeechNode::transcribe_stream(const gd::Arguments& given) {
  if (given[0].is_null()) {
    fail("[stream] is null; give an AudioStreamWAV.");
    return {};
  }
  const int64_t format = given[0].call("get_format").as_int();
  if (format > 1) {
    fail("[stream] is compressed; import the sound with the compression PCM.");
    return {};
  }
  const std::vector<uint8_t> bytes = given[0].call("get_data").as_bytes();
  const size_t channels = given[0].call("is_stereo").as_bool() ? 2 : 1;
  const size_t width = format == 1 ? 2 : 1;
  const size_t count = bytes.size() / (width * channels);
  std::vector<float> samples(count);
  for (size_t i = 0; i < count; ++i) {
    float sum = 0;
    for (size_t channel = 0; channel < channels; ++channel) {
      const size_t at = (i * channels + channel) * width;
      if (width == 2) {
        const auto both = static_cast<uint16_t>(bytes[at] | bytes[at + 1] << 8);
        sum += static_cast<float>(static_cast<int16_t>(both)) / 32768.0F;
      } else {
        sum += static_cast<float>(static_cast<int8_t>(bytes[at])) / 128.0F;
      }
    }
    samples[i] = sum / static_cast<float>(channels);
  }
  return transcribe({Variant::floats(samples.data(), count), given[0].call("get_mix_rate")});
}

std::unique_ptr<gd::Class> SpeechNode::register_class() {
  using T = SpeechNode;
  auto c =
      std::make_unique<gd::Class>("VkfSpeechToText", "Node", [] { return std::make_unique<T>(); });
  register_node<T>(*c);
  c->property<T>(
      "language", GDEXTENSION_VARIANT_TYPE_STRING, {}, [](T& self) { return self.language_; },
      [](T& self, const Variant& value) { self.language_ = value.as_string(); });
  c->property<T>(
      "translate", GDEXTENSION_VARIANT_TYPE_BOOL, {}, [](T& self) { return self.translate_; },
      [](T& self, const Variant& value) { self.translate_ = value.as_bool(); });
  register_text_settings<T>(*c, [](T& self) -> TextSettings& { return self.settings_; });
  c->method("transcribe", GDEXTENSION_VARIANT_TYPE_NIL,
            {{"samples", GDEXTENSION_VARIANT_TYPE_PACKED_FLOAT32_ARRAY},
             {"sampling_rate", GDEXTENSION_VARIANT_TYPE_INT}},
            &T::transcribe);
  c->method("transcribe_stream", GDEXTENSION_VARIANT_TYPE_NIL,
            {{"stream", GDEXTENSION_VARIANT_TYPE_OBJECT, "AudioStreamWAV"}}, &T::transcribe_stream);
  c->signal("token", {{"text"}});
  c->signal("finished", {{"text"}, {"score", GDEXTENSION_VARIANT_TYPE_FLOAT}});
  return c;
}

}  // namespace vkf_godot
