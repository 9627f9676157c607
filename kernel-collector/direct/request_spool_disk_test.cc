#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernel-collector/direct/request_spool_testing.h"

// Tests a RequestSpool on a disk that is full, slow or failing.

namespace tributary {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST_F(RequestSpoolTest, TakesNothingWhileTheDiskIsFull) {
  EXPECT_TRUE(Append(1).ok());
  disk_.set_capacity(0);
  EXPECT_TRUE(absl::IsResourceExhausted(Append(2)));
  EXPECT_EQ(Failures("append"), 1u);
  EXPECT_EQ(spool_->own(), SampleCounts(1));
  EXPECT_EQ(disk_.names().size(), 1u);  // nothing of the second request is left
  disk_.set_capacity(UINT64_MAX);
  EXPECT_TRUE(Append(3).ok());
  EXPECT_THAT(Drain(), ElementsAre(1, 3));
}

TEST_F(RequestSpoolTest, RemovesAFileLaterIfTheDiskFails) {
  EXPECT_TRUE(Append(1).ok());
  disk_.FailAfter(0);
  spool_->PopFront();
  EXPECT_EQ(Failures("remove"), 1u);
  EXPECT_TRUE(spool_->empty());
  EXPECT_EQ(disk_.names().size(), 1u);
  spool_->Tick();
  EXPECT_THAT(disk_.names(), IsEmpty());
}

TEST_F(RequestSpoolTest, LosesNothingForARequestThatIsNotWritten) {
  Open(2 * RequestSpool::kBlockBytes);
  for (uint64_t number : {1, 2}) EXPECT_TRUE(Append(number).ok());
  disk_.FailAfter(0);
  EXPECT_FALSE(Append(3).ok());
  EXPECT_THAT(spool_->TakeDropped(), IsEmpty());
  EXPECT_TRUE(Append(4).ok());
  EXPECT_EQ(spool_->TakeDropped().size(), 1u);
  EXPECT_THAT(Drain(), ElementsAre(2, 4));
}

// The disk may be as small as the spool.
TEST_F(RequestSpoolTest, MakesRoomOnAFullDisk) {
  Open(2 * RequestSpool::kBlockBytes);
  for (uint64_t number : {1, 2}) EXPECT_TRUE(Append(number).ok());
  disk_.set_capacity(disk_.bytes(disk_.names()[0]).size() * 2);
  EXPECT_TRUE(absl::IsResourceExhausted(Append(3)));
  EXPECT_TRUE(Append(3).ok());
  EXPECT_THAT(Drain(), ElementsAre(2, 3));
}

TEST_F(RequestSpoolTest, RemovesAFileAtTheEndIfTheDiskFailedBefore) {
  EXPECT_TRUE(Append(1).ok());
  disk_.FailAfter(0);
  spool_->PopFront();
  spool_.reset();
  EXPECT_THAT(disk_.names(), IsEmpty());
}

// The files that were not tried are the first ones of the next call, so that the others do not block them.
TEST_F(RequestSpoolTest, RemovesFilesInTurns) {
  for (uint64_t number : {1, 2, 3}) EXPECT_TRUE(Append(number).ok());
  const std::vector<std::string> names = disk_.names();
  faults_.on_remove = [this] { disk_.FailAfter(0); };
  for (int i = 0; i < 3; ++i) spool_->PopFront();
  faults_.on_remove = [this] {
    disk_.FailAfter(0);
    clock_.Advance(RequestSpool::kSyncNs);
  };
  spool_->Tick();  // tries the first one
  faults_.on_remove = [this] { clock_.Advance(RequestSpool::kSyncNs); };
  spool_->Tick();
  EXPECT_THAT(disk_.names(), ElementsAre(names[0], names[2]));
  spool_->Tick();
  EXPECT_THAT(disk_.names(), ElementsAre(names[0]));
  spool_->Tick();
  EXPECT_THAT(disk_.names(), IsEmpty());
  faults_.on_remove = [] {};
}

// For example because it is read-only. That is not a slow disk.
TEST_F(RequestSpoolTest, AStopSaysIfFilesCannotBeRemoved) {
  for (uint64_t number : {1, 2}) EXPECT_TRUE(Append(number).ok());
  faults_.on_remove = [this] { disk_.FailAfter(0); };
  for (int i = 0; i < 2; ++i) spool_->PopFront();
  testing::internal::CaptureStderr();
  spool_.reset();
  const std::string log = testing::internal::GetCapturedStderr();
  faults_.on_remove = [] {};
  EXPECT_THAT(log, HasSubstr("could not be removed"));
  EXPECT_THAT(log, HasSubstr("files=2"));
  EXPECT_EQ(log.find("is slow"), log.npos) << log;
}

TEST_F(RequestSpoolTest, AStopSyncsAllRequests) {
  for (uint64_t number : {1, 2, 3}) EXPECT_TRUE(Append(number).ok());
  spool_.reset();
  disk_.LosePower();
  Open();
  EXPECT_THAT(Drain(), ElementsAre(1, 2, 3));
}

// The disk takes 100 ms for each sync and each removal.
TEST_F(RequestSpoolTest, AStopDoesNotWaitForASlowDisk) {
  constexpr int64_t kStepNs = kNsPerSecond / 10;
  for (uint64_t number = 1; number <= 200; ++number) EXPECT_TRUE(Append(number).ok());
  faults_.on_remove = [this] { disk_.FailAfter(0); };
  for (int i = 0; i < 50; ++i) spool_->PopFront();
  EXPECT_EQ(Failures("remove"), 50u);
  faults_.on_sync = faults_.on_remove = [this] { clock_.Advance(kStepNs); };
  const MonotonicNs start = clock_.Monotonic();
  testing::internal::CaptureStderr();
  spool_.reset();
  const std::string log = testing::internal::GetCapturedStderr();
  EXPECT_THAT(log, HasSubstr("is slow"));
  EXPECT_THAT(log, HasSubstr("unsynced=140 unremoved=40"));
  EXPECT_EQ(log.find("could not be removed"), log.npos) << log;
  EXPECT_EQ(clock_.Monotonic().value - start.value, 2 * RequestSpool::kSyncNs);
  faults_.on_sync = faults_.on_remove = [] {};
  Open();
  EXPECT_EQ(Drain().size(), 200u - 10);  // ten of those that were sent are removed, the others are sent again
}

// What a call does not sync stays for the next call.
TEST_F(RequestSpoolTest, ASlowDiskIsSyncedInParts) {
  for (uint64_t number = 1; number <= 100; ++number) EXPECT_TRUE(Append(number).ok());
  size_t syncs = 0;
  faults_.on_sync = [&] {
    ++syncs;
    clock_.Advance(kNsPerSecond / 10);
  };
  clock_.Advance(RequestSpool::kUnsyncedNs);
  spool_->Tick();
  EXPECT_EQ(syncs, 10u);
  for (int i = 0; i < 10; ++i) spool_->Tick();
  EXPECT_EQ(syncs, 100u) << "each file once";
  faults_.on_sync = [] {};
}

// A disk is slow from time to time. Files are synced together only after a quick sync.
TEST_F(RequestSpoolTest, OneSlowSyncIsFollowedBySyncsOfOneFile) {
  for (uint64_t number = 1; number <= 20; ++number) EXPECT_TRUE(Append(number).ok());
  size_t syncs = 0;
  faults_.on_sync = [&] {
    if (++syncs > 5) clock_.Advance(RequestSpool::kSyncNs * 3 / 10);
  };
  clock_.Advance(RequestSpool::kUnsyncedNs);
  spool_->Tick();
  EXPECT_EQ(syncs, 9u);  // 1, 4 and 4, and then the time is over
  syncs = 5;
  spool_->Tick();
  EXPECT_EQ(syncs, 9u);  // one by one
  faults_.on_sync = [] {};
}

// So a slow disk delays a stop, or the receiver, only where the caller wants it.
TEST_F(RequestSpoolTest, AppendDoesNotSync) {
  size_t syncs = 0;
  faults_.on_sync = [&] { ++syncs; };
  Open(8u << 20);
  const uint64_t files = RequestSpool::kUnsyncedBytesMax / RequestSpool::kBlockBytes;
  for (uint64_t i = 1; i <= 2 * files; ++i) EXPECT_TRUE(Append(i).ok());
  EXPECT_EQ(syncs, 0u);
  faults_.on_sync = [&] {
    ++syncs;
    clock_.Advance(RequestSpool::kSyncNs / (files + 2));
  };
  spool_->SyncIfDue();
  EXPECT_GT(syncs, files);
  EXPECT_LT(syncs, files + 8);
  const size_t before = syncs;
  EXPECT_TRUE(Append(1).ok());
  spool_->SyncIfDue();
  EXPECT_EQ(syncs, before) << "what is not synced has less than 1 MiB";
  faults_.on_sync = [] {};
}

TEST_F(RequestSpoolTest, SyncedRequestsSurviveALossOfPower) {
  EXPECT_TRUE(Append(1).ok());
  spool_->Tick();
  EXPECT_TRUE(Append(2).ok());
  clock_.Advance(RequestSpool::kUnsyncedNs);
  spool_->Tick();
  EXPECT_TRUE(Append(3).ok());
  disk_.Kill();
  spool_.reset();
  disk_.LosePower();
  Open();
  const std::vector<uint64_t> left = Drain();
  ASSERT_GE(left.size(), 2u);
  EXPECT_EQ(left[0], 1u);
  EXPECT_EQ(left[1], 2u);
}

}  // namespace
}  // namespace tributary
