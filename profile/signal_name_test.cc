#include "profile/signal_name.h"

#include <gtest/gtest.h>

#include <csignal>

namespace tributary {
namespace {

TEST(SignalName, NamesEveryNumber) {
  EXPECT_EQ(SignalName(0), "");
  EXPECT_EQ(SignalName(SIGSEGV), "SIGSEGV");
  EXPECT_EQ(SignalName(SIGSYS), "SIGSYS");
  EXPECT_EQ(SignalName(SIGVTALRM), "SIGVTALRM");
  EXPECT_EQ(SignalName(32), "signal 32");
  EXPECT_EQ(SignalName(34), "SIGRTMIN");
  EXPECT_EQ(SignalName(37), "SIGRTMIN+3");
  EXPECT_EQ(SignalName(255), "signal 255");
}

TEST(SignalName, SomeSignalsAreCrashes) {
  for (const int crash : {SIGSEGV, SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSYS, SIGTRAP, SIGXCPU, SIGXFSZ}) {
    EXPECT_TRUE(IsCrashSignal(static_cast<uint8_t>(crash))) << crash;
  }
  for (const int request : {0, SIGTERM, SIGINT, SIGHUP, SIGKILL, SIGPIPE, SIGQUIT, 255}) {
    EXPECT_FALSE(IsCrashSignal(static_cast<uint8_t>(request))) << request;
  }
}

}  // namespace
}  // namespace tributary
