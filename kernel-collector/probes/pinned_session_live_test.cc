// Runs on the running kernel, as root: pins need only bpffs.

#include "kernel-collector/probes/pinned_session.h"

#include <bpf/bpf.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <vector>

#include "kernel-collector/probes/live_testing.h"

namespace tributary {
namespace {

// Has counters like the sampling program's.
class PinnedSessionLive : public PrivateBpffsTest {
 protected:
  struct Collector {
    explicit Collector(uint64_t captured, Pid pid = {}) {
      const int fd = bpf_map_create(BPF_MAP_TYPE_PERCPU_ARRAY, "trib_counters", 4, 8, TRIB_COUNTER_SLOTS(1), nullptr);
      EXPECT_GE(fd, 0) << strerror(errno);
      counters = std::make_shared<const KernelCounters>(Fd(fd), 1);
      pins = std::make_unique<PinnedSession>(
          PinnedSession::Options{.folder = std::string(kBpffs) + "/tributary", .pid = pid}, fd, counters);
      Capture(fd, captured);
    }
    static void Capture(int fd, uint64_t captured) {
      std::vector<uint64_t> by_cpu(static_cast<size_t>(sysconf(_SC_NPROCESSORS_CONF)) + 64);
      by_cpu[0] = captured;
      uint32_t key = TRIB_COUNTER_SLOT(TRIB_CONTEXT_TICK, TRIB_TYPE_CPU, TRIB_CAPTURED);
      EXPECT_EQ(bpf_map_update_elem(fd, &key, by_cpu.data(), BPF_ANY), 0);
      key = TRIB_COUNTER_SLOT(TRIB_CONTEXT_TICK, TRIB_TYPE_CPU, TRIB_LOST_RING_FULL);
      by_cpu[0] = captured / 10;
      EXPECT_EQ(bpf_map_update_elem(fd, &key, by_cpu.data(), BPF_ANY), 0);
    }
    std::shared_ptr<const KernelCounters> counters;
    std::unique_ptr<PinnedSession> pins;
  };

