// Runs on the running kernel, as root: pins need only bpffs.

#include "kernel-collector/probes/live_processes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <map>
#include <string>

#include "kernel-collector/probes/live_testing.h"

namespace tributary {
namespace {

class LiveProcessesLive : public PrivateBpffsTest {
 protected:
  static LiveProcesses Pin(bool ignore_earlier = false) {
    auto pinned = LiveProcesses::Pin(kBpffs, ignore_earlier);
    EXPECT_TRUE(pinned.ok()) << pinned.status();
    return *std::move(pinned);
  }
  static LiveProcesses::Key Key(uint32_t pid) { return {pid, pid * 10u}; }
  static void Set(LiveProcesses& live, std::initializer_list<uint32_t> pids, const char* name) {
    LiveProcesses::Keys keys;
    for (const uint32_t pid : pids) keys.insert(Key(pid));
    live.Set(keys, [name](const LiveProcesses::Key& key) {
      trib_live_process process = {.parent = key.pid + 1};
      std::strcpy(process.comm, name);
      return process;
    });
  }
  // Returns the names by pid that the next collector finds.
  static std::map<uint32_t, std::string> Found() {
    std::map<uint32_t, std::string> names;
    for (const auto& [key, process] : Pin().TakeEarlier()) {
      EXPECT_EQ(key.start_time_ns, key.pid * 10u);
      EXPECT_EQ(process.parent, key.pid + 1);
      names[key.pid] = process.comm;
    }
    return names;
  }
  using Names = std::map<uint32_t, std::string>;
};

TEST_F(LiveProcessesLive, TheNextCollectorFindsWhatRan) {
  {
    LiveProcesses live = Pin();
    EXPECT_TRUE(live.TakeEarlier().empty());
    Set(live, {1, 2, 3}, "a");
    Set(live, {2, 3, 4}, "b");
  }
  EXPECT_EQ(Found(), (Names{{2, "a"}, {3, "a"}, {4, "b"}}));
}

TEST_F(LiveProcessesLive, ACollectorThatIsKilledEarlyLosesNothing) {
  {
    LiveProcesses live = Pin();
    Set(live, {1, 2}, "a");
  }
  EXPECT_EQ(Found().size(), 2u);  // Found pins a list, and never sets it
  EXPECT_EQ(Found(), (Names{{1, "a"}, {2, "a"}}));
  LiveProcesses live = Pin();
  Set(live, {2}, "b");
  EXPECT_EQ(Found(), (Names{{2, "a"}}));
}

TEST_F(LiveProcessesLive, AnExecChangesTheDescription) {
  LiveProcesses live = Pin();
  Set(live, {1, 2}, "a");
  live.Redescribe(Key(2));
  live.Redescribe(Key(3));
  Set(live, {1, 2}, "b");
  live.Redescribe(Key(1));
  Set(live, {2}, "c");  // it has ended meanwhile
  EXPECT_EQ(Found(), (Names{{2, "b"}}));
}

TEST_F(LiveProcessesLive, IgnoresTheProcessesOfARunningCollector) {
  LiveProcesses live = Pin();
  Set(live, {1}, "a");
  EXPECT_TRUE(Pin(/*ignore_earlier=*/true).TakeEarlier().empty());
  EXPECT_TRUE(Found().empty());
}

}  // namespace
}  // namespace tributary
