// The cases of beam_select: what the benchmark times; whole searches are in models.cpp.
#include "conformance/cases.h"
#include "conformance/search_cases.h"

namespace vkformer::conformance {

void beam_select_cases(OperatorCases& cases) {
  cases.time_graph("marian 6 beams", "items=1 beams=6 capacity=128 vocab=59514", select_graph);
  cases.time_graph("bart-base 8x4 beams", "items=8 beams=4 capacity=128 vocab=50265", select_graph);
  cases.limited_by("sequential choices among a few dozen candidates; one workgroup an item");
}

}  // namespace vkformer::conformance
