// A text that a model writes, token by token, within frames.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "gd/classes.h"
#include "host.h"
#include "model.h"

namespace vkf_godot {

// As the inspector shows them. What is 0, or -1 where 0 means something, is the model's own.
struct TextSettings {
  int max_new_tokens = 0;
  int min_new_tokens = 0;
  int beams = 0;
  int sampling = 0;  // 0: the model's own, 1: the best token, 2: sampled
  double temperature = -1;
  int top_k = -1;
  double top_p = -1;
  double min_p = -1;
  double repetition_penalty = -1;
  int64_t seed = 0;
  std::vector<std::string> stop;
  std::string grammar;
  std::string schema;
};

// Adds the settings of a text to the class of a node.
template <class T>
void register_text_settings(gd::Class& c, TextSettings& (*of)(T&));

class TextJob : public Job {
 public:
  TextJob(std::string prompt, TextSettings settings, bool has_special_tokens);
  std::string prepare() override;
  vkf_status start(vkf_session* session, vkf_error* error) override;
  vkf_status finish(vkf_session* session, vkf_error* error) override;

 protected:
  // Tensors of the prompt, and the tokens that precede the model's own text.
  virtual std::string make_inputs();
  virtual void change(vkf_generate_options&) {}
  // The text of one generation.
  virtual void done(const std::string& text, double score);
  static std::string set_ids(Tensors& inputs, const char* name, const std::vector<int64_t>& ids);

  const LoadedModel& model() const { return *seat->model; }

  Tensors inputs_;
  std::string prompt_;
  std::vector<int64_t> prompt_ids_;

 private:
  std::string make_grammar();
  std::string begin_stream();
  static vkf_verdict on_token(void* self, size_t input, size_t sequence, int64_t id, double);
  vkf_verdict take(int64_t id);
  // What is left of it once the prompt's own text is taken away.
  std::string behind_prompt(const char* text);
  void say(const std::string& piece);
  vkf_status end_stream(vkf_error* error);
  vkf_status cut(const std::string& text, vkf_error* error);
  std::string text_of(const vkf_sequence& sequence) const;

  TextSettings settings_;
  bool has_special_tokens_;
  Grammar grammar_;
  Constraint constraint_;
  DecodeStream stream_;
  StopStrings stops_;
  size_t skip_ = 0;
  size_t start_tokens_ = 0;  // before what was generated
  bool streams_ = false;
  bool stopped_ = false;
  std::string text_;
};

// A text as token ids; an error, or "".
std::string encode(const LoadedModel& model, const std::string& text, uint32_t flags,
                   std::vector<int64_t>& ids);

}  // namespace vkf_godot

#include "text_settings.h"
