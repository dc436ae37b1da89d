#include "c_api/enums.h"
#include "vkformer/generation_batch.h"

struct vkf_batch {
  vkformer::GenerationBatch batch;
};

struct vkf_updates {
  std::vector<vkformer::BatchUpdate> list;
};

namespace vkformer {
namespace {

BatchOptions batch_options(const vkf_batch_options* options) {
  const vkf_batch_options given = read_struct(options, "batch options");
  BatchOptions made;
  const auto set = [](int& to, int32_t value) {
    if (value != 0) to = value;
  };
  set(made.rows, given.rows);
  set(made.capacity, given.capacity);
  set(made.source, given.source);
  set(made.step_tokens, given.step_tokens);
  set(made.waiting, given.waiting);
  set(made.waiting_of_client, given.waiting_of_client);
  set(made.running_of_client, given.running_of_client);
  set(made.draft_tokens, given.draft_tokens);
  set(made.lookup, given.lookup);
  made.prefix_reuse = given.forget == 0;
  if (given.draft != nullptr) made.draft = given.draft->model;
  if (given.context == 0) return made;
  made.context = given.context;
  set(made.sinks, given.sinks);
  if (given.sinks == -1) made.sinks = 0;
  return made;
}

// The structs of updates and of counters name the work alike.
template <class Struct>
void set_work(const BatchWork& work, Struct& c) {
  c.steps = work.steps;
  c.prompt_tokens = work.prompt_tokens;
  c.reused_tokens = work.reused_tokens;
  c.new_tokens = work.new_tokens;
  c.draft_tokens = work.draft_tokens;
  c.accepted_tokens = work.accepted_tokens;
}

}  // namespace
}  // namespace vkformer

using namespace vkformer;

vkf_status vkf_batch_create(const vkf_model* model, const vkf_batch_options* options,
                            vkf_batch** batch, vkf_error* error) {
  return make_handle(batch, error, [&] {
    need(model, "model");
    const BatchOptions read = batch_options(options);
    return handle(vkf_batch{take(GenerationBatch::create(model->model, read))});
  });
}

void vkf_batch_free(vkf_batch* batch) {
  delete batch;
}

vkf_status vkf_batch_submit(vkf_batch* batch, const vkf_batch_request* given, uint64_t* request,
                            vkf_error* error) {
  return guard(error, [&] {
    need_all({{batch, "batch"}, {request, "the place for the result"}});
    const vkf_batch_request c = read_needed(given, "request");
    BatchRequest made{.prompt = read_ids(c.prompt, "prompt"),
                      .options = batch->batch.generation_defaults(),
                      .client = text_or(c.client, "")};
    made.options = generate_options(std::move(made.options), c.options);
    if (c.inputs != nullptr) made.inputs = c.inputs->map;
    const auto ids = made.inputs.find("input_ids");
    if (made.prompt.empty() && ids != made.inputs.end()) {
      made.prompt = take(ids->second.to_ints());
      made.inputs.erase(ids);
    }
    *request = take(batch->batch.submit(made));
  });
}

vkf_status vkf_batch_cancel(vkf_batch* batch, uint64_t request, vkf_error* error) {
  return guard(error, [&] {
    need(batch, "batch");
    take(batch->batch.cancel(request));
  });
}

vkf_status vkf_batch_step(vkf_batch* batch, vkf_updates** updates, vkf_error* error) {
  return make_handle(updates, error, [&] {
    need(batch, "batch");
    return handle(vkf_updates{take(batch->batch.step())});
  });
}

uint32_t vkf_batch_idle(const vkf_batch* batch) {
  return batch == nullptr || batch->batch.idle() ? 1 : 0;
}

vkf_status vkf_batch_count(const vkf_batch* batch, vkf_batch_counters* counters, vkf_error* error) {
  return guard(error, [&] {
    need(batch, "batch");
    const BatchCounters from = batch->batch.counters();
    vkf_batch_counters c{};
    set_work(from.work, c);
    c.draft_steps = from.draft_steps;
    c.waiting = from.waiting;
    c.running = from.running;
    c.cache_bytes = from.cache_bytes;
    write_struct(counters, c, "counters");
  });
}

size_t vkf_updates_count(const vkf_updates* updates) {
  return updates != nullptr ? updates->list.size() : 0;
}

vkf_status vkf_updates_get(const vkf_updates* updates, size_t index, vkf_batch_update* update,
                           vkf_error* error) {
  return guard(error, [&] {
    need(updates, "updates");
    check_index(index, updates->list.size(), "update");
    const BatchUpdate& from = updates->list[index];
    vkf_batch_update c{};
    c.state = number_of(from.state);
    c.request = from.request;
    c.sequence = from.sequence;
    c.tokens = view_ids(from.tokens);
    c.score = from.score;
    set_work(from.work, c);
    if (!from.error.message.empty()) c.error = from.error.message.c_str();
    write_struct(update, c, "update");
  });
}

void vkf_updates_free(vkf_updates* updates) {
  delete updates;
}
