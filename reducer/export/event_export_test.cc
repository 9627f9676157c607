#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "base/status.h"
#include "reducer/export/record_export.h"
#include "reducer/store/fake_store_testing.h"

namespace tributary {
namespace {

// Accepts all records, or none.
class EventSender : public RecordSender {
 public:
  RecordResult SendEvents(std::span<const store::EventRecord> events, const otlp::RequestIdentity&, int64_t) override {
    RecordResult result;
    if (is_away) {
      result.status = Error(absl::StatusCode::kUnavailable, "away");
      result.may_retry = true;
    } else {
      sent += events.size();
    }
    return result;
  }
  RecordResult SendLosses(std::span<const store::LossRecord>, const otlp::RequestIdentity&, int64_t) override {
    return {};
  }
  RecordResult SendRollouts(std::span<const Rollout>, const otlp::RequestIdentity&, int64_t) override { return {}; }

  bool is_away = false;
  uint64_t sent = 0;
};

// A store whose shards may have no file of this release yet.
class StartingReader : public store::MemoryReader {
 public:
  using MemoryReader::MemoryReader;
  absl::StatusOr<int64_t> ScanCommittedEvents(int64_t cursor, size_t, const store::EventVisitor&) override {
    return cursor;
  }
  absl::StatusOr<uint64_t> CountPassedEvents(int64_t) override { return absl::NotFoundError("no file"); }
};
struct StartingStore : store::FakeStore {
  absl::StatusOr<std::unique_ptr<store::StoreReader>> OpenReader(uint32_t shard) override {
    if (is_starting) return std::make_unique<StartingReader>(shards[shard]);
    return FakeStore::OpenReader(shard);
  }
  bool is_starting = false;
};

// Committed events are sent, or they expire.
class EventExportTest : public ::testing::Test {
 protected:
  EventExportTest() { Restart(); }

  void Restart() {
    export_ = std::make_unique<RecordExport>("test", "sender", store_.positions(), MakeEventSource(store_, sender_, {}),
                                             counters_.events, clock_);
  }
  void Commit(int events) {
    for (int i = 0; i < events; ++i) {
      shard().events.push_back(
          {.kind = ProcessEventKind::kExec, .time = UnixNs{1}, .pid = Pid{1}, .no = ++shard().last_event});
    }
  }
  // Removes the oldest events.
  void Expire(int events) { shard().events.erase(shard().events.begin(), shard().events.begin() + events); }
  void Advance() { export_->Advance(0, kNsPerSecond, false); }
  uint64_t expired() const { return counters_.events.expired->value(); }
  store::MemoryShard& shard() { return store_.shards[0]; }

  StartingStore store_;
  FakeClock clock_;
  Metrics metrics_;
  EventSender sender_;
  const ExportCounters counters_{metrics_, "console"};
  std::unique_ptr<RecordExport> export_;
};

TEST_F(EventExportTest, CountsEventsThatExpireBeforeTheyAreRead) {
  Commit(7);
  Expire(3);
  Advance();
  EXPECT_EQ(sender_.sent, 4u);
  EXPECT_EQ(expired(), 0u) << "they expired before the exporter's first start";
  Commit(5);
  Expire(6);  // four that were sent, and two that were not
  Advance();
  EXPECT_EQ(sender_.sent, 7u);
  EXPECT_EQ(expired(), 2u);
  Commit(2);
  Expire(5);  // nothing is left
  Advance();
  EXPECT_EQ(expired(), 4u);
  Advance();
  EXPECT_EQ(expired(), 4u);
}

TEST_F(EventExportTest, CountsEventsThatExpireAfterTheFirstStart) {
  Advance();
  Restart();
  Commit(3);
  Expire(1);
  Advance();
  EXPECT_EQ(sender_.sent, 2u);
  EXPECT_EQ(expired(), 1u);
}

// The events of the request in flight are in memory, so they are sent although they have expired.
TEST_F(EventExportTest, CountsExpiredEventsWhileTheReceiverIsAway) {
  Commit(4);
  sender_.is_away = true;
  Advance();
  Commit(5);
  Expire(6);
  Advance();
  EXPECT_EQ(expired(), 2u);
  Expire(1);
  Advance();
  EXPECT_EQ(expired(), 3u);
  sender_.is_away = false;
  Advance();
  Advance();
  EXPECT_EQ(sender_.sent, 6u);
  EXPECT_EQ(expired(), 3u);
}

// captured = sent + expired, also if the reducer is killed in between.
TEST_F(EventExportTest, CountsEachExpiredEventOnceAcrossARestart) {
  Commit(4);
  sender_.is_away = true;
  Advance();  // a new request of four events
  Restart();
  Commit(3);
  Expire(5);
  Advance();
  EXPECT_EQ(expired(), 5u);
  Restart();
  sender_.is_away = false;
  Advance();
  Advance();
  EXPECT_EQ(sender_.sent, 2u);
  EXPECT_EQ(expired(), 5u);
}

// The last run's request is sent alone, so the events behind it are read again.
// The events of the request are lost with the killed reducer, the others have counted before.
TEST_F(EventExportTest, CountsEventsOnceThatExpiredBehindARequestBeforeARestart) {
  Commit(4);
  sender_.is_away = true;
  Advance();
  Commit(5);
  Expire(6);
  Advance();
  EXPECT_EQ(expired(), 2u);
  Restart();
  sender_.is_away = false;
  Advance();
  Advance();
  EXPECT_EQ(sender_.sent, 3u);
  EXPECT_EQ(expired(), 6u);
}

TEST_F(EventExportTest, CountsEventsBehindARepeatedRequestOnce) {
  Commit(2);
  sender_.is_away = true;
  Advance();
  Restart();
  Commit(6);
  shard().events.erase(shard().events.begin() + 2, shard().events.begin() + 5);  // three behind the request
  Advance();
  EXPECT_EQ(expired(), 3u);
  sender_.is_away = false;
  for (int i = 0; i < 3; ++i) Advance();
  EXPECT_EQ(sender_.sent, 5u);
  EXPECT_EQ(expired(), 3u);
}

// While a new release converts the file, nothing is known about the position.
TEST_F(EventExportTest, DoesNotCountWhileTheShardIsNotReady) {
  Commit(5);
  Advance();
  for (const bool has_number : {true, false}) {
    if (!has_number) {  // as an earlier release has saved it
      const store::ExportPosition position{.cursor = {.chunk = 5, .samples = std::nullopt}, .request = std::nullopt};
      ASSERT_TRUE(store_.positions().SavePosition("test.events", 0, position).ok());
    }
    store_.is_starting = true;
    Restart();
    Advance();
    store_.is_starting = false;
    Advance();
    EXPECT_EQ(expired(), 0u);
  }
  Commit(2);
  Expire(6);
  Advance();
  EXPECT_EQ(sender_.sent, 6u);
  EXPECT_EQ(expired(), 1u);
}

// An older copy of the shard's file has fewer events.
TEST_F(EventExportTest, DoesNotCountEventsOfAnotherFileAsExpired) {
  Commit(5);
  Advance();
  shard().events.clear();
  shard().last_event = 0;
  Commit(2);
  Advance();
  Commit(4);
  Advance();
  EXPECT_EQ(sender_.sent, 5u + 2 + 4);
  EXPECT_EQ(expired(), 0u);
}

}  // namespace
}  // namespace tributary
