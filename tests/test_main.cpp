// The one doctest main. Suites: cpu, gpu, model (see docs/architecture.md, tests).
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>
