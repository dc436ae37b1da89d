// Passes within the budget of a frame, and on the application's buffers, through the C interface.
#include "c_api/enums.h"
#include "c_api/interop.h"
#include "vkformer/session.h"

struct vkf_pass_buffers {
  std::vector<std::pair<std::string, vkformer::PassBuffer>> items;
};

namespace vkformer {

std::map<std::string, BufferRange> buffer_ranges(const vkf_buffer_range* ranges, size_t count) {
  if (count != 0) need(ranges, "ranges");
  std::map<std::string, BufferRange> places;
  for (size_t i = 0; i < count; ++i) {
    need(ranges[i].name, "name of a range");
    places[ranges[i].name] = {handle_from<VkBuffer>(ranges[i].buffer), ranges[i].offset,
                              ranges[i].bytes};
  }
  return places;
}

namespace {

std::vector<SemaphoreUse> semaphores(const vkf_semaphore_use* given, size_t count,
                                     const char* name) {
  if (count != 0) need(given, name);
  std::vector<SemaphoreUse> made;
  for (size_t i = 0; i < count; ++i) {
    made.push_back({handle_from<VkSemaphore>(given[i].semaphore), given[i].value});
  }
  return made;
}

void write_advance(vkf_advance* out, const Advance& from) {
  vkf_advance c{};
  c.progress = number_of(from.progress);
  c.fraction = from.fraction;
  c.last_microseconds = from.last_microseconds;
  c.expected_microseconds = from.expected_microseconds;
  write_struct(out, c, "advance");
}

// What a call fills; checked before the call does anything.
void need_advance(vkf_advance* out) {
  need(out, "advance");
  read_struct(out, "advance");
}

}  // namespace
}  // namespace vkformer

using namespace vkformer;

vkf_status vkf_session_start(vkf_session* session, const vkf_tensors* inputs,
                             const vkf_run_options* options, vkf_error* error) {
  return guard(error, [&] {
    need_all({{session, "session"}, {inputs, "inputs"}});
    take(session->session.start(inputs->map, run_options(options)));
  });
}

vkf_status vkf_session_warm_up(vkf_session* session, const vkf_session_sizes* sizes,
                               vkf_error* error) {
  return guard(error, [&] {
    need_all({{session, "session"}, {sizes, "session sizes"}});
    take(session->session.warm_up(session_sizes(sizes)));
  });
}

vkf_status vkf_session_warmed_up(vkf_session* session, double* fraction, vkf_error* error) {
  return guard(error, [&] {
    need_all({{session, "session"}, {fraction, "the place for the fraction"}});
    *fraction = take(session->session.warmed_up());
  });
}

vkf_status vkf_session_finish_warm_up(vkf_session* session, vkf_error* error) {
  return guard(error, [&] {
    need(session, "session");
    take(session->session.finish_warm_up());
  });
}

vkf_status vkf_session_estimate(vkf_session* session, const vkf_session_sizes* sizes,
                                double microseconds, vkf_frame_estimate* estimate,
                                vkf_error* error) {
  return guard(error, [&] {
    need_all({{session, "session"}, {sizes, "session sizes"}});
    const FrameEstimate found = take(session->session.estimate(session_sizes(sizes), microseconds));
    vkf_frame_estimate c{};
    c.first_frames = found.first_frames;
    c.frames = found.frames;
    c.first_milliseconds = found.first_milliseconds;
    c.milliseconds = found.milliseconds;
    c.measured = found.measured;
    write_struct(estimate, c, "estimate");
  });
}

vkf_status vkf_session_start_on_buffers(vkf_session* session, const vkf_tensors* inputs,
                                        const vkf_buffer_range* ranges, size_t count,
                                        const vkf_run_options* options, vkf_error* error) {
  return guard(error, [&] {
    need_all({{session, "session"}, {inputs, "inputs"}});
    take(start_on_buffers(session->session, inputs->map, buffer_ranges(ranges, count),
                          run_options(options)));
  });
}

