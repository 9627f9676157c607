#include "kernel-collector/probes/ring_size.h"

#include <algorithm>
#include <bit>

#include "base/types.h"

namespace tributary {
namespace {

constexpr uint64_t kRingBytesMin = 64 << 10, kRingBytesMax = 128 << 20;
constexpr uint64_t kSampleBytes = 1024;
constexpr uint64_t kEventBytesMin = 512 << 10, kEventBytesMax = 32 << 20, kEventBytesPerCpu = 32 << 10;
constexpr size_t kEndedMin = 8192, kEndedPerCpu = 256;
// On each read, the memory is in no cache. So a read costs hundreds of microseconds however little there is to do: half
// of the collector's CPU time. A hundred samples of a CPU are worth one read.
constexpr int64_t kPeriodsPerPoll = 100;
constexpr int64_t kPollMsMin = 10, kPollMsMax = 200;
constexpr int64_t kPollsPerFilling = 5;

}  // namespace

uint32_t SampleRingBytes(uint32_t rate_hz, size_t cpus, uint32_t seconds) {
  const uint64_t wanted = uint64_t{rate_hz} * cpus * kSampleBytes * seconds;
  return static_cast<uint32_t>(std::bit_ceil(std::clamp(wanted, kRingBytesMin, kRingBytesMax)));
}

uint32_t EventRingBytes(size_t cpus) {
  return static_cast<uint32_t>(std::bit_ceil(std::clamp(cpus * kEventBytesPerCpu, kEventBytesMin, kEventBytesMax)));
}

uint32_t EndedProcessesMax(size_t possible_cpus) {
  return static_cast<uint32_t>(std::max(kEndedMin, possible_cpus * kEndedPerCpu));
}

uint64_t SampleRingPollMs(uint64_t ring_bytes, int64_t period_ns, size_t cpus) {
  const int64_t filling_ns = static_cast<int64_t>(ring_bytes / kSampleBytes / std::max<size_t>(cpus, 1)) * period_ns;
  const int64_t wanted_ns = std::min(kPeriodsPerPoll * period_ns, filling_ns / kPollsPerFilling);
  return static_cast<uint64_t>(std::clamp(wanted_ns / kNsPerMs, kPollMsMin, kPollMsMax));
}

uint32_t SampleRingRateMaxHz(uint64_t ring_bytes, size_t cpus) {
  const int64_t shortest_ns = kPollsPerFilling * kPollMsMin * kNsPerMs;
  const auto samples = static_cast<int64_t>(ring_bytes / kSampleBytes / std::max<size_t>(cpus, 1));
  return static_cast<uint32_t>(samples * kNsPerSecond / shortest_ns);
}

}  // namespace tributary
