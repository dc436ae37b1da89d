#include "generate/request_queue.h"

#include <algorithm>

#include "base/message.h"

namespace vkformer {
namespace {

// A chosen token takes its own step, a fed one shares one: the weights of the paper.
constexpr int64_t kFedWeight = 1;
constexpr int64_t kChosenWeight = 2;

Error queue_full(const std::string& who, size_t count) {
  return {ErrorCode::kQueueFull, message({"[submit] ", who, count,
                                          " requests wait already, which is the limit. Take steps "
                                          "until some have ended, then submit again."})};
}

}  // namespace

RequestQueue::Client& RequestQueue::activate(const std::string& name) {
  std::optional<int64_t> least;
  for (const auto& [other, client] : clients_) {
    if (client.active()) least = std::min(least.value_or(client.service), client.service);
  }
  if (clients_.count(name) != 0 && clients_[name].active()) return clients_[name];
  if (!least) {
    clients_.clear();
  } else {
    std::erase_if(clients_, [&](const auto& entry) {
      return !entry.second.active() && entry.second.service <= *least;
    });
  }
  Client& client = clients_[name];
  client.service = std::max(client.service, least.value_or(0));
  return client;
}

bool RequestQueue::may_run(const Client& client) const {
  return limits_.running_of_client == 0 || client.running < limits_.running_of_client;
}

Status RequestQueue::add(const QueuedRequest& request, size_t untold) {
  const size_t waiting = requests_.size() + untold;
  if (waiting >= limits_.waiting) return queue_full("", waiting);
  const auto known = clients_.find(request.client);
  if (limits_.waiting_of_client > 0 && known != clients_.end() &&
      known->second.waiting >= limits_.waiting_of_client) {
    return queue_full("of the client '" + request.client + "' ", known->second.waiting);
  }
  Client& client = activate(request.client);
  requests_.push_back(request);
  ++client.waiting;
  return {};
}

std::optional<QueuedRequest> RequestQueue::take() {
  auto best = requests_.end();
  for (auto it = requests_.begin(); it != requests_.end(); ++it) {
    const Client& client = clients_[it->client];
    if (!may_run(client)) continue;
    if (best == requests_.end() || client.service < clients_[best->client].service) best = it;
  }
  if (best == requests_.end()) return std::nullopt;
  QueuedRequest request = std::move(*best);
  requests_.erase(best);
  Client& client = clients_[request.client];
  --client.waiting;
  ++client.running;
  return request;
}

bool RequestQueue::remove(uint64_t id) {
  const auto found = std::find_if(requests_.begin(), requests_.end(),
                                  [&](const QueuedRequest& r) { return r.id == id; });
  if (found == requests_.end()) return false;
  --clients_[found->client].waiting;
  requests_.erase(found);
  return true;
}

void RequestQueue::served(const std::string& client, int64_t fed, int64_t chosen) {
  clients_[client].service += kFedWeight * fed + kChosenWeight * chosen;
}

void RequestQueue::ended(const std::string& client) {
  --clients_[client].running;
}

}  // namespace vkformer
