#include "base/descriptor_limit.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

namespace tributary {
namespace {

TEST(DescriptorLimit, RaisesTheSoftLimitToTheHardOne) {
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit low{.rlim_cur = before.rlim_max / 2, .rlim_max = before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &low), 0);
  EXPECT_EQ(RaiseDescriptorLimit(), before.rlim_max);
  rlimit after{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &after), 0);
  EXPECT_EQ(after.rlim_cur, before.rlim_max);
  setrlimit(RLIMIT_NOFILE, &before);
}

TEST(DescriptorLimit, WarnsOnlyIfTheLimitIsLow) {
  testing::internal::CaptureStderr();
  WarnOfLowDescriptorLimit(1'024, 1'024);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  testing::internal::CaptureStderr();
  WarnOfLowDescriptorLimit(1'023, 1'024);
  EXPECT_NE(testing::internal::GetCapturedStderr().find("raise the hard limit"), std::string::npos);
}

}  // namespace
}  // namespace tributary
