// Requests that wait for a row, and whose turn it is. A client's turn comes the sooner the less it
// was served (Sheng et al. 2024, "Fairness in Serving Large Language Models": virtual token
// counters). Among a client's own requests, the first that came is next. Counts and limits only, no
// GPU.
#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <optional>
#include <string>

#include "base/check.h"

namespace vkformer {

struct QueueLimits {
  size_t waiting = 0;            // requests in all
  size_t waiting_of_client = 0;  // 0: no limit
  size_t running_of_client = 0;  // 0: no limit
};

struct QueuedRequest {
  uint64_t id = 0;
  std::string client;
};

class RequestQueue {
 public:
  explicit RequestQueue(const QueueLimits& limits) : limits_(limits) {}

  // Refuses what would be more than the limits, where `untold` more count as waiting: those whose
  // end nobody has heard of yet.
  Status add(const QueuedRequest& request, size_t untold = 0);
  // The next that may run, which then counts as running; none where nobody waits who may.
  std::optional<QueuedRequest> take();
  // Of one that waits; false where it does not.
  bool remove(uint64_t id);
  // Work done for a running request of that client: tokens that were fed, tokens that were chosen.
  void served(const std::string& client, int64_t fed, int64_t chosen);
  void ended(const std::string& client);

  size_t waiting() const { return requests_.size(); }

 private:
  struct Client {
    int64_t service = 0;
    size_t waiting = 0;
    size_t running = 0;
    bool active() const { return waiting + running > 0; }
  };
  // Raises the service count of a client that comes back to the least of those that stayed, so that
  // being away earns nothing. Drops the clients that this would raise anyway.
  Client& activate(const std::string& name);
  bool may_run(const Client& client) const;

  QueueLimits limits_;
  std::list<QueuedRequest> requests_;  // in the order they came
  std::map<std::string, Client> clients_;
};

}  // namespace vkformer
