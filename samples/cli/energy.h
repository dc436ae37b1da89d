// The machine's own energy counters, where it has some that may be read.
#pragma once

#include <optional>

namespace vkformer::cli {

// Joules of all processor packages since some moment, by /sys/class/powercap; nothing without a
// counter, or without the right to read it.
std::optional<double> energy_joules();

}  // namespace vkformer::cli
