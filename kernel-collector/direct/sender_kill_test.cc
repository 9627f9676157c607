#include <gtest/gtest.h>

#include <array>

#include "kernel-collector/direct/sender_spool_testing.h"

namespace tributary {
namespace {

class SenderKillTest : public SenderSpoolTest {
 protected:
  // Runs a collector that is killed at the operation `kill` on the disk, then the next one. Returns false if the first
  // one ended before that. A set has one sample and one event.
  bool KillAt(uint64_t kill, uint64_t spool_bytes, uint64_t sets_together) {
    const int64_t wait_ns = sets_together > 1 ? 15 * kNsPerSecond : 0;
    sender_.reset();
    disk_ = intake::FakeSpoolStorage(kill);
    receiver_ = {};
    receiver_.is_dead = [this] { return disk_.dead(); };
    pushed_ = {};
    const uint64_t repeated_before = Repeated();
    Start({.spool_bytes = spool_bytes, .sets_together = sets_together, .together_wait_ns = wait_ns});
    disk_.KillAfter(kill);
    const std::array states = {FakeReceiver::State::kLosesAnswers, FakeReceiver::State::kDown, FakeReceiver::State::kUp,
                               FakeReceiver::State::kLosesAnswers, FakeReceiver::State::kUp};
    for (const FakeReceiver::State state : states) {
      receiver_.state = state;
      for (int i = 0; i < 2 && !disk_.dead(); ++i) {
        Push();
        Run(4 * kNsPerSecond);
      }
    }
    const bool was_killed = disk_.dead();
    if (!was_killed) sender_->Flush(MonotonicNs{INT64_MAX});
    const SampleCounts pinned = pinned_;
    // A loss that is in doubt has arrived. The metrics show a loss at once.
    const uint64_t overflow = Records(sender_->totals().lost.LostFor(LossReason::kSpoolOverflow));
    sender_.reset();
    disk_.Restart();
    receiver_.state = FakeReceiver::State::kUp;
    Start({.session = {4}, .spool_bytes = spool_bytes, .sets_together = sets_together, .together_wait_ns = wait_ns});
    const SampleCounts lost = was_killed ? pushed_ - pinned - found_ : SampleCounts();
    Run(kNsPerMinute);
    EXPECT_TRUE(disk_.names().empty());
    const BatchSender::Totals totals = sender_->totals();
    EXPECT_TRUE(totals.earlier_waiting.empty());
    EXPECT_LE(Records(totals.earlier_lost), sets_together);  // the request that was being written
    const uint64_t arrived = receiver_.accepted_records;
    const uint64_t counted = arrived + overflow + Records(lost) + Records(totals.earlier_lost);
    // If the kill comes between an answer and its note in the pins, the request counts as lost, too.
    EXPECT_GE(counted, Records(pushed_));
    EXPECT_LE(counted, Records(pushed_) + sets_together);
    // What waited in memory is at most what was pushed last.
    EXPECT_LE(Records(lost), 2 * (sets_together + 1));
    // Each request that arrived twice was counted. A mark that was written before a kill counts although nothing was
    // sent.
    EXPECT_GE(Repeated() - repeated_before, receiver_.received_records - arrived);
    EXPECT_LE(Repeated() - repeated_before, receiver_.received_records - arrived + sets_together);
    return was_killed;
  }
};

// Kills the collector at each operation on the disk. The next collector sends each sample and event that was in the
// spool, and the loss that it reports for the killed one is right. The receiver accepts and forgets to answer
// meanwhile. The small spool overflows: what the killed collector counted as lost must not count again.
TEST_F(SenderKillTest, SurvivesAKillAtEachOperation) {
  for (const uint64_t sets_together : {1, 3}) {
    for (const uint64_t spool_bytes : {uint64_t{1} << 20, 3 * RequestSpool::kBlockBytes}) {
      SCOPED_TRACE(testing::Message() << "together=" << sets_together << " spool_bytes=" << spool_bytes);
      bool was_killed = true;
      for (uint64_t kill = 0; was_killed; ++kill) {
        SCOPED_TRACE(kill);
        was_killed = KillAt(kill, spool_bytes, sets_together);
        ASSERT_LT(kill, 1000u);
      }
    }
  }
}

}  // namespace
}  // namespace tributary
