#include "kernel-collector/probes/ring_size.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/types.h"

namespace tributary {
namespace {

TEST(RingSize, HoldsTwoSecondsOfTheRateAtStart) {
  EXPECT_EQ(SampleRingBytes(19, 2, 2), 128u << 10);
  EXPECT_EQ(SampleRingBytes(1, 1, 2), 64u << 10);
  EXPECT_EQ(SampleRingBytes(10'000, 1'024, 2), 128u << 20);
}

TEST(RingSize, OfProcessEventsGrowsWithTheCpus) {
  EXPECT_EQ(EventRingBytes(1), 512u << 10);
  EXPECT_EQ(EventRingBytes(17), 1u << 20);
  EXPECT_EQ(EventRingBytes(100'000), 32u << 20);
}

TEST(RingSize, RemembersTwiceAsManyEndedProcessesAsTheStocksOfTheCpus) {
  EXPECT_EQ(EndedProcessesMax(1), 8192u);
  EXPECT_EQ(EndedProcessesMax(512), 512u * 256);
}

// Returns the poll interval of a collector that was started with `start_hz`, after its rate was raised to `raised_hz`.
uint64_t PollMs(uint32_t start_hz, uint32_t raised_hz, size_t cpus) {
  return SampleRingPollMs(SampleRingBytes(start_hz, cpus, 2), kNsPerSecond / raised_hz, cpus);
}

TEST(RingSize, IsReadSoonerAfterARaise) {
  EXPECT_EQ(PollMs(19, 19, 2), 200u);
  EXPECT_EQ(PollMs(999, 999, 2), 100u);
  EXPECT_EQ(PollMs(10'000, 10'000, 2), 10u);
  EXPECT_EQ(PollMs(19, 99, 2), 129u);
  EXPECT_EQ(PollMs(19, 999, 2), 12u);
}

TEST(RingSize, IsAtMostAFifthFullWhenRead) {
  for (const size_t cpus : {1, 2, 3, 16, 96, 256}) {
    for (const uint32_t start_hz : {1, 19, 99, 999}) {
      const uint32_t ring = SampleRingBytes(start_hz, cpus, 2), max_hz = SampleRingRateMaxHz(ring, cpus);
      EXPECT_GE(max_hz, std::min<uint32_t>(40 * start_hz, 10'000));
      for (uint32_t hz = start_hz; hz <= max_hz && hz <= 10'000; hz += 7) {
        const uint64_t poll_ms = SampleRingPollMs(ring, kNsPerSecond / hz, cpus);
        EXPECT_LE(poll_ms * hz * cpus * 1024 / 1000, ring / 5 + 1024) << cpus << " " << start_hz << " " << hz;
      }
    }
  }
}

}  // namespace
}  // namespace tributary
