#include "session/sliced_work.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace vkformer {
namespace {

// Slices aim at this part of their budget: times vary.
constexpr double kFill = 0.85;

}  // namespace

double first_rate(const DeviceCaps& caps) {
  switch (caps.device_class) {
    case DeviceClass::kSoftware:
      return 1e3;
    case DeviceClass::kDiscrete:
      return 1e5;
    case DeviceClass::kIntegrated:
    case DeviceClass::kOther:
      return 1e4;
  }
  return 1e3;
}

Result<std::unique_ptr<SlicedWork>> SlicedWork::create(std::shared_ptr<VulkanDevice> device) {
  std::unique_ptr<SlicedWork> work(new SlicedWork(std::move(device)));
  VKF_ASSIGN(work->stream_, SliceStream::create(work->device_));
  return work;
}

void SlicedWork::start(std::vector<SlicedUnit> units, std::vector<SliceWrite> writes) {
  units_ = std::move(units);
  writes_ = std::move(writes);
  unit_ = 0;
  round_ = 0;
  position_ = {};
  work_ = total_ = 0;
  for (const SlicedUnit& unit : units_) {
    total_ += unit.costs->total_work() * static_cast<double>(unit.times);
  }
}

Status SlicedWork::clear() {
  const Status waited = stream_->wait();
  units_.clear();
  writes_.clear();
  under_way_.clear();
  unit_ = 0;
  return waited;
}

Status SlicedWork::check_submitted() const {
  if (unit_ >= units_.size()) return {};
  const double left = total_ > 0 ? 100 * (1 - std::min(1.0, work_ / total_)) : 100;
  return invalid_argument("[finish] about " + std::to_string(static_cast<int>(std::ceil(left))) +
                          " percent are still to be submitted; call advance or record until the "
                          "progress is kSubmitted or kDone, or cancel");
}

void SlicedWork::skip_rest() {
  unit_ = units_.size();
  round_ = 0;
  position_ = {};
}

// As many pieces as fit, over unit and round borders, at least one.
Slice SlicedWork::next(double microseconds, UnderWay& under_way) {
  Slice slice;
  slice.writes = std::move(writes_);
  writes_.clear();
  double left = microseconds * kFill;
  while (unit_ < units_.size() && under_way.pieces.size() < SliceStream::kMostPieces) {
    const SlicedUnit& unit = units_[unit_];
    const Plan& plan = unit.recording->plan();
    PlanPosition position = position_;
    const SliceLimits limits{left, device_->caps().max_dispatch_flops,
                             SliceStream::kMostPieces - under_way.pieces.size()};
    std::vector<PlanPiece> pieces = next_slice(plan, *unit.costs, limits, position);
    double spent = 0;
    for (const PlanPiece& piece : pieces) spent += unit.costs->microseconds(piece);
    // next_slice gives one piece whatever it costs; only the first of a slice may exceed the
    // budget.
    if (!under_way.pieces.empty() && spent > left) break;
    for (const PlanPiece& piece : pieces) {
      work_ += unit.costs->work(piece);
      under_way.pieces.emplace_back(unit.costs, piece);
    }
    slice.parts.push_back({unit.recording, std::move(pieces)});
    left -= spent;
    position_ = position;
    if (position_.dispatch < plan.dispatches.size()) break;
    position_ = {};
    if (++round_ < unit.times) {
      // Slices end between rounds where they can: what a round leaves is whole only there.
      const size_t room = SliceStream::kMostPieces - under_way.pieces.size();
      if (unit.costs->total_microseconds() > left || plan.dispatches.size() > room) break;
      continue;
    }
    round_ = 0;
    ++unit_;
  }
  return slice;
}

Status SlicedWork::collect() {
  VKF_ASSIGN(const std::vector<SliceTimes> finished, stream_->finished());
  for (const SliceTimes& times : finished) {
    // Slices before it whose times were not read are over too.
    while (!under_way_.empty() && under_way_.front().slice < times.slice) under_way_.pop_front();
    if (under_way_.empty() || under_way_.front().slice != times.slice) continue;
    const UnderWay& ran = under_way_.front();
    if (times.microseconds > 0) last_microseconds_ = times.microseconds;
    double expected = 0;
    for (const auto& [costs, piece] : ran.pieces) expected += costs->microseconds(piece);
    for (size_t i = 0; i < ran.pieces.size(); ++i) {
      const auto& [costs, piece] = ran.pieces[i];
      // Without a time of its own, a piece has its share of the slice's.
      const double share = expected > 0 ? costs->microseconds(piece) / expected : 0;
      costs->observe(piece, i < times.pieces.size() ? times.pieces[i] : times.microseconds * share);
    }
    under_way_.pop_front();
  }
  return {};
}

Advance SlicedWork::state() const {
  Advance result;
  if (unit_ >= units_.size()) {
    result.progress =
        idle() && stream_->timed() ? Advance::Progress::kDone : Advance::Progress::kSubmitted;
  }
  result.fraction = unit_ >= units_.size() || total_ <= 0 ? 1.0 : std::min(1.0, work_ / total_);
  result.last_microseconds = last_microseconds_;
  return result;
}

Result<Advance> SlicedWork::advance(double microseconds, const SubmitSemaphores& semaphores) {
  VKF_CHECK(collect());
  UnderWay under_way;
  const Slice slice = next(microseconds, under_way);
  const bool synced = !semaphores.wait_handles.empty() || !semaphores.signal_handles.empty();
  if (!slice.parts.empty() || synced) {
    VKF_ASSIGN(under_way.slice, stream_->submit(slice, semaphores));
    under_way_.push_back(std::move(under_way));
  }
  return state();
}

Result<Advance> SlicedWork::append(VkCommandBuffer_T* commands, double microseconds) {
  VKF_CHECK(collect());
  UnderWay under_way;
  const Slice slice = next(microseconds, under_way);
  if (!slice.parts.empty()) {
    VKF_ASSIGN(under_way.slice, stream_->append(commands, slice));
    if (stream_->timed()) under_way_.push_back(std::move(under_way));
  }
  return state();
}

}  // namespace vkformer
