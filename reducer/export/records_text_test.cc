#include "reducer/export/records_text.h"

#include <gtest/gtest.h>

#include <csignal>
#include <vector>

namespace tributary {
namespace {

TEST(RecordsText, HasOneLineForEachLossAndRollout) {
  const std::vector<store::LossRecord> losses = {{.node_id = "n1",
                                                  .host_name = "web-1",
                                                  .type = {"cpu\n", "nanoseconds"},
                                                  .reason = LossReason::kRingFull,
                                                  .samples = 3,
                                                  .first = UnixNs{1'763'700'131'000'000'005}},
                                                 {.node_id = "n1", .reason = LossReason::kMissed, .samples = -2}};
  EXPECT_EQ(FormatLosses(losses),
            "Loss: ring_full, Time: 2025-11-21T04:42:11.000000005Z, host.name: web-1, host.id: n1, samples: 3, type: "
            "cpu\\x0a, unit: nanoseconds\n"
            "Loss: missed, Time: 1970-01-01T00:00:00.000000000Z, host.id: n1, events: -2\n");
  const std::vector<Rollout> rollouts = {
      {.cluster = "cluster/c",
       .kind = "deployment",
       .name_space = "shop",
       .name = "web\n",
       .attributes = {{"rollout.images", "web:2"}, {"rollout.previous.images", "web:1"}, {"service.version", "2.0"}}}};
  EXPECT_EQ(FormatRollouts(rollouts),
            "Rollout: web\\x0a, Time: 1970-01-01T00:00:00.000000000Z, kind: deployment, namespace: shop, cluster: "
            "cluster/c, version: 2.0, images: web:2, previous images: web:1\n");
}

TEST(RecordsText, HasOneLineForEachEvent) {
  store::EventRecord exit;
  exit.kind = ProcessEventKind::kExit;
  exit.time = UnixNs{1'763'700'131'000'000'005};
  exit.host_name = "web-1";
  exit.node_id = "n1";
  exit.pid = Pid{42};
  exit.parent = Pid{1};
  exit.name = "a\nProcess Event: forged";
  exit.executable_path = "/bin/\x1b[2J\xff";
  exit.container_id = "c0ffee";
  exit.uid = 1000;
  exit.end = {
      .signal = SIGSEGV, .core_dumped = true, .run_ns = 3, .user_ns = 2, .system_ns = 1, .peak_rss_bytes = 4096};
  store::EventRecord sum;
  sum.kind = ProcessEventKind::kSum;
  sum.events = 5;
  sum.processes = 2;
  sum.end = {.exit_code = 3};
  store::EventRecord start;
  start.parent = Pid{-1};  // a node may send any number
  EXPECT_EQ(
      FormatEvents(std::vector<store::EventRecord>{exit, sum, start}),
      "Process Event: exit, Time: 2025-11-21T04:42:11.000000005Z, host.name: web-1, host.id: n1, process.pid: 42, "
      "process.parent_pid: 1, process.command: a\\x0aProcess Event: forged, process.executable.path: "
      "/bin/\\x1b[2J\\xff, container.id: c0ffee, user.id: 1000, signal: SIGSEGV, core_dumped: true, run_ns: 3, "
      "user_ns: 2, system_ns: 1, peak_rss_bytes: 4096\n"
      "Process Event: sum, Time: 1970-01-01T00:00:00.000000000Z, processes: 2, events: 5, user.id: 0, exit_code: 3, "
      "run_ns: 0, user_ns: 0, system_ns: 0, peak_rss_bytes: 0\n"
      "Process Event: start, Time: 1970-01-01T00:00:00.000000000Z, process.pid: 0, process.parent_pid: -1, user.id: "
      "0\n");
}

}  // namespace
}  // namespace tributary
