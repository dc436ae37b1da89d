// The one doctest main. Suites: cpu, gpu, model (see docs/architecture.md, tests).
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include "support/operator_check.h"
#include "support/test_device.h"

int main(int argc, char** argv) {
  const int code = doctest::Context(argc, argv).run();
  vkformer::testing::shared_tier_devices().reset();
  vkformer::shared_device().reset();
  return code;
}
