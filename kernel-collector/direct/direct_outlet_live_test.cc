// Runs on the running kernel, as root: pins need only bpffs.

#include <bpf/bpf.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <string>
#include <vector>

#include "intake/spool/spool_directory.h"
#include "kernel-collector/direct/direct_outlet.h"
#include "kernel-collector/direct/request_spool.h"
#include "kernel-collector/probes/live_testing.h"
#include "schemas/otlp/logs_service.pb.h"
#include "schemas/otlp/profiles_service.pb.h"

namespace tributary {
namespace {

constexpr std::array<uint8_t, 16> kSession{9};

class DirectOutletLive : public PrivateBpffsTest {
 protected:
  // A collector that has captured samples and prints them to the console. With a spool, it sends them to a receiver
  // that does not answer.
  struct Collector {
    explicit Collector(uint64_t captured, const std::string& spool_dir = "") {
      const int fd = bpf_map_create(BPF_MAP_TYPE_PERCPU_ARRAY, "trib_counters", 4, 8, TRIB_COUNTER_SLOTS(1), nullptr);
      EXPECT_GE(fd, 0) << strerror(errno);
      counters = std::make_shared<const KernelCounters>(Fd(fd), 1);
      pins = std::make_unique<PinnedSession>(PinnedSession::Options{.folder = std::string(kBpffs) + "/tributary"}, fd,
                                             counters);
      std::vector<uint64_t> by_cpu(static_cast<size_t>(sysconf(_SC_NPROCESSORS_CONF)) + 64);
      by_cpu[0] = captured;
      const uint32_t key = TRIB_COUNTER_SLOT(TRIB_CONTEXT_TICK, TRIB_TYPE_CPU, TRIB_CAPTURED);
      EXPECT_EQ(bpf_map_update_elem(fd, &key, by_cpu.data(), BPF_ANY), 0);
      absl::StatusOr<DirectReceiver> receiver = spool_dir.empty()
                                                    ? ParseDirectReceiver("console", "", 0, false)
                                                    : ParseDirectReceiver("otlp_log", "http://127.0.0.1:1", 0, false);
      EXPECT_TRUE(receiver.ok()) << receiver.status();
      if (receiver->is_console) receiver->text.emplace();
      auto opened = DirectOutlet::Open(loop, {.receiver = *receiver, .spool_dir = spool_dir, .session = session}, *pins,
                                       feed, Clock::Real(), metrics, [](const ExecutableId&) {});
      EXPECT_TRUE(opened.ok()) << opened.status();
      outlet = *std::move(opened);
      outlet->Start();
    }
    uint64_t PredecessorLost() {
      return metrics.AddCounter("tributary_direct_predecessor_lost_samples_total", "").value();
    }

    SessionInfo session{.session_id = kSession};
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

// What waits in the spool is not lost.
TEST_F(DirectOutletLive, ASpooledSampleOfAPredecessorIsNotLost) {
  const std::string spool_dir = testing::TempDir() + "direct_outlet_live_" + std::to_string(getpid());
  Child killed([&spool_dir] {
    {
      Metrics metrics;
      auto spool = RequestSpool::Open(1 << 20, *intake::OpenSpoolDirectory(spool_dir), Clock::Real(), metrics);
      DirectRequest request;
      request.samples.reset(new otlp::ProfilesRequest);
      request.identity.session = kSession;
      request.counts = SampleCounts(300);
      EXPECT_TRUE((*spool)->Append(request).ok());
    }
    const Collector collector(1000);
    kill(getpid(), SIGKILL);
  });
  killed.Wait();
  Collector next(0, spool_dir);
  next.outlet->OnSampling();
  EXPECT_EQ(next.PredecessorLost(), 700u);
  EXPECT_EQ(next.outlet->totals().waiting_samples, 0u);  // they are not its own
  next.outlet.reset();
  std::filesystem::remove_all(spool_dir);
}

}  // namespace
}  // namespace tributary
