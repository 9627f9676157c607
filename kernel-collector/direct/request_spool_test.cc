#include "kernel-collector/direct/request_spool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernel-collector/direct/request_spool_testing.h"

namespace tributary {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST_F(RequestSpoolTest, ReturnsRequestsInOrderAlsoAfterAStart) {
  for (uint64_t number : {3, 1, 2}) EXPECT_TRUE(Append(number).ok());
  EXPECT_EQ(spool_->own(), SampleCounts(6));
  EXPECT_FALSE(spool_->ReadFront()->earlier);
  Open();
  EXPECT_TRUE(Append(9).ok());
  EXPECT_EQ(spool_->earlier(), SampleCounts(6));
  EXPECT_EQ(spool_->own(), SampleCounts(9));
  EXPECT_EQ(spool_->FoundOf(kSession), SampleCounts(6));
  EXPECT_EQ(spool_->FoundOf({8}), SampleCounts());
  EXPECT_TRUE(spool_->ReadFront()->earlier);
  EXPECT_THAT(Drain(), ElementsAre(3, 1, 2, 9));
  EXPECT_TRUE(spool_->empty());
  EXPECT_EQ(spool_->bytes(), 0u);
  EXPECT_THAT(disk_.names(), IsEmpty());
}

TEST_F(RequestSpoolTest, RemembersADoubt) {
  EXPECT_TRUE(Append(1).ok());
  EXPECT_TRUE(Append(2, /*in_doubt=*/true).ok());
  spool_->MarkFront(true);
  Open();
  EXPECT_TRUE(spool_->ReadFront()->request.in_doubt);
  spool_->MarkFront(false);
  Open();
  EXPECT_FALSE(spool_->ReadFront()->request.in_doubt);
  spool_->PopFront();
  EXPECT_TRUE(spool_->ReadFront()->request.in_doubt);
}

TEST_F(RequestSpoolTest, AFullSpoolLosesTheOldestRequests) {
  Open(3 * RequestSpool::kBlockBytes);
  for (uint64_t number = 1; number <= 5; ++number) EXPECT_TRUE(Append(number, number == 2).ok());
  const std::vector<RequestSpool::Dropped> dropped = spool_->TakeDropped();
  ASSERT_EQ(dropped.size(), 2u);
  EXPECT_EQ(dropped[0].reason, LossReason::kSpoolOverflow);
  EXPECT_EQ(dropped[0].counts, SampleCounts(1));
  EXPECT_EQ(dropped[1].reason, LossReason::kInDoubt);
  EXPECT_THAT(spool_->TakeDropped(), IsEmpty());
  EXPECT_LE(spool_->bytes(), 3 * RequestSpool::kBlockBytes);
  EXPECT_EQ(metrics_.AddCounter("tributary_spool_dropped_samples_total", "", {{"reason", "spool_overflow"}}).value(),
            3u);
  EXPECT_THAT(Drain(), ElementsAre(3, 4, 5));
}

// For example because there are too many open files.
TEST_F(RequestSpoolTest, KeepsRequestsThatCannotBeReadNow) {
  for (uint64_t number : {1, 2, 3}) EXPECT_TRUE(Append(number).ok());
  faults_.failing_reads = 20;
  for (uint64_t i = 0; i < 20; ++i) {
    const absl::StatusOr<RequestSpool::Front> front = spool_->ReadFront();
    EXPECT_TRUE(absl::IsResourceExhausted(front.status())) << front.status();
    clock_.Advance(kNsPerSecond);
  }
  EXPECT_EQ(Failures("read"), 20u);
  EXPECT_THAT(Drain(), ElementsAre(1, 2, 3));
  EXPECT_THAT(spool_->TakeDropped(), IsEmpty());
}

TEST_F(RequestSpoolTest, LosesARequestThatCannotBeReadForMinutes) {
  for (uint64_t number : {1, 2}) EXPECT_TRUE(Append(number).ok());
  faults_.failing_reads = 2;
  EXPECT_FALSE(spool_->ReadFront().ok());
  clock_.Advance(RequestSpool::kUnreadableNs);
  EXPECT_THAT(Drain(), ElementsAre(2));
  const std::vector<RequestSpool::Dropped> dropped = spool_->TakeDropped();
  ASSERT_EQ(dropped.size(), 1u);
  EXPECT_EQ(dropped[0].reason, LossReason::kSpoolDamaged);
  EXPECT_EQ(dropped[0].counts, SampleCounts(1));
  EXPECT_FALSE(dropped[0].earlier);
}

TEST_F(RequestSpoolTest, LosesDamagedAndMissingRequestsAtOnce) {
  for (uint64_t number : {1, 2, 3}) EXPECT_TRUE(Append(number).ok());
  const std::vector<std::string> names = disk_.names();
  disk_.Damage(names[0], disk_.bytes(names[0]).size() - 1, 1);
  EXPECT_TRUE(disk_.Remove(names[1]).ok());
  testing::internal::CaptureStderr();
  EXPECT_THAT(Drain(), ElementsAre(3));
  const std::string log = testing::internal::GetCapturedStderr();
  EXPECT_THAT(log, testing::HasSubstr("check the disk"));
  EXPECT_EQ(log.find("check the disk"), log.rfind("check the disk"));  // the log is not flooded
  const std::vector<RequestSpool::Dropped> dropped = spool_->TakeDropped();
  ASSERT_EQ(dropped.size(), 2u);
  EXPECT_EQ(dropped[0].counts + dropped[1].counts, SampleCounts(3));
}

}  // namespace
}  // namespace tributary
