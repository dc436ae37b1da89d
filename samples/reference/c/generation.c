/* Examples of generations of one session, and of many requests at once. */
#include <stdio.h>
#include <string.h>

#include "examples.h"

static int show_generating(vkf_session* session, vkf_ids prompt, vkf_error* error) {
  //! [vkf_session_generate vkf_session_generation_defaults vkf_session_counters]
  //! [vkf_generation_get vkf_generation_free]
  // Continues a prompt by 12 tokens, and says how many decoding steps that took.
  vkf_generate_options options = {.struct_size = sizeof options};
  vkf_generation_counters counters = {.struct_size = sizeof counters};
  vkf_sequence best = {.struct_size = sizeof best};
  vkf_generation* generation = NULL;
  int ok = vkf_session_generation_defaults(session, &options, error) == VKF_OK;
  options.set |= VKF_SET_MAX_NEW_TOKENS;
  options.max_new_tokens = 12;
  ok = ok && vkf_session_generate(session, &prompt, 1, &options, &generation, error) == VKF_OK &&
       vkf_generation_get(generation, 0, 0, &best, error) == VKF_OK &&
       vkf_session_counters(session, &counters, error) == VKF_OK;
  printf("%zu tokens in %lld steps\n", best.ids.count, (long long)counters.steps);
  vkf_generation_free(generation);
  //! [end]
  return ok && best.ids.count > prompt.count;
}

static int show_tensors(vkf_session* session, const vkf_tensors* inputs, vkf_error* error) {
  //! [vkf_session_generate_from vkf_generation_inputs vkf_generation_count]
  // Continues prompts that are tensors, "input_ids" (B,S), and prints the score of each sequence.
  vkf_generate_options options = {.struct_size = sizeof options, .set = VKF_SET_MAX_NEW_TOKENS};
  options.max_new_tokens = 4;
  vkf_generation* generation = NULL;
  int ok = vkf_session_generate_from(session, inputs, &options, &generation, error) == VKF_OK;
  for (size_t input = 0; ok && input < vkf_generation_inputs(generation); ++input) {
    for (size_t i = 0; ok && i < vkf_generation_count(generation, input); ++i) {
      vkf_sequence sequence = {.struct_size = sizeof sequence};
      ok = vkf_generation_get(generation, input, i, &sequence, error) == VKF_OK;
      if (ok) printf("%zu: %.3f\n", input, sequence.score);
    }
  }
  vkf_generation_free(generation);
  //! [end]
  return ok;
}

static int show_scores(vkf_session* session, vkf_ids prompt, vkf_ids continuation,
                       vkf_error* error) {
  //! [vkf_session_score]
  // How likely a continuation of two tokens is: the log-probability of each.
  vkf_tensors* scores = NULL;
  float values[2] = {0, 0};
  const int ok = vkf_session_score(session, &prompt, &continuation, &scores, error) == VKF_OK &&
                 vkf_tensors_get_floats(scores, "log_probabilities", values, 2, error) == VKF_OK;
  printf("%.3f, %.3f\n", values[0], values[1]);
  vkf_tensors_free(scores);
  //! [end]
  return ok && values[0] < 0;
}

static int show_constraint(vkf_session* session, const vkf_tokenizer* tokenizer, int64_t width,
                           vkf_ids prompt, vkf_error* error) {
  //! [vkf_constraint_create vkf_constraint_free]
  // Lets a model answer with "yes" or "no" alone; `width` is the width of its logits.
  const int64_t end = 0;
  vkf_generate_options options = {
      .struct_size = sizeof options, .set = VKF_SET_EOS, .eos = {&end, 1}};
  vkf_grammar* grammar = NULL;
  vkf_generation* generation = NULL;
  int ok = vkf_grammar_from_gbnf("root ::= \"yes\" | \"no\"", NULL, &grammar, error) == VKF_OK &&
           vkf_constraint_create(grammar, tokenizer, width, options.eos, &options.constraint,
                                 error) == VKF_OK &&
           vkf_session_generate(session, &prompt, 1, &options, &generation, error) == VKF_OK;
  vkf_generation_free(generation);
  vkf_constraint_free(options.constraint);
  vkf_grammar_free(grammar);
  //! [end]
  return ok;
}