  // Runs a collector that captures, sets a share, and is then killed or stopped.
  static void LiveAndDie(uint64_t captured, uint8_t session, uint64_t attributed) {
    Child child([=] {
      Collector collector(captured);
      collector.pins->Set(0, {{session}, attributed}, true);
      kill(getpid(), SIGKILL);
    });
    child.Wait();
  }
  static bool Pinned(const char* name) {
    return access((std::string(kBpffs) + "/tributary/" + name).c_str(), F_OK) == 0;
  }
};

TEST_F(PinnedSessionLive, NothingIsLeftOfACleanStop) {
  Collector collector(100);
  EXPECT_TRUE(collector.pins->pinned());
  EXPECT_FALSE(collector.pins->predecessor());
  EXPECT_TRUE(Pinned("counters") && Pinned("session"));
  collector.pins->Set(0, {{1}, 100}, true);
  collector.pins->Finish(false);
  EXPECT_FALSE(Pinned("counters") || Pinned("session"));
  collector.pins->Set(0, {{1}, 100}, true);
  collector.pins->Finish(true);
  EXPECT_FALSE(Collector(0).pins->predecessor());
}

TEST_F(PinnedSessionLive, FindsAKilledCollector) {
  LiveAndDie(1000, 7, 900);
  Collector next(50);
  ASSERT_TRUE(next.pins->predecessor());
  const Predecessor& predecessor = *next.pins->predecessor();
  EXPECT_EQ(predecessor.accounting.captured, 1000u);
  EXPECT_EQ(predecessor.accounting.lost[static_cast<size_t>(LossReason::kRingFull)], 100u);
  EXPECT_THAT(predecessor.shares, testing::ElementsAre(Predecessor::Share{{7}, 900}));
  EXPECT_EQ(predecessor.unattributed(), 100u);
  EXPECT_FALSE(predecessor.stopped);
  next.pins->ForgetPredecessor(0);
  next.pins->Finish(false);
  EXPECT_FALSE(Pinned("counters") || Pinned("session"));
}

TEST_F(PinnedSessionLive, AddsUpDeathsUntilTheyAreReported) {
  for (uint8_t i = 1; i <= 3; ++i) LiveAndDie(1000, i, 900);
  {
    Collector next(10);
    ASSERT_TRUE(next.pins->predecessor());
    EXPECT_EQ(next.pins->predecessor()->accounting.captured, 3000u);
    EXPECT_EQ(next.pins->predecessor()->shares.size(), 3u);
    EXPECT_EQ(next.pins->predecessor()->shares[0].session_id[0], 3) << "the last one first";
    EXPECT_EQ(next.pins->predecessor()->unattributed(), 300u);
    // This collector delivered everything, but the others were not reported: their data stays.
    next.pins->Set(0, {{9}, 10}, true);
    next.pins->Finish(false);
  }
  EXPECT_TRUE(Pinned("counters") && Pinned("session"));
}

TEST_F(PinnedSessionLive, ReportsAStopWithUndeliveredSamples) {
  Child child([] {
    Collector collector(100);
    collector.pins->Set(0, {{1}, 60}, true);
    collector.pins->Finish(true);
  });
  child.Wait();
  Collector next(0);
  ASSERT_TRUE(next.pins->predecessor());
  EXPECT_TRUE(next.pins->predecessor()->stopped);
  EXPECT_EQ(next.pins->predecessor()->unattributed(), 40u);
}

TEST_F(PinnedSessionLive, ALivingCollectorIsLeftAlone) {
  Child alive([] { pause(); });
  Collector older(500, alive.pid());
  older.pins->Set(0, {{1}, 400}, true);
  Collector younger(20);
  EXPECT_FALSE(younger.pins->predecessor()) << "it goes on";
  older.pins->Finish(false);
  EXPECT_TRUE(Pinned("counters") && Pinned("session")) << "of the younger one";
  younger.pins->Finish(false);
  EXPECT_FALSE(Pinned("counters") || Pinned("session"));
}

TEST_F(PinnedSessionLive, KilledBetweenTheTwoPinsKeepsTheOtherDeaths) {
  LiveAndDie(1000, 7, 900);
  Child child([] {
    // The first of the two renames has happened. The counters are still those of the earlier collector.
    const std::string path = std::string(kBpffs) + "/tributary/counters";
    Fd earlier(bpf_obj_get(path.c_str()));
    Collector collector(333);
    unlink(path.c_str());
    EXPECT_EQ(bpf_obj_pin(earlier.get(), path.c_str()), 0) << strerror(errno);
    kill(getpid(), SIGKILL);
  });
  child.Wait();
  Collector next(0);
  ASSERT_TRUE(next.pins->predecessor());
  EXPECT_EQ(next.pins->predecessor()->accounting.captured, 1000u);
  EXPECT_EQ(next.pins->predecessor()->unattributed(), 100u);
}

TEST_F(PinnedSessionLive, ReplacesPinsThatAreNoSession) {
  const std::string folder = std::string(kBpffs) + "/tributary";
  ASSERT_EQ(mkdir(folder.c_str(), 0700), 0);
  Fd other(bpf_map_create(BPF_MAP_TYPE_ARRAY, "other", 4, 8, 1, nullptr));
  ASSERT_EQ(bpf_obj_pin(other.get(), (folder + "/session").c_str()), 0);
  Collector collector(0);
  EXPECT_TRUE(collector.pins->pinned());
  EXPECT_FALSE(collector.pins->predecessor());
}

TEST_F(PinnedSessionLive, PinsNothingWithoutABpffs) {
  umount(kBpffs);
  Collector collector(5);
  EXPECT_FALSE(collector.pins->pinned());
  collector.pins->Set(0, {{1}, 5}, true);
  collector.pins->ForgetPredecessor(0);
  collector.pins->Finish(true);
  EXPECT_FALSE(Pinned("session"));
}

}  // namespace
}  // namespace tributary
