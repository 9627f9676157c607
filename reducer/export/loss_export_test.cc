#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "base/status.h"
#include "reducer/export/record_export.h"
#include "reducer/store/fake_store_testing.h"

namespace tributary {
namespace {

// Accepts all records.
class LossSender : public RecordSender {
 public:
  RecordResult SendEvents(std::span<const store::EventRecord>, const otlp::RequestIdentity&, int64_t) override {
    return {};
  }
  RecordResult SendLosses(std::span<const store::LossRecord>, const otlp::RequestIdentity&, int64_t) override {
    return {};
  }
  RecordResult SendRollouts(std::span<const Rollout>, const otlp::RequestIdentity&, int64_t) override { return {}; }
};

// The store has removed the losses with the numbers up to `removed`.
class ReaderWithoutOldLosses : public store::MemoryReader {
 public:
  ReaderWithoutOldLosses(store::MemoryShard shard, int64_t removed)
      : MemoryReader(std::move(shard)), removed_(removed) {}
  absl::StatusOr<int64_t> ScanCommittedLosses(int64_t cursor, size_t losses_max,
                                              const store::LossVisitor& visit) override {
    const int64_t from = std::max<int64_t>(cursor - removed_, 0);
    ASSIGN_OR_RETURN(const int64_t next, MemoryReader::ScanCommittedLosses(from, losses_max, visit));
    return next == 0 ? cursor : next + removed_;
  }

 private:
  const int64_t removed_;
};

struct StoreWithoutOldLosses : store::FakeStore {
  absl::StatusOr<std::unique_ptr<store::StoreReader>> OpenReader(uint32_t shard) override {
    return std::make_unique<ReaderWithoutOldLosses>(shards[shard], removed);
  }
  int64_t removed = 7;
};

TEST(LossExport, CountsLossesThatExpireBeforeTheyAreRead) {
  StoreWithoutOldLosses store;
  FakeClock clock;
  Metrics metrics;
  LossSender sender;
  const ExportCounters counters(metrics, "console");
  const Counter& expired = *counters.losses.expired;
  RecordExport losses("test", "sender", store.positions(), MakeLossSource(store, sender), counters.losses, clock);
  store.shards[0].losses.push_back({.node_id = "n", .type = {"cpu", "nanoseconds"}, .samples = 3});
  EXPECT_TRUE(losses.Advance(0, kNsPerSecond, false).sent_request);
  EXPECT_EQ(expired.value(), 0u) << "they expired before the exporter's first start";
  store.removed = 12;  // four that were not sent, and the one that was sent
  EXPECT_TRUE(losses.Advance(0, kNsPerSecond, false).sent_request);
  EXPECT_EQ(expired.value(), 4u);
  EXPECT_FALSE(losses.Advance(0, kNsPerSecond, false).sent_request);
  EXPECT_EQ(expired.value(), 4u);
}

}  // namespace
}  // namespace tributary
