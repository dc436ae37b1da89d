#include "generate/request_queue.h"

#include <doctest/doctest.h>

namespace vkformer::testing {
namespace {

void add(RequestQueue& queue, uint64_t id, const std::string& client) {
  const Status added = queue.add({id, client});
  REQUIRE_MESSAGE(added.ok(), added.error().message);
}

uint64_t take(RequestQueue& queue) {
  const auto next = queue.take();
  return next ? next->id : 0;
}

}  // namespace

TEST_SUITE("cpu") {
  TEST_CASE("turns go to the client that was served least, in the order of its requests") {
    RequestQueue queue({.waiting = 10});
    for (uint64_t id : {1, 2, 3, 4}) add(queue, id, "busy");
    CHECK(take(queue) == 1);
    queue.served("busy", 10, 20);
    add(queue, 5, "new");
    add(queue, 6, "new");
    // Who comes new begins with the least that anybody active was served, and ties go to the first.
    CHECK(take(queue) == 2);
    queue.served("busy", 0, 1);
    CHECK(take(queue) == 5);
    queue.served("new", 0, 5);
    CHECK(take(queue) == 3);
    CHECK(queue.waiting() == 2);
  }

  TEST_CASE("being away earns no turns") {
    RequestQueue queue({.waiting = 10});
    add(queue, 1, "a");
    add(queue, 2, "b");
    CHECK(take(queue) == 1);
    CHECK(take(queue) == 2);
    queue.served("a", 100, 0);
    queue.served("b", 5, 0);
    queue.ended("b");
    add(queue, 3, "b");  // lifted to 100
    queue.served("b", 1, 0);
    add(queue, 4, "a");
    CHECK(take(queue) == 4);
    CHECK(take(queue) == 3);
  }

  TEST_CASE("what is over the limits waits or is refused with a sentence") {
    RequestQueue queue({.waiting = 3, .waiting_of_client = 2, .running_of_client = 1});
    add(queue, 1, "a");
    add(queue, 2, "a");
    const Status own = queue.add({3, "a"});
    REQUIRE_FALSE(own.ok());
    CHECK(own.error().code == ErrorCode::kQueueFull);
    CHECK(own.error().message.find("'a' 2 requests") != std::string::npos);
    add(queue, 4, "b");
    const Status all = queue.add({5, "c"});
    REQUIRE_FALSE(all.ok());
    CHECK(all.error().message.find("3 requests wait") != std::string::npos);
    CHECK(take(queue) == 1);
    CHECK(take(queue) == 4);
    CHECK(take(queue) == 0);
    queue.ended("a");
    CHECK(take(queue) == 2);
    CHECK(queue.remove(7) == false);
    add(queue, 8, "c");
    CHECK(queue.remove(8));
    CHECK(queue.waiting() == 0);
  }
}

}  // namespace vkformer::testing
