#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <xxhash.h>

#include "base/little_endian.h"
#include "kernel-collector/direct/request_spool_testing.h"

// Tests what a RequestSpool does with the files of earlier collectors.

namespace tributary {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Changes the version of the file `bytes`. The checksum of the header is right.
void MakeNewer(std::string& bytes, RequestId id) {
  constexpr uint32_t kNewer = 2;
  constexpr size_t kVersionAt = 4, kHeaderBytesAt = 8, kChecksumAt = 24;
  StoreLittleEndian<uint32_t>(&bytes[kVersionAt], kNewer);
  const std::string covered = bytes.substr(0, kChecksumAt) +
                              bytes.substr(kRequestPrefixBytes, LoadLittleEndian<uint32_t>(&bytes[kHeaderBytesAt]));
  StoreLittleEndian<uint64_t>(&bytes[kChecksumAt],
                              XXH3_64bits_withSeed(covered.data(), covered.size(), id ^ uint64_t{kNewer} << 56));
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

TEST_F(RequestSpoolTest, LeavesOtherFilesAlone) {
  for (const char* name : {"segment-0000000000000001.trs", "request-1.trq", "notes"}) disk_.bytes(name) = "x";
  Open();
  EXPECT_TRUE(spool_->empty());
  EXPECT_TRUE(Append(1).ok());
  EXPECT_THAT(Drain(), ElementsAre(1));
  EXPECT_EQ(disk_.names().size(), 3u);
}

// For example because there were too many open files when the machine booted.
TEST_F(RequestSpoolTest, TriesAgainToReadAFileOfTheStart) {
  for (uint64_t number : {1, 2, 3}) EXPECT_TRUE(Append(number).ok());
  faults_.failing_reads = 2;
  Open();
  EXPECT_EQ(spool_->FoundOf(kSession), SampleCounts(3));
  spool_->RetryUnread();
  EXPECT_EQ(spool_->FoundOf(kSession), SampleCounts(6));
  EXPECT_EQ(spool_->earlier(), SampleCounts(6));
  EXPECT_EQ(spool_->bytes(), 3 * RequestSpool::kBlockBytes);
  EXPECT_THAT(Drain(), ElementsAre(1, 2, 3)) << "the order stays";
}

TEST_F(RequestSpoolTest, ReadsAFileOfTheStartMinutesLater) {
  for (uint64_t number : {1, 2, 3}) EXPECT_TRUE(Append(number).ok());
  faults_.failing_reads = 2;
  Open();
  faults_.failing_reads = 2;
  spool_->RetryUnread();
  EXPECT_EQ(spool_->FoundOf(kSession), SampleCounts(3));
  spool_->SetLost(std::vector{RequestSpool::Session{8}});
  spool_->Tick();
  EXPECT_EQ(spool_->earlier(), SampleCounts(3)) << "too soon";
  faults_.failing_reads = 100;
  while (faults_.failing_reads > 50) {
    clock_.Advance(RequestSpool::kUnreadRetryNs);
    spool_->Tick();
  }
  faults_.failing_reads = 0;
  clock_.Advance(RequestSpool::kUnreadRetryNs);
  spool_->Tick();
  EXPECT_EQ(spool_->earlier(), SampleCounts(6));
  EXPECT_EQ(spool_->bytes(), 3 * RequestSpool::kBlockBytes);
  EXPECT_THAT(spool_->TakeDropped(), IsEmpty());
  EXPECT_THAT(Drain(), ElementsAre(1, 2, 3)) << "the order stays";
  EXPECT_THAT(disk_.names(), IsEmpty());
}

// Its samples count as lost with those of a killed collector. So they may neither be sent nor count again.
TEST_F(RequestSpoolTest, RemovesALateFileWhoseSamplesCountAsLost) {
  EXPECT_TRUE(Append(1).ok());
  EXPECT_TRUE(Append(2, false, EventSession(kSession)).ok());
  EXPECT_TRUE(Append(3, false, {8}).ok());
  EXPECT_TRUE(Append(4).ok());
  faults_.failing_reads = 3;
  Open();
  faults_.failing_reads = 3;
  spool_->RetryUnread();
  EXPECT_EQ(spool_->FoundOf(kSession), SampleCounts(4));
  spool_->SetLost(std::vector{kSession});
  EXPECT_EQ(disk_.names().size(), 4u);
  clock_.Advance(RequestSpool::kUnreadRetryNs);
  testing::internal::CaptureStderr();
  spool_->Tick();
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("samples=1 events=0"));
  EXPECT_THAT(spool_->TakeDropped(), IsEmpty());
  EXPECT_EQ(disk_.names().size(), 2u);
  EXPECT_EQ(spool_->bytes(), 2 * RequestSpool::kBlockBytes);
  EXPECT_EQ(spool_->earlier(), SampleCounts(7));
  EXPECT_THAT(Drain(), ElementsAre(3, 4)) << "nothing of another session was counted";
}

TEST_F(RequestSpoolTest, LeavesAFileThatCannotBeReadForMinutesToTheNextStart) {
  for (uint64_t number : {1, 2}) EXPECT_TRUE(Append(number).ok());
  faults_.failing_reads = 1;
  Open();
  spool_->SetLost(std::vector{kSession});
  clock_.Advance(RequestSpool::kUnreadableNs);
  faults_.failing_reads = 1;
  testing::internal::CaptureStderr();
  spool_->Tick();
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("stay for the next start"));
  clock_.Advance(RequestSpool::kUnreadRetryNs);
  spool_->Tick();
  EXPECT_EQ(spool_->bytes(), 2 * RequestSpool::kBlockBytes);
  EXPECT_THAT(Drain(), ElementsAre(2));
  EXPECT_EQ(disk_.names().size(), 1u);
  EXPECT_EQ(spool_->bytes(), RequestSpool::kBlockBytes);
  Open();
  EXPECT_THAT(Drain(), ElementsAre(1));
}

