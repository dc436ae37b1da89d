// How a task's options choose tokens, as settings of its session.
#pragma once

#include "tasks/task_model.h"

namespace vkformer {

// A setting that the caller gives replaces the model's.
template <class T>
void take(T& setting, const std::optional<T>& given) {
  if (given) setting = *given;
}

// Sampling, penalties, words as tokens, contrastive search.
Status take_choice(const TaskModel& task, const TextOptions& options, GenerateOptions& settings);
// A constraint for one run, or null.
Result<std::shared_ptr<GrammarConstraint>> grammar_constraint(TaskModel& task,
                                                              const TextOptions& options,
                                                              const GenerateOptions& settings);

}  // namespace vkformer
