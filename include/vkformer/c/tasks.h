// c/tasks.h: one call from a text, a picture or a sound to its result.
// The rules of the C interface are in vkformer.h.
#ifndef VKFORMER_C_TASKS_H
#define VKFORMER_C_TASKS_H

#include "vkformer/c/audio.h"
#include "vkformer/c/device.h"
#include "vkformer/c/generation.h"
#include "vkformer/c/grammar.h"
#include "vkformer/c/model.h"
#include "vkformer/c/picture.h"
#include "vkformer/c/session.h"
#include "vkformer/c/source.h"
#include "vkformer/c/tensors.h"
#include "vkformer/c/values.h"

#ifdef __cplusplus
extern "C" {
#endif

// What one does with a model in one call. Each owns its model, session and tokenizer.
typedef struct vkf_task vkf_task;
typedef struct vkf_findings vkf_findings;

typedef struct vkf_task_options {
  uint32_t struct_size;
  int32_t batch;      // inputs that run together at most; 0: 32
  uint32_t truncate;  // 1: texts that are too long are cut; else an error
  uint32_t reserved;
  const vkf_model_options* model;      // null: defaults
  const vkf_session_options* session;  // null: defaults
} vkf_task_options;

// One of the things that a task found; what the task does not give is null, 0 or empty.
typedef struct vkf_finding {
  uint32_t struct_size;
  int32_t gap;        // fill-mask: which of the text's gaps, counted from 0
  const char* label;  // classify: the class; fill-mask: the token
  const char* text;   // entity, answer, filled, generated, transcribed or describing text, or word
  double score;
  int32_t begin;  // where an entity or answer stands, in code points of the text or context
  int32_t end;
  int64_t token;         // fill-mask: the token's id
  vkf_ids ids;           // generate: what followed the prompt or start token
  size_t index;          // rerank: the document, counted from 0
  double box[4];         // detect: left, top, right and bottom in pixels of the picture
  double begin_seconds;  // transcribe: when a word is said, from the start of the sound
  double end_seconds;
} vkf_finding;

// A text, perhaps with a second one to classify together; `pair` is null without. Never changes.
typedef struct vkf_text_pair {
  const char* text;
  const char* pair;
} vkf_text_pair;
// A prompt that speaks of pictures. It is a text with a placeholder for each of them, in their
// order. Without any, they come before the text. Never changes.
typedef struct vkf_prompt {
  const char* text;
  const vkf_picture* const* pictures;
  size_t picture_count;
} vkf_prompt;
// A question, and where its answer is looked for. Never changes.
typedef struct vkf_question {
  const char* question;
  const char* context;
} vkf_question;

// Values of vectors: F32; I8, as EmbedOptions has them; eight signs a byte (U8).
enum { VKF_VECTOR_FLOAT = 0, VKF_VECTOR_INT8 = 1, VKF_VECTOR_BINARY = 2 };
enum { VKF_POOL_MODEL = 0, VKF_POOL_MEAN = 1, VKF_POOL_FIRST = 2, VKF_POOL_LAST = 3 };
typedef struct vkf_embed_options {
  uint32_t struct_size;
  int32_t pooling;       // VKF_POOL_MODEL (as the model's files say, else the mean) and so on
  uint32_t unit_length;  // 1: a vector is divided by its length; 0: where the files say so
  uint32_t reserved;
  const char* prompt;       // stands before every text; null: by prompt_name
  const char* prompt_name;  // in config_sentence_transformers.json; null: that file's default
  int32_t dimensions;       // the first values of each vector; 0: all
  int32_t values;           // VKF_VECTOR_FLOAT and so on
} vkf_embed_options;
// How documents are scored: as the model's files say, by its logit, by its sigmoid.
enum { VKF_RERANK_MODEL = 0, VKF_RERANK_LOGIT = 1, VKF_RERANK_PROBABILITY = 2 };
typedef struct vkf_rerank_options {
  uint32_t struct_size;
  int32_t top;    // the best documents; 0: all
  int32_t score;  // VKF_RERANK_MODEL and so on
  uint32_t reserved;
  const char* instruction;  // of a language model, as RerankOptions has it; may be null
} vkf_rerank_options;
typedef struct vkf_zero_shot_options {
  uint32_t struct_size;
  uint32_t multi_label;       // 1: each label has its own probability; 0: all sum to 1
  const char* const* labels;  // at least one
  size_t label_count;
  // With {} for the label; null: "This example is {}.", of pictures "This is a photo of {}.".
  const char* hypothesis;
} vkf_zero_shot_options;
// Bits of vkf_answer_options::flags.
enum { VKF_ANSWER_OVERLAP = 1, VKF_ANSWER_NONE_POSSIBLE = 2 };
typedef struct vkf_answer_options {
  uint32_t struct_size;
  uint32_t flags;             // VKF_ANSWER_NONE_POSSIBLE: an answer may be empty
  int32_t max_answer_tokens;  // 0: 15
  int32_t window;             // tokens of a window; 0: 384 or the model's limit
  int32_t overlap;            // counts with VKF_ANSWER_OVERLAP; else 128 or half a window
  int32_t top;                // answers per question; 0: 1
} vkf_answer_options;
// Gets pieces of texts while they are written: whole characters, that nothing takes back. The
// piece is the callback's while it runs.
typedef vkf_verdict (*vkf_on_text)(void* user, size_t input, size_t sequence, const char* piece);
// Settings of a text generation; see also vkf_generate_options.
typedef struct vkf_text_options {
  uint32_t struct_size;
  uint32_t set;        // VKF_SET_BEAMS to VKF_SET_EARLY_STOPPING, VKF_SET_CONTEXT, _SINKS
  const char* prefix;  // stands before every text
  const char* task;    // one of the model's task_specific_params: "summarization"
  const char* source_language;
  const char* target_language;
  int32_t beams;
  int32_t max_new_tokens;
  int32_t min_new_tokens;
  int32_t return_sequences;
  double length_penalty;
  const char* early_stopping;
  int32_t context;
  int32_t sinks;
  const vkf_choice_options* choice;  // null: as the model says
  const char* const* stop;           // a text ends before the first of them
  size_t stop_count;
  const char* const* bad_words;  // never written
  size_t bad_word_count;
  const vkf_grammar* grammar;  // null: none; not with beams
  vkf_on_text on_text;         // null: nobody; not with beams
  void* on_text_user;
  uint32_t has_special_tokens;  // 1: the texts have theirs already, as chat templates write them
  uint32_t reserved;
} vkf_text_options;
typedef struct vkf_transcribe_options {
  uint32_t struct_size;
  uint32_t set;          // VKF_SET_BEAMS, VKF_SET_MAX_NEW_TOKENS
  const char* language;  // "en"; null: what the model hears
  const char* task;      // "transcribe" or "translate"; null: the model's own setting
  int32_t beams;
  int32_t max_new_tokens;  // per window
  uint32_t words;          // 1: also the words with their times
  uint32_t reserved;
} vkf_transcribe_options;

// `name` is "embed", "classify", "answer", "fill-mask", "generate", "transcribe", "caption",
// "rerank", "detect", "speak", "depth" or "segment"; a classifier reads texts or pictures, as its
// model does. [any]
VKFORMER_API vkf_status vkf_task_load(const vkf_device* device, const char* directory,
                                      const char* name, const vkf_task_options* options,
                                      vkf_task** task, vkf_error* error);
// [any]
VKFORMER_API vkf_status vkf_task_load_from(const vkf_device* device, const vkf_source* source,
                                           const char* name, const vkf_task_options* options,
                                           vkf_task** task, vkf_error* error);
VKFORMER_API void vkf_task_free(vkf_task* task);
// [any]
VKFORMER_API vkf_status vkf_task_describe(const vkf_task* task, vkf_description** description,
                                          vkf_error* error);
// fill-mask: what a gap is written as, such as "[MASK]"; null for other tasks. [any]
VKFORMER_API const char* vkf_task_mask_token(const vkf_task* task);
// classify: 1 if the model labels tokens, for vkf_task_find_entities. [any]
VKFORMER_API int vkf_task_finds_entities(const vkf_task* task);
// Tensors with "embeddings", a vector per text (B,D). [one]
VKFORMER_API vkf_status vkf_task_embed(vkf_task* task, const char* const* texts, size_t count,
                                       const vkf_embed_options* options, vkf_tensors** tensors,
                                       vkf_error* error);
// The `top` likeliest labels (0: all) of each text, best first. [one]
VKFORMER_API vkf_status vkf_task_classify(vkf_task* task, const vkf_text_pair* texts, size_t count,
                                          int32_t top, vkf_findings** findings, vkf_error* error);
// The labels of the options with their probabilities for each text, best first, by a model of
// natural language inference loaded as "classify". [one]
VKFORMER_API vkf_status vkf_task_zero_shot(vkf_task* task, const char* const* texts, size_t count,
                                           const vkf_zero_shot_options* options,
                                           vkf_findings** findings, vkf_error* error);
// The documents by their score for the query, best first: the findings of input 0, each with its
// `index` and `score`. [one]
VKFORMER_API vkf_status vkf_task_rerank(vkf_task* task, const char* query,
                                        const char* const* documents, size_t count,
                                        const vkf_rerank_options* options, vkf_findings** findings,
                                        vkf_error* error);
// As vkf_task_classify, for pictures. [one]
VKFORMER_API vkf_status vkf_task_classify_pictures(vkf_task* task,
                                                   const vkf_picture* const* pictures, size_t count,
                                                   int32_t top, vkf_findings** findings,
                                                   vkf_error* error);
// As vkf_task_zero_shot, for pictures, by a model that compares them with texts (CLIP, SigLIP).
// [one]
VKFORMER_API vkf_status vkf_task_zero_shot_pictures(vkf_task* task,
                                                    const vkf_picture* const* pictures,
                                                    size_t count,
                                                    const vkf_zero_shot_options* options,
                                                    vkf_findings** findings, vkf_error* error);
// The entities of each text, in text order. [one]
VKFORMER_API vkf_status vkf_task_find_entities(vkf_task* task, const char* const* texts,
                                               size_t count, vkf_findings** findings,
                                               vkf_error* error);
// Per question the best answers, best first. [one]
VKFORMER_API vkf_status vkf_task_answer(vkf_task* task, const vkf_question* questions, size_t count,
                                        const vkf_answer_options* options, vkf_findings** findings,
                                        vkf_error* error);
// Per text and gap the `top` likeliest tokens (0: 5), best first. [one]
VKFORMER_API vkf_status vkf_task_fill(vkf_task* task, const char* const* texts, size_t count,
                                      int32_t top, vkf_findings** findings, vkf_error* error);
// Per text its sequences, best first. [one]
VKFORMER_API vkf_status vkf_task_generate(vkf_task* task, const char* const* texts, size_t count,
                                          const vkf_text_options* options, vkf_findings** findings,
                                          vkf_error* error);
// The same of prompts with pictures, by a model that reads images. [one]
VKFORMER_API vkf_status vkf_task_generate_with_pictures(vkf_task* task, const vkf_prompt* prompts,
                                                        size_t count,
                                                        const vkf_text_options* options,
                                                        vkf_findings** findings, vkf_error* error);
// generate: what stands for a picture in a prompt, such as "<image>"; null where the model reads
// none, and for other tasks. [any]
VKFORMER_API const char* vkf_task_picture_placeholder(const vkf_task* task);
// One text per sound and, if they are asked for, its words after it. [one]
VKFORMER_API vkf_status vkf_task_transcribe(vkf_task* task, const vkf_sound* const* sounds,
                                            size_t count, const vkf_transcribe_options* options,
                                            vkf_findings** findings, vkf_error* error);
// One text per picture; of the options the search settings count. [one]
VKFORMER_API vkf_status vkf_task_caption(vkf_task* task, const vkf_picture* const* pictures,
                                         size_t count, const vkf_text_options* options,
                                         vkf_findings** findings, vkf_error* error);
// The objects of each picture whose probability exceeds `threshold`, the best `top` (0: all) of
// them, best first. [one]
VKFORMER_API vkf_status vkf_task_detect(vkf_task* task, const vkf_picture* const* pictures,
                                        size_t count, double threshold, int32_t top,
                                        vkf_findings** findings, vkf_error* error);
// Inputs there were. [any]
VKFORMER_API size_t vkf_findings_inputs(const vkf_findings* findings);
// Findings of an input; 0 beyond the last. [any]
VKFORMER_API size_t vkf_findings_count(const vkf_findings* findings, size_t input);
// [any]
VKFORMER_API vkf_status vkf_findings_get(const vkf_findings* findings, size_t input, size_t index,
                                         vkf_finding* finding, vkf_error* error);
VKFORMER_API void vkf_findings_free(vkf_findings* findings);

#ifdef __cplusplus
}
#endif

#endif  // VKFORMER_C_TASKS_H
