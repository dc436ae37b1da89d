// Examples of models on several devices.
#include <vkformer/cluster_plan.h>
#include <vkformer/device_group.h>
#include <vkformer/model.h>

#include <condition_variable>
#include <cstdio>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "examples.h"

namespace {

vkformer::Status show_group(const Setting& setting) {
  const vkformer::Device& device = setting.device;
  const std::string directory = setting.models + "/shakespeare";
  //! [DeviceGroup::create DeviceGroup::size Model::group_plan group_plan_text]
  // Loads a model onto two devices, here the same one twice, and prints which layers each has.
  vkformer::DeviceGroupOptions options;
  options.shares = {2, 1};
  const auto group = vkformer::DeviceGroup::create({device, device}, options);
  if (!group) return group.error();
  std::printf("%zu members\n", group->size());
  vkformer::ModelOptions on_group;
  on_group.group = *group;
  const auto model = vkformer::Model::load(device, directory, on_group);
  if (!model) return model.error();
  std::printf("%s", vkformer::group_plan_text(model->group_plan()).c_str());
  //! [end]
  return expect(model->group_plan().stages.size() == 2, "two stages");
}

vkformer::Status show_cluster(const Setting& setting) {
  const auto source = vkformer::ModelSource::directory(setting.models + "/shakespeare");
  //! [plan_cluster]
  // Estimates a model on two nodes of four GPUs each, none of which needs to be here.
  vkformer::ClusterOptions options;
  options.devices = {{"GPU", 4, uint64_t{80} << 30, 2e12, 6e13, 3e-6, 2e-5}};
  options.nodes = 2;
  options.in_node = {1e-6, 3e11};
  options.between_nodes = {1e-5, 2.5e10};
  const auto plan = vkformer::plan_cluster(source, options);
  if (!plan) return plan.error();
  const vkformer::ClusterSplit& best = plan->splits[plan->best];
  std::printf("%lld devices a pipeline: %.0f tokens/s\n", static_cast<long long>(best.depth),
              best.tokens_per_second);
  //! [end]
  return expect(best.tokens_per_second > 0, "a rate");
}

// What two ends in one process have in common: messages by sender, receiver and lane, in order.
struct Mailbox {
  std::mutex mutex;
  std::condition_variable arrived;
  std::map<std::pair<size_t, uint32_t>, std::vector<std::byte>> bytes;  // to one end, in a lane
};

//! [DeviceLink::members DeviceLink::own DeviceLink::send DeviceLink::receive]
//! [DeviceLink::broadcast]
// One of two ends of a link, here in one process. An application writes it over its own network.
class MailboxLink : public vkformer::DeviceLink {
 public:
  MailboxLink(std::shared_ptr<Mailbox> mailbox, size_t own) : mailbox_(mailbox), own_(own) {}
  size_t members() const override { return 2; }
  size_t own() const override { return own_; }
  vkformer::Status send(size_t to, uint32_t lane, std::span<const std::byte> bytes) override;
  vkformer::Status receive(size_t from, uint32_t lane, std::span<std::byte> bytes) override;
  vkformer::Status broadcast(size_t from, uint32_t lane, std::span<std::byte> bytes) override {
    return from == own_ ? send(1 - own_, lane, bytes) : receive(from, lane, bytes);
  }

 private:
  std::shared_ptr<Mailbox> mailbox_;
  size_t own_;
};
//! [end]

vkformer::Status MailboxLink::send(size_t to, uint32_t lane, std::span<const std::byte> bytes) {
  const std::lock_guard lock(mailbox_->mutex);
  auto& waiting = mailbox_->bytes[{to, lane}];
  waiting.insert(waiting.end(), bytes.begin(), bytes.end());
  mailbox_->arrived.notify_all();
  return {};
}

vkformer::Status MailboxLink::receive(size_t, uint32_t lane, std::span<std::byte> bytes) {
  std::unique_lock lock(mailbox_->mutex);
  auto& waiting = mailbox_->bytes[{own_, lane}];
  mailbox_->arrived.wait(lock, [&] { return waiting.size() >= bytes.size(); });
  const auto end = waiting.begin() + static_cast<std::ptrdiff_t>(bytes.size());
  std::copy(waiting.begin(), end, bytes.begin());
  waiting.erase(waiting.begin(), end);
  return {};
}

vkformer::Result<size_t> join(const vkformer::Device& device,
                              std::shared_ptr<vkformer::DeviceLink> link) {
  //! [DeviceGroup::create_linked]
  // Joins the group of all processes of a link. Each of them does the same with its own device.
  vkformer::DeviceGroupOptions options;
  options.shares = {1, 1};
  const auto group = vkformer::DeviceGroup::create_linked(device, link, options);
  if (!group) return group.error();
  std::printf("member %zu of %zu\n", link->own(), group->size());
  //! [end]
  return group->size();
}

vkformer::Status show_links(const Setting& setting) {
  const auto mailbox = std::make_shared<Mailbox>();
  vkformer::Result<size_t> other = size_t{0};
  std::thread second(
      [&] { other = join(setting.device, std::make_shared<MailboxLink>(mailbox, 1)); });
  const auto own = join(setting.device, std::make_shared<MailboxLink>(mailbox, 0));
  second.join();
  if (!own) return own.error();
  if (!other) return other.error();
  return expect(*own == 2 && *other == 2, "two members");
}

}  // namespace

vkformer::Status show_groups(const Setting& setting) {
  for (const auto show : {show_group, show_cluster, show_links}) {
    const auto shown = show(setting);
    if (!shown) return shown;
  }
  return {};
}
