// The one doctest main. Suites: cpu, gpu, model (see docs/architecture.md, tests).
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include "support/kept.h"

int main(int argc, char** argv) {
  const int code = doctest::Context(argc, argv).run();
  vkformer::testing::let_go_of_kept();
  return code;
}
