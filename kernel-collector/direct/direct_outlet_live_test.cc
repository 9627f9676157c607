// Runs on the running kernel, as root: pins need only bpffs.

#include <bpf/bpf.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <vector>

#include "kernel-collector/direct/direct_outlet.h"
#include "kernel-collector/probes/live_testing.h"

namespace tributary {
namespace {

class DirectOutletLive : public PrivateBpffsTest {
 protected:
  // A collector that has captured samples and prints them to the console.
  struct Collector {
    explicit Collector(uint64_t captured) {
      const int fd = bpf_map_create(BPF_MAP_TYPE_PERCPU_ARRAY, "trib_counters", 4, 8, TRIB_COUNTER_SLOTS(1), nullptr);
      EXPECT_GE(fd, 0) << strerror(errno);
      counters = std::make_shared<const KernelCounters>(Fd(fd), 1);
      pins = std::make_unique<PinnedSession>(PinnedSession::Options{.folder = std::string(kBpffs) + "/tributary"}, fd,
                                             counters);
      std::vector<uint64_t> by_cpu(static_cast<size_t>(sysconf(_SC_NPROCESSORS_CONF)) + 64);
      by_cpu[0] = captured;
      const uint32_t key = TRIB_COUNTER_SLOT(TRIB_CONTEXT_TICK, TRIB_TYPE_CPU, TRIB_CAPTURED);
      EXPECT_EQ(bpf_map_update_elem(fd, &key, by_cpu.data(), BPF_ANY), 0);
      absl::StatusOr<DirectReceiver> receiver = ParseDirectReceiver("console", "", 0, false);
      EXPECT_TRUE(receiver.ok()) << receiver.status();
      auto opened = DirectOutlet::Open(loop, {.receiver = *receiver}, *pins, feed, Clock::Real(), metrics,
                                       [](const ExecutableId&) {});
      EXPECT_TRUE(opened.ok()) << opened.status();
      outlet = *std::move(opened);
      outlet->Start();
    }
    uint64_t PredecessorLost() {
      return metrics.AddCounter("tributary_direct_predecessor_lost_samples_total", "").value();
    }

    Loop loop;
    Metrics metrics;
    intake::MetadataFeed feed{{}, Clock::Real(), metrics};
    std::shared_ptr<const KernelCounters> counters;
    std::unique_ptr<PinnedSession> pins;
    std::unique_ptr<DirectOutlet> outlet;
  };
};

// A start that fails must not hide the losses of the collector before it.
TEST_F(DirectOutletLive, ReportsAPredecessorOnceSamplingHasStarted) {
  Child killed([] {
    const Collector collector(1000);
    kill(getpid(), SIGKILL);
  });
  killed.Wait();
  Child fails_to_start([] { const Collector collector(0); });
  fails_to_start.Wait();
  Collector next(0);
  EXPECT_EQ(next.PredecessorLost(), 0u);
  next.outlet->OnSampling();
  EXPECT_EQ(next.PredecessorLost(), 1000u);
  EXPECT_FALSE(next.pins->predecessor());  // the next collector does not report it again
}

}  // namespace
}  // namespace tributary
