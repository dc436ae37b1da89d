// vkformer.h: the C interface, for C99 and for every language that can call C. docs/c_api.md shows
// its shape and two whole programs. Each header of c/ has one subject and can be included alone;
// this one includes all of them.
//
// Objects are opaque handles: vkf_x_create, _load and the like make one, vkf_x_free gives it back
// (null is allowed). They keep alive what they were made from: a model its device, a session its
// model, in whatever order they are freed. Texts are UTF-8, end with a zero byte, and are copied.
// What a getter points to stays until its handle is freed, unless its comment says otherwise.
//
// vkf_x_load reads a model's directory, vkf_x_load_from a vkf_source: files in memory, or the
// host's own reader.
//
// Structs that begin with struct_size carry their version. Set it to sizeof. Set all else to zero,
// which always means the default:
//   vkf_run_options options = {.struct_size = sizeof options};
// A shorter struct, of a program built with an older header, gets defaults for what it lacks. A
// longer one, of a newer header, is taken as long as what this library does not know is zero. It is
// VKF_UNSUPPORTED otherwise. Where the library fills a struct, it does so up to struct_size, and
// with zeros beyond what it knows. A null pointer to options means all defaults. The few structs
// without struct_size never change.
//
// Calls that can fail return a vkf_status and describe the failure in the vkf_error that they are
// given, or nowhere if that is null. Handles that they make are then null. Nothing throws, nothing
// aborts, nothing is global. A callback must not throw or jump out of the call.
//
// Threading, at the end of each comment:
//   [any]   from any thread, on the same handles at the same time too
//   [one]   one thread at a time for the first handle; other handles of its kind do not matter
// A vkf_error is [one] in every call. Nothing may be freed while another call uses it.
#ifndef VKFORMER_VKFORMER_H
#define VKFORMER_VKFORMER_H

#include "vkformer/c/attention_view.h"
#include "vkformer/c/audio.h"
#include "vkformer/c/batch.h"
#include "vkformer/c/device.h"
#include "vkformer/c/entities.h"
#include "vkformer/c/frames.h"
#include "vkformer/c/generation.h"
#include "vkformer/c/grammar.h"
#include "vkformer/c/model.h"
#include "vkformer/c/model_files.h"
#include "vkformer/c/operators.h"
#include "vkformer/c/picture.h"
#include "vkformer/c/picture_tasks.h"
#include "vkformer/c/profile.h"
#include "vkformer/c/session.h"
#include "vkformer/c/slices.h"
#include "vkformer/c/source.h"
#include "vkformer/c/speak.h"
#include "vkformer/c/tasks.h"
#include "vkformer/c/tensors.h"
#include "vkformer/c/tokenizer.h"
#include "vkformer/c/values.h"

#endif  // VKFORMER_VKFORMER_H
