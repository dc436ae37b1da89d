// The cases of greedy_select: what the benchmark times; whole searches are in models.cpp.
#include "conformance/cases.h"
#include "conformance/search_cases.h"

namespace vkformer::conformance {

void greedy_select_cases(OperatorCases& cases) {
  cases.time_graph("gpt2 decode", "items=1 beams=1 capacity=1024 vocab=50257", select_graph);
  cases.limited_by("one invocation a row writes a few words");
}

}  // namespace vkformer::conformance
