// The cases of step_advance: what the benchmark times; whole searches are in models.cpp.
#include "ops/step_advance.h"
#include "conformance/cases.h"
#include "conformance/search_cases.h"
#include "conformance/step_graph.h"

namespace vkformer::conformance {
namespace {

Status advance_graph(StepGraph& in) {
  return add_step_advance(in.graph(), search_tensors(in));
}

}  // namespace

void step_advance_cases(OperatorCases& cases) {
  cases.time_graph("marian 6 beams", "items=1 beams=6 capacity=128 vocab=59514", advance_graph);
  cases.limited_by("one workgroup packs the live rows and writes the next step's sizes");
}

}  // namespace vkformer::conformance
