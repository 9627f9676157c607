#include "intake/spool/spool.h"

#include <gtest/gtest.h>
#include <xxhash.h>

#include <memory>
#include <string>
#include <vector>

#include "base/little_endian.h"
#include "intake/codec/batch_encoder.h"
#include "intake/spool/spool_segment.h"
#include "intake/testing/batch_generator_testing.h"
#include "intake/testing/fake_spool_storage_testing.h"

namespace tributary::intake {
namespace {

class SpoolTest : public ::testing::Test {
 protected:
  SpoolTest() {
    session_.node_id = "machine";
    session_.session_id.fill(1);
    options_.segment_bytes = 40'000;
    options_.bytes_max = 400'000;
  }
  void Open() {
    spool_.reset();
    metrics_ = std::make_unique<Metrics>();
    auto spool = Spool::Open(
        options_, storage_, session_, clock_, *metrics_,
        [this](LossReason reason, const SampleCounts& samples, const Accounting& accounting, bool /*earlier*/) {
          lost_[static_cast<size_t>(reason)] += samples.total();
          lost_events_ += samples.events();
          lost_captured_ += accounting.captured.total();
        });
    ASSERT_TRUE(spool.ok()) << spool.status();
    spool_ = *std::move(spool);
  }
  // Like a start after kill -9: the destructor writes nothing.
  void Reopen() {
    storage_.Kill();
    spool_.reset();
    storage_.Restart();
    Open();
  }
  Batch Make(size_t samples) {
    Batch batch = generator_.Next(samples);
    batch.accounting = {};
    batch.accounting.captured = samples;
    return batch;
  }
  absl::Status Append(size_t samples, std::optional<SpoolClaim> claim = std::nullopt) {
    return spool_->Append(Make(samples), claim);
  }
  uint64_t Lost(LossReason reason) { return lost_[static_cast<size_t>(reason)]; }
  SpoolClaim ClaimFor(uint8_t session, uint64_t first_sequence) {
    SpoolClaim claim{.host = "reducer", .port = 7134, .first_sequence = first_sequence};
    claim.session_id.fill(session);
    return claim;
  }

