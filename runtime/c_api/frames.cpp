#include "c_api/enums.h"
#include "vkformer/frame_scheduler.h"

struct vkf_frames {
  vkformer::FrameScheduler scheduler;
};

struct vkf_frame_updates {
  std::vector<vkformer::FrameProgress> list;
};

using namespace vkformer;

vkf_status vkf_frames_create(vkf_frames** frames, vkf_error* error) {
  return make_handle(frames, error, [&] { return std::make_unique<vkf_frames>(); });
}

void vkf_frames_free(vkf_frames* frames) {
  delete frames;
}

vkf_status vkf_frames_add(vkf_frames* frames, vkf_session* session, const vkf_frame_job* job,
                          uint64_t* number, vkf_error* error) {
  return guard(error, [&] {
    need_all({{frames, "frames"}, {session, "session"}, {number, "the place for the number"}});
    FrameJob made;
    if (job != nullptr) {
      const vkf_frame_job given = read_needed(job, "frame job");
      made.priority = value_of<FrameJob::Priority>(given.priority, "priority");
      made.deadline_ms = given.deadline_ms;
    }
    *number = take(frames->scheduler.add(session->session, made));
  });
}

vkf_status vkf_frames_remove(vkf_frames* frames, uint64_t number, vkf_error* error) {
  return guard(error, [&] {
    need(frames, "frames");
    frames->scheduler.remove(number);
  });
}

size_t vkf_frames_count(const vkf_frames* frames) {
  return frames != nullptr ? frames->scheduler.jobs() : 0;
}

vkf_status vkf_frames_advance(vkf_frames* frames, double microseconds, vkf_frame_updates** updates,
                              vkf_error* error) {
  return make_handle(updates, error, [&] {
    need(frames, "frames");
    return handle(vkf_frame_updates{take(frames->scheduler.advance(microseconds))});
  });
}

vkf_status vkf_frames_record(vkf_frames* frames, void* command_buffer, double microseconds,
                             vkf_frame_updates** updates, vkf_error* error) {
  return make_handle(updates, error, [&] {
    need_all({{frames, "frames"}, {command_buffer, "command buffer"}});
    const auto commands = static_cast<VkCommandBuffer_T*>(command_buffer);
    return handle(vkf_frame_updates{take(frames->scheduler.record(commands, microseconds))});
  });
}

size_t vkf_frame_updates_count(const vkf_frame_updates* updates) {
  return updates != nullptr ? updates->list.size() : 0;
}

vkf_status vkf_frame_updates_get(const vkf_frame_updates* updates, size_t index,
                                 vkf_frame_progress* progress, vkf_error* error) {
  return guard(error, [&] {
    need(updates, "updates");
    check_index(index, updates->list.size(), "update");
    const FrameProgress& from = updates->list[index];
    vkf_frame_progress c{};
    c.job = from.job;
    if (from.advance) {
      c.progress = number_of(from.advance->progress);
      c.fraction = from.advance->fraction;
      c.last_microseconds = from.advance->last_microseconds;
      c.expected_microseconds = from.advance->expected_microseconds;
    } else {
      c.error = from.advance.error().message.c_str();
    }
    write_struct(progress, c, "progress");
  });
}

void vkf_frame_updates_free(vkf_frame_updates* updates) {
  delete updates;
}
