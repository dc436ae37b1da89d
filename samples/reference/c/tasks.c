/* Examples of tasks: one call from a text, a picture or a sound to its result. */
#include <stdio.h>

#include "examples.h"

static int load(const c_setting* setting, const char* model, const char* name, vkf_task** task) {
  char directory[PATH_BYTES];
  path_in(directory, setting->tasks, model);
  return vkf_task_load(setting->device, directory, name, NULL, task, setting->error) == VKF_OK;
}

static int show_loading(const vkf_device* device, const char* directory, vkf_error* error) {
  //! [vkf_task_load vkf_task_load_from vkf_task_describe vkf_task_free]
  // Loads a classifier from a directory or from another source, and prints its first label.
  vkf_task* task = NULL;
  vkf_task* same = NULL;
  vkf_source* source = NULL;
  vkf_description* description = NULL;
  vkf_model_info info = {.struct_size = sizeof info};
  const int ok = vkf_task_load(device, directory, "classify", NULL, &task, error) == VKF_OK &&
                 vkf_source_directory(directory, &source, error) == VKF_OK &&
                 vkf_task_load_from(device, source, "classify", NULL, &same, error) == VKF_OK &&
                 vkf_task_describe(task, &description, error) == VKF_OK &&
                 vkf_description_get(description, &info, error) == VKF_OK;
  if (ok && info.label_count > 0) puts(info.labels[0]);
  vkf_description_free(description);
  vkf_source_free(source);
  vkf_task_free(same);
  vkf_task_free(task);
  //! [end]
  return ok;
}

static int show_classifying(vkf_task* task, vkf_error* error) {
  //! [vkf_task_classify vkf_findings_inputs vkf_findings_count vkf_findings_get vkf_findings_free]
  // Prints the labels of two texts, best first.
  const vkf_text_pair texts[2] = {{"a good film", NULL}, {"a bad film", NULL}};
  vkf_findings* findings = NULL;
  int ok = vkf_task_classify(task, texts, 2, 0, &findings, error) == VKF_OK;
  for (size_t text = 0; ok && text < vkf_findings_inputs(findings); ++text) {
    for (size_t i = 0; ok && i < vkf_findings_count(findings, text); ++i) {
      vkf_finding label = {.struct_size = sizeof label};
      ok = vkf_findings_get(findings, text, i, &label, error) == VKF_OK;
      if (ok) printf("%s: %s %.3f\n", texts[text].text, label.label, label.score);
    }
  }
  vkf_findings_free(findings);
  //! [end]
  return ok;
}

static int show_zero_shot(vkf_task* task, vkf_error* error) {
  //! [vkf_task_zero_shot]
  // Chooses between labels that the model was not trained on.
  const char* const text = "The quick brown fox jumps over the lazy dog.";
  const char* const labels[2] = {"animals", "politics"};
  const vkf_zero_shot_options options = {
      .struct_size = sizeof options, .labels = labels, .label_count = 2};
  vkf_findings* findings = NULL;
  vkf_finding best = {.struct_size = sizeof best};
  const int ok = vkf_task_zero_shot(task, &text, 1, &options, &findings, error) == VKF_OK &&
                 vkf_findings_get(findings, 0, 0, &best, error) == VKF_OK;
  if (ok) printf("%s %.3f\n", best.label, best.score);
  vkf_findings_free(findings);
  //! [end]
  return ok;
}

static int show_named_entities(vkf_task* task, vkf_error* error) {
  //! [vkf_task_zero_shot_entities]
  // Finds what the program names in a text, by a GLiNER.
  const char* const text = "Ada lived in Rome.";
  const char* const labels[2] = {"person", "city"};
  const vkf_entity_options options = {
      .struct_size = sizeof options, .labels = labels, .label_count = 2, .threshold = 0.4};
  vkf_findings* findings = NULL;
  int ok = vkf_task_zero_shot_entities(task, &text, 1, &options, &findings, error) == VKF_OK;
  for (size_t i = 0; ok && i < vkf_findings_count(findings, 0); ++i) {
    vkf_finding found = {.struct_size = sizeof found};
    ok = vkf_findings_get(findings, 0, i, &found, error) == VKF_OK;
    if (ok) printf("%s: %s %.2f\n", found.label, found.text, found.score);
  }
  vkf_findings_free(findings);
  //! [end]
  return ok;
}

static int show_entities(vkf_task* task, vkf_error* error) {
  //! [vkf_task_finds_entities vkf_task_find_entities]
  // Finds names in a text, where the model labels tokens.
  const char* const text = "the cat sat";
  vkf_findings* findings = NULL;
  int ok = vkf_task_finds_entities(task) &&
           vkf_task_find_entities(task, &text, 1, &findings, error) == VKF_OK;
  for (size_t i = 0; ok && i < vkf_findings_count(findings, 0); ++i) {
    vkf_finding entity = {.struct_size = sizeof entity};
    ok = vkf_findings_get(findings, 0, i, &entity, error) == VKF_OK;
    if (ok) printf("%s: %s\n", entity.label, entity.text);
  }
  vkf_findings_free(findings);
  //! [end]
  return ok;
}

