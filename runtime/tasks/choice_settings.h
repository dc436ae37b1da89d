// How a task's options choose tokens, as settings of its session.
#pragma once

#include "tasks/task_model.h"

namespace vkformer {

// Sampling, penalties, words as tokens, contrastive search.
Status take_choice(const TaskModel& task, const TextOptions& options, GenerateOptions& settings);
// A constraint for one run, or null.
Result<std::shared_ptr<GrammarConstraint>> grammar_constraint(TaskModel& task,
                                                              const TextOptions& options,
                                                              const GenerateOptions& settings);

}  // namespace vkformer
