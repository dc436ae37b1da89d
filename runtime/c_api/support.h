// What the files of the C interface share. These are guarding calls, versioned structs, texts in
// and out, and the handles that more than one of them opens.
#pragma once

#include <cstring>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/guarded.h"
#include "vkformer/audio.h"
#include "vkformer/device.h"
#include "vkformer/grammar.h"
#include "vkformer/model.h"
#include "vkformer/picture.h"
#include "vkformer/session.h"
#include "vkformer/tokenizer.h"
#include "vkformer/vkformer.h"

struct vkf_error {
  vkf_status status = VKF_OK;
  std::string message;
  // Stands in for a message that memory did not suffice for.
  const char* fixed = nullptr;
};

struct vkf_bytes {
  std::string data;
};

struct vkf_device {
  vkformer::Device device;
  vkformer::DeviceInfo info;
  std::vector<const char*> notes;
};

struct vkf_device_group {
  vkformer::DeviceGroup group;
};

struct vkf_source {
  vkformer::ModelSource source;
};

struct vkf_model {
  vkformer::Model model;
};

struct vkf_session {
  vkformer::Session session;
  // What vkf_session_generation_defaults points into.
  vkformer::GenerateOptions defaults;
  vkf_choice_options choice{};
  std::vector<vkf_token_bias> biases;
  std::vector<vkf_ids> bad_words;
};

struct vkf_tokenizer {
  std::shared_ptr<const vkformer::Tokenizer> tokenizer;
};

struct vkf_grammar {
  vkformer::Grammar grammar;
};

struct vkf_constraint {
  std::shared_ptr<vkformer::GrammarConstraint> constraint;
};

struct vkf_tensors {
  vkformer::TensorMap map;
};

struct vkf_description {
  vkformer::ModelInfo info;
  std::vector<const char*> label_pointers;
  std::vector<const char*> task_pointers;
};

struct vkf_picture {
  vkformer::Picture picture;
};

struct vkf_picture_processor {
  vkformer::PictureProcessor processor;
};

struct vkf_sound {
  vkformer::Sound sound;
};

namespace vkformer {

// Inside a call of the C interface a failure is thrown, and report() turns it into a code before
// the call returns. So one place knows codes, and the translations stay short and small.
struct Refusal {
  Error error;
};
[[noreturn]] void refuse(Error error);

// The value of a call of the C++ API.
template <class T>
T take(Result<T> result) {
  if (!result.ok()) refuse(result.error());
  return std::move(result).value();
}
void take(const Status& status);

// The parts of a call that do not depend on what it does.
class CallBody {
 public:
  template <class Body>
  explicit CallBody(Body& body)
      : body_(&body), call_([](void* self) { (*static_cast<Body*>(self))(); }) {}
  void operator()() const { call_(body_); }

