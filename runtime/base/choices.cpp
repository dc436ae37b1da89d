#include "vkformer/choices.h"

#include <string>

#include "base/check.h"
#include "base/message.h"

namespace vkformer {
namespace {

// What an enum is called in messages, and the names of its values from 0 on.
template <class Choice>
struct Names;

#define VKF_CHOICE(Choice, title, ...)                     \
  template <>                                              \
  struct Names<Choice> {                                   \
    static constexpr const char* kTitle = title;           \
    static constexpr const char* kNames[] = {__VA_ARGS__}; \
  };

VKF_CHOICE(Tier, "tier", "baseline", "subgroup", "fp16", "matrix")
VKF_CHOICE(DeviceClass, "kind of device", "software", "integrated", "discrete", "other")
VKF_CHOICE(LimitProfile, "limits", "none", "android-2021", "android-2022", "vulkan-minimum",
           "moltenvk", "adreno", "mali", "intel", "amd")
VKF_CHOICE(GroupSplit, "split", "layers", "tensors", "fastest")
VKF_CHOICE(Precision, "precision", "f32", "f16", "reproducible", "int8")
VKF_CHOICE(WeightFormat, "weights", "stored", "f32", "f16", "bf16", "q8", "q4", "q4m", "q8_0",
           "q4_0", "q4_1", "q5_0", "q5_1", "iq4_nl", "mxfp4", "q2_k", "q3_k", "q4_k", "q5_k",
           "q6_k", "iq4_xs")
VKF_CHOICE(CacheFormat, "cache", "f32", "f16", "q8")
VKF_CHOICE(ModelKind, "kind of model", "encoder", "decoder", "encoder-decoder")
VKF_CHOICE(SourceKind, "source", "tokens", "pictures", "features", "arrays", "waveform")
VKF_CHOICE(HeadKind, "head", "none", "language", "masked", "sequence", "tokens", "spans",
           "discriminator", "sentence", "similarity", "objects", "ctc", "speech", "depth",
           "segmentation", "entities")
VKF_CHOICE(MapCoverage, "attention maps", "none", "stages", "layers")
VKF_CHOICE(MapKind, "kind of attention", "self", "encoder", "decoder", "cross")
VKF_CHOICE(PassKind, "pass", "forward", "prompt", "step")
VKF_CHOICE(EarlyStopping, "early_stopping", "false", "true", "never")
VKF_CHOICE(TaskKind, "task", "embed", "classify", "answer", "fill-mask", "generate", "transcribe",
           "caption", "rerank", "detect", "speak", "depth", "segment")
VKF_CHOICE(SpeechTask, "task", "transcribe", "translate")
VKF_CHOICE(ConformanceExtent, "extent", "quick", "full")
VKF_CHOICE(ConformanceOutcome, "outcome", "passed", "failed", "expected failure (never)",
           "expected failure (not yet)", "unexpected pass")

// "f32, f16 or q8".
std::string listed(std::span<const char* const> names) {
  std::string text;
  for (size_t i = 0; i < names.size(); ++i) {
    const char* between = i == 0 ? "" : i + 1 == names.size() ? " or " : ", ";
    text += std::string(between) + names[i];
  }
  return text;
}

// The place of a name among `names`.
Result<size_t> place_of(std::string_view name, const char* title,
                        std::span<const char* const> names) {
  for (size_t i = 0; i < names.size(); ++i) {
    if (name == names[i]) return i;
  }
  return invalid_argument(message(
      {"[", title, "] is '", name, "', which is no such choice. Use ", listed(names), "."}));
}

}  // namespace

template <class Choice>
std::span<const char* const> choice_names() {
  return Names<Choice>::kNames;
}

template <class Choice>
const char* choice_name(Choice value) {
  const auto names = choice_names<Choice>();
  const auto place = static_cast<size_t>(value);
  return place < names.size() ? names[place] : "unknown";
}

template <class Choice>
Result<Choice> choice_from_name(std::string_view name) {
  VKF_ASSIGN(const size_t place, place_of(name, Names<Choice>::kTitle, Names<Choice>::kNames));
  return static_cast<Choice>(place);
}

#define VKF_NAMED(Choice)                                                       \
  template VKFORMER_API const char* choice_name(Choice value);                  \
  template VKFORMER_API Result<Choice> choice_from_name(std::string_view name); \
  template VKFORMER_API std::span<const char* const> choice_names<Choice>();

VKF_NAMED(Tier)
VKF_NAMED(DeviceClass)
VKF_NAMED(LimitProfile)
VKF_NAMED(GroupSplit)
VKF_NAMED(Precision)
VKF_NAMED(WeightFormat)
VKF_NAMED(CacheFormat)
VKF_NAMED(ModelKind)
VKF_NAMED(SourceKind)
VKF_NAMED(HeadKind)
VKF_NAMED(MapCoverage)
VKF_NAMED(MapKind)
VKF_NAMED(PassKind)
VKF_NAMED(EarlyStopping)
VKF_NAMED(TaskKind)
VKF_NAMED(SpeechTask)
VKF_NAMED(ConformanceExtent)
VKF_NAMED(ConformanceOutcome)

}  // namespace vkformer
