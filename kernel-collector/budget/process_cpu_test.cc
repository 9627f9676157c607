#include "kernel-collector/budget/process_cpu.h"

#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <csignal>
#include <thread>

#include "base/types.h"

namespace tributary {
namespace {

constexpr int64_t kWorkNs = 50 * kNsPerMs;

void Work(clockid_t clock) {
  timespec used = {};
  while (used.tv_sec == 0 && used.tv_nsec < kWorkNs) clock_gettime(clock, &used);
}

TEST(ProcessCpu, CountsRunningAndEndedThreads) {
  int64_t before = ProcessCpuNs();
  std::thread(Work, CLOCK_THREAD_CPUTIME_ID).join();
  EXPECT_GE(ProcessCpuNs(), before + kWorkNs);
}

TEST(ProcessCpu, CountsRunningAndEndedChildren) {
  int64_t before = ProcessCpuNs();
  int done[2];
  ASSERT_EQ(pipe(done), 0);
  pid_t child = fork();
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    Work(CLOCK_PROCESS_CPUTIME_ID);
    (void)!write(done[1], "", 1);
    pause();
  }
  char byte;
  ASSERT_EQ(read(done[0], &byte, 1), 1);
  EXPECT_GE(ProcessCpuNs(), before + kWorkNs) << "while it lives";
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  // The kernel cuts the times of dead children to microseconds.
  EXPECT_GE(ProcessCpuNs(), before + kWorkNs - kNsPerMs) << "when it has ended";
  close(done[0]);
  close(done[1]);
}

}  // namespace
}  // namespace tributary
