#include "conformance/estimates/data_sheets.h"

namespace vkformer::estimates {
namespace {

constexpr double kGiga = 1e9, kMega = 1e6, kNano = 1e-9, kMicro = 1e-6;

// Numbers are of the vendor's own pages unless the row names another source; clocks are the boost
// clocks that a vendor states. Latencies and launches are in no data sheet:
//
// * Memory of discrete GPUs answers after about 250 ns: Chips and Cheese's pointer chasing (2021),
//   RX 6800 XT and RTX 3090 alike. 400 ns for memory that is shared with a processor is an
//   assumption.
// * A dispatch that waits for the one before it takes 3 us: what an empty kernel takes on recent
//   NVIDIA GPUs (developer forum of NVIDIA, thread 233645). For all others, and 5 us where the GPU
//   shares memory with a processor, it is an assumption.
//
// A matrix unit has no numbers: estimates are of f32, which does without.
constexpr double kDiscreteLatency = 250 * kNano, kSharedLatency = 400 * kNano;
constexpr double kDiscreteLaunch = 3 * kMicro, kSharedLaunch = 5 * kMicro;

constexpr DataSheet kSheets[] = {
    // Turing whitepaper, appendix: 30 SMs of 64 f32 lanes, 1,680 MHz, 336 GB/s (14 Gbit/s, 192
    // bits). Four schedulers of a warp each in a clock, of which two may be f32.
    {"tu106",
     "GeForce RTX 2060",
     "nvk:162",
     {.units = 30,
      .clock = 1680 * kMega,
      .issued = 128,
      .multiply_adds = 64,
      .residents = 32,
      .bandwidth = 336 * kGiga,
      .latency = kDiscreteLatency,
      .launch = kDiscreteLaunch},
     30},
    // Product page: 3,584 CUDA cores in 28 SMs (GA102 whitepaper: 128 f32 lanes an SM), 1,780 MHz.
    // 360 GB/s (15 Gbit/s, 192 bits). Its SMs are those of GA102 (nvk:172).
    {"ga106",
     "GeForce RTX 3060",
     "nvk:172",
     {.units = 28,
      .clock = 1780 * kMega,
      .issued = 128,
      .multiply_adds = 128,
      .residents = 32,
      .bandwidth = 360 * kGiga,
      .latency = kDiscreteLatency,
      .launch = kDiscreteLaunch},
     28},
    // Ada whitepaper, appendix: 128 SMs of 128 f32 lanes, 2,520 MHz, 1,008 GB/s.
    {"ad102",
     "GeForce RTX 4090",
     "nvk:192",
     {.units = 128,
      .clock = 2520 * kMega,
      .issued = 128,
      .multiply_adds = 128,
      .residents = 32,
      .bandwidth = 1008 * kGiga,
      .latency = kDiscreteLatency,
      .launch = kDiscreteLaunch},
     128},
    // Product page: 72 compute units, 2,250 MHz, 512 GB/s; RDNA whitepaper: two SIMDs of 32 lanes a
    // compute unit. What the Infinity Cache of 128 MB keeps is not counted.
    {"navi21",
     "Radeon RX 6800 XT",
     "radv-newest:navi21",
     {.units = 72,
      .clock = 2250 * kMega,
      .issued = 64,
      .multiply_adds = 64,
      .residents = 2,
      .residents_by_size = true,
      .bandwidth = 512 * kGiga,
      .latency = kDiscreteLatency,
      .launch = kDiscreteLaunch},
     72},
    // Product page: 96 compute units, 2,500 MHz, 960 GB/s. The 61 TFLOPS that AMD states count two
    // instructions issued together; here a SIMD issues one.
    {"navi31",
     "Radeon RX 7900 XTX",
     "radv-newest:navi31",
     {.units = 96,
      .clock = 2500 * kMega,
      .issued = 64,
      .multiply_adds = 64,
      .residents = 2,
      .residents_by_size = true,
      .bandwidth = 960 * kGiga,
      .latency = kDiscreteLatency,
      .launch = kDiscreteLaunch},
     96},
    // ARK, Core i7-1185G7: 96 execution units, 1,350 MHz, LPDDR4X-4267 of 128 bits: 68.3 GB/s. A
    // dual subslice has 16 units of 8 lanes and 7 threads (Intel Processor Graphics Xe-LP).
    {"tgl",
     "Iris Xe Graphics G7, 96 EUs",
     "anv:tgl",
     {.units = 6,
      .clock = 1350 * kMega,
      .issued = 128,
      .multiply_adds = 128,
      .residents = 7 * 16,
      .bandwidth = 68.3 * kGiga,
      .latency = kSharedLatency,
      .launch = kSharedLaunch}},
    // ARK, Arc A770: 32 Xe cores, 2,100 MHz, 560 GB/s (16 GB). A core has 16 vector engines of 8
    // lanes and 8 threads.
    {"dg2",
     "Arc A770 16 GB",
     "anv:dg2",
     {.units = 32,
      .clock = 2100 * kMega,
      .issued = 128,
      .multiply_adds = 128,
      .residents = 8 * 16,
      .bandwidth = 560 * kGiga,
      .latency = kDiscreteLatency,
      .launch = kDiscreteLaunch}},
    // Snapdragon 888: 840 MHz, LPDDR5-6400 of 64 bits: 51.2 GB/s. Qualcomm states no lanes: 768
    // multiply-adds a clock were measured, six cores of 128 (azhirnov/cpu-gpu-arch,
    // gpu/Adreno-600.md).
    {"a660",
     "Adreno 660, Snapdragon 888",
     "turnip:660",
     {.units = 6,
      .clock = 840 * kMega,
      .issued = 128,
      .multiply_adds = 128,
      .residents = 1,
      .residents_by_size = true,
      .bandwidth = 51.2 * kGiga,
      .latency = kSharedLatency,
      .launch = kSharedLaunch}},
    // Apple, November 2020: 8 cores, 2.6 TFLOPS; LPDDR4X-4266 of 128 bits: 68.3 GB/s. 128 lanes a
    // core at 1,278 MHz (philipturner/metal-benchmarks).
    {"m1",
     "Apple M1, 8 cores",
     "asahi",
     {.units = 8,
      .clock = 1278 * kMega,
      .issued = 128,
      .multiply_adds = 128,
      .residents = 1,
      .bandwidth = 68.3 * kGiga,
      .latency = kSharedLatency,
      .launch = kSharedLaunch}},
};

}  // namespace

std::span<const DataSheet> data_sheets() {
  return kSheets;
}

const DataSheet* find_data_sheet(std::string_view chip) {
  for (const DataSheet& sheet : kSheets) {
    if (sheet.chip == chip) return &sheet;
  }
  return nullptr;
}

DeviceCaps caps_of(const DataSheet& sheet, const RecordedGpu& recorded) {
  DeviceCaps caps = recorded.caps();
  caps.compute_units = sheet.stated_units;
  return caps;
}

}  // namespace vkformer::estimates
