#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernel-collector/direct/batch_sender_testing.h"

namespace tributary {
namespace {

// Three sets are sent together. The first set was sent alone.
class SenderTogetherTest : public BatchSenderTest {
 protected:
  SenderTogetherTest() { OpenTogether({.names = false}); }
  void OpenTogether(BatchSender::Options options) {
    options.sets_together = 3;
    options.together_wait_ns = kWaitNs;
    Open(std::move(options));
    sender_->AddSymbols(TestId("prog"), TableFor(TestId("prog")));
    pushed_ = 0;
    Push();
    Run();
    EXPECT_EQ(Sent(), 1u);
  }

  static constexpr int64_t kWaitNs = 15 * kNsPerSecond;
};

TEST_F(SenderTogetherTest, SendsOneRequestForThreeSets) {
  Push();
  EXPECT_EQ(Run(), kWaitNs);
  clock_.Advance(5 * kNsPerSecond);
  Push();
  EXPECT_EQ(Run(), kWaitNs - 5 * kNsPerSecond);
  EXPECT_EQ(Sent(), 1u);
  CheckLaw();
  Push("prog", 2);
  EXPECT_EQ(Run(), BatchSender::kIdleNs);
  EXPECT_EQ(Sent(), 5u);
  EXPECT_EQ(receiver_->texts.size(), 2u);
  CheckLaw();
}

// For example if there were no samples for a while.
TEST_F(SenderTogetherTest, TheOldestSetDoesNotWaitForEver) {
  Push();
  clock_.Advance(kWaitNs - 1);
  EXPECT_EQ(Run(), BatchSender::kNamesPollNs);
  EXPECT_EQ(Sent(), 1u);
  clock_.Advance(1);
  EXPECT_EQ(Run(), BatchSender::kIdleNs);
  EXPECT_EQ(Sent(), 2u);
}

TEST_F(SenderTogetherTest, AQueueThatIsHalfFullDoesNotWait) {
  batches_.Add("prog", 0x2010);
  const size_t set_bytes =
      CopySamples(batches_.Take(), [](const Process&, const Dictionary&) { return Attributes(); }).bytes;
  OpenTogether({.queue_bytes_max = 3 * set_bytes, .names = false});
  Push();
  EXPECT_GT(Run(), BatchSender::kNamesPollNs);
  EXPECT_EQ(Sent(), 1u);
  Push();
  EXPECT_EQ(Run(), BatchSender::kIdleNs);
  EXPECT_EQ(Sent(), 3u);
  EXPECT_EQ(receiver_->texts.size(), 2u);
  CheckLaw();
}

TEST_F(SenderTogetherTest, SetsWaitTogetherForNames) {
  OpenTogether({});
  for (int i = 0; i < 2; ++i) Push();
  Push("late");  // its table never comes
  EXPECT_EQ(Run(), BatchSender::kNamesPollNs);
  EXPECT_EQ(Sent(), 1u);
  clock_.Advance(BatchSender::kNamesWaitNs);
  EXPECT_EQ(Run(), BatchSender::kIdleNs);
  EXPECT_EQ(Sent(), 4u);
  EXPECT_EQ(receiver_->texts.size(), 2u);
}

// The oldest sets are not late because a later set waits for names.
TEST_F(SenderTogetherTest, SetsThatHaveWaitedLeaveWithoutTheOthers) {
  OpenTogether({});
  for (int i = 0; i < 2; ++i) Push();
  clock_.Advance(kWaitNs - kNsPerSecond);
  Push("late");
  EXPECT_EQ(Run(), BatchSender::kNamesPollNs);
  clock_.Advance(kNsPerSecond);
  Run();
  EXPECT_EQ(Sent(), 3u);
  CheckLaw();
}

TEST_F(SenderTogetherTest, TheEndSendsEverything) {
  for (int i = 0; i < 2; ++i) Push();
  sender_->Flush(MonotonicNs{clock_.Monotonic().value + kNsPerSecond});
  EXPECT_EQ(Sent(), 3u);
  EXPECT_EQ(receiver_->texts.size(), 2u);
  CheckLaw();
}

TEST_F(SenderTogetherTest, AFailedRequestKeepsItsSets) {
  receiver_->script = {Failure(absl::StatusCode::kUnavailable, true)};
  for (int i = 0; i < 3; ++i) Push();
  clock_.Advance(Run());
  for (int i = 0; i < 2; ++i) Push();
  Run();
  EXPECT_EQ(Sent(), 4u);
  EXPECT_EQ(receiver_->first_numbers, (std::vector<uint64_t>{0, 1, 1}));
  CheckLaw();
  receiver_->script = {Failure(absl::StatusCode::kInvalidArgument, false)};
  Push();
  Run();
  EXPECT_EQ(Lost(LossReason::kRejected), 3u);
  CheckLaw();
}

}  // namespace
}  // namespace tributary
