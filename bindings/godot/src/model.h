// VkfModel: a model directory of the project, and what is loaded of it.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gd/classes.h"
#include "handles.h"

namespace vkf_godot {

// What the library needs to know to load one.
struct ModelSettings {
  std::string directory;
  int weights = 0;
  int precision = 0;
  std::vector<std::string> adapters;
  std::vector<float> adapter_scales;
};

// A model and what its files say of texts, images and audio. Loaded by a thread of the host's;
// immutable from then on. What a model has no file for is null.
class LoadedModel {
 public:
  enum class State { kLoading, kReady, kFailed };

  static std::shared_ptr<LoadedModel> load(const ModelSettings& settings, uint64_t owner);
  // At the end, on the render thread: whoever still holds one holds nothing.
  static void release_all();

  State state() const { return state_; }
  const std::string& error() const { return error_; }
  double progress() const { return progress_; }
  const vkf_model* model() const { return model_.get(); }
  const vkf_tokenizer* tokenizer() const { return tokenizer_.get(); }
  const vkf_picture_processor* pictures() const { return pictures_.get(); }
  const vkf_log_mel* sounds() const { return sounds_.get(); }
  const vkf_chat_template* chat() const { return chat_.get(); }
  const vkf_model_info& info() const { return info_; }
  // Of a classifier: each label has its own probability.
  bool many_labels() const { return many_labels_; }
  bool is_decoder() const { return std::string(info_.kind) == "decoder"; }
  const std::string& name() const { return settings_.directory; }
  // Ids of the tokens that a decoder can begin with, by name: "<|en|>".
  std::vector<std::pair<std::string, int64_t>> prompt_tokens() const;
  bool prompt_token(const std::string& name, int64_t& id) const;
  // Languages that a speech model knows, such as "en", with their tokens.
  std::vector<std::pair<std::string, int64_t>> languages() const;

 private:
  std::string load_now();
  std::string load_model();
  std::string load_texts();
  // A folder of the system with the small files of the model, for what reads folders.
  std::string small_files() const;

  ModelSettings settings_;
  std::atomic<State> state_ = State::kLoading;
  std::atomic<double> progress_ = 0;
  std::atomic<bool> unwanted_ = false;
  std::string error_;
  Model model_;
  Tokenizer tokenizer_;
  PictureProcessor pictures_;
  LogMel sounds_;
  ChatTemplate chat_;
  Description description_;
  vkf_model_info info_ = {};
  bool many_labels_ = false;
};

class ModelResource : public gd::Instance {
 public:
  ~ModelResource() override;
  static std::unique_ptr<gd::Class> register_class();
  // Begins to load where that has not begun; null without a directory.
  std::shared_ptr<LoadedModel> loaded();

 private:
  gd::Variant load(const gd::Arguments&);
  gd::Variant unload(const gd::Arguments&);
  gd::Variant is_ready(const gd::Arguments&);
  gd::Variant get_progress(const gd::Arguments&);
  gd::Variant get_error(const gd::Arguments&);
  gd::Variant get_labels(const gd::Arguments&);
  gd::Variant get_description(const gd::Arguments&);

  ModelSettings settings_;
  std::shared_ptr<LoadedModel> loaded_;
};

}  // namespace vkf_godot
