#include "kernel-collector/direct/printed_sender.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "schemas/otlp/profiles_service.pb.h"

namespace tributary {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

struct Calls {
  std::vector<uint64_t> firsts;  // of the identities
  std::vector<int64_t> timeouts_ns;
  std::vector<otlp::SendResult> results;  // of the next calls; then OK
  int64_t takes_ns = 0;                   // a call
  int cancels = 0;
};

class FakeSender : public otlp::ProfilesSender {
 public:
  FakeSender(Calls& calls, FakeClock& clock) : calls_(calls), clock_(clock) {}
  otlp::SendResult Send(const otlp::ProfilesRequest&, const otlp::RequestIdentity& identity,
                        int64_t timeout_ns) override {
    calls_.firsts.push_back(identity.first);
    calls_.timeouts_ns.push_back(timeout_ns);
    clock_.Advance(calls_.takes_ns);
    if (calls_.results.empty()) return {};
    otlp::SendResult result = calls_.results.front();
    calls_.results.erase(calls_.results.begin());
    return result;
  }
  void Cancel() override { ++calls_.cancels; }

 private:
  Calls& calls_;
  FakeClock& clock_;
};

// A request with two entries, of three samples.
otlp::ProfilesRequest ThreeSamples() {
  otlp::ProfilesRequest request;
  auto& profile = *request.add_resource_profiles()->add_scope_profiles()->add_profiles();
  profile.add_samples()->add_timestamps_unix_nano(1);
  auto& sample = *profile.add_samples();
  sample.add_timestamps_unix_nano(2);
  sample.add_timestamps_unix_nano(3);
  return request;
}

class PrintedSenderTest : public testing::Test {
 protected:
  PrintedSenderTest()
      : sender_(std::make_unique<FakeSender>(printer_, clock_), std::make_unique<FakeSender>(receiver_, clock_), clock_,
                metrics_) {}

  otlp::SendResult Send(uint64_t first) {
    otlp::RequestIdentity identity;
    identity.first = first;
    return sender_.Send(ThreeSamples(), identity, 10 * kNsPerSecond);
  }
  uint64_t unprinted() { return metrics_.AddCounter("tributary_direct_unprinted_samples_total", "").value(); }

  FakeClock clock_;
  Metrics metrics_;
  Calls printer_, receiver_;
  PrintedSender sender_;
};

TEST_F(PrintedSenderTest, PrintsARequestOnceAlthoughItIsSentTwice) {
  receiver_.results = {{{.status = absl::UnavailableError("away"), .may_retry = true, .retry_after_ns = {}}}};
  EXPECT_FALSE(Send(0).status.ok());
  EXPECT_TRUE(Send(0).status.ok());
  EXPECT_TRUE(Send(3).status.ok());
  EXPECT_THAT(printer_.firsts, ElementsAre(0u, 3u));
  EXPECT_THAT(receiver_.firsts, ElementsAre(0u, 0u, 3u));
  EXPECT_EQ(unprinted(), 0u);
}

// Both together stay within the time that the caller allows.
TEST_F(PrintedSenderTest, SendingHasTheTimeThatPrintingLeaves) {
  Send(0);
  printer_.takes_ns = kNsPerSecond / 4;
  receiver_.takes_ns = 5 * kNsPerSecond;
  Send(3);
  Send(3);
  printer_.takes_ns = 20 * kNsPerSecond;  // the process was stopped meanwhile
  Send(6);
  EXPECT_THAT(printer_.timeouts_ns, ElementsAre(kNsPerSecond, kNsPerSecond, kNsPerSecond));
  EXPECT_THAT(receiver_.timeouts_ns, ElementsAre(10 * kNsPerSecond, 39 * kNsPerSecond / 4, 10 * kNsPerSecond, 1));
}

TEST_F(PrintedSenderTest, SendsWhatCannotBePrinted) {
  otlp::SendResult failed;
  failed.status = absl::InternalError("write console: EPIPE");
  failed.may_retry = true;
  otlp::SendResult cut;
  cut.left_out_samples = 2;
  printer_.results = {failed, cut};
  EXPECT_TRUE(Send(0).status.ok());
  EXPECT_EQ(unprinted(), 3u);
  EXPECT_TRUE(Send(3).status.ok());
  EXPECT_EQ(unprinted(), 5u);
  EXPECT_EQ(Send(6).left_out_samples, 0u);
  EXPECT_EQ(unprinted(), 5u);
  EXPECT_THAT(receiver_.firsts, SizeIs(3));
}

TEST_F(PrintedSenderTest, CancelsBoth) {
  sender_.Cancel();
  EXPECT_EQ(printer_.cancels, 1);
  EXPECT_EQ(receiver_.cancels, 1);
  EXPECT_THAT(printer_.firsts, IsEmpty());
}

}  // namespace
}  // namespace tributary
