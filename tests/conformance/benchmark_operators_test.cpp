#include "conformance/benchmark_operators.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "ops/op.h"
#include "support/test_device.h"

using namespace vkformer;

namespace {

// Rows that take well under a second anywhere.
const char* const kQuickOperators[] = {"argmax",    "beam_select",  "combine",  "greedy_select",
                                       "kv_append", "move_columns", "rms_norm", "step_advance"};

}  // namespace

TEST_SUITE("cpu") {
  TEST_CASE("every operator has a row in the benchmark's table, and no other has") {
    std::set<std::string> listed, measured;
    for (uint16_t op = 0; op < static_cast<uint16_t>(OpId::kCount); ++op) {
      listed.insert(op_name(static_cast<OpId>(op)));
    }
    for (const OperatorRow& row : operator_rows()) measured.insert(row.op);
    for (const std::string& op : listed) {
      CHECK_MESSAGE(measured.count(op) == 1, op << " has no row in conformance/cases");
    }
    for (const std::string& op : measured) CHECK_MESSAGE(listed.count(op) == 1, op);
    const std::vector<std::string> names = benchmark_operators();
    CHECK(std::set<std::string>(names.begin(), names.end()) == listed);
    CHECK(names.size() == listed.size());
  }

  TEST_CASE("every row's graph is that operator alone, and plans on the least device") {
    const DeviceCaps caps;
    std::set<std::string> names;
    for (const OperatorRow& row : operator_rows()) {
      INFO(row.op << ", " << row.model);
      CHECK(names.insert(std::string(row.op) + row.model).second);
      const auto made = make_operator_graph(row);
      REQUIRE_MESSAGE(made.ok(), made.error().message);
      REQUIRE(made->graph.nodes().size() == 1);
      CHECK(std::string(made->graph.nodes()[0].op_name) == row.op);
      const auto plan = make_plan(made->graph, caps, Precision::kF32);
      REQUIRE_MESSAGE(plan.ok(), plan.error().message);
      CHECK(plan->bytes() > 0);
      for (const Dispatch& d : plan->dispatches) CHECK(std::string(d.op) == row.op);
    }
  }

  TEST_CASE("a table's entry without sense is named") {
    CHECK(parse_row_inputs("X=2,3 ids:below7=4")->size() == 2);
    CHECK(parse_row_inputs("ids:below7=4")->front().kind == "below7");
    for (const char* text : {"X", "X=0", "X=two"}) {
      const auto inputs = parse_row_inputs(text);
      REQUIRE_FALSE(inputs.ok());
      CHECK(inputs.error().message.find(text) != std::string::npos);
    }
    const OperatorRow unknown{"matmul", "none", "", "{}", "m=1"};
    const auto made = make_operator_graph(unknown);
    REQUIRE_FALSE(made.ok());
    CHECK(made.error().message.find("matmul") != std::string::npos);
  }
}

TEST_SUITE("gpu") {
  TEST_CASE("an operator's benchmark gives the same bits twice, whatever it overwrites") {
    VKF_TEST_DEVICE(device);
    for (const char* op : kQuickOperators) {
      INFO(op);
      const auto first = benchmark_operator(device_of(device), op, 2);
      const auto again = benchmark_operator(device_of(device), op, 3);
      REQUIRE_MESSAGE(first.ok(), first.error().message);
      REQUIRE_MESSAGE(again.ok(), again.error().message);
      REQUIRE(first->size() == again->size());
      for (size_t i = 0; i < first->size(); ++i) {
        const OperatorTime& time = (*first)[i];
        CHECK(time.op == op);
        CHECK(time.ms_median > 0);
        CHECK(time.ms_min <= time.ms_median);
        CHECK(time.dispatches >= 1);
        CHECK(time.bytes > 0);
        CHECK(time.kernels.find(op) == 0);
        CHECK(time.hash.size() == 16);
        CHECK(time.hash == (*again)[i].hash);
      }
    }
  }

  TEST_CASE("an operator without rows, and rounds out of range, are named") {
    VKF_TEST_DEVICE(device);
    const auto unknown = benchmark_operator(device_of(device), "abacus", 1);
    REQUIRE_FALSE(unknown.ok());
    CHECK(unknown.error().message.find("abacus") != std::string::npos);
    const auto rounds = benchmark_operator(device_of(device), "combine", 0);
    REQUIRE_FALSE(rounds.ok());
    CHECK(rounds.error().message.find("rounds is 0") != std::string::npos);
  }
}
