// Values or an end of the program with the reason: benchmarks have nobody to hand errors to.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <utility>

#include "vkformer/result.h"

namespace vkformer::bench {

[[noreturn]] inline void fail(const Error& error) {
  std::fprintf(stderr, "%s\n", error.message.c_str());
  std::exit(1);
}

template <class T>
T value_or_exit(Result<T> result) {
  if (!result) fail(result.error());
  return std::move(result).value();
}

}  // namespace vkformer::bench
