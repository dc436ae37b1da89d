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
    auto defaults = sized<vkf_generate_options>();
    if (const vkf_status status = vkf_session_generation_defaults(session, &defaults, error);
        status != VKF_OK) {
      return status;
    }
    // What the model says of itself, such as forced_decoder_ids, names a language already.
    hears_language_ = defaults.decoder_prompt.count < 2;
    if (!hears_language_) return TextJob::start(session, error);
    const int64_t first = defaults.decoder_start;
    const int64_t shape[] = {1, 1};
    auto tensor = sized<vkf_tensor>();
    tensor.dtype = VKF_I64;
    tensor.shape = shape;
    tensor.rank = 2;
    tensor.data = &first;
    tensor.bytes = sizeof first;
    if (const vkf_status status =
            vkf_tensors_set(heard_.get(), "decoder_input_ids", &tensor, error);
        status != VKF_OK) {
      return status;
    }
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
    if (std::string wrong = find_tokens(); !wrong.empty()) return wrong;
    Sound sound;
    // `sound` has its handle at the end of this statement.
    if (vkf_sound_create(samples_.data(), samples_.size(), rate_, made(sound), error) != VKF_OK) {
      return error.message();
    }
    if (vkf_log_mel_run(model().sounds(), sound.get(), made(inputs_), error) != VKF_OK) {
      return error.message();
    }
    if (hears_language_ &&
        vkf_log_mel_run(model().sounds(), sound.get(), made(heard_), error) != VKF_OK) {
      return error.message();
    }
    return "";
  }

  // Start, language, task, "no timestamps", as vkformer's own transcription has them.
  void change(vkf_generate_options& options) override {
    const vkf_ids given = options.decoder_prompt;
    if (asks_ || (multilingual_ && given.count < 2)) {
      prompt_ids_ = {options.decoder_start, language_id_, task_id_};
    } else if (given.count > 0) {
      prompt_ids_.assign(given.ids, given.ids + given.count);
    } else {
      prompt_ids_ = {options.decoder_start};
    }
    int64_t plain = 0;
    if (model().prompt_token("notimestamps", plain) && prompt_ids_.back() != plain) {
      prompt_ids_.push_back(plain);
    }
    options.decoder_prompt = {prompt_ids_.data(), prompt_ids_.size()};
  }

 private:
  // The tokens of the language and the task; an error, or "".
  std::string find_tokens() {
    const std::vector<std::pair<std::string, int64_t>> languages = model().languages();
    multilingual_ = !languages.empty();
    asks_ = !language_.empty() || translate_;
    const char* task = translate_ ? "translate" : "transcribe";
    if ((asks_ || multilingual_) && !model().prompt_token(task, task_id_)) {
      return std::string("[") + model().name() + "] has no token for the task \"" + task +
             "\"; it is a model of one language. Leave [language] empty and [translate] off.";
    }
    if (language_.empty()) {
      hears_language_ = multilingual_;
    } else if (!model().prompt_token(language_, language_id_)) {
      std::string known;
      for (const auto& [name, id] : languages) known += (known.empty() ? "" : ", ") + name;
      return "[language] is \"" + language_ + "\", but the model knows " +
             (known.empty() ? "one language only; leave it empty." : known + ".");
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
      language_id_ = id;
    }
    hears_language_ = false;
    return VKF_OK;
  }

 private:
  std::vector<float> samples_;
  int rate_;
  std::string language_;
  bool translate_;
  Tensors heard_;  // the same features, to hear the language by
  bool multilingual_ = false;
  bool asks_ = false;            // for a language or a task
  bool hears_language_ = false;  // in a pass that comes first
  bool more_ = false;
  int64_t language_id_ = 0, task_id_ = 0;
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
