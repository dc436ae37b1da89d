// What all nodes have: a model, a seat at the host, jobs, a priority.
#pragma once

#include <memory>

#include "gd/classes.h"
#include "host.h"
#include "model.h"

namespace vkf_godot {

class ModelNode : public gd::Instance {
 public:
  ~ModelNode() override;

 protected:
  // The job begins as soon as the model is there. False: there is no model to load, and `failed`
  // tells so.
  bool submit(std::shared_ptr<Job> job);
  gd::Variant cancel(const gd::Arguments&);
  gd::Variant is_busy(const gd::Arguments&);
  // `failed`, in the next frame, so that whoever awaits it is there.
  void fail(const std::string& message) const;
  std::shared_ptr<LoadedModel> loaded();

  template <class T>
  static void register_node(gd::Class& c) {
    c.property<T>(
        "model", GDEXTENSION_VARIANT_TYPE_OBJECT, gd::resource("VkfModel"),
        [](T& self) { return self.model_; },
        [](T& self, const gd::Variant& value) { self.set_model(value); });
    c.property<T>(
        "priority", GDEXTENSION_VARIANT_TYPE_INT, gd::choices("High:0,Normal:1,Background:2"),
        [](T& self) { return self.priority_; },
        [](T& self, const gd::Variant& value) { self.set_priority(value.as_int()); });
    c.method("cancel", GDEXTENSION_VARIANT_TYPE_NIL, {}, &T::cancel);
    c.method("is_busy", GDEXTENSION_VARIANT_TYPE_BOOL, {}, &T::is_busy);
    c.signal("failed", {{"message"}});
    c.signal("canceled", {});
  }

  void set_model(const gd::Variant& model);
  void set_priority(int64_t priority);

  gd::Variant model_;
  int priority_ = VKF_JOB_NORMAL;

 private:
  std::shared_ptr<Seat> seat_;
  std::vector<std::weak_ptr<Job>> jobs_;
};

}  // namespace vkf_godot