static int show_embedding(vkf_task* task, vkf_error* error) {
  //! [vkf_task_embed]
  // Two texts to vectors of length 1: a tensor (2,D).
  const char* const texts[2] = {"a cat", "a dog"};
  const vkf_embed_options options = {.struct_size = sizeof options, .unit_length = 1};
  vkf_tensors* tensors = NULL;
  vkf_tensor vectors = {.struct_size = sizeof vectors};
  const int ok = vkf_task_embed(task, texts, 2, &options, &tensors, error) == VKF_OK &&
                 vkf_tensors_get(tensors, "embeddings", &vectors, error) == VKF_OK;
  if (ok) printf("%lld values each\n", (long long)vectors.shape[1]);
  vkf_tensors_free(tensors);
  //! [end]
  return ok;
}

static int show_ranking(vkf_task* task, vkf_error* error) {
  //! [vkf_task_rerank]
  // Finds the document that fits a query best.
  const char* const documents[2] = {"a dog", "the cat is here"};
  vkf_findings* findings = NULL;
  vkf_finding best = {.struct_size = sizeof best};
  const int ok =
      vkf_task_rerank(task, "where is the cat", documents, 2, NULL, &findings, error) == VKF_OK &&
      vkf_findings_get(findings, 0, 0, &best, error) == VKF_OK;
  if (ok) printf("[%s] %.3f\n", documents[best.index], best.score);
  vkf_findings_free(findings);
  //! [end]
  return ok;
}

static int show_answering(vkf_task* task, vkf_error* error) {
  //! [vkf_task_answer]
  // Finds the answer to a question in a text.
  const vkf_question question = {"where is the cat", "the cat is here"};
  vkf_findings* findings = NULL;
  vkf_finding answer = {.struct_size = sizeof answer};
  const int ok = vkf_task_answer(task, &question, 1, NULL, &findings, error) == VKF_OK &&
                 vkf_findings_get(findings, 0, 0, &answer, error) == VKF_OK;
  if (ok) printf("%s\n", answer.text);
  vkf_findings_free(findings);
  //! [end]
  return ok;
}

static int show_filling(vkf_task* task, vkf_error* error) {
  //! [vkf_task_mask_token vkf_task_fill]
  // The likeliest word for a gap.
  char text[64];
  snprintf(text, sizeof text, "the %s", vkf_task_mask_token(task));
  const char* const texts[1] = {text};
  vkf_findings* findings = NULL;
  vkf_finding word = {.struct_size = sizeof word};
  const int ok = vkf_task_fill(task, texts, 1, 1, &findings, error) == VKF_OK &&
                 vkf_findings_get(findings, 0, 0, &word, error) == VKF_OK;
  if (ok) printf("%s\n", word.text);
  vkf_findings_free(findings);
  //! [end]
  return ok;
}

static int show_writing(const vkf_device* device, const char* directory, vkf_error* error) {
  //! [vkf_task_generate]
  // Continues a prompt by 8 tokens.
  const char* const prompt = "JULIET:";
  const vkf_text_options options = {
      .struct_size = sizeof options, .set = VKF_SET_MAX_NEW_TOKENS, .max_new_tokens = 8};
  vkf_task* task = NULL;
  vkf_findings* findings = NULL;
  vkf_finding text = {.struct_size = sizeof text};
  const int ok = vkf_task_load(device, directory, "generate", NULL, &task, error) == VKF_OK &&
                 vkf_task_generate(task, &prompt, 1, &options, &findings, error) == VKF_OK &&
                 vkf_findings_get(findings, 0, 0, &text, error) == VKF_OK;
  if (ok) printf("%s\n", text.text);
  vkf_findings_free(findings);
  vkf_task_free(task);
  //! [end]
  return ok;
}

static int show_prompts(vkf_task* task, const vkf_picture* picture, vkf_error* error) {
  //! [vkf_task_picture_placeholder vkf_task_generate_with_pictures]
  // Asks a model about a picture.
  char text[64];
  snprintf(text, sizeof text, "%s What is this?", vkf_task_picture_placeholder(task));
  const vkf_prompt prompt = {text, &picture, 1};
  const vkf_text_options options = {
      .struct_size = sizeof options, .set = VKF_SET_MAX_NEW_TOKENS, .max_new_tokens = 8};
  vkf_findings* findings = NULL;
  vkf_finding answer = {.struct_size = sizeof answer};
  const int ok =
      vkf_task_generate_with_pictures(task, &prompt, 1, &options, &findings, error) == VKF_OK &&
      vkf_findings_get(findings, 0, 0, &answer, error) == VKF_OK;
  if (ok) printf("%s\n", answer.text);
  vkf_findings_free(findings);
  //! [end]
  return ok;
}