 private:
  void* body_;
  void (*call_)(void*);
};

// Runs a call and puts its outcome into `error`, which may be null.
vkf_status report(vkf_error* error, const CallBody& body) noexcept;

template <class Body>
vkf_status guard(vkf_error* error, Body&& body) noexcept {
#ifdef VKFORMER_ABSENT_PART
  static_cast<void>(body);  // as in guarded(), base/guarded.h
  auto refused = [] { refuse(absent_part(VKFORMER_ABSENT_PART)); };
  return report(error, CallBody(refused));
#else
  return report(error, CallBody(body));
#endif
}

// Refuses a null pointer and names the argument.
void need(const void* pointer, const char* name);
struct NeededArgument {
  const void* pointer;
  const char* name;
};
// The same for several; the first that is null is named.
void need_all(std::initializer_list<NeededArgument> arguments);

// Guards a call that makes a handle: checks `out`, nulls it, and stores what `make` gives, a
// unique_ptr.
template <class Handle, class Make>
vkf_status make_handle(Handle** out, vkf_error* error, Make&& make) noexcept {
  if (out != nullptr) *out = nullptr;
  return guard(error, [&] {
    need(out, "the place for the result");
    *out = make().release();
  });
}

template <class Handle>
std::unique_ptr<Handle> handle(Handle value) {
  return std::make_unique<Handle>(std::move(value));
}

// A struct with a struct_size of the caller's, as this library knows it.
struct StructShape {
  size_t known_bytes;
  size_t alignment;
  const char* name;
};
// Copies what both sides know of the caller's struct; refuses one that is no size, or sets
// something that is unknown here. Null changes nothing.
void read_shared(const void* given, void* known, const StructShape& shape);
// Fills the caller's struct up to its struct_size, zeros beyond what is known.
void fill_struct(void* given, const void* value, const StructShape& shape);

// The caller's struct with zeros, which are defaults, for what it lacks. Null gives all defaults.
template <class T>
T read_struct(const T* given, const char* name) {
  T known{};
  read_shared(given, &known, {sizeof(T), alignof(T), name});
  return known;
}

// The same for a struct that may not be missing.
template <class T>
T read_needed(const T* given, const char* name) {
  need(given, name);
  return read_struct(given, name);
}

template <class T>
void write_struct(T* given, const T& value, const char* name) {
  fill_struct(given, &value, {sizeof(T), alignof(T), name});
}

// The text, or what stands for none.
std::string text_or(const char* text, const char* otherwise);
// The choice that the caller names, or `otherwise` where the text is null or empty; refuses a text
// that names none.
template <class Choice>
Choice choice_or(const char* text, Choice otherwise) {
  return text != nullptr && *text != '\0' ? take(choice_from_name<Choice>(text)) : otherwise;
}
// The adapters of options that have such.
template <class Options>
std::vector<AdapterChoice> adapters_of(const Options& given) {
  std::vector<AdapterChoice> adapters;
  for (size_t i = 0; i < given.adapter_count; ++i) {
    need_all({{given.adapters, "adapters"}, {given.adapters[i], "adapters"}});
    adapters.push_back({given.adapters[i]});
    if (given.adapter_scales != nullptr) adapters.back().scale = given.adapter_scales[i];
  }
  return adapters;
}
// Texts of the caller; a null among them is refused.
std::vector<std::string> read_texts(const char* const* texts, size_t count, const char* name);
// Views of strings that stay where they are.
std::vector<const char*> pointers_to(const std::vector<std::string>& strings);
// Refuses an index that is not below `count`.
void check_index(size_t index, size_t count, const char* what);
// Refuses flags other than `known`.
void check_bits(uint32_t flags, uint32_t known, const char* name);

// A vkf_bytes of a text or of a file's bytes.
std::unique_ptr<vkf_bytes> bytes_of(Result<std::string> text);
std::unique_ptr<vkf_bytes> bytes_of(const Result<std::vector<std::byte>>& file);
std::unique_ptr<vkf_tensors> tensors_of(TensorMap map);
std::unique_ptr<vkf_tensors> one_tensor(const char* name, Tensor tensor);

DType dtype_from(vkf_dtype dtype);
vkf_dtype dtype_to(DType dtype);
void write_tensor(vkf_tensor* out, const Tensor& tensor);

// Copies, because the C interface hands over images and audio one by one.
std::vector<Picture> copy_pictures(const vkf_picture* const* pictures, size_t count);
std::vector<Sound> copy_sounds(const vkf_sound* const* sounds, size_t count);

ModelOptions model_options(const vkf_model_options* options);
RunOptions run_options(const vkf_run_options* options);
SessionSizes session_sizes(const vkf_session_sizes* sizes);
std::vector<int64_t> read_ids(const vkf_ids& given, const char* name);
vkf_ids view_ids(const std::vector<int64_t>& ids);
TokenVerdict read_verdict(vkf_verdict verdict);
// Which of them `set` names, checked.
vkf_choice_options choice_options(const vkf_choice_options* options);
// `made`, the model's own settings, with what `options` sets.
GenerateOptions generate_options(GenerateOptions made, const vkf_generate_options* options);
SessionOptions session_options(const vkf_session_options* options);
std::unique_ptr<vkf_description> describe(const ModelInfo& info);

}  // namespace vkformer
