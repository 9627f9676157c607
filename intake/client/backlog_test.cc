#include "intake/client/backlog.h"

#include <gmock/gmock.h>

#include <map>
#include <memory>

#include "base/metrics.h"
#include "intake/testing/batch_generator_testing.h"
#include "intake/testing/fake_spool_storage_testing.h"

namespace tributary::intake {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

// A backlog whose spool's disk can be full.
class BacklogTest : public testing::Test {
 protected:
  BacklogTest() {
    auto spool =
        Spool::Open({}, storage_, {}, clock_, metrics_,
                    [](LossReason, const SampleCounts&, const Accounting&, bool) { ADD_FAILURE() << "dropped"; });
    spool_ = *std::move(spool);
    MakeBacklog(1 << 20);
  }
  void MakeBacklog(size_t memory_bytes_max) {
    backlog_ = std::make_unique<Backlog>(memory_bytes_max, spool_.get(), std::array<uint8_t, 16>{1}, clock_,
                                         [this](LossReason reason, const SampleCounts& samples) {
                                           lost_[reason] += samples.total();
                                           lost_events_[reason] += samples.events();
                                         });
  }
  void Add(size_t samples, size_t events = 0) { backlog_->Add(generator_.Next(samples, events)); }
  void FillDisk() { storage_.set_capacity(0); }
  void FreeDisk() { storage_.set_capacity(1 << 20); }

  FakeClock clock_;
  Metrics metrics_;
  FakeSpoolStorage storage_{1};
  std::unique_ptr<Spool> spool_;
  BatchGenerator generator_{1};
  std::map<LossReason, uint64_t> lost_, lost_events_;
  std::unique_ptr<Backlog> backlog_;
};

TEST_F(BacklogTest, KeepsBatchesInMemoryWhileTheDiskIsFull) {
  FillDisk();
  Add(40);
  Add(2);
  backlog_->Spill(Backlog::Reason::kAway);
  EXPECT_EQ(backlog_->memory_samples(), 42u);
  EXPECT_THAT(lost_, IsEmpty());

  FreeDisk();
  backlog_->Spill(Backlog::Reason::kAway);
  EXPECT_EQ(backlog_->memory_samples(), 0u);
  EXPECT_EQ(spool_->samples(), 42u);
  EXPECT_THAT(lost_, IsEmpty());
}

TEST_F(BacklogTest, LosesTheOldestIfMemoryAndDiskAreFull) {
  MakeBacklog(2000);
  FillDisk();
  Add(40);
  Add(2);
  backlog_->Spill(Backlog::Reason::kAway);
  EXPECT_EQ(backlog_->memory_samples(), 2u);
  EXPECT_THAT(lost_, ElementsAre(Pair(LossReason::kSpoolOverflow, 40u)));
}

TEST_F(BacklogTest, BatchOfEventsAloneGoesToTheSpoolOrIsCounted) {
  Add(0, 30);
  backlog_->Spill(Backlog::Reason::kAway);
  const std::optional<Outgoing> out = backlog_->Next({});
  ASSERT_TRUE(out);
  EXPECT_EQ(out->batch.events.size(), 30u);
  EXPECT_NE(out->segment, 0u) << "it comes from the spool";
  FillDisk();
  const uint64_t before = generator_.accounting().captured.events();
  Add(0, 30);
  backlog_->Spill(Backlog::Reason::kStop);
  EXPECT_EQ(lost_events_[LossReason::kSpoolOverflow], generator_.accounting().captured.events() - before);
}

TEST_F(BacklogTest, CountsTheRestAsLostIfTheDiskIsFullAtAStop) {
  FillDisk();
  Add(40);
  backlog_->Spill(Backlog::Reason::kStop);
  EXPECT_EQ(backlog_->memory_samples(), 0u);
  EXPECT_THAT(lost_, ElementsAre(Pair(LossReason::kSpoolOverflow, 40u)));
}

}  // namespace
}  // namespace tributary::intake
