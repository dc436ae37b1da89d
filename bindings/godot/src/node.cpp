#include "node.h"

#include <algorithm>

namespace vkf_godot {

ModelNode::~ModelNode() {
  cancel({});
  Host::get().bury(std::move(seat_));
}

void ModelNode::set_model(const gd::Variant& model) {
  if (model.as_object() == model_.as_object()) return;
  model_ = model;
  Host::get().bury(std::move(seat_));
  seat_.reset();
}

void ModelNode::set_priority(int64_t priority) {
  priority_ = static_cast<int>(std::clamp<int64_t>(priority, VKF_JOB_HIGH, VKF_JOB_BACKGROUND));
}

std::shared_ptr<LoadedModel> ModelNode::loaded() {
  auto* const resource = dynamic_cast<ModelResource*>(gd::Instance::of(model_));
  return resource == nullptr ? nullptr : resource->loaded();
}

void ModelNode::fail(const std::string& message) const {
  Host::get().tell({id(), "failed", {message}});
}

bool ModelNode::submit(std::shared_ptr<Job> job) {
  const std::shared_ptr<LoadedModel> model = loaded();
  if (!model) {
    fail("[model] is empty, or its directory is; give the node a VkfModel with a directory.");
    return false;
  }
  if (seat_ && seat_->model != model) {
    Host::get().bury(std::move(seat_));
    seat_.reset();
  }
  if (!seat_) seat_ = Host::get().make_seat(model);
  job->owner = id();
  job->seat = seat_;
  job->priority = priority_;
  std::erase_if(jobs_, [](const std::weak_ptr<Job>& other) { return other.expired(); });
  jobs_.push_back(job);
  Host::get().add(std::move(job));
  return true;
}

gd::Variant ModelNode::cancel(const gd::Arguments&) {
  for (const std::weak_ptr<Job>& other : jobs_) {
    if (const std::shared_ptr<Job> job = other.lock()) job->cancelled = true;
  }
  return {};
}

gd::Variant ModelNode::is_busy(const gd::Arguments&) {
  return std::any_of(jobs_.begin(), jobs_.end(),
                     [](const std::weak_ptr<Job>& other) { return !other.expired(); });
}

}  // namespace vkf_godot
