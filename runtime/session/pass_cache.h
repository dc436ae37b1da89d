// Recorded passes of one kind by what they are made for, most recently used first, and those that
// are being prepared while frames go on.
#pragma once

#include <functional>
#include <limits>
#include <list>
#include <memory>
#include <utility>

#include "recording/preparation_job.h"

namespace vkformer {

inline constexpr double kUntilDone = std::numeric_limits<double>::infinity();

template <class Pass, class Key>
class PassCache {
 public:
  // What the owner decides.
  struct Rules {
    // A pass to be prepared.
    std::function<Result<std::shared_ptr<Pass>>(const Key& key)> make;
    // Whether there is more memory now, after a pass of that key found too little.
    std::function<bool(const Key& key)> give_way;
    // What its caller shall read.
    std::function<Error(const Error& error, const Key& key)> explain;
  };

  PassCache(std::shared_ptr<VulkanDevice> device, int most, Rules rules)
      : device_(std::move(device)), most_(static_cast<size_t>(most)), rules_(std::move(rules)) {}

  // The pass, prepared: at once, or after what somebody prepares already.
  Result<std::shared_ptr<Pass>> get(const Key& key) {
    if (find(key)) return passes_.front();
    if (pending(key) != nullptr) return prepare(key, kUntilDone);
    for (bool again = false;; again = true) {
      VKF_ASSIGN(std::shared_ptr<Pass> pass, rules_.make(key));
      const Status prepared = prepare_now(*pass);
      if (prepared) return keep(std::move(pass));
      pass.reset();
      if (again || !makes_room(prepared, key)) return rules_.explain(prepared.error(), key);
    }
  }
  // The pass once it is prepared, and null before. The call begins to prepare it, or goes on for
  // about so long where that is up to the caller. Infinity waits.
  Result<std::shared_ptr<Pass>> prepare(const Key& key, double microseconds) {
    if (find(key)) return passes_.front();
    VKF_ASSIGN(Pending * own, pending_for(key));
    const Result<bool> prepared = own->job->advance(microseconds);
    if (prepared && !*prepared) return std::shared_ptr<Pass>();
    const Status status = prepared ? own->pass->finish() : Status(prepared.error());
    std::shared_ptr<Pass> pass = own->pass;
    const bool again = own->again;
    pending_.remove_if([&](const Pending& one) { return &one == own; });
    if (status) return keep(std::move(pass));
    pass.reset();
    if (again || !makes_room(status, key)) return rules_.explain(status.error(), key);
    VKF_ASSIGN(own, pending_for(key));
    own->again = true;
    return prepare(key, microseconds);
  }
  // What exists of it before it is prepared.
  Result<std::shared_ptr<Pass>> begin(const Key& key) {
    if (find(key)) return passes_.front();
    VKF_ASSIGN(const Pending* own, pending_for(key));
    return own->pass;
  }
  // Of a preparation that has begun, 0 to 1.
  double fraction(const Key& key) {
    const Pending* own = pending(key);
    return own != nullptr ? own->job->fraction() : 0;
  }

  bool empty() const { return passes_.empty(); }
  void clear() { passes_.clear(); }
  // Gives up the oldest of what is being prepared, where it is more than the passes that are kept.
  void give_up_some() {
    while (pending_.size() > most_) pending_.pop_back();
  }
  // Those prepared, and those on their way, for whose current step it waits.
  template <class Which>
  void remove_if(const Which& which) {
    passes_.remove_if([&](const auto& pass) { return which(*pass); });
    pending_.remove_if([&](const Pending& pending) { return which(*pending.pass); });
  }

 private:
  struct Pending {
    std::shared_ptr<Pass> pass;
    std::unique_ptr<PreparationJob> job;  // goes before the pass
    bool again = false;                   // after others gave way
  };

  bool find(const Key& key) {
    for (auto it = passes_.begin(); it != passes_.end(); ++it) {
      if (!((*it)->key() == key)) continue;
      passes_.splice(passes_.begin(), passes_, it);
      return true;
    }
    return false;
  }

  Pending* pending(const Key& key) {
    for (Pending& one : pending_) {
      if (one.pass->key() == key) return &one;
    }
    return nullptr;
  }

  Result<Pending*> pending_for(const Key& key) {
    if (Pending* own = pending(key)) return own;
    VKF_ASSIGN(std::shared_ptr<Pass> pass, rules_.make(key));
    auto job = std::make_unique<PreparationJob>(*device_, *pass);
    pending_.push_front({std::move(pass), std::move(job)});
    return &pending_.front();
  }

  bool makes_room(const Status& failed, const Key& key) {
    return failed.error().code == ErrorCode::kOutOfMemory && rules_.give_way(key);
  }

  std::shared_ptr<Pass> keep(std::shared_ptr<Pass> pass) {
    passes_.push_front(std::move(pass));
    while (passes_.size() > most_) passes_.pop_back();
    return passes_.front();
  }

  std::shared_ptr<VulkanDevice> device_;
  size_t most_;
  Rules rules_;
  std::list<std::shared_ptr<Pass>> passes_;
  std::list<Pending> pending_;
};

}  // namespace vkformer
