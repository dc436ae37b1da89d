// VkfEmbedding, VkfClassifier, VkfSpeechToText: texts, images and audio in one pass or several.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "node.h"
#include "text_job.h"

namespace vkf_godot {

// Takes the logits of a pass over one input with one row of them.
vkf_status finish_logits(vkf_session* session, std::vector<float>& logits, vkf_error* error);

class EmbeddingNode : public ModelNode {
 public:
  static std::unique_ptr<gd::Class> register_class();

 private:
  friend class ModelNode;
  gd::Variant embed(const gd::Arguments& given);
  gd::Variant remember(const gd::Arguments& given);
  gd::Variant search(const gd::Arguments& given);
  gd::Variant forget(const gd::Arguments&);
  gd::Variant similarity(const gd::Arguments& given);

  std::string prompt_;
  bool unit_length_ = true;
  struct Memory {
    std::vector<std::string> texts;
    std::vector<std::vector<float>> vectors;
  };
  std::shared_ptr<Memory> memory_ = std::make_shared<Memory>();
};

class ClassifierNode : public ModelNode {
 public:
  static std::unique_ptr<gd::Class> register_class();

 private:
  friend class ModelNode;
  gd::Variant classify_text(const gd::Arguments& given);
  gd::Variant classify_image(const gd::Arguments& given);
  gd::Variant classify_texture(const gd::Arguments& given);

  int top_ = 0;
};

class SpeechNode : public ModelNode {
 public:
  static std::unique_ptr<gd::Class> register_class();

 private:
  friend class ModelNode;
  gd::Variant transcribe(const gd::Arguments& given);
  gd::Variant transcribe_stream(const gd::Arguments& given);

  std::string language_;
  bool translate_ = false;
  TextSettings settings_;
};

}  // namespace vkf_godot
