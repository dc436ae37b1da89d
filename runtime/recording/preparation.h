// A pass on its way from sizes to commands, in parts, so that no frame has to wait for all of it.
#pragma once

#include <vector>

#include "base/check.h"
#include "plan/plan.h"

namespace vkformer {

class Preparation {
 public:
  virtual ~Preparation() = default;
  // Plans the graphs: the host's work alone. On any thread, as record is.
  virtual Status plan() = 0;
  // After plan, until record: the graphs' plans, whose pipelines record needs.
  virtual std::vector<const Plan*> plans() const = 0;
  // Memory, descriptor sets and command buffers; submits nothing. Makes the pipelines that are
  // missing.
  virtual Status record() = 0;
  // Writes what depends on the shape only. On the caller's thread, because it may submit to a queue
  // that the application shares.
  virtual Status finish() = 0;
};

// All parts in a row, on the caller's thread.
Status prepare_now(Preparation& pass);

}  // namespace vkformer