static int show_picture_labels(vkf_task* task, const vkf_picture* picture, vkf_error* error) {
  //! [vkf_task_classify_pictures]
  // Prints the likeliest label of a picture.
  vkf_findings* findings = NULL;
  vkf_finding best = {.struct_size = sizeof best};
  const int ok = vkf_task_classify_pictures(task, &picture, 1, 1, &findings, error) == VKF_OK &&
                 vkf_findings_get(findings, 0, 0, &best, error) == VKF_OK;
  if (ok) printf("%s %.3f\n", best.label, best.score);
  vkf_findings_free(findings);
  //! [end]
  return ok;
}

static int show_picture_zero_shot(vkf_task* task, const vkf_picture* picture, vkf_error* error) {
  //! [vkf_task_zero_shot_pictures]
  // Chooses between labels of the caller for a picture.
  const char* const labels[2] = {"animals", "a city"};
  const vkf_zero_shot_options options = {
      .struct_size = sizeof options, .labels = labels, .label_count = 2};
  vkf_findings* findings = NULL;
  vkf_finding best = {.struct_size = sizeof best};
  const int ok =
      vkf_task_zero_shot_pictures(task, &picture, 1, &options, &findings, error) == VKF_OK &&
      vkf_findings_get(findings, 0, 0, &best, error) == VKF_OK;
  if (ok) printf("%s %.3f\n", best.label, best.score);
  vkf_findings_free(findings);
  //! [end]
  return ok;
}

static int show_caption(vkf_task* task, const vkf_picture* picture, vkf_error* error) {
  //! [vkf_task_caption]
  // Describes a picture in up to 8 tokens.
  const vkf_text_options options = {
      .struct_size = sizeof options, .set = VKF_SET_MAX_NEW_TOKENS, .max_new_tokens = 8};
  vkf_findings* findings = NULL;
  vkf_finding caption = {.struct_size = sizeof caption};
  const int ok = vkf_task_caption(task, &picture, 1, &options, &findings, error) == VKF_OK &&
                 vkf_findings_get(findings, 0, 0, &caption, error) == VKF_OK;
  if (ok) printf("%s\n", caption.text);
  vkf_findings_free(findings);
  //! [end]
  return ok;
}

static int show_objects(vkf_task* task, const vkf_picture* picture, vkf_error* error) {
  //! [vkf_task_detect]
  // Prints the objects in a picture whose probability exceeds one half.
  vkf_findings* findings = NULL;
  int ok = vkf_task_detect(task, &picture, 1, 0.5, 0, &findings, error) == VKF_OK;
  for (size_t i = 0; ok && i < vkf_findings_count(findings, 0); ++i) {
    vkf_finding object = {.struct_size = sizeof object};
    ok = vkf_findings_get(findings, 0, i, &object, error) == VKF_OK;
    if (ok) printf("%s at %.0f, %.0f\n", object.label, object.box[0], object.box[1]);
  }
  vkf_findings_free(findings);
  //! [end]
  return ok;
}

static int show_depth(vkf_task* task, const vkf_picture* picture, vkf_error* error) {
  //! [vkf_task_depth]
  // How near each pixel of a picture is: a tensor (height,width).
  vkf_tensors* tensors = NULL;
  vkf_tensor depth = {.struct_size = sizeof depth};
  const int ok = vkf_task_depth(task, picture, &tensors, error) == VKF_OK &&
                 vkf_tensors_get(tensors, "depth", &depth, error) == VKF_OK;
  if (ok) printf("%lld x %lld\n", (long long)depth.shape[1], (long long)depth.shape[0]);
  vkf_tensors_free(tensors);
  //! [end]
  return ok;
}

static int show_masks(vkf_task* task, const vkf_picture* picture, vkf_error* error) {
  //! [vkf_task_segment]
  // The mask of what the pixel 12, 3 is in, and the share of it that the model expects to cover.
  const vkf_prompt_point point = {.x = 12, .y = 3};
  const vkf_mask_prompt prompt = {&point, 1, NULL};
  vkf_tensors* tensors = NULL;
  float score = 0;
  const int ok = vkf_task_segment(task, picture, &prompt, 1, 1, &tensors, error) == VKF_OK &&
                 vkf_tensors_get_floats(tensors, "scores", &score, 1, error) == VKF_OK;
  printf("%.3f\n", score);
  vkf_tensors_free(tensors);
  //! [end]
  return ok;
}

