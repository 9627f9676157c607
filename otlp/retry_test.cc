#include "otlp/retry.h"

#include <gtest/gtest.h>

#include "base/types.h"
#include "schemas/otlp/rpc_status.pb.h"

namespace tributary::otlp {
namespace {

std::string Details(const std::string& type, int64_t seconds, int32_t nanos) {
  rpc::RetryInfo info;
  info.mutable_retry_delay()->set_seconds(seconds);
  info.mutable_retry_delay()->set_nanos(nanos);
  rpc::Status status;
  status.add_details()->set_type_url("type.googleapis.com/google.rpc.DebugInfo");
  auto* detail = status.add_details();
  detail->set_type_url("type.googleapis.com/" + type);
  detail->set_value(info.SerializeAsString());
  return status.SerializeAsString();
}

TEST(Retry, RetriesOnlyCodesThatTheProtocolAllows) {
  using enum absl::StatusCode;
  for (absl::StatusCode code : {kCancelled, kDeadlineExceeded, kAborted, kOutOfRange, kUnavailable, kDataLoss}) {
    EXPECT_TRUE(IsRetryable(code, false)) << static_cast<int>(code);
  }
  for (absl::StatusCode code : {kUnknown, kInvalidArgument, kNotFound, kAlreadyExists, kPermissionDenied,
                                kFailedPrecondition, kUnimplemented, kInternal, kUnauthenticated, kResourceExhausted}) {
    EXPECT_FALSE(IsRetryable(code, false)) << static_cast<int>(code);
  }
  EXPECT_TRUE(IsRetryable(kResourceExhausted, true));
  EXPECT_FALSE(IsRetryable(kInvalidArgument, true));
}

TEST(Retry, ReadsTheServersDelay) {
  EXPECT_EQ(RetryDelayNs(Details("google.rpc.RetryInfo", 3, 500'000'000)), 3'500'000'000);
  EXPECT_EQ(RetryDelayNs(Details("google.rpc.RetryInfo", 1'000'000, 0)), 3600 * kNsPerSecond);
  EXPECT_EQ(RetryDelayNs(Details("google.rpc.RetryInfo", -5, -7)), 0);
  EXPECT_EQ(RetryDelayNs(Details("google.rpc.QuotaFailure", 3, 0)), std::nullopt);
  EXPECT_EQ(RetryDelayNs(""), std::nullopt);
  EXPECT_EQ(RetryDelayNs("\xff\xff\xff"), std::nullopt);
}

}  // namespace
}  // namespace tributary::otlp
