#pragma once

#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <functional>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "base/types.h"
#include "gtest/gtest.h"
#include "kernel-collector/probes/cpu_list.h"
#include "kernel-collector/probes/probes.h"

// Helpers for tests on the running kernel.

namespace tributary {

inline std::string ReadFile(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

inline std::string OutputOf(const std::string& command) {
  std::string text;
  FILE* pipe = popen(command.c_str(), "r");
  char buffer[4096];
  for (size_t n; pipe != nullptr && (n = fread(buffer, 1, sizeof(buffer), pipe)) > 0;) text.append(buffer, n);
  EXPECT_TRUE(pipe != nullptr && pclose(pipe) == 0) << command;
  return text;
}

// A child process that runs `work`. The destructor kills it.
class Child {
 public:
  explicit Child(const std::function<void()>& work) : pid_(fork()) {
    if (pid_ != 0) return;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    work();
    _exit(0);
  }
  ~Child() {
    if (pid_ > 0) kill(pid_, SIGKILL);
    Wait();
  }
  void Wait() {
    if (pid_ > 0) waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }
  Pid pid() const { return Pid{pid_}; }

 private:
  pid_t pid_;
};

// A test with a bpffs of its own at kBpffs. The mounts disappear with this process, however the test ends.
class PrivateBpffsTest : public testing::Test {
 protected:
  static constexpr char kBpffs[] = "/tmp/tributary_private_bpffs_test";

  static void SetUpTestSuite() {
    ASSERT_EQ(unshare(CLONE_NEWNS), 0) << strerror(errno);
    ASSERT_EQ(mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr), 0) << strerror(errno);
  }
  void SetUp() override {
    mkdir(kBpffs, 0700);
    ASSERT_EQ(mount("bpf", kBpffs, "bpf", 0, nullptr), 0) << strerror(errno);
  }
  void TearDown() override {
    umount(kBpffs);
    rmdir(kBpffs);
  }
};

inline std::vector<int> OnlineCpus() {
  absl::StatusOr<std::vector<int>> cpus = ParseCpuList(ReadFile("/sys/devices/system/cpu/online"));
  EXPECT_TRUE(cpus.ok()) << cpus.status();
  return cpus.ok() ? *cpus : std::vector<int>{};
}

inline constexpr int64_t kPatienceNs = 60 * kNsPerSecond;  // only a failing test waits that long
inline void Until(const std::function<bool()>& done) {
  MonotonicNs start = Clock::Real().Monotonic();
  while (!done()) {
    ASSERT_LT(Clock::Real().Monotonic().value - start.value, kPatienceNs) << "gave up waiting";
    usleep(5'000);
  }
}

// Lets the calling thread run on `cpu` only.
inline void PinTo(int cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  EXPECT_EQ(sched_setaffinity(0, sizeof(set), &set), 0);
}

inline std::unique_ptr<Probes> OpenProbes(const ProbeOptions& options, Metrics& metrics) {
  absl::StatusOr<std::unique_ptr<Probes>> probes = Probes::Open(options, metrics);
  EXPECT_TRUE(probes.ok()) << probes.status();
  return probes.ok() ? *std::move(probes) : nullptr;
}

}  // namespace tributary