  FakeSpoolStorage storage_{1};
  FakeClock clock_;
  std::unique_ptr<Metrics> metrics_;
  SpoolOptions options_;
  SessionInfo session_;
  BatchGenerator generator_{5};
  uint64_t lost_[kLossReasonCount] = {};
  uint64_t lost_captured_ = 0, lost_events_ = 0;
  std::unique_ptr<Spool> spool_;
};

TEST_F(SpoolTest, FirstInFirstOut) {
  Open();
  EXPECT_TRUE(spool_->empty());
  EXPECT_EQ(spool_->segments(), 0u);
  for (size_t i = 0; i < 50; ++i) ASSERT_TRUE(Append(100 + i).ok());
  EXPECT_GT(spool_->segments(), 2u);
  EXPECT_EQ(spool_->samples(), 50 * 100 + 49 * 50 / 2u);
  SegmentId last_segment = 0;
  uint32_t index = 0;
  for (size_t i = 0; i < 50; ++i) {
    auto next = spool_->Next();
    ASSERT_TRUE(next.has_value());
    EXPECT_EQ(next->batch.samples.size(), 100 + i);
    EXPECT_EQ(next->batch.accounting.captured, 100 + i);
    EXPECT_EQ(next->batch.sequence, 0u);
    EXPECT_EQ(next->session.node_id, "machine");
    EXPECT_FALSE(next->claim.has_value());
    if (next->segment != last_segment) index = 0;
    EXPECT_GE(next->segment, last_segment);
    EXPECT_EQ(next->index, index++);
    last_segment = next->segment;
    if (next->last_of_segment) spool_->Release(next->segment);
  }
  EXPECT_FALSE(spool_->Next().has_value());
  EXPECT_TRUE(spool_->empty());
  EXPECT_EQ(spool_->bytes(), 0u);
  EXPECT_TRUE(storage_.names().empty());
}

TEST_F(SpoolTest, ProcessEventsGoToSegmentsOfVersion2) {
  const auto version_of = [this](size_t segment) {
    return DecodeSegmentHeader(storage_.bytes(storage_.names().at(segment)))->version;
  };
  const auto make = [this](size_t samples, size_t events) {
    Batch batch = generator_.Next(samples, events);
    batch.accounting = {.captured = CountRecords(batch)};
    return batch;
  };
  Open();
  ASSERT_TRUE(spool_->Append(make(50, 0)).ok());
  EXPECT_EQ(version_of(0), kSegmentVersionSamples);
  const Batch first = make(50, 20), second = make(0, 30);
  ASSERT_TRUE(spool_->Append(first).ok());
  ASSERT_TRUE(spool_->Append(second).ok());
  ASSERT_TRUE(spool_->Append(make(50, 0)).ok());
  ASSERT_EQ(spool_->segments(), 2u) << "a new segment for the first events, and no other";
  EXPECT_EQ(version_of(1), kSegmentVersionEvents);
  Reopen();
  EXPECT_EQ(spool_->samples(), 150u);
  (void)spool_->Next();
  for (const Batch* expected : {&first, &second}) {
    const auto next = spool_->Next();
    ASSERT_TRUE(next);
    EXPECT_EQ(CountRecords(next->batch), CountRecords(*expected));
    EXPECT_EQ(next->batch.accounting, expected->accounting);
    ASSERT_EQ(next->batch.events.size(), expected->events.size());
    EXPECT_EQ(next->batch.events.back().end, expected->events.back().end);
  }
}

TEST_F(SpoolTest, ProcessEventsOfDroppedAndDamagedBatchesAreReported) {
  Open();
  uint64_t events = 0;
  while (lost_events_ == 0) {
    Batch batch = generator_.Next(10, 500);
    batch.accounting = {.captured = CountRecords(batch)};
    events += CountRecords(batch).events();
    ASSERT_TRUE(spool_->Append(batch).ok());
  }
  storage_.Damage(storage_.names().front(), kSegmentHeaderBytes + 2'000, 0x10);
  Reopen();
  uint64_t delivered = 0;
  while (auto next = spool_->Next()) {
    delivered += CountRecords(next->batch).events();
    if (next->last_of_segment) spool_->Release(next->segment);
  }
  EXPECT_EQ(delivered + lost_events_, events);
  EXPECT_GT(
      metrics_->AddCounter("tributary_spool_dropped_process_events_total", "", {{"reason", "spool_damaged"}}).value(),
      0u);
}

// A claim of a session that has sent process events before.
TEST_F(SpoolTest, ClaimsKeepNumbersOfProcessEvents) {
  Open();
  Batch batch = generator_.Next(10, 20);
  batch.accounting = {.captured = CountRecords(batch)};
  ASSERT_TRUE(spool_->Append(batch).ok());
  const auto next = spool_->Next();
  ASSERT_TRUE(next);
  SpoolClaim claim = ClaimFor(3, 17);
  claim.base.captured = 100;
  claim.base.captured.AddEvents(1'000);
  claim.base.LostFor(LossReason::kEventOverflow).AddEvents(10);
  ASSERT_TRUE(spool_->Claim(next->segment, 0, claim).ok());
  Reopen();
  const auto again = spool_->Next();
  ASSERT_TRUE(again && again->claim);
  EXPECT_EQ(*again->claim, claim);
}

TEST_F(SpoolTest, AppendedBatchesSurviveAKill) {
  Open();
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(Append(100).ok());
  session_.node_id = "another process";
  Reopen();
  EXPECT_EQ(spool_->samples(), 2000u);
  for (int i = 0; i < 20; ++i) {
    auto next = spool_->Next();
    ASSERT_TRUE(next.has_value());
    EXPECT_EQ(next->session.node_id, "machine");
  }
  ASSERT_TRUE(Append(1).ok());
  auto next = spool_->Next();
  ASSERT_TRUE(next.has_value());
  EXPECT_EQ(next->session.node_id, "another process");
}

TEST_F(SpoolTest, ClosedByAge) {
  Open();
  ASSERT_TRUE(Append(10).ok());
  clock_.Advance(options_.segment_age_ns - 1);
  spool_->Tick();
  ASSERT_TRUE(Append(10).ok());
  EXPECT_EQ(spool_->segments(), 1u);
  clock_.Advance(1);
  spool_->Tick();
  storage_.LosePower();  // the segment is closed, so it is durable
  ASSERT_TRUE(Append(10).ok());
  EXPECT_EQ(spool_->segments(), 2u);
  Reopen();
  EXPECT_EQ(spool_->samples(), 30u);
}

TEST_F(SpoolTest, DropsTheOldestOverItsCap) {
  Open();
  size_t appended = 0;
  while (Lost(LossReason::kSpoolOverflow) == 0) {
    ASSERT_TRUE(Append(100).ok());
    ++appended;
    EXPECT_LE(spool_->bytes(), options_.bytes_max);
  }
  EXPECT_EQ(Lost(LossReason::kSpoolOverflow), lost_captured_);
  EXPECT_EQ(spool_->samples() + lost_captured_, 100 * appended);
  EXPECT_GT(spool_->bytes(), options_.bytes_max / 2);
}

TEST_F(SpoolTest, NeverDropsClaimedOrPartlyReadSegments) {
  Open();
  while (spool_->bytes() < options_.bytes_max * 8 / 10) ASSERT_TRUE(Append(100).ok());
  const uint64_t samples = spool_->samples();
  std::vector<SegmentId> held;
  while (auto next = spool_->Next()) {
    if (next->index == 0) held.push_back(next->segment);
  }
  absl::Status status;
  uint64_t more = 0;
  while ((status = Append(100)).ok()) {
    if ((more += 100) > 100 * samples) break;
    if (Lost(LossReason::kSpoolOverflow) > 0) break;  // newer batches evict unread ones that were appended here
  }
  EXPECT_GE(spool_->samples(), samples);
  for (SegmentId id : held) ASSERT_TRUE(spool_->Claim(id, 0, ClaimFor(2, 1)).ok());
  while (auto next = spool_->Next()) ASSERT_TRUE(spool_->Claim(next->segment, next->index, ClaimFor(2, 1)).ok());
  for (int i = 0; i < 100 && (status = Append(100)).ok(); ++i) spool_->Next();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
  spool_->Release(held.front());
  EXPECT_TRUE(Append(100).ok());
}

TEST_F(SpoolTest, BatchLargerThanTheSpoolDropsNothing) {
  options_.bytes_max = 50'000;
  Open();
  ASSERT_TRUE(Append(100).ok());
  EXPECT_EQ(Append(10'000).code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(spool_->samples(), 100u);
  EXPECT_TRUE(Append(100).ok());
  Batch huge = Make(1);
  huge.samples.resize(BatchEncoder::kSamplesPerBatchMax + 1, huge.samples.front());
  EXPECT_EQ(spool_->Append(huge).code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(SpoolTest, FullDiskKeepsNothingOfTheBatch) {
  Open();
  ASSERT_TRUE(Append(100).ok());
  storage_.set_capacity(spool_->bytes() + 300);
  EXPECT_EQ(Append(100).code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(Append(100).code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(spool_->samples(), 100u);
  storage_.set_capacity(UINT64_MAX);
  ASSERT_TRUE(Append(50).ok());
  Reopen();
  EXPECT_EQ(spool_->Next()->batch.samples.size(), 100u);
  EXPECT_EQ(spool_->Next()->batch.samples.size(), 50u);
  EXPECT_FALSE(spool_->Next().has_value());
  EXPECT_EQ(lost_captured_, 0u);
}

TEST_F(SpoolTest, ReturnsClaimsToTheNextProcess) {
  Open();
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(Append(100).ok());
  auto first = spool_->Next();
  SpoolClaim claim = ClaimFor(2, 17);
  claim.base.captured = 5000;
  ASSERT_TRUE(spool_->Claim(first->segment, 0, claim).ok());
  EXPECT_EQ(spool_->Next()->claim, std::nullopt);  // claimed by this process
  const SpoolClaim other = ClaimFor(3, 1);
  ASSERT_TRUE(spool_->Claim(first->segment, 2, other).ok());
  ASSERT_TRUE(Append(10).ok());
  storage_.Kill();
  spool_.reset();
  storage_.LosePower();
  Open();
  EXPECT_EQ(spool_->Next()->claim, claim);
  auto second = spool_->Next();
  claim.first_sequence = 18;
  claim.base.captured = 5100;
  EXPECT_EQ(second->claim, claim);
  EXPECT_EQ(spool_->Next()->claim, other);
  auto fourth = spool_->Next();
  EXPECT_EQ(fourth->claim->first_sequence, 2u);
  EXPECT_EQ(fourth->claim->base.captured, 100u);
  EXPECT_TRUE(fourth->last_of_segment);
  EXPECT_EQ(spool_->Claim(99, 0, claim).code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(spool_->Claim(fourth->segment, 4, claim).code(), absl::StatusCode::kNotFound);
}

TEST_F(SpoolTest, AppendsWithAClaim) {
  Open();
  ASSERT_TRUE(Append(10).ok());
  SpoolClaim claim = ClaimFor(2, 7);
  ASSERT_TRUE(Append(20, claim).ok());
  claim.first_sequence = 8;
  claim.base.captured = 20;
  ASSERT_TRUE(Append(30, claim).ok());
  EXPECT_EQ(spool_->segments(), 2u);
  claim.first_sequence = 10;  // not the next sequence number
  ASSERT_TRUE(Append(40, claim).ok());
  ASSERT_TRUE(Append(50).ok());
  EXPECT_EQ(spool_->segments(), 4u);
  Reopen();
  auto next = spool_->Next();  // claimed batches come first
  EXPECT_EQ(next->batch.samples.size(), 20u);
  EXPECT_EQ(next->claim->first_sequence, 7u);
  next = spool_->Next();
  EXPECT_EQ(next->batch.samples.size(), 30u);
  EXPECT_EQ(next->claim->first_sequence, 8u);
  EXPECT_EQ(next->claim->base.captured, 20u);
  next = spool_->Next();
  EXPECT_EQ(next->claim->first_sequence, 10u);
  EXPECT_EQ(spool_->Next()->batch.samples.size(), 10u);
  EXPECT_EQ(spool_->Next()->batch.samples.size(), 50u);
}

// A claim that failed at any step must not exist, now and after a restart.
TEST_F(SpoolTest, FailedClaimDoesNotExist) {
  for (uint64_t step = 0; step < 2; ++step) {
    storage_ = FakeSpoolStorage(step);
    Open();
    ASSERT_TRUE(Append(10).ok());
    auto next = spool_->Next();
    storage_.FailAfter(step);
    EXPECT_FALSE(spool_->Claim(next->segment, 0, ClaimFor(2, 1)).ok());
    Reopen();
    EXPECT_EQ(spool_->Next()->claim, std::nullopt) << step;
    storage_ = FakeSpoolStorage(step);
  }
}

TEST_F(SpoolTest, DamagedByteLosesTheRestOfItsSegmentAndIsReported) {
  Open();
  for (int i = 0; i < 30; ++i) ASSERT_TRUE(Append(100).ok());
  const std::string first = storage_.names().front();
  const uint64_t middle = storage_.bytes(first).size() / 2;
  storage_.Damage(first, middle, 0x40);
  uint64_t got = 0;
  while (auto next = spool_->Next()) {
    got += next->batch.samples.size();
    if (next->last_of_segment) spool_->Release(next->segment);
  }
  EXPECT_GT(Lost(LossReason::kSpoolDamaged), 0u);
  EXPECT_EQ(got + Lost(LossReason::kSpoolDamaged), 3000u);
  EXPECT_EQ(lost_captured_, Lost(LossReason::kSpoolDamaged));
  EXPECT_EQ(spool_->segments(), 0u);
  EXPECT_EQ(spool_->bytes(), 0u);
}

TEST_F(SpoolTest, RefusesASegmentOfANewerReleaseAndKeepsIt) {
  Open();
  ASSERT_TRUE(Append(100).ok());
  spool_.reset();
  ASSERT_EQ(storage_.names().size(), 1u);
  const std::string name = storage_.names().front();
  std::string header = storage_.bytes(name).substr(0, kSegmentHeaderBytes);
  StoreLittleEndian<uint32_t>(&header[4], 3);
  StoreLittleEndian<uint64_t>(&header[12],
                              XXH3_64bits_withSeed(&header[20], LoadLittleEndian<uint32_t>(&header[8]), 3));
  ASSERT_TRUE(storage_.Overwrite(name, 0, header).ok());
  const std::string before = storage_.bytes(name);
  Metrics metrics;
  const absl::Status status = Spool::Open(options_, storage_, session_, clock_, metrics,
                                          [](LossReason, const SampleCounts&, const Accounting&, bool) {
                                            ADD_FAILURE() << "nothing is dropped";
                                          })
                                  .status();
  ASSERT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_EQ(status.message(),
            "spool segment " + name +
                ": a newer release wrote this file (format version 3, but this release reads version "
                "2): run the newer release until it has delivered the spool, or move the file away and "
                "lose its samples");
  EXPECT_EQ(storage_.bytes(name), before);
}

TEST_F(SpoolTest, DamagedHeaderLosesTheSegment) {
  Open();
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(Append(100).ok());
  storage_.Damage(storage_.names().front(), 30, 1);
  Reopen();
  EXPECT_EQ(lost_captured_, 0u);  // Open does not report it
  EXPECT_FALSE(spool_->Next().has_value());
  EXPECT_EQ(Lost(LossReason::kSpoolDamaged), 300u);
  EXPECT_TRUE(storage_.names().empty());
}

// Only the reducer of the claim knows whether the batch is lost.
TEST_F(SpoolTest, ReturnsDamagedClaimedBatchesUnderTheirNumbers) {
  for (const bool of_header : {true, false}) {
    SCOPED_TRACE(of_header);
    storage_ = FakeSpoolStorage(1);
    Open();
    SpoolClaim claim = ClaimFor(2, 17);
    claim.base.captured = 5000;
    for (size_t samples : {10, 20, 30}) {
      ASSERT_TRUE(Append(samples, claim).ok());
      ++claim.first_sequence;
      claim.base.captured += samples;
    }
    const std::string name = storage_.names().front();
    storage_.Damage(name, of_header ? 30 : storage_.bytes(name).size() - 1, 1);
    for (int start = 0; start < 2; ++start) {  // the second start finds the same batches as the first
      Reopen();
      for (uint64_t i = 0; i < 3; ++i) {
        auto next = spool_->Next();
        ASSERT_TRUE(next.has_value());
        const bool damaged = of_header || i == 2;
        EXPECT_EQ(next->damaged_samples.total(), damaged ? 10 * (i + 1) : 0);
        EXPECT_EQ(next->batch.samples.empty(), damaged);
        EXPECT_EQ(next->batch.accounting.lost[static_cast<size_t>(LossReason::kSpoolDamaged)], next->damaged_samples);
        EXPECT_EQ(next->claim->session_id, claim.session_id);
        EXPECT_EQ(next->claim->first_sequence, 17 + i);
        EXPECT_EQ(next->claim->base.captured, 5000 + 5 * i * (i + 1));
        EXPECT_EQ(next->index, i);
        EXPECT_EQ(next->last_of_segment, i == 2);
      }
      EXPECT_FALSE(spool_->Next().has_value());
      EXPECT_EQ(spool_->samples(), of_header ? 0u : 30u);
      EXPECT_EQ(Lost(LossReason::kSpoolDamaged), 0u);
    }
    spool_->Release(1);
    EXPECT_TRUE(storage_.names().empty());
    EXPECT_EQ(spool_->bytes(), 0u);
    EXPECT_EQ(spool_->samples(), 0u);
  }
}

TEST_F(SpoolTest, ClaimedBatchAfterAnUnreadableRecordKeepsItsNumber) {
  Open();
  for (size_t samples : {10, 20, 30}) ASSERT_TRUE(Append(samples).ok());
  ASSERT_TRUE(spool_->Claim(spool_->Next()->segment, 0, ClaimFor(2, 17)).ok());
  const std::string name = storage_.names().front();
  const std::string magic = "TRBR";
  const size_t second = storage_.bytes(name).find(magic, storage_.bytes(name).find(magic) + 1);
  storage_.Damage(name, second, 1);
  Reopen();
  EXPECT_EQ(spool_->Next()->claim->first_sequence, 17u);
  auto third = spool_->Next();
  EXPECT_EQ(third->claim->first_sequence, 19u);
  EXPECT_EQ(third->damaged_samples, 30u);
  EXPECT_FALSE(spool_->Next().has_value());
}

TEST_F(SpoolTest, LeavesOtherFilesAlone) {
  storage_.Append("README", "not a segment").IgnoreError();
  storage_.Append("segment-1.trs", "nor this").IgnoreError();
  Open();
  ASSERT_TRUE(Append(1).ok());
  spool_->Release(spool_->Next()->segment);
  EXPECT_EQ(storage_.names(), (std::vector<std::string>{"README", "segment-1.trs"}));
}

TEST_F(SpoolTest, RetriesAFailedRemove) {
  Open();
  ASSERT_TRUE(Append(1).ok());
  const SegmentId id = spool_->Next()->segment;
  storage_.KillAfter(0);
  spool_->Release(id);
  storage_.Restart();
  spool_->Tick();
  EXPECT_TRUE(storage_.names().empty());
}

}  // namespace
}  // namespace tributary::intake
