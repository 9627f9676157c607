#include "kernel-collector/direct/request_spool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "intake/testing/fake_spool_storage_testing.h"
#include "kernel-collector/direct/spool_testing.h"
#include "schemas/otlp/logs_service.pb.h"
#include "schemas/otlp/profiles_service.pb.h"

namespace tributary {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr std::array<uint8_t, 16> kSession{7};

class RequestSpoolTest : public testing::Test {
 protected:
  RequestSpoolTest() { Open(); }
  // Starts a new collector.
  void Open(uint64_t bytes_max = 1 << 20, size_t requests_max = 1000) {
    spool_.reset();
    auto spool = RequestSpool::Open(bytes_max, std::make_unique<BorrowedStorage>(disk_, faults_), clock_, metrics_,
                                    requests_max);
    ASSERT_TRUE(spool.ok()) << spool.status();
    spool_ = *std::move(spool);
  }
  // Appends a request with `first` as its number and its number of samples.
  absl::Status Append(uint64_t first, bool in_doubt = false) {
    DirectRequest request;
    request.samples.reset(new otlp::ProfilesRequest);
    request.identity = {.sender = "n", .session = kSession, .first = first};
    request.counts = SampleCounts(first);
    request.in_doubt = in_doubt;
    return spool_->Append(request);
  }
  std::vector<uint64_t> Drain() {
    std::vector<uint64_t> numbers;
    while (true) {
      const absl::StatusOr<RequestSpool::Front> front = spool_->ReadFront();
      if (!front.ok()) {
        EXPECT_TRUE(absl::IsNotFound(front.status())) << front.status();
        break;
      }
      numbers.push_back(front->request.identity.first);
      spool_->PopFront();
    }
    return numbers;
  }
  uint64_t Failures(const char* operation) {
    return metrics_.AddCounter("tributary_spool_failures_total", "", {{"operation", operation}}).value();
  }

