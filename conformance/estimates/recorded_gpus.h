// Recorded GPUs: what drivers of GPUs that are not there stated, and what their compilers made of
// the benchmark's kernels. tools/record_kernels writes one file a GPU, which is part of the
// library:
//
//   target    "nvk:172", as tools/drivers names it
//   caps      what the device can do (caps_json.h)
//   kernels   [name, [constants], subgroup size, occupancy, instructions, and of the hot part
//             instructions, multiply-adds and loads from memory], one a line
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "conformance/estimates/time_model.h"
#include "plan/device_caps.h"

namespace vkformer::estimates {

class RecordedGpu {
 public:
  // A recording by its target; an error where there is none, or its text is damaged.
  static Result<RecordedGpu> read(std::string_view target);
  // The same of its text.
  static Result<RecordedGpu> parse(std::string_view text);

  const std::string& target() const { return target_; }
  const DeviceCaps& caps() const { return caps_; }
  size_t pipelines() const;

  // What is known of a pipeline. One that was not compiled is taken to be as the pipeline of that
  // kernel with the most constants in common. It is null where there is none.
  struct Found {
    const CompiledKernel* kernel = nullptr;
    bool exact = false;
  };
  Found find(std::string_view kernel, std::span<const uint32_t> constants) const;

 private:
  struct Pipeline {
    std::vector<uint32_t> constants;
    CompiledKernel compiled;
  };

  std::string target_;
  DeviceCaps caps_;
  std::map<std::string, std::vector<Pipeline>, std::less<>> kernels_;
};

// The targets that there are recordings of.
std::vector<std::string_view> recorded_targets();

}  // namespace vkformer::estimates
