#include "compile/planned.h"

#include <algorithm>
#include <cstdio>
#include <sstream>

#include "base/check.h"
#include "conformance/benchmark_operators.h"
#include "conformance/cases.h"
#include "conformance/estimates/time_model.h"
#include "conformance/kernels.h"
#include "conformance/variations.h"
#include "measure/planned_passes.h"
#include "model_shapes.h"
#include "ops/op.h"

namespace vkformer::compile {

std::string PlannedPipeline::constants() const {
  const std::vector<std::string_view> names = conformance::constants_of(kernel);
  std::string text;
  for (size_t i = 0; i < spec.size(); ++i) {
    if (i > 0) text += ' ';
    text += i < names.size() ? std::string(names[i]) : std::to_string(i);
    text += '=' + std::to_string(spec[i]);
  }
  return text;
}

void PlannedPipelines::add(const PlanOrigin& origin, const Plan& plan) {
  for (const Dispatch& d : plan.dispatches) {
    if (std::string(conformance::name_of(d.kernel)).find(only_) == std::string::npos) continue;
    const auto [place, fresh] = places_.try_emplace({d.kernel, d.spec}, list_.size());
    if (fresh) list_.push_back({d.kernel, d.spec, origin.what, d.groups, d.flops});
    PlannedPipeline& one = list_[place->second];
    ++one.uses;
    one.benchmark |= origin.benchmark;
    one.chosen |= origin.chosen;
    one.model |= origin.model;
    one.estimated |= origin.estimated;
    one.reproducible |= d.reproducible;
  }
}

void PlannedPipelines::refuse(const PlanOrigin& origin, const Error& error) {
  ++refused_;
  std::fprintf(stderr, "REFUSED %s: %s\n", origin.what.c_str(), error.message.c_str());
}

void PlannedPipelines::add_row(const DeviceCaps& caps, const OperatorRow& row, Precision precision,
                               bool estimated) {
  const PlanOrigin origin{std::string(row.op) + ", " + row.model, true, true, false, estimated};
  const auto made = make_operator_graph(row);
  if (!made) {
    refuse(origin, made.error());
    return;
  }
  const auto plan = make_plan(made->graph, caps, precision);
  if (plan) add(origin, *plan);
  if (!plan) refuse(origin, plan.error());
}

void PlannedPipelines::add_rows(const DeviceCaps& caps, Precision precision) {
  for (const OperatorRow& row : operator_rows()) {
    add_row(caps, row, precision, precision == Precision::kF32);
  }
}

void PlannedPipelines::add_precisions(const DeviceCaps& caps) {
  add_rows(caps, Precision::kF16);
  for (size_t i = 0; i < choice_names<WeightFormat>().size(); ++i) {
    const auto format = static_cast<WeightFormat>(i);
    if (format == WeightFormat::kAsStored) continue;
    const std::string call = std::string("gemm/") + choice_name(format);
    for (const char* rows : {"1", "4", "48", "512"}) {
      const std::string inputs = std::string("A=") + rows + ",768 B=768,768";
      const std::string what = call + ", " + rows + " rows";
      for (const Precision precision : {Precision::kF32, Precision::kF16, Precision::kInt8}) {
        add_row(caps, {"matmul", what.c_str(), call.c_str(), "{}", inputs.c_str()}, precision,
                false);
      }
    }
  }
}

Status PlannedPipelines::add_row(const DeviceCaps& caps, const std::string& text,
                                 Precision precision) {
  // The last part may have spaces, and none of the others a semicolon.
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream >> std::ws, part, ';');) parts.push_back(part);
  if (parts.size() != 4) {
    return invalid_argument("[" + text +
                            "] is no row; write OPERATOR; CALL; ATTRIBUTES; INPUTS, as in "
                            "'matmul; gemm/f16; {}; A=1,768 B=768,768'.");
  }
  add_row(
      caps,
      {parts[0].c_str(), parts[3].c_str(), parts[1].c_str(), parts[2].c_str(), parts[3].c_str()},
      precision);
  return {};
}

Status PlannedPipelines::add_passes(const DeviceCaps& caps, const ModelSource& source,
                                    const ModelOptions& options, const SessionSizes& sizes) {
  VKF_ASSIGN(const std::vector<Plan> plans, plan_passes(caps, source, options, sizes));
  const std::string names[] = {sizes.new_tokens > 0 ? "prompt, " : "pass, ", "step, "};
  for (size_t i = 0; i < plans.size(); ++i) {
    for (const Dispatch& d : plans[i].dispatches) {
      Plan one;
      one.dispatches = {d};
      add({names[i] + d.label, false, true}, one);
    }
  }
  return {};
}

void PlannedPipelines::add_choices(const DeviceCaps& caps) {
  for (const GpuTraits& traits : estimates::other_traits(caps.gpu)) {
    DeviceCaps other = caps;
    other.gpu = traits;
    add_models(other, false);
  }
}

void PlannedPipelines::add_models(const DeviceCaps& caps, bool chosen) {
  for (const cli::ModelShape& shape : cli::model_shapes()) {
    for (const cli::ModelRun& run : shape.runs) {
      const PlanOrigin origin{std::string(shape.name) + " " + run.name, false, chosen, chosen};
      const auto plans = plan_passes(caps, cli::random_model(shape, cli::ShapeWeights::kZeros), {},
                                     cli::sizes_of(run));
      if (!plans) refuse(origin, plans.error());
      for (const Plan& plan : plans ? *plans : std::vector<Plan>()) add(origin, plan);
    }
  }
}

void PlannedPipelines::add_checks(const DeviceCaps& caps) {
  for (const conformance::Check& check : conformance::all_checks()) {
    const auto made = check.make();
    if (!made) {
      refuse({check.name}, made.error());
      continue;
    }
    for (const auto& variation : conformance::variations_of(caps, check, *made)) {
      const auto plan = make_plan(made->op.graph, variation.caps, made->precision);
      // Variations have kernels that the device does without, too.
      const bool avoids =
          plan && std::any_of(plan->dispatches.begin(), plan->dispatches.end(),
                              [&](const Dispatch& d) { return caps.is_demoted(d.kernel); });
      const PlanOrigin origin{check.name + "/" + variation.name, false,
                              !avoids && variation.name == choice_name(caps.tier)};
      if (plan) add(origin, *plan);
      if (!plan) refuse(origin, plan.error());
    }
  }
}

}  // namespace vkformer::compile