  intake::FakeSpoolStorage disk_{1};
  DiskFaults faults_;
  FakeClock clock_;
  Metrics metrics_;
  std::unique_ptr<RequestSpool> spool_;
};

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

// If the header of a file is damaged, the number of its samples is not known.
TEST_F(RequestSpoolTest, CountsDamagedFilesAtTheStart) {
  for (uint64_t number : {1, 2, 3, 4}) EXPECT_TRUE(Append(number).ok());
  const std::vector<std::string> names = disk_.names();
  disk_.bytes(names[1]).pop_back();
  disk_.Damage(names[2], kRequestPrefixBytes, 1);
  Open();
  const std::vector<RequestSpool::Dropped> dropped = spool_->TakeDropped();
  ASSERT_EQ(dropped.size(), 1u);
  EXPECT_EQ(dropped[0].reason, LossReason::kSpoolDamaged);
  EXPECT_EQ(dropped[0].counts, SampleCounts(2));
  EXPECT_TRUE(dropped[0].earlier);
  EXPECT_EQ(spool_->found_lost(), SampleCounts(2));
  EXPECT_EQ(spool_->FoundOf(kSession), SampleCounts(7));
  EXPECT_EQ(metrics_.AddCounter("tributary_spool_damaged_segments_total", "").value(), 2u);
  EXPECT_THAT(Drain(), ElementsAre(1, 4));
  EXPECT_THAT(disk_.names(), IsEmpty());
}

TEST_F(RequestSpoolTest, ReadsOnlyHeadersAtTheStart) {
  for (uint64_t number : {1, 2}) EXPECT_TRUE(Append(number).ok());
  const std::vector<std::string> names = disk_.names();
  disk_.Damage(names[0], disk_.bytes(names[0]).size() - 1, 1);
  Open();
  EXPECT_EQ(spool_->earlier(), SampleCounts(3));
  EXPECT_THAT(spool_->TakeDropped(), IsEmpty());
  EXPECT_THAT(Drain(), ElementsAre(2));
  EXPECT_EQ(spool_->TakeDropped()[0].counts, SampleCounts(1));
}

TEST_F(RequestSpoolTest, LimitsTheNumberOfFiles) {
  for (uint64_t number : {1, 2, 3, 4}) EXPECT_TRUE(Append(number).ok());
  Open(1 << 20, 3);
  EXPECT_EQ(spool_->found_lost(), SampleCounts(1));
  EXPECT_EQ(spool_->earlier(), SampleCounts(9));
  EXPECT_TRUE(Append(5).ok());
  const std::vector<RequestSpool::Dropped> dropped = spool_->TakeDropped();
  ASSERT_EQ(dropped.size(), 2u);
  EXPECT_EQ(dropped[0].reason, LossReason::kSpoolOverflow);
  EXPECT_TRUE(dropped[0].earlier);
  EXPECT_EQ(dropped[0].counts + dropped[1].counts, SampleCounts(3));
  EXPECT_THAT(Drain(), ElementsAre(3, 4, 5));
  EXPECT_THAT(disk_.names(), IsEmpty());
}

TEST_F(RequestSpoolTest, RefusesAFileThatIsTooLarge) {
  EXPECT_TRUE(Append(7).ok());
  disk_.bytes(disk_.names()[0]).resize(kRequestFileBytesMax + 1);
  Open();
  EXPECT_TRUE(spool_->empty());
  EXPECT_EQ(spool_->found_lost(), SampleCounts(7));
}

// For example because there were too many open files when the machine booted.
TEST_F(RequestSpoolTest, TriesAgainToReadAFileOfTheStart) {
  for (uint64_t number : {1, 2, 3}) EXPECT_TRUE(Append(number).ok());
  faults_.failing_reads = 2;
  Open();
  EXPECT_EQ(spool_->FoundOf(kSession), SampleCounts(3));
  spool_->RetryUnread(/*give_up=*/true);
  EXPECT_EQ(spool_->FoundOf(kSession), SampleCounts(6));
  EXPECT_EQ(spool_->earlier(), SampleCounts(6));
  EXPECT_EQ(spool_->bytes(), 3 * RequestSpool::kBlockBytes);
  EXPECT_THAT(Drain(), ElementsAre(1, 2, 3)) << "the order stays";
}

// Its samples count as lost, so no later start may send them.
TEST_F(RequestSpoolTest, RemovesAFileThatIsGivenUp) {
  for (uint64_t number : {1, 2}) EXPECT_TRUE(Append(number).ok());
  faults_.failing_reads = 2;
  Open();
  faults_.failing_reads = 1;
  spool_->RetryUnread(/*give_up=*/true);
  EXPECT_EQ(spool_->FoundOf(kSession), SampleCounts(2));
  EXPECT_EQ(disk_.names().size(), 1u);
  EXPECT_EQ(spool_->bytes(), RequestSpool::kBlockBytes);
  EXPECT_EQ(metrics_.AddCounter("tributary_spool_damaged_segments_total", "").value(), 1u);
  Open();
  EXPECT_THAT(Drain(), ElementsAre(2));
}

TEST_F(RequestSpoolTest, KeepsAFileThatIsNotGivenUpForTheNextStart) {
  EXPECT_TRUE(Append(1).ok());
  faults_.failing_reads = 2;
  Open();
  spool_->RetryUnread(/*give_up=*/false);
  EXPECT_TRUE(spool_->empty());
  EXPECT_EQ(spool_->bytes(), RequestSpool::kBlockBytes);
  Open();
  EXPECT_THAT(Drain(), ElementsAre(1));
}

// The next start may be able to read it. Until then its bytes are not free.
TEST_F(RequestSpoolTest, CountsTheBytesOfAFileThatCannotBeReadAtTheStart) {
  for (uint64_t number : {1, 2}) EXPECT_TRUE(Append(number).ok());
  faults_.failing_reads = 1;
  Open(2 * RequestSpool::kBlockBytes);
  EXPECT_EQ(spool_->bytes(), 2 * RequestSpool::kBlockBytes);
  EXPECT_EQ(spool_->earlier(), SampleCounts(2));
  EXPECT_TRUE(Append(3).ok());
  EXPECT_THAT(Drain(), ElementsAre(3));
  Open();
  EXPECT_THAT(Drain(), ElementsAre(1));
}

TEST_F(RequestSpoolTest, LeavesOtherFilesAlone) {
  for (const char* name : {"segment-0000000000000001.trs", "request-1.trq", "notes"}) disk_.bytes(name) = "x";
  Open();
  EXPECT_TRUE(spool_->empty());
  EXPECT_TRUE(Append(1).ok());
  EXPECT_THAT(Drain(), ElementsAre(1));
  EXPECT_EQ(disk_.names().size(), 3u);
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
  EXPECT_THAT(testing::internal::GetCapturedStderr(), testing::HasSubstr("is slow"));
  EXPECT_LE(clock_.Monotonic().value - start.value, 2 * RequestSpool::kSyncNs + 4 * kStepNs);
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
  EXPECT_EQ(syncs, 12u);
  for (int i = 0; i < 10; ++i) spool_->Tick();
  EXPECT_EQ(syncs, 100u) << "each file once";
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
