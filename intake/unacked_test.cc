#include "intake/unacked.h"

#include <gtest/gtest.h>

#include <map>

namespace tributary::intake {
namespace {

class UnackedTest : public testing::Test {
 protected:
  explicit UnackedTest(size_t samples_max = 10)
      : unacked_(samples_max * sizeof(Sample), [this](LossReason reason, uint64_t n) { lost_[reason] += n; }) {}

  void Add(size_t samples) {
    Batch batch{.sequence = ++sequence_, .dictionary = std::make_shared<Dictionary>()};
    batch.samples.resize(samples);
    unacked_.Add(std::move(batch));
  }
  uint64_t SendNext() {
    const uint64_t sequence = unacked_.Next()->batch.sequence;
    unacked_.Sent(100);
    return sequence;
  }

  std::map<LossReason, uint64_t> lost_;
  UnackedBatches unacked_;
  uint64_t sequence_ = 0;
};

TEST_F(UnackedTest, KeepsUntilAcknowledged) {
  Add(3);
  Add(4);
  EXPECT_EQ(unacked_.Announce(), 1u);
  unacked_.Welcomed(0);
  EXPECT_EQ(SendNext(), 1u);
  EXPECT_EQ(SendNext(), 2u);
  EXPECT_EQ(unacked_.Next(), nullptr);
  EXPECT_EQ(unacked_.wire_bytes(), 200u);
  unacked_.Ack(1);
  EXPECT_EQ(unacked_.samples(), 4u);
  EXPECT_EQ(unacked_.wire_bytes(), 100u);
  unacked_.Ack(2);
  EXPECT_TRUE(unacked_.empty());
  EXPECT_TRUE(lost_.empty());
}

TEST_F(UnackedTest, DropsTheOldestAndSkipsItInHello) {
  for (int i = 0; i < 5; ++i) Add(4);
  EXPECT_EQ(lost_[LossReason::kBatchOverflow], 12u);
  EXPECT_EQ(unacked_.Announce(), 4u);
  unacked_.Welcomed(0);
  EXPECT_EQ(SendNext(), 4u);
}

TEST_F(UnackedTest, NewestIsKeptWhateverItsSize) {
  Add(100);
  EXPECT_EQ(unacked_.samples(), 100u);
  Add(1);
  EXPECT_EQ(unacked_.samples(), 1u);
  EXPECT_EQ(lost_[LossReason::kBatchOverflow], 100u);
}

TEST_F(UnackedTest, DroppedWhileConnectedIsSentEmpty) {
  unacked_.Announce();
  unacked_.Welcomed(0);
  for (int i = 0; i < 4; ++i) Add(5);
  EXPECT_EQ(lost_[LossReason::kBatchOverflow], 10u);
  EXPECT_EQ(unacked_.Next()->batch.sequence, 1u);
  EXPECT_TRUE(unacked_.Next()->batch.samples.empty());
  EXPECT_EQ(unacked_.Next()->batch.dictionary, nullptr);
  EXPECT_NE(unacked_.NextDictionary(), nullptr);
}

TEST_F(UnackedTest, SentAndDroppedIsInDoubtUntilTheReducerSays) {
  unacked_.Announce();
  unacked_.Welcomed(0);
  Add(8);
  SendNext();
  Add(8);
  SendNext();
  Add(8);
  EXPECT_TRUE(lost_.empty());
  EXPECT_EQ(unacked_.samples(), 24u);
  unacked_.Disconnected();
  EXPECT_EQ(unacked_.Announce(), 3u);
  unacked_.Welcomed(1);  // the first was stored, the second was not
  EXPECT_EQ(lost_[LossReason::kBatchOverflow], 8u);
  EXPECT_EQ(unacked_.samples(), 8u);
  EXPECT_EQ(SendNext(), 3u);
}

TEST_F(UnackedTest, RewindSendsAllAgain) {
  unacked_.Announce();
  unacked_.Welcomed(0);
  Add(4);
  Add(4);
  SendNext();
  SendNext();
  Add(4);  // drops the first, which is on the wire
  unacked_.Rewind();
  EXPECT_EQ(unacked_.wire_bytes(), 0u);
  EXPECT_EQ(lost_[LossReason::kInDoubt], 4u);
  EXPECT_EQ(SendNext(), 1u);
}

TEST_F(UnackedTest, RejectedIsLostOnce) {
  unacked_.Announce();
  unacked_.Welcomed(0);
  Add(4);
  SendNext();
  unacked_.Reject(1);
  unacked_.Reject(1);
  unacked_.Reject(77);
  EXPECT_EQ(lost_[LossReason::kRejected], 4u);
  EXPECT_EQ(unacked_.samples(), 0u);
}

TEST_F(UnackedTest, HoldsABoundedNumberOfBatches) {
  unacked_.Announce();
  for (size_t i = 0; i < UnackedBatches::kBatchesMax + 5; ++i) Add(0);
  unacked_.Disconnected();
  EXPECT_EQ(unacked_.Announce(), 6u);
}

}  // namespace
}  // namespace tributary::intake