static int show_transcribing(vkf_task* task, const vkf_sound* sound, vkf_error* error) {
  //! [vkf_task_transcribe]
  // Writes down what a recording says, and when each word is said.
  const vkf_transcribe_options options = {.struct_size = sizeof options, .words = 1};
  vkf_findings* findings = NULL;
  int ok = vkf_task_transcribe(task, &sound, 1, &options, &findings, error) == VKF_OK;
  for (size_t i = 0; ok && i < vkf_findings_count(findings, 0); ++i) {
    vkf_finding found = {.struct_size = sizeof found};
    ok = vkf_findings_get(findings, 0, i, &found, error) == VKF_OK;
    if (ok) printf("%s, %.2f to %.2f s\n", found.text, found.begin_seconds, found.end_seconds);
  }
  vkf_findings_free(findings);
  //! [end]
  return ok;
}

static int show_speaking(vkf_task* task, const char* path, vkf_error* error) {
  //! [vkf_task_speak]
  // Speaks a text into a WAV file.
  const vkf_speak_options options = {.struct_size = sizeof options, .seed = 7};
  vkf_sound* sound = NULL;
  const int ok = vkf_task_speak(task, "Hello, kind world!", &options, &sound, error) == VKF_OK &&
                 vkf_sound_save(sound, path, error) == VKF_OK;
  vkf_sound_free(sound);
  //! [end]
  return ok;
}

typedef struct text_subject {
  const char* model;
  const char* task;
  int (*show)(vkf_task* task, vkf_error* error);
} text_subject;

static int show_text_tasks(const c_setting* setting) {
  static const text_subject kSubjects[] = {
      {"labels", "classify", show_classifying}, {"zero-shot", "classify", show_zero_shot},
      {"entities", "classify", show_entities},  {"named-entities", "classify", show_named_entities},
      {"embed", "embed", show_embedding},       {"rerank", "rerank", show_ranking},
      {"answers", "answer", show_answering},    {"masks", "fill-mask", show_filling},
  };
  int ok = 1;
  for (size_t i = 0; ok && i < sizeof kSubjects / sizeof kSubjects[0]; ++i) {
    vkf_task* task = NULL;
    ok = load(setting, kSubjects[i].model, kSubjects[i].task, &task) &&
         kSubjects[i].show(task, setting->error);
    vkf_task_free(task);
  }
  return ok;
}

typedef struct picture_subject {
  const char* model;
  const char* task;
  int (*show)(vkf_task* task, const vkf_picture* picture, vkf_error* error);
} picture_subject;

static int show_picture_tasks(const c_setting* setting) {
  static const picture_subject kSubjects[] = {
      {"picture-labels", "classify", show_picture_labels},
      {"picture-texts", "classify", show_picture_zero_shot},
      {"prompts-llava", "generate", show_prompts},
      {"captions", "caption", show_caption},
      {"objects", "detect", show_objects},
      {"depth", "depth", show_depth},
      {"segments", "segment", show_masks},
  };
  char path[PATH_BYTES];
  vkf_picture* picture = NULL;
  path_in(path, setting->tasks, "picture-0.png");
  int ok = vkf_picture_load(path, &picture, setting->error) == VKF_OK;
  for (size_t i = 0; ok && i < sizeof kSubjects / sizeof kSubjects[0]; ++i) {
    vkf_task* task = NULL;
    ok = load(setting, kSubjects[i].model, kSubjects[i].task, &task) &&
         kSubjects[i].show(task, picture, setting->error);
    vkf_task_free(task);
  }
  vkf_picture_free(picture);
  return ok;
}

static int show_sound_tasks(const c_setting* setting) {
  char path[PATH_BYTES];
  vkf_sound* sound = NULL;
  vkf_task* hears = NULL;
  vkf_task* speaks = NULL;
  vkf_error* error = setting->error;
  path_in(path, setting->tasks, "sound-0.wav");
  const int ok = vkf_sound_load(path, 0, &sound, error) == VKF_OK &&
                 load(setting, "ctc", "transcribe", &hears) &&
                 show_transcribing(hears, sound, error) &&
                 load(setting, "speak", "speak", &speaks) &&
                 show_speaking(speaks, path_in(path, setting->scratch, "c_spoken.wav"), error);
  vkf_task_free(speaks);
  vkf_task_free(hears);
  vkf_sound_free(sound);
  return ok;
}

int show_c_tasks(const c_setting* setting) {
  char path[PATH_BYTES];
  if (!show_loading(setting->device, path_in(path, setting->tasks, "labels"), setting->error)) {
    return 0;
  }
  path_in(path, setting->models, "shakespeare");
  return show_writing(setting->device, path, setting->error) && show_text_tasks(setting) &&
         show_picture_tasks(setting) && show_sound_tasks(setting);
}
