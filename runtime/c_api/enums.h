// The enums that the C++ API and the C interface share. Each has one table, of every value and its
// number in C. number_of() and value_of() go through it, so that no enum is cast to the other.
#pragma once

#include <array>
#include <cstddef>

#include "base/message.h"
#include "c_api/support.h"
#include "vkformer/attention.h"
#include "vkformer/attention_view.h"
#include "vkformer/embed.h"
#include "vkformer/frame_scheduler.h"
#include "vkformer/generation_batch.h"
#include "vkformer/heat_map.h"
#include "vkformer/rerank.h"

namespace vkformer {

template <class Enum>
struct EnumRow {
  Enum value;
  int32_t number;
  const char* name;  // in C
};

// Row i holds the enumerator i of the C++ enum. So a table lists each once;
// tests/c_api/enums_test.cpp checks that none is missing.
template <class Enum, size_t N>
constexpr bool in_order(const std::array<EnumRow<Enum>, N>& rows) {
  for (size_t i = 0; i < N; ++i) {
    if (static_cast<size_t>(rows[i].value) != i) return false;
    for (size_t k = 0; k < i; ++k) {
      if (rows[k].number == rows[i].number) return false;
    }
  }
  return true;
}

template <class Enum>
inline constexpr std::array<EnumRow<Enum>, 0> kEnumRows{};

#define VKF_ROW(value, name) \
  { value, name, #name }

template <>
inline constexpr auto kEnumRows<ErrorCode> = std::to_array<EnumRow<ErrorCode>>({
    VKF_ROW(ErrorCode::kInvalidArgument, VKF_INVALID_ARGUMENT),
    VKF_ROW(ErrorCode::kNotFound, VKF_NOT_FOUND),
    VKF_ROW(ErrorCode::kInvalidFile, VKF_INVALID_FILE),
    VKF_ROW(ErrorCode::kUnsupported, VKF_UNSUPPORTED),
    VKF_ROW(ErrorCode::kOutOfMemory, VKF_OUT_OF_MEMORY),
    VKF_ROW(ErrorCode::kDeviceLost, VKF_DEVICE_LOST),
    VKF_ROW(ErrorCode::kDriver, VKF_DRIVER),
    VKF_ROW(ErrorCode::kCancelled, VKF_CANCELLED),
    VKF_ROW(ErrorCode::kInternal, VKF_INTERNAL),
    VKF_ROW(ErrorCode::kQueueFull, VKF_QUEUE_FULL),
});

template <>
inline constexpr auto kEnumRows<DType> = std::to_array<EnumRow<DType>>({
    VKF_ROW(DType::kF64, VKF_F64),
    VKF_ROW(DType::kF32, VKF_F32),
    VKF_ROW(DType::kF16, VKF_F16),
    VKF_ROW(DType::kBF16, VKF_BF16),
    VKF_ROW(DType::kI64, VKF_I64),
    VKF_ROW(DType::kI32, VKF_I32),
    VKF_ROW(DType::kI16, VKF_I16),
    VKF_ROW(DType::kI8, VKF_I8),
    VKF_ROW(DType::kU64, VKF_U64),
    VKF_ROW(DType::kU32, VKF_U32),
    VKF_ROW(DType::kU16, VKF_U16),
    VKF_ROW(DType::kU8, VKF_U8),
    VKF_ROW(DType::kBool, VKF_BOOL),
});

template <>
inline constexpr auto kEnumRows<LogLevel> = std::to_array<EnumRow<LogLevel>>({
    VKF_ROW(LogLevel::kInfo, VKF_LOG_INFO),
    VKF_ROW(LogLevel::kWarning, VKF_LOG_WARNING),
    VKF_ROW(LogLevel::kError, VKF_LOG_ERROR),
});

template <>
inline constexpr auto kEnumRows<DeviceOptions::QueuePriority> =
    std::to_array<EnumRow<DeviceOptions::QueuePriority>>({
        VKF_ROW(DeviceOptions::QueuePriority::kLow, VKF_PRIORITY_LOW),
        VKF_ROW(DeviceOptions::QueuePriority::kNormal, VKF_PRIORITY_NORMAL),
    });

template <>
inline constexpr auto kEnumRows<BatchUpdate::State> = std::to_array<EnumRow<BatchUpdate::State>>({
    VKF_ROW(BatchUpdate::State::kRunning, VKF_REQUEST_RUNS),
    VKF_ROW(BatchUpdate::State::kFinished, VKF_REQUEST_FINISHED),
    VKF_ROW(BatchUpdate::State::kCancelled, VKF_REQUEST_CANCELLED),
    VKF_ROW(BatchUpdate::State::kFailed, VKF_REQUEST_FAILED),
});

template <>
inline constexpr auto kEnumRows<Advance::Progress> = std::to_array<EnumRow<Advance::Progress>>({
    VKF_ROW(Advance::Progress::kRunning, VKF_RUNNING),
    VKF_ROW(Advance::Progress::kSubmitted, VKF_SUBMITTED),
    VKF_ROW(Advance::Progress::kDone, VKF_DONE),
    VKF_ROW(Advance::Progress::kPreparing, VKF_PREPARING),
});

template <>
inline constexpr auto kEnumRows<FrameJob::Priority> = std::to_array<EnumRow<FrameJob::Priority>>({
    VKF_ROW(FrameJob::Priority::kHigh, VKF_JOB_HIGH),
    VKF_ROW(FrameJob::Priority::kNormal, VKF_JOB_NORMAL),
    VKF_ROW(FrameJob::Priority::kBackground, VKF_JOB_BACKGROUND),
});

template <>
inline constexpr auto kEnumRows<TruncationMode> = std::to_array<EnumRow<TruncationMode>>({
    VKF_ROW(TruncationMode::kOff, VKF_OFF),
    VKF_ROW(TruncationMode::kToLength, VKF_TO_LENGTH),
    VKF_ROW(TruncationMode::kFromFile, VKF_FROM_FILE),
});

template <>
inline constexpr auto kEnumRows<TruncationStrategy> = std::to_array<EnumRow<TruncationStrategy>>({
    VKF_ROW(TruncationStrategy::kLongestFirst, VKF_LONGEST_FIRST),
    VKF_ROW(TruncationStrategy::kOnlyFirst, VKF_ONLY_FIRST),
    VKF_ROW(TruncationStrategy::kOnlySecond, VKF_ONLY_SECOND),
});

template <>
inline constexpr auto kEnumRows<PaddingMode> = std::to_array<EnumRow<PaddingMode>>({
    VKF_ROW(PaddingMode::kOff, VKF_OFF),
    VKF_ROW(PaddingMode::kToLongest, VKF_TO_LONGEST),
    VKF_ROW(PaddingMode::kToLength, VKF_TO_LENGTH),
    VKF_ROW(PaddingMode::kFromFile, VKF_FROM_FILE),
});

template <>
inline constexpr auto kEnumRows<PixelFormat> = std::to_array<EnumRow<PixelFormat>>({
    VKF_ROW(PixelFormat::kRgb8, VKF_RGB8),
    VKF_ROW(PixelFormat::kBgr8, VKF_BGR8),
    VKF_ROW(PixelFormat::kRgba8, VKF_RGBA8),
    VKF_ROW(PixelFormat::kBgra8, VKF_BGRA8),
    VKF_ROW(PixelFormat::kGray8, VKF_GRAY8),
});

template <>
inline constexpr auto kEnumRows<PictureFit> = std::to_array<EnumRow<PictureFit>>({
    VKF_ROW(PictureFit::kAsIs, VKF_FIT_AS_IS),
    VKF_ROW(PictureFit::kStretch, VKF_FIT_STRETCH),
    VKF_ROW(PictureFit::kShortestEdge, VKF_FIT_SHORTEST_EDGE),
    VKF_ROW(PictureFit::kMostPatches, VKF_FIT_MOST_PATCHES),
    VKF_ROW(PictureFit::kLeastChange, VKF_FIT_LEAST_CHANGE),
    VKF_ROW(PictureFit::kLongestEdge, VKF_FIT_LONGEST_EDGE),
});

template <>
inline constexpr auto kEnumRows<HeatMapRange> = std::to_array<EnumRow<HeatMapRange>>({
    VKF_ROW(HeatMapRange::kZeroToOne, VKF_ZERO_TO_ONE),
    VKF_ROW(HeatMapRange::kZeroToMax, VKF_ZERO_TO_MAX),
});

template <>
inline constexpr auto kEnumRows<RerankOptions::Score> =
    std::to_array<EnumRow<RerankOptions::Score>>({
        VKF_ROW(RerankOptions::Score::kModel, VKF_RERANK_MODEL),
        VKF_ROW(RerankOptions::Score::kLogit, VKF_RERANK_LOGIT),
        VKF_ROW(RerankOptions::Score::kProbability, VKF_RERANK_PROBABILITY),
    });

template <>
inline constexpr auto kEnumRows<VectorValues> = std::to_array<EnumRow<VectorValues>>({
    VKF_ROW(VectorValues::kFloat, VKF_VECTOR_FLOAT),
    VKF_ROW(VectorValues::kInt8, VKF_VECTOR_INT8),
    VKF_ROW(VectorValues::kBinary, VKF_VECTOR_BINARY),
});
template <>
inline constexpr auto kEnumRows<Pooling> = std::to_array<EnumRow<Pooling>>({
    VKF_ROW(Pooling::kModel, VKF_POOL_MODEL),
    VKF_ROW(Pooling::kMean, VKF_POOL_MEAN),
    VKF_ROW(Pooling::kFirst, VKF_POOL_FIRST),
    VKF_ROW(Pooling::kLast, VKF_POOL_LAST),
});

template <>
inline constexpr auto kEnumRows<AttentionHead::State> =
    std::to_array<EnumRow<AttentionHead::State>>({
        VKF_ROW(AttentionHead::State::kUsual, VKF_HEAD_USUAL),
        VKF_ROW(AttentionHead::State::kCollapsed, VKF_HEAD_COLLAPSED),
        VKF_ROW(AttentionHead::State::kSaturated, VKF_HEAD_SATURATED),
    });

template <>
inline constexpr auto kEnumRows<MultiHeadAttentionOptions::Projection> =
    std::to_array<EnumRow<MultiHeadAttentionOptions::Projection>>({
        VKF_ROW(MultiHeadAttentionOptions::Projection::kSeparate, VKF_PROJECT_SEPARATE),
        VKF_ROW(MultiHeadAttentionOptions::Projection::kMerged, VKF_PROJECT_MERGED),
        VKF_ROW(MultiHeadAttentionOptions::Projection::kSharedByHeads, VKF_PROJECT_SHARED_BY_HEADS),
    });

#undef VKF_ROW

// The number in C of a value of the C++ API.
template <class Enum>
constexpr int32_t number_of(Enum value) {
  constexpr const auto& rows = kEnumRows<Enum>;
  static_assert(!rows.empty() && in_order(rows), "one row for each enumerator, in their order");
  return rows[static_cast<size_t>(value)].number;
}

// The value of a number that the caller gave as `what`; refuses one that is none, with all that
// are.
template <class Enum>
Enum value_of(int32_t number, const char* what) {
  constexpr const auto& rows = kEnumRows<Enum>;
  static_assert(!rows.empty() && in_order(rows), "one row for each enumerator, in their order");
  for (const EnumRow<Enum>& row : rows) {
    if (row.number == number) return row.value;
  }
  std::string choices;
  for (const EnumRow<Enum>& row : rows) {
    choices += message({choices.empty() ? "" : ", ", row.number, " (", row.name, ")"});
  }
  refuse(invalid_argument(
      message({"[", what, "] is ", number, ", which is no choice. Give one of ", choices, "."})));
}

}  // namespace vkformer
