// The library's handles, freed by themselves.
#pragma once

#include <vkformer/vkformer.h>

#include <memory>
#include <string>

namespace vkf_godot {

template <auto free_function>
struct Free {
  template <class T>
  void operator()(T* handle) const {
    free_function(handle);
  }
};
template <class T, auto free_function>
using Handle = std::unique_ptr<T, Free<free_function>>;

using Bytes = Handle<vkf_bytes, vkf_bytes_free>;
using ChatTemplate = Handle<vkf_chat_template, vkf_chat_template_free>;
using Constraint = Handle<vkf_constraint, vkf_constraint_free>;
using DecodeStream = Handle<vkf_decode_stream, vkf_decode_stream_free>;
using Description = Handle<vkf_description, vkf_description_free>;
using Device = Handle<vkf_device, vkf_device_free>;
using Encodings = Handle<vkf_encodings, vkf_encodings_free>;
using Frames = Handle<vkf_frames, vkf_frames_free>;
using FrameUpdates = Handle<vkf_frame_updates, vkf_frame_updates_free>;
using Generation = Handle<vkf_generation, vkf_generation_free>;
using Grammar = Handle<vkf_grammar, vkf_grammar_free>;
using LogMel = Handle<vkf_log_mel, vkf_log_mel_free>;
using Model = Handle<vkf_model, vkf_model_free>;
using Picture = Handle<vkf_picture, vkf_picture_free>;
using PictureProcessor = Handle<vkf_picture_processor, vkf_picture_processor_free>;
using Session = Handle<vkf_session, vkf_session_free>;
using Sound = Handle<vkf_sound, vkf_sound_free>;
using Source = Handle<vkf_source, vkf_source_free>;
using StopStrings = Handle<vkf_stop_strings, vkf_stop_strings_free>;
using Tensors = Handle<vkf_tensors, vkf_tensors_free>;
using Tokenizer = Handle<vkf_tokenizer, vkf_tokenizer_free>;

// A struct of the library with its size and defaults.
template <class T>
T sized() {
  T made = {};
  made.struct_size = sizeof(T);
  return made;
}

// The outcome of the last call of this thread's.
class Error {
 public:
  Error() : error_(vkf_error_create()) {}
  operator vkf_error*() { return error_.get(); }
  std::string message() const { return vkf_error_message(error_.get()); }

 private:
  Handle<vkf_error, vkf_error_free> error_;
};

// Where a call puts a new handle: `made(handle)`. The handle is set when the full expression ends,
// so another call of the same expression cannot use it yet.
template <class T>
class Made {
 public:
  explicit Made(T& handle) : handle_(handle) {}
  ~Made() { handle_.reset(raw_); }
  operator typename T::pointer *() { return &raw_; }

 private:
  T& handle_;
  typename T::pointer raw_ = nullptr;
};
template <class T>
Made<T> made(T& handle) {
  return Made<T>(handle);
}

}  // namespace vkf_godot
