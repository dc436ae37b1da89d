#include "recording/sliced_work.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "base/message.h"
#include "vulkan/device_impl.h"

namespace vkformer {
namespace {

// One slice in a hundred may take longer than this part of its budget. A slice that does makes the
// later ones shorter. A hundred that do not make up for it.
constexpr double kTooLong = 1.2;
constexpr double kShorter = 0.95;
constexpr double kLonger = 1.0005;
constexpr double kLeastFill = 0.5;
constexpr double kMostFill = 1.0;

// Keeps the pieces, from the first on, that have at most `most` flops together; moves `position`
// to the first that it omits.
void limit_flops(const Plan& plan, double most, std::vector<PlanPiece>& pieces,
                 PlanPosition& position) {
  double flops = 0;
  for (size_t i = 0; i < pieces.size(); ++i) {
    flops += pieces[i].part.flops;
    if (i == 0 || flops <= most) continue;
    position = begin_of(plan, pieces[i]);
    pieces.resize(i);
    return;
  }
}

// A cautious first estimate, in operations a microsecond.
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

}  // namespace

SliceCosts costs_of(VulkanDevice& device, const Plan& plan) {
  return SliceCosts(plan, first_rate(device.caps()), device.impl().costs);
}

Result<std::unique_ptr<SlicedWork>> SlicedWork::create(std::shared_ptr<VulkanDevice> device) {
  std::unique_ptr<SlicedWork> work(new SlicedWork(std::move(device)));
  VKF_ASSIGN(work->stream_, SliceStream::create(work->device_));
  return work;
}

void SlicedWork::start(SlicedPlan plan) {
  stream_->forget_all();
  under_way_.clear();
  unknown_ = false;
  plan_ = std::move(plan);
  at_ = {};
  expected_ = 0;
  total_ = 0;
  for (const SlicedUnit& unit : plan_.units) {
    total_ += unit.costs->total_work() * static_cast<double>(unit.times);
  }
}

Status SlicedWork::clear() {
  const Status waited = stream_->wait();
  start({});
  return waited;
}

Status SlicedWork::check_submitted() const {
  if (at_.unit >= plan_.units.size()) return {};
  const double left = total_ > 0 ? 100 * (1 - std::min(1.0, at_.work / total_)) : 100;
  return invalid_argument(message({"[finish] about ", static_cast<int>(std::ceil(left)),
                                   " percent are still to be submitted; call advance or record "
                                   "until the progress is kSubmitted or kDone, or cancel"}));
}

void SlicedWork::skip_rest() {
  at_.unit = plan_.units.size();
  at_.round = 0;
  at_.position = {};
}

// As many pieces as fit, over unit and round borders, at least one.
Slice SlicedWork::next(double microseconds, Cursor& at, UnderWay& under_way) const {
  Slice slice;
  if (at.inputs) {
    slice.writes = plan_.writes;
    slice.before = plan_.before;
    slice.images = plan_.images;
  }
  under_way.from = at;
  under_way.budget = microseconds;
  const double longest = device_->caps().max_dispatch_flops;
  double left = microseconds * fill_;
  double flops = longest * kDispatchesPerSubmit;
  while (at.unit < plan_.units.size() && under_way.pieces.size() < SliceStream::kMostPieces) {
    const SlicedUnit& unit = plan_.units[at.unit];
    const Plan& plan = unit.recording->plan();
    PlanPosition position = at.position;
    const size_t room = SliceStream::kMostPieces - under_way.pieces.size();
    std::vector<PlanPiece> pieces = next_slice(plan, *unit.costs, {left, longest, room}, position);
    limit_flops(plan, flops, pieces, position);
    double spent = 0;
    for (const PlanPiece& piece : pieces) spent += unit.costs->microseconds(piece);
    // next_slice gives one piece whatever it costs; only the first of a slice may exceed the
    // budget.
    if (!under_way.pieces.empty() && (spent > left || pieces.front().part.flops > flops)) break;
    for (const PlanPiece& piece : pieces) {
      at.work += unit.costs->work(piece);
      flops -= piece.part.flops;
      under_way.pieces.emplace_back(unit.costs, piece);
    }
    slice.parts.push_back({unit.recording, std::move(pieces)});
    left -= spent;
    at.position = position;
    if (position.dispatch < plan.dispatches.size()) break;
    at.position = {};
    // What a round leaves is whole, until the next one ends.
    under_way.ends_round = true;
    slice.after = plan_.after;
    slice.copied_after = slice.parts.size();
    if (++at.round < unit.times) continue;
    at.round = 0;
    ++at.unit;
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
    if (times.microseconds > 0) {
      last_microseconds_ = times.microseconds;
      const bool long_one = times.microseconds > kTooLong * ran.budget;
      fill_ = std::clamp(fill_ * (long_one ? kShorter : kLonger), kLeastFill, kMostFill);
    }
    double expected = 0;
    for (const auto& [costs, piece] : ran.pieces) expected += costs->microseconds(piece);
    for (size_t i = 0; i < ran.pieces.size(); ++i) {
      const auto& [costs, piece] = ran.pieces[i];
      // Without its own time, a piece has its share of the slice's.
      const double share = expected > 0 ? costs->microseconds(piece) / expected : 0;
      costs->observe(piece, i < times.pieces.size() ? times.pieces[i] : times.microseconds * share);
    }
    under_way_.pop_front();
  }
  return {};
}

Advance SlicedWork::state() const {
  Advance result;
  if (at_.unit >= plan_.units.size()) {
    result.progress = idle() ? Advance::Progress::kDone : Advance::Progress::kSubmitted;
  }
  result.fraction =
      at_.unit >= plan_.units.size() || total_ <= 0 ? 1.0 : std::min(1.0, at_.work / total_);
  result.last_microseconds = last_microseconds_;
  result.expected_microseconds = expected_;
  return result;
}

void SlicedWork::advance_to(const Cursor& at, UnderWay under_way) {
  at_ = at;
  at_.inputs = false;
  at_.round_ended = at_.round_ended || under_way.ends_round;
  expected_ = 0;
  for (const auto& [costs, piece] : under_way.pieces) expected_ += costs->microseconds(piece);
  under_way_.push_back(std::move(under_way));
}

Result<Advance> SlicedWork::advance(double microseconds, const SubmitSemaphores& semaphores) {
  UnderWay under_way;
  Cursor at = at_;
  expected_ = 0;
  const Slice slice = next(microseconds, at, under_way);
  const bool synced = !semaphores.wait_handles.empty() || !semaphores.signal_handles.empty();
  if (!slice.parts.empty() || synced) {
    // A slice that was refused is still to come.
    VKF_ASSIGN(under_way.slice, stream_->submit(slice, semaphores));
    advance_to(at, std::move(under_way));
  }
  return state();
}

Result<Advance> SlicedWork::append(VkCommandBuffer_T* commands, double microseconds) {
  UnderWay under_way;
  Cursor at = at_;
  expected_ = 0;
  const Slice slice = next(microseconds, at, under_way);
  if (!slice.parts.empty()) {
    VKF_ASSIGN(under_way.slice, stream_->append(commands, slice));
    under_way.appended = true;
    // Nobody sees when those before it have run.
    if (!stream_->timed()) under_way_.clear();
    unknown_ = unknown_ || !stream_->timed();
    advance_to(at, std::move(under_way));
  }
  return state();
}

Status SlicedWork::drop_last() {
  if (under_way_.empty() || !under_way_.back().appended) {
    return invalid_argument(
        "[drop_recorded] the latest slice was not recorded into a command buffer of the "
        "application, or has run; only a recorded slice that was never submitted can be dropped");
  }
  at_ = under_way_.back().from;
  expected_ = 0;
  if (stream_->timed()) stream_->forget(under_way_.back().slice);
  under_way_.pop_back();
  return {};
}

}  // namespace vkformer
