// The cases of every operator, declared once in cases/<operator>.cpp: checks against the reference,
// which conformance and tests run, and the benchmark's rows.
#pragma once

#include "conformance/benchmark_operators.h"
#include "conformance/content.h"

namespace vkformer::conformance {

// An operator by name, with its attributes; "gemm/f16" stores weights as halves.
struct TimedCall {
  const char* name;
  const char* attributes;
};

// What cases/<operator>.cpp fills. Nothing here needs a device.
class OperatorCases {
 public:
  explicit OperatorCases(const char* op) : op_(op) {}

  const char* op() const { return op_; }
  const std::vector<Check>& checks() const { return checks_; }
  const std::vector<OperatorRow>& rows() const { return rows_; }
  const char* limit() const { return limit_; }

  // A check, "<operator>/<name>". `quick`: also part of a quick run and of the operator's tests.
  void check(const std::string& name, bool quick, std::function<Result<CheckCase>()> make) {
    checks_.push_back({op_, op_ + ("/" + name), quick, std::move(make)});
  }
  // A check for the operator's tests: they run it however many there are, a quick run does not.
  void test(const std::string& name, std::function<Result<CheckCase>()> make) {
    checks_.push_back({op_, op_ + ("/" + name), false, std::move(make), true});
  }
  // A row of the benchmark at one real model's sizes: the first node of this operator in the
  // call's graph. `inputs` is such as "X=128,768 ids:below100=7 m:mask=1,512 v:positive=64". These
  // are uniform in [-1, 1), integers below 100, ones, and uniform in [0.5, 1.5).
  void time(const char* model, const TimedCall& call, const char* inputs) {
    rows_.push_back({op_, model, call.name, call.attributes, inputs, nullptr});
  }
  // The same of an operator that run_operator does not know; `inputs` are numbers, "heads=12".
  void time_graph(const char* model, const char* inputs, GraphBuilder build) {
    rows_.push_back({op_, model, "", "", inputs, build});
  }
  // Why the operator stays far from the roofline by its nature.
  void limited_by(const char* why) { limit_ = why; }

 private:
  const char* op_;
  std::vector<Check> checks_;
  std::vector<OperatorRow> rows_;
  const char* limit_ = "";
};

#define VKF_OP(name) void name##_cases(OperatorCases& cases);
#include "ops/op_list.def"

// Of every operator, in the order of ops/op_list.def.
const std::vector<OperatorCases>& all_cases();

// Every check, in the same order.
std::vector<Check> all_checks();

}  // namespace vkformer::conformance
