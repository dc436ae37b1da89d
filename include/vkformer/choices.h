// Choices: the closed sets of values that options take and results hold, and the one place that
// knows their names in text. The command line, the C interface, JSON output and error messages all
// use these names.
//
// Threading: pure functions; call them from any thread. Lifetime: names are static and stay valid.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "vkformer/export.h"
#include "vkformer/result.h"

namespace vkformer {

// --- Devices

// What kernels may use. Each tier includes the ones before it.
enum class Tier : uint8_t {
  kBaseline,  // "baseline": Vulkan 1.1 without options
  kSubgroup,  // "subgroup": subgroup arithmetic
  kFp16,      // "fp16": arithmetic in half precision
  kMatrix,    // "matrix": cooperative matrices
};

// What kind of hardware a device is.
enum class DeviceClass : uint8_t {
  kSoftware,    // "software": a processor that runs as a Vulkan device
  kIntegrated,  // "integrated": a GPU that shares memory with the processor
  kDiscrete,    // "discrete": a GPU with its own memory
  kOther,       // "other": virtual GPUs, and what the driver does not classify
};

// Profiles that limits and features of a device can be clamped to.
enum class LimitProfile : uint8_t {
  kNone,           // "none": the device's own limits
  kAndroid2021,    // "android-2021": Android Baseline Profile 2021
  kAndroid2022,    // "android-2022": Android Baseline Profile 2022
  kVulkanMinimum,  // "vulkan-minimum": the required limits of Vulkan 1.1
  kMoltenVk,       // "moltenvk": the lowest limits reported of a family of drivers, like the next
  kAdreno,         // "adreno"
  kMali,           // "mali"
  kIntel,          // "intel"
  kAmd,            // "amd"
};

// What the members of a device group have of a model.
enum class GroupSplit : uint8_t {
  kLayers,   // "layers": each has some of the layers
  kTensors,  // "tensors": each has some heads and feed-forward columns of every layer
  kFastest,  // "fastest": the one of these two with the shorter estimated step
};

// --- Numbers

// Arithmetic. Sums are f32 in all of them, but for those inside a block of int8.
enum class Precision : uint8_t {
  kF32,           // "f32"
  kF16,           // "f16": products in half precision where the device's tier has it
  kReproducible,  // "reproducible": f32 with the same bits on every device (docs/reproducible.md)
  kInt8,          // "int8": rows in 8 bits times quantized weights, as integers; all else is f32
};

// How matrices are stored in device memory. From kQ8_0 on: the types of GGUF files (docs/files.md),
// and MXFP4.
enum class WeightFormat : uint8_t {
  kAsStored,  // "stored": f16 and quantized tensors stay as they are; f32 and bf16 become f32
  kF32,       // "f32"
  kF16,       // "f16"
  kBF16,      // "bf16"
  kQ8,        // "q8": 8 bits a weight; 32 weights share a scale
  kQ4,        // "q4": 4 bits a weight; 32 weights share a scale
  kQ4M,       // "q4m": 4 bits a weight; 32 weights share a scale and a minimum

