#include "reducer/ingest/queue_share.h"

#include <gtest/gtest.h>

namespace tributary::ingest {
namespace {

constexpr size_t kMiB = 1u << 20;

size_t FillUp(QueueShare& share, std::string_view node, size_t batch_bytes) {
  size_t batches = 0;
  while (share.Allows(node, batch_bytes)) {
    share.Add(node, batch_bytes);
    ++batches;
  }
  return batches;
}

TEST(QueueShare, OneNodeFillsAQuarter) {
  QueueShare share({});
  EXPECT_EQ(FillUp(share, "flood", kMiB), 16u);
  EXPECT_TRUE(share.Allows("modest", kMiB));
  share.Remove("flood");
  EXPECT_TRUE(share.Allows("flood", kMiB));
}

TEST(QueueShare, ManyNodesLeaveSpaceForOneMore) {
  QueueShare share({});
  for (int i = 0; i < 12; ++i) FillUp(share, "flood-" + std::to_string(i), 64 << 10);
  EXPECT_GE(FillUp(share, "modest", 64 << 10), 2u);
  EXPECT_LT(share.bytes(), 64 * kMiB);
}

TEST(QueueShare, SmallBatchesCountToo) {
  QueueShare share({});
  EXPECT_EQ(FillUp(share, "flood", 1), 256u) << "of 1024";
}

TEST(QueueShare, ANodeWithNothingQueuedMayAlwaysAddABatch) {
  QueueShare share({.bytes_max = 1000, .batches_max = 10});
  EXPECT_TRUE(share.Allows("node", 1'000'000));
  share.Add("node", 1'000'000);
  EXPECT_FALSE(share.Allows("node", 1));
  share.Remove("node");
  EXPECT_EQ(share.nodes(), 0u);
  EXPECT_EQ(share.bytes(), 0u);
  share.Remove("node");
  EXPECT_TRUE(share.Allows("node", 1'000'000));
}

TEST(QueueShare, MemoryIncludesProcessEvents) {
  RowBatch batch;
  const size_t empty = MemoryOf(batch);
  batch.events.resize(3);
  EXPECT_EQ(MemoryOf(batch), empty + 3 * sizeof(ProcessEvent));
}

TEST(QueueShare, MemoryIncludesTypesAndTheirCounts) {
  RowBatch batch;
  const size_t empty = MemoryOf(batch);
  batch.sample_types = {{static_cast<SampleType>(9), {"alloc_space", "bytes"}}};
  EXPECT_GE(MemoryOf(batch), empty + sizeof(SampleTypeDefinition) + 16);
  const size_t defined = MemoryOf(batch);
  batch.closes.resize(2);
  batch.closes[0].captured.Add(static_cast<SampleType>(9), 1);
  batch.accounting.captured.Add(static_cast<SampleType>(9), 1);
  batch.accounting.LostFor(LossReason::kRingFull).Add(static_cast<SampleType>(9), 1);
  EXPECT_EQ(MemoryOf(batch), defined + 2 * sizeof(ClosedSession) + 3 * sizeof(SampleCounts::Part));
}

TEST(QueueShare, MemoryIncludesEvents) {
  RowBatch batch;
  const size_t empty = MemoryOf(batch);
  batch.events.resize(100);
  EXPECT_EQ(MemoryOf(batch), empty + 100 * sizeof(ProcessEvent));
}

}  // namespace
}  // namespace tributary::ingest