vkf_status vkf_session_start_on_images(vkf_session* session, const vkf_tensors* inputs,
                                       const vkf_image_inputs* images,
                                       const vkf_run_options* options, vkf_error* error) {
  return guard(error, [&] {
    need(session, "session");
    const vkf_image_inputs given = read_needed(images, "image inputs");
    need(given.processor, "processor");
    if (given.count != 0) need(given.images, "images");
    std::vector<ImageInput> list;
    for (const vkf_image_input& from : std::span(given.images, given.count)) {
      list.push_back({handle_from<VkImage>(from.image), static_cast<VkFormat>(from.format),
                      static_cast<VkImageLayout>(from.layout), from.width, from.height,
                      from.mip_level, from.array_layer});
    }
    take(start_on_images(session->session, inputs != nullptr ? inputs->map : TensorMap{}, list,
                         given.processor->processor, buffer_ranges(given.ranges, given.range_count),
                         run_options(options)));
  });
}

vkf_status vkf_session_advance(vkf_session* session, const vkf_slice_options* options,
                               vkf_advance* advance, vkf_error* error) {
  return guard(error, [&] {
    need(session, "session");
    need_advance(advance);
    const vkf_slice_options given = read_needed(options, "slice options");
    const auto wait = semaphores(given.wait, given.wait_count, "wait");
    const auto signal = semaphores(given.signal, given.signal_count, "signal");
    const bool plain = wait.empty() && signal.empty();
    write_advance(
        advance, take(plain ? session->session.advance(given.microseconds)
                            : advance_between(session->session, given.microseconds, wait, signal)));
  });
}

vkf_status vkf_session_record(vkf_session* session, void* command_buffer, double microseconds,
                              vkf_advance* advance, vkf_error* error) {
  return guard(error, [&] {
    need_all({{session, "session"}, {command_buffer, "command buffer"}});
    need_advance(advance);
    const auto commands = static_cast<VkCommandBuffer>(command_buffer);
    write_advance(advance, take(session->session.record(commands, microseconds)));
  });
}

vkf_status vkf_session_drop_recorded(vkf_session* session, vkf_error* error) {
  return guard(error, [&] {
    need(session, "session");
    take(session->session.drop_recorded());
  });
}

vkf_status vkf_session_finish(vkf_session* session, vkf_tensors** outputs, vkf_error* error) {
  return make_handle(outputs, error, [&] {
    need(session, "session");
    return tensors_of(take(session->session.finish()));
  });
}

vkf_status vkf_session_cancel(vkf_session* session, vkf_error* error) {
  return guard(error, [&] {
    need(session, "session");
    take(session->session.cancel());
  });
}

vkf_status vkf_session_forget_buffers(vkf_session* session, vkf_error* error) {
  return guard(error, [&] {
    need(session, "session");
    take(forget_buffers(session->session));
  });
}

vkf_status vkf_session_pass_buffers(vkf_session* session, vkf_pass_buffers** buffers,
                                    vkf_error* error) {
  return make_handle(buffers, error, [&] {
    need(session, "session");
    const auto found = take(pass_buffers(session->session));
    return handle(vkf_pass_buffers{{found.begin(), found.end()}});
  });
}

size_t vkf_pass_buffers_count(const vkf_pass_buffers* buffers) {
  return buffers != nullptr ? buffers->items.size() : 0;
}

vkf_status vkf_pass_buffers_get(const vkf_pass_buffers* buffers, size_t index,
                                vkf_pass_buffer* buffer, vkf_error* error) {
  return guard(error, [&] {
    need(buffers, "buffers");
    check_index(index, buffers->items.size(), "buffer");
    const auto& [name, from] = buffers->items[index];
    vkf_pass_buffer c{};
    c.dtype = dtype_to(from.tensor.dtype);
    c.shape = from.tensor.shape.data();
    c.rank = from.tensor.shape.size();
    c.range = {name.c_str(), (uint64_t)from.range.buffer, from.range.offset, from.range.bytes};
    write_struct(buffer, c, "pass buffer");
  });
}

void vkf_pass_buffers_free(vkf_pass_buffers* buffers) {
  delete buffers;
}
