// plan_cluster: how a model would lie on many devices, and how fast generations would be there,
// estimated from data sheets or measurements. No device is opened and no weight is read.
//
// Threading: a plain function without shared state; call it from any thread. Nothing throws.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "vkformer/choices.h"
#include "vkformer/device_group.h"
#include "vkformer/export.h"
#include "vkformer/model_source.h"
#include "vkformer/result.h"

namespace vkformer {

// Devices of a kind in a node.
struct ClusterDevice {
  std::string name;
  int64_t count = 1;
  uint64_t memory_bytes = 0;
  double read_rate = 0;  // bytes a second from its memory
  double flops = 0;      // operations a second in products; 0: reading alone counts
  double launch = 0;     // seconds of a dispatch that hardly does anything
  double submit = 0;     // seconds of a submit and the wait for it
};

struct ClusterLink {
  double latency = 0;  // seconds
  double rate = 0;     // bytes a second
};

struct ClusterOptions {
  std::vector<ClusterDevice> devices;  // of a node, in the order of a pipeline
  int64_t nodes = 1;
  ClusterLink in_node, between_nodes;
  int64_t texts = 1;     // that a member computes in a step
  int64_t tokens = 512;  // that are kept of each text
  // Tokens of the parts that a prompt is read in (DeviceGroupOptions::prompt_part); 0: one pass.
  int64_t prompt_part = 64;
  // kAsStored: f32, since the files of the weights are not looked at.
  WeightFormat weights = WeightFormat::kAsStored;
};

// What one device of a pipeline has.
struct ClusterStage {
  GroupStage stage;
  uint64_t cache_bytes = 0;  // of keys and values
  double memory_use = 0;     // of the device's memory, 0 to 1
};

// A model cut into pipelines of some depth, as many as the devices allow. As many groups of texts
// are under way in each as it has devices.
struct ClusterSplit {
  int64_t depth = 0;             // devices of a pipeline
  int64_t pipelines = 0;         // each with the whole model
  int64_t idle = 0;              // devices without a part
  double step_seconds = 0;       // from a token of a text to its next
  double tokens_per_second = 0;  // of all pipelines together
  double bubbles = 0;            // share of the time in which a device waits, 0 to 1
  double link_use = 0;           // share of the time in which the busiest link is in use, 0 to 1
  // Of one prompt of `tokens` tokens that has a pipeline for itself, in parts of prompt_part.
  double first_token_seconds = 0;    // until the token after it
  double prompt_bubbles = 0;         // share of the prompt's time in which a device waits, 0 to 1
  std::vector<ClusterStage> stages;  // of the first pipeline
};

struct ClusterPlan {
  std::vector<ClusterSplit> splits;  // that fit, by depth
  size_t best = 0;                   // of them: most tokens a second
};

// `model` needs config.json alone. Errors: devices, links or sizes that cannot be. A model whose
// family cannot be planned without its files is one, too, and so is too little memory in any split,
// in bytes.
VKFORMER_API Result<ClusterPlan> plan_cluster(const ModelSource& model,
                                              const ClusterOptions& options);

}  // namespace vkformer
