#include "session/lanes.h"

#include <algorithm>
#include <thread>

#include "base/guarded.h"
#include "base/message.h"

namespace vkformer {
namespace {

bool rows_are_apart(const ModelFacts& facts) {
  const bool rows = facts.source == SourceKind::kTokens || facts.source == SourceKind::kPictures ||
                    facts.source == SourceKind::kFeatures;
  return rows && facts.passes == ModelFacts::Passes::kOne &&
         facts.images.kind == ImagePromptFacts::Kind::kNone &&
         facts.head != HeadKind::kSimilarity && facts.head != HeadKind::kSegmentation &&
         facts.head != HeadKind::kEntities;
}

}  // namespace

std::vector<LaneRows> lanes_of_inputs(const LoadedModel& model, const TensorMap& inputs) {
  if (model.split() == nullptr || inputs.empty() || !rows_are_apart(model.family().facts()))
    return {};
  int64_t batch = -1;
  for (const auto& [name, tensor] : inputs) {
    if (tensor.shape.empty() || (batch >= 0 && tensor.shape[0] != batch)) return {};
    batch = tensor.shape[0];
  }
  const int64_t lanes = std::min<int64_t>(batch, model.split()->group->lanes);
  std::vector<LaneRows> rows;
  for (int64_t lane = 0; lane < lanes; ++lane) {
    rows.push_back({batch * lane / lanes, batch * (lane + 1) / lanes});
  }
  return rows;
}

TensorMap rows_of(const TensorMap& inputs, const LaneRows& rows) {
  TensorMap made;
  for (const auto& [name, tensor] : inputs) {
    Tensor part{tensor.dtype, tensor.shape, {}};
    const auto bytes = static_cast<int64_t>(tensor.bytes.size()) / part.shape[0];
    part.shape[0] = rows.end - rows.begin;
    part.bytes.assign(tensor.bytes.begin() + rows.begin * bytes,
                      tensor.bytes.begin() + rows.end * bytes);
    made.emplace(name, std::move(part));
  }
  return made;
}

Result<TensorMap> join_rows(std::vector<TensorMap> parts, const std::vector<LaneRows>& rows) {
  TensorMap joined = std::move(parts[0]);
  for (auto& [name, tensor] : joined) {
    for (size_t i = 0; i < parts.size(); ++i) {
      const auto found = i == 0 ? joined.find(name) : parts[i].find(name);
      const int64_t wanted = rows[i].end - rows[i].begin;
      const bool there = i == 0 || found != parts[i].end();
      if (!there || found->second.shape.empty() || (i > 0 && found->second.shape[0] != wanted) ||
          (i == 0 && tensor.shape[0] != wanted)) {
        return internal_error(message({"[", name, "] has no row for each input"}));
      }
    }
    for (size_t i = 1; i < parts.size(); ++i) {
      const Tensor& part = parts[i].at(name);
      tensor.shape[0] += part.shape[0];
      tensor.bytes.insert(tensor.bytes.end(), part.bytes.begin(), part.bytes.end());
    }
  }
  return joined;
}

Status run_lanes(size_t lanes, const std::function<Status(size_t lane)>& work) {
  std::vector<Status> results(lanes);
  std::vector<std::thread> threads;
  threads.reserve(lanes);
  for (size_t lane = 1; lane < lanes; ++lane) {
    const auto run = [&, lane] { results[lane] = guarded([&] { return work(lane); }); };
    try {
      threads.emplace_back(run);
    } catch (const std::exception&) {
      run();  // the system has no thread left
    }
  }
  results[0] = guarded([&] { return work(0); });
  for (std::thread& thread : threads) thread.join();
  for (const Status& result : results) VKF_CHECK(result);
  return {};
}

}  // namespace vkformer