// The oldest request was unreadable for minutes, and an older one comes: it has its own time.
TEST_F(RequestSpoolTest, ALateFileGetsItsOwnTimeToBeRead) {
  for (uint64_t number : {1, 2}) EXPECT_TRUE(Append(number).ok());
  faults_.failing_reads = 1;
  Open();
  faults_.failing_reads = 1;
  EXPECT_FALSE(spool_->ReadFront().ok());
  clock_.Advance(RequestSpool::kUnreadableNs);
  spool_->Tick();
  faults_.failing_reads = 1;
  EXPECT_TRUE(absl::IsResourceExhausted(spool_->ReadFront().status()));
  EXPECT_THAT(Drain(), ElementsAre(1, 2));
}

TEST_F(RequestSpoolTest, ForgetsALateFileThatIsGone) {
  EXPECT_TRUE(Append(1).ok());
  faults_.failing_reads = 1;
  Open();
  EXPECT_TRUE(disk_.Remove(disk_.names()[0]).ok());
  spool_->RetryUnread();
  EXPECT_EQ(spool_->bytes(), 0u);
  EXPECT_EQ(spool_->FoundOf(kSession), SampleCounts());
}

TEST_F(RequestSpoolTest, NeverRemovesAFileOfANewerRelease) {
  EXPECT_TRUE(Append(1).ok());
  const std::string name = disk_.names()[0];
  MakeNewer(disk_.bytes(name), *ParseRequestName(name));
  spool_.reset();
  EXPECT_TRUE(absl::IsFailedPrecondition(
      RequestSpool::Open(1 << 20, std::make_unique<BorrowedStorage>(disk_, faults_), clock_, metrics_).status()));
  faults_.failing_reads = 1;
  Open();
  spool_->SetLost(std::vector{kSession});
  testing::internal::CaptureStderr();
  for (int i = 0; i < 100; ++i) {
    clock_.Advance(RequestSpool::kUnreadRetryNs);
    spool_->Tick();
  }
  const std::string log = testing::internal::GetCapturedStderr();
  EXPECT_THAT(log, HasSubstr("a newer release wrote it"));
  EXPECT_EQ(log.find("newer release"), log.rfind("newer release")) << "logged once";
  EXPECT_TRUE(spool_->empty());
  EXPECT_EQ(spool_->bytes(), RequestSpool::kBlockBytes);
  EXPECT_THAT(disk_.names(), ElementsAre(name));
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

}  // namespace
}  // namespace tributary