static int show_batch(const vkf_model* model, vkf_ids prompt, vkf_error* error) {
  const vkf_generate_options few = {
      .struct_size = sizeof few, .set = VKF_SET_MAX_NEW_TOKENS, .max_new_tokens = 4};
  //! [vkf_batch_create vkf_batch_submit vkf_batch_free]
  // Makes a batch of up to 4 sequences at a time, and asks for two continuations.
  const vkf_batch_options options = {.struct_size = sizeof options, .rows = 4, .capacity = 64};
  const vkf_batch_request request = {
      .struct_size = sizeof request, .prompt = prompt, .options = &few, .client = "player"};
  uint64_t first = 0, second = 0;
  vkf_batch* batch = NULL;
  int ok = vkf_batch_create(model, &options, &batch, error) == VKF_OK &&
           vkf_batch_submit(batch, &request, &first, error) == VKF_OK &&
           vkf_batch_submit(batch, &request, &second, error) == VKF_OK;
  //! [end]

  //! [vkf_batch_step vkf_batch_idle vkf_batch_cancel vkf_updates_count vkf_updates_get]
  //! [vkf_updates_free]
  // Gives up the second request, and takes steps until the first one has ended.
  ok = ok && vkf_batch_cancel(batch, second, error) == VKF_OK;
  while (ok && !vkf_batch_idle(batch)) {
    vkf_updates* updates = NULL;
    ok = vkf_batch_step(batch, &updates, error) == VKF_OK;
    for (size_t i = 0; ok && i < vkf_updates_count(updates); ++i) {
      vkf_batch_update update = {.struct_size = sizeof update};
      ok = vkf_updates_get(updates, i, &update, error) == VKF_OK;
      if (ok && update.state == VKF_REQUEST_FINISHED) {
        printf("request %llu has ended\n", (unsigned long long)update.request);
      }
    }
    vkf_updates_free(updates);
  }
  //! [end]

  //! [vkf_batch_count]
  // Prints how much work a batch has done.
  vkf_batch_counters counters = {.struct_size = sizeof counters};
  ok = ok && vkf_batch_count(batch, &counters, error) == VKF_OK;
  printf("%lld tokens in %lld steps\n", (long long)counters.new_tokens, (long long)counters.steps);
  //! [end]
  vkf_batch_free(batch);
  return ok && counters.new_tokens > 0;
}

int show_c_generation(const c_setting* setting) {
  static const int64_t kPrompt[4] = {10, 11, 12, 13};
  const vkf_ids prompt = {kPrompt, 4};
  const vkf_ids continuation = {kPrompt, 2};
  const int64_t shape[2] = {1, 4};
  const vkf_tensor tensor = {sizeof tensor, VKF_I64, shape, 2, kPrompt, sizeof kPrompt};
  char directory[PATH_BYTES];
  vkf_error* error = setting->error;
  vkf_model_info info = {.struct_size = sizeof info};
  vkf_description* description = NULL;
  vkf_tokenizer* tokenizer = NULL;
  vkf_model* model = NULL;
  vkf_session* session = NULL;
  vkf_tensors* inputs = NULL;
  path_in(directory, setting->models, "shakespeare");
  const int ok = vkf_tensors_create(&inputs, error) == VKF_OK &&
                 vkf_tensors_set(inputs, "input_ids", &tensor, error) == VKF_OK &&
                 vkf_tokenizer_load(directory, &tokenizer, error) == VKF_OK &&
                 vkf_model_load(setting->device, directory, NULL, &model, error) == VKF_OK &&
                 vkf_model_describe(model, &description, error) == VKF_OK &&
                 vkf_description_get(description, &info, error) == VKF_OK &&
                 vkf_session_create(model, NULL, &session, error) == VKF_OK &&
                 show_generating(session, prompt, error) && show_tensors(session, inputs, error) &&
                 show_scores(session, prompt, continuation, error) &&
                 show_constraint(session, tokenizer, info.target_vocab, prompt, error) &&
                 show_batch(model, prompt, error);
  vkf_session_free(session);
  vkf_description_free(description);
  vkf_model_free(model);
  vkf_tokenizer_free(tokenizer);
  vkf_tensors_free(inputs);
  return ok;
}
