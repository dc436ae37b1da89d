// The processes that mpirun started for one command, each with some layers of its model. All of
// them run the command alike; the first alone prints and writes files.
#pragma once

#include <CLI/CLI.hpp>
#include <memory>

#include "vkformer/device_group.h"

namespace vkformer::cli {

// Joins the other processes, where there are others and the command loads a model that they can
// share; else nothing happens. `command` is the one that was parsed.
Status join_ranks(const CLI::App& command);
// To the others; null: this process runs the command alone.
const std::shared_ptr<DeviceLink>& rank_link();
// Whether this process prints and writes: of several, the first.
bool is_first_rank();
// Whether stdout is a terminal, `own` of this process: what the first process says, for what a
// command does depends on it.
bool terminal_of_ranks(bool own);
// Which of the processes on this machine this is.
size_t local_rank();
// A number that the first process has, at all of them.
Status share_number(uint64_t& number);
// Has the stdin of the first process at all of them, read to its end. Once; later calls do nothing.
Status share_standard_input();
// Ends the command with this exit code. Where it is not 0 this ends the others, too, since they may
// wait for this process; it does not return then.
int leave_ranks(int code);

}  // namespace vkformer::cli
