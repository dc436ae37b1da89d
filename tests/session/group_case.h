// Groups for tests: the test device opened once for each member is as many devices, and threads of
// this process stand for processes.
#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <thread>
#include <tuple>

#include "generate/batch_requests.h"
#include "vkformer/device_group.h"

namespace vkformer::testing {

inline Model split_model(const std::string& name, const DeviceGroupOptions& options,
                         ModelOptions loading = {}) {
  std::vector<Device> devices;
  for (size_t i = 0; i < options.shares.size(); ++i) {
    auto device = Device::create(test_device_options());
    REQUIRE_MESSAGE(device.ok(), device.error().message);
    devices.push_back(std::move(device).value());
  }
  auto group = DeviceGroup::create(devices, options);
  REQUIRE_MESSAGE(group.ok(), group.error().message);
  loading.group = *group;
  auto model = Model::load(devices[0], golden_case(name).path("model"), loading);
  REQUIRE_MESSAGE(model.ok(), model.error().message);
  return std::move(model).value();
}

// Every layer divided among `members`.
inline Result<Model> divided_model(const std::string& name, size_t members,
                                   ModelOptions options = {},
                                   GroupSplit split = GroupSplit::kTensors) {
  std::vector<Device> devices;
  for (size_t i = 0; i < members; ++i) {
    auto device = Device::create(test_device_options());
    if (!device) return device.error();
    devices.push_back(std::move(device).value());
  }
  const auto group = DeviceGroup::create(devices, {.split = split});
  if (!group) return group.error();
  options.group = *group;
  return Model::load(devices[0], golden_case(name).path("model"), options);
}

inline void check_equal(const Generation& split, const Generation& whole) {
  REQUIRE(split.size() == whole.size());
  for (size_t i = 0; i < whole.size(); ++i) {
    REQUIRE(split[i].size() == whole[i].size());
    for (size_t k = 0; k < whole[i].size(); ++k) CHECK(split[i][k].ids == whole[i][k].ids);
  }
}

// Links of members that are threads of this process instead of processes.
class ThreadLinks {
 public:
  // `delay`: of every message.
  explicit ThreadLinks(size_t members, std::chrono::milliseconds delay = {})
      : members_(members), delay_(delay) {}

  std::shared_ptr<DeviceLink> link(size_t own) { return std::make_shared<End>(*this, own); }

 private:
  using Key = std::tuple<size_t, size_t, uint32_t>;  // from, to, lane

  class End : public DeviceLink {
   public:
    End(ThreadLinks& links, size_t own) : links_(links), own_(own) {}
    size_t members() const override { return links_.members_; }
    size_t own() const override { return own_; }
    Status send(size_t to, uint32_t lane, std::span<const std::byte> bytes) override {
      std::this_thread::sleep_for(links_.delay_);
      const std::lock_guard held(links_.lock_);
      links_.messages_[{own_, to, lane}].emplace_back(bytes.begin(), bytes.end());
      links_.changed_.notify_all();
      return {};
    }
    Status receive(size_t from, uint32_t lane, std::span<std::byte> bytes) override {
      std::unique_lock held(links_.lock_);
      auto& queue = links_.messages_[{from, own_, lane}];
      if (!links_.changed_.wait_for(held, std::chrono::minutes(2), [&] { return !queue.empty(); }))
        return Error{ErrorCode::kDeviceLost, "no message came"};
      if (queue.front().size() != bytes.size())
        return Error{ErrorCode::kInternal, "a message of another size"};
      std::copy(queue.front().begin(), queue.front().end(), bytes.begin());
      queue.pop_front();
      return {};
    }
    Status broadcast(size_t from, uint32_t lane, std::span<std::byte> bytes) override {
      const uint32_t apart = lane + 1000;
      if (from != own_) return receive(from, apart, bytes);
      for (size_t to = 0; to < members(); ++to) {
        if (to != own_ && !send(to, apart, bytes)) return Error{ErrorCode::kInternal, "no"};
      }
      return {};
    }

   private:
    ThreadLinks& links_;
    size_t own_;
  };

  size_t members_;
  std::chrono::milliseconds delay_;
  std::mutex lock_;
  std::condition_variable changed_;
  std::map<Key, std::deque<std::vector<std::byte>>> messages_;
};

// What each process of a group gets, each a thread with a device.
template <class Work>
auto at_each_member(size_t members, const Work& work, std::chrono::milliseconds delay = {}) {
  ThreadLinks links(members, delay);
  std::vector<decltype(work(links.link(0)))> results(members);
  std::vector<std::thread> threads;
  for (size_t m = 0; m < members; ++m) {
    threads.emplace_back([&, m] { results[m] = work(links.link(m)); });
  }
  for (std::thread& thread : threads) thread.join();
  return results;
}

inline Result<Model> load_linked(const std::shared_ptr<DeviceLink>& link, const std::string& path,
                                 const DeviceGroupOptions& options) {
  const auto device = Device::create(test_device_options());
  if (!device) return device.error();
  const auto group = DeviceGroup::create_linked(*device, link, options);
  if (!group) return group.error();
  return Model::load(*device, path, {.group = *group});
}

}  // namespace vkformer::testing
