// What processes must have in common that share one job over data. These are the program, the
// command, its options, and the content of the files that these name.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "output.h"
#include "vkformer/result.h"

namespace vkformer::cli {

// Of a parsed command. Options that say where and how loudly a process works are no part of it.
Result<Json> job_identity(const CLI::App& command);
// Why a process of identity `own` may not work on a job of identity `begun`, which names the option
// or file; empty: it may. `where` is where the other one is ("in the shared job [...]"), `advice` a
// sentence of what to do.
std::string identity_difference(const Json& begun, const Json& own, const std::string& where,
                                const std::string& advice);

}  // namespace vkformer::cli
