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
    VKF_CHECK(prepare(key, PreparationJob::Where::kCaller, kUntilDone));
    return passes_.front();
  }
  // Whether the pass is prepared; else begins to, or goes on for about so long where that is up to
  // the caller. Infinity waits.
  Result<bool> prepare(const Key& key, double microseconds) {
    return prepare(key, PreparationJob::Where::kBackground, microseconds);
  }
  // What exists of it before it is prepared.
  Result<std::shared_ptr<Pass>> begin(const Key& key) {
    if (find(key)) return passes_.front();
    VKF_ASSIGN(Pending * pending, pending_for(key, PreparationJob::Where::kBackground));
    return pending->pass;
  }
  // Of its preparation, 0 to 1.
  double fraction(const Key& key) const {
    for (const Pending& pending : pending_) {
      if (pending.pass->key() == key) return pending.job->fraction();
    }
    return 1;
  }

  bool empty() const { return passes_.empty(); }
  void clear() { passes_.clear(); }
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

  Status start(Pending& pending, const Key& key, PreparationJob::Where where) {
    pending.job.reset();
    VKF_ASSIGN(pending.pass, rules_.make(key));
    pending.job = std::make_unique<PreparationJob>(*device_, *pending.pass, where);
    return {};
  }

  Result<Pending*> pending_for(const Key& key, PreparationJob::Where where) {
    for (Pending& pending : pending_) {
      if (pending.pass->key() == key) return &pending;
    }
    if (pending_.size() >= most_) pending_.pop_back();
    std::list<Pending> made(1);
    VKF_CHECK(start(made.front(), key, where));
    pending_.splice(pending_.begin(), made);
    return &pending_.front();
  }

  Result<bool> prepare(const Key& key, PreparationJob::Where where, double microseconds) {
    if (find(key)) return true;
    VKF_ASSIGN(Pending * pending, pending_for(key, where));
    Result<bool> prepared = pending->job->advance(microseconds);
    if (prepared && !*prepared) return false;
    Status status = prepared ? pending->pass->finish() : Status(prepared.error());
    const bool full = !status && status.error().code == ErrorCode::kOutOfMemory;
    if (full && !std::exchange(pending->again, true) && rules_.give_way(key)) {
      status = start(*pending, key, where);
      if (status) return prepare(key, where, microseconds);
    }
    const std::shared_ptr<Pass> pass = std::move(pending->pass);
    pending_.remove_if([&](const Pending& one) { return &one == pending; });
    if (!status) return rules_.explain(status.error(), key);
    passes_.push_front(pass);
    while (passes_.size() > most_) passes_.pop_back();
    return true;
  }

  std::shared_ptr<VulkanDevice> device_;
  size_t most_;
  Rules rules_;
  std::list<std::shared_ptr<Pass>> passes_;
  std::list<Pending> pending_;
};

}  // namespace vkformer