  kQ8_0,   // "q8_0": 8.5 bits a weight
  kQ4_0,   // "q4_0": 4.5
  kQ4_1,   // "q4_1": 5
  kQ5_0,   // "q5_0": 5.5
  kQ5_1,   // "q5_1": 6
  kIq4Nl,  // "iq4_nl": 4.5
  kMxfp4,  // "mxfp4": 4.25
  kQ2K,    // "q2_k": 2.625
  kQ3K,    // "q3_k": 3.5625
  kQ4K,    // "q4_k": 4.5
  kQ5K,    // "q5_k": 5.5
  kQ6K,    // "q6_k": 6.5625
  kIq4Xs,  // "iq4_xs": 4.3125
};

// Bits of a weight in device memory, its share of scales included; 32 of kAsStored.
VKFORMER_API double weight_bits(WeightFormat format);

// How the keys and values of a generation are stored.
enum class CacheFormat : uint8_t {
  kF32,  // "f32"
  kF16,  // "f16"
  kQ8,   // "q8": 8 bits a value; 32 values share a scale
};

// --- Models

// Which stacks a model has.
enum class ModelKind : uint8_t {
  kEncoder,         // "encoder": one stack that sees all of its input
  kDecoder,         // "decoder": one causal stack
  kEncoderDecoder,  // "encoder-decoder": a decoder that attends to an encoder
};

// What a model reads.
enum class SourceKind : uint8_t {
  kTokens,    // "tokens": input_ids (B, S)
  kPictures,  // "pictures": pixel_values (B, C, height, width)
  kFeatures,  // "features": input_features (B, mel bins, frames)
  kArrays,    // "arrays": inputs that the family names
  kWaveform,  // "waveform": input_values (B, samples of sound)
};

// What a model's head is for.
enum class HeadKind : uint8_t {
  kNone,           // "none": the bare stack
  kLanguage,       // "language": the next token; logits (B, T, V)
  kMasked,         // "masked": a masked token; logits (B, S, V)
  kSequence,       // "sequence": the class of a text or picture; logits (B, classes)
  kTokens,         // "tokens": the class of each token; logits (B, S, classes)
  kSpans,          // "spans": an answer in a text; start_logits, end_logits (B, S)
  kDiscriminator,  // "discriminator": replaced or not, for each token; logits (B, S)
  kSentence,       // "sentence": one vector, as the files of sentence-transformers say
  kSimilarity,     // "similarity": of pictures and texts; logits_per_image (pictures, texts)
  kObjects,        // "objects": in a picture; logits (B, Q, classes and perhaps one more for none),
                   // pred_boxes (B, Q, 4)
  kCtc,            // "ctc": the character of each frame of sound, or none; logits (B, frames, V)
  kSpeech,         // "speech": the text spoken; waveform (B, samples)
  kDepth,          // "depth": how far or near each pixel is; predicted_depth (B, height, width)
  kSegmentation,   // "segmentation": masks of what points and boxes are in; pred_masks (B, prompts,
                   // masks, height, width), iou_scores (B, prompts, masks)
  kEntities,       // "entities": spans of words by labels of the input; logits (B, words, widths,
                   // labels)
};

// Which attention maps a pass hands out.
enum class MapCoverage : uint8_t {
  kNone,    // "none"
  kStages,  // "stages": one for each stage
  kLayers,  // "layers": one for each layer
};

// The stacks that have attention maps of their own.
enum class MapKind : uint8_t {
  kSelf,     // "self": of a model that is one stack
  kEncoder,  // "encoder"
  kDecoder,  // "decoder"
  kCross,    // "cross": of a decoder's queries over the encoder's outputs
};

// A pass of a model.
enum class PassKind : uint8_t {
  kForward,  // "forward"
  kPrompt,   // "prompt": what a generation does before its first step
  kStep,     // "step": one decoding step
};

// --- Generation and tasks

// When beam search ends, as in transformers' GenerationConfig.
enum class EarlyStopping : uint8_t {
  kFalse,  // "false": when no beam can, at its present length, become better than what is found
  kTrue,   // "true": as soon as there are as many finished sequences as beams
  kNever,  // "never": when no beam can become better at any length
};

// What a model does in one call, with the class that does it.
enum class TaskKind : uint8_t {
  kEmbed,       // "embed": Embedder
  kClassify,    // "classify": TextClassifier, PictureClassifier
  kAnswer,      // "answer": Answerer
  kFillMask,    // "fill-mask": MaskFiller
  kGenerate,    // "generate": TextGenerator
  kTranscribe,  // "transcribe": Transcriber
  kCaption,     // "caption": Captioner
  kRerank,      // "rerank": Reranker
  kDetect,      // "detect": ObjectDetector
  kSpeak,       // "speak": Speaker
  kDepth,       // "depth": DepthEstimator
  kSegment,     // "segment": Segmenter
};

// What a speech model writes.
enum class SpeechTask : uint8_t {
  kTranscribe,  // "transcribe": the words as they are said
  kTranslate,   // "translate": the words in English
};

// --- Conformance

// How much a conformance run checks.
enum class ConformanceExtent : uint8_t {
  kQuick,  // "quick": a choice of sizes, a minute on a processor
  kFull,   // "full": all sizes, up to half an hour there
};

// What came of one check.
enum class ConformanceOutcome : uint8_t {
  kPassed,          // "passed"
  kFailed,          // "failed"
  kExpectedNever,   // "expected failure (never)"
  kExpectedNotYet,  // "expected failure (not yet)"
  kUnexpectedPass,  // "unexpected pass"
};

// --- Names. All three are for the enums of this header.

// The name of a value, such as "q4m".
template <class Choice>
VKFORMER_API const char* choice_name(Choice value);

// The value of a name. For any other text an error that lists the names.
template <class Choice>
VKFORMER_API Result<Choice> choice_from_name(std::string_view name);

// All names, in the order of the values, which are numbered from 0.
template <class Choice>
VKFORMER_API std::span<const char* const> choice_names();

}  // namespace vkformer
