#include "overlay/frame_times.h"

#include <algorithm>
#include <cstdio>

namespace sample {

namespace {

const glm::vec4 kRender{0.40F, 0.74F, 0.98F, 1.0F}, kGuest{1.0F, 0.70F, 0.22F, 1.0F};
const glm::vec4 kChartInk{0.95F, 0.96F, 1.0F, 1.0F}, kChartMuted{0.72F, 0.75F, 0.84F, 1.0F};
const glm::vec4 kPanel{0.06F, 0.07F, 0.13F, 0.80F}, kLimit{1.0F, 0.38F, 0.42F, 0.95F};

constexpr float kHeadroom = 1.5F;  // the graph's height, in budgets

// The value that a share `p` of the values does not exceed.
double percentile(std::vector<double> values, double p) {
  if (values.empty()) return 0.0;
  const auto at = static_cast<size_t>(p * static_cast<double>(values.size() - 1) + 0.5);
  std::nth_element(values.begin(), values.begin() + static_cast<ptrdiff_t>(at), values.end());
  return values[at];
}

std::string milliseconds(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f ms", value);
  return text;
}

}  // namespace

size_t FrameTimes::count(Which which) const {
  const bool guest = which == Which::kWith;
  return static_cast<size_t>(std::count_if(
      times_.begin(), times_.end(), [guest](const FrameTime& t) { return t.guest == guest; }));
}

double FrameTimes::total(Which which, double p) const {
  std::vector<double> values;
  for (const FrameTime& time : times_) {
    if (time.guest == (which == Which::kWith)) values.push_back(time.total);
  }
  return percentile(std::move(values), p);
}

double FrameTimes::slice(double p) const {
  std::vector<double> values;
  for (const FrameTime& time : times_) {
    if (time.guest) values.push_back(time.slice);
  }
  return percentile(std::move(values), p);
}

size_t FrameTimes::over_budget() const {
  return static_cast<size_t>(std::count_if(
      times_.begin(), times_.end(), [this](const FrameTime& t) { return t.total > budget_; }));
}

void FrameTimes::draw_bars(Canvas& canvas, const Box& plot, float unit) const {
  const float width = plot.right - plot.left, height = plot.bottom - plot.top;
  const float step = 1.6F * unit;
  const auto shown = std::min(times_.size(), static_cast<size_t>(width / step));
  const double most = static_cast<double>(kHeadroom) * budget_;
  const auto rise = [&](double ms) {
    return static_cast<float>(std::min(ms, most) / most) * height;
  };
  for (size_t i = 0; i < shown; ++i) {
    const FrameTime& time = times_[times_.size() - shown + i];
    const float left = plot.left + step * static_cast<float>(i), right = left + step * 0.8F;
    const float middle = plot.bottom - rise(time.total - time.slice);
    canvas.box({left, middle, right, plot.bottom}, 0.0F, kRender);
    if (time.guest) {
      const float top = std::min(plot.bottom - rise(time.total), middle - 0.8F * unit);
      canvas.box({left, top, right, middle}, 0.0F, kGuest);
    }
  }
  const float limit = plot.bottom - rise(budget_);
  canvas.box({plot.left, limit - 0.4F * unit, plot.right, limit + 0.4F * unit}, 0.0F, kLimit);
}

void FrameTimes::draw(Canvas& canvas, const Box& panel, float unit,
                      const std::string& title) const {
  canvas.box(panel, 6.0F * unit, kPanel);
  const TextStyle heading{6.4F * unit, 1.4F, kChartInk}, small{5.4F * unit, 1.3F, kChartMuted};
  const float left = panel.left + 9.0F * unit, column = left + 152.0F * unit;
  canvas.text(left, panel.top + 13.5F * unit, title, heading);
  // The medians of all frames so far.
  float y = panel.top + 26.5F * unit;
  const auto row = [&](const glm::vec4& color, const std::string& name, Which which) {
    canvas.box({left, y - 5.2F * unit, left + 5.2F * unit, y}, 1.2F * unit, color);
    canvas.text(left + 9.0F * unit, y, name, small);
    TextStyle number = small;
    number.color = kChartInk;
    const std::string text = count(which) > 0 ? milliseconds(total(which, 0.5)) : "-";
    canvas.text(column - canvas.width(text, number), y, text, number);
    y += 10.5F * unit;
  };
  row(kRender, "rendering alone", Which::kWithout);
  row(kGuest, "with a slice of inference", Which::kWith);

  const Box plot{column + 12.0F * unit, panel.top + 6.0F * unit, panel.right - 8.0F * unit,
                 panel.bottom - 6.0F * unit};
  draw_bars(canvas, plot, unit);
  char limit[48];
  std::snprintf(limit, sizeof limit, "%.1f ms", budget_);
  TextStyle red = small;
  red.color = kLimit;
  const float limit_y = plot.bottom - (plot.bottom - plot.top) / kHeadroom;
  canvas.text(plot.right - canvas.width(limit, red), limit_y - 2.5F * unit, limit, red);
}

}  // namespace sample
