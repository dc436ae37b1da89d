#include "compile/planned.h"

#include <algorithm>
#include <cstdio>

#include "conformance/benchmark_operators.h"
#include "conformance/cases.h"
#include "conformance/kernels.h"
#include "conformance/variations.h"
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
    if (fresh) list_.push_back({d.kernel, d.spec, origin.what, d.groups});
    PlannedPipeline& one = list_[place->second];
    ++one.uses;
    one.benchmark |= origin.benchmark;
    one.chosen |= origin.chosen;
  }
}

void PlannedPipelines::refuse(const PlanOrigin& origin, const Error& error) {
  ++refused_;
  std::fprintf(stderr, "REFUSED %s: %s\n", origin.what.c_str(), error.message.c_str());
}

void PlannedPipelines::add_rows(const DeviceCaps& caps) {
  for (const OperatorRow& row : operator_rows()) {
    const PlanOrigin origin{std::string(row.op) + ", " + row.model, true, true};
    const auto made = make_operator_graph(row);
    if (!made) {
      refuse(origin, made.error());
      continue;
    }
    const auto plan = make_plan(made->graph, caps, Precision::kF32);
    if (plan) add(origin, *plan);
    if (!plan) refuse(origin, plan.error());
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
