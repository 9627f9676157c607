#include <gtest/gtest.h>

#include <set>

#include "base/directory_testing.h"
#include "reducer/export/export_loop.h"
#include "reducer/sqlite/sqlite_store.h"
#include "reducer/store/store_testing.h"
#include "schemas/otlp/profiles_service.pb.h"

namespace tributary {
namespace {

constexpr UnixNs kNow{1'700'000'040 * kNsPerSecond};
constexpr int kSamples = 1000;

// Accepts `accepted` requests, and then gives no answer.
class LimitedSender : public otlp::ProfilesSender {
 public:
  LimitedSender(size_t accepted, std::multiset<uint64_t>* times) : accepted_(accepted), times_(times) {}

  otlp::SendResult Send(const otlp::ProfilesRequest& request, const otlp::RequestIdentity&, int64_t) override {
    if (accepted_ == 0) return {{.status = absl::DeadlineExceededError("no answer"), .may_retry = true}};
    --accepted_;
    for (const auto& resource : request.resource_profiles()) {
      for (const auto& profile : resource.scope_profiles(0).profiles()) {
        for (const auto& sample : profile.samples()) {
          times_->insert(sample.timestamps_unix_nano().begin(), sample.timestamps_unix_nano().end());
        }
      }
    }
    return {};
  }
  void Cancel() override {}

 private:
  size_t accepted_;
  std::multiset<uint64_t>* times_;
};

// The samples are in one chunk, which needs several requests. Each run sends one of them, and then ends as if it was
// killed: the store has only what the run saved.
TEST(ExportFromSqlite, SendsALargeChunkOnceAcrossKills) {
  const TestDirectory directory;
  FakeClock clock(MonotonicNs{kNsPerSecond}, kNow);
  Metrics metrics;
  {
    auto store = store::SqliteStore::Open(directory.path(), {}, clock, metrics).value();
    store::TestCollector collector("node-a");
    for (int i = 0; i < kSamples; ++i) {
      collector.Add(UnixNs{kNow.value - kNsPerSecond - i}, collector.Thread(1, "t"), collector.Stack({1, 2}));
    }
    const RowBatch batch = collector.Take(kNow);
    ASSERT_TRUE(store->OpenWriter(0).value()->Commit({&batch, 1}).ok());
  }
  std::multiset<uint64_t> times;
  int runs = 0;
  for (; times.size() < kSamples && runs < 100; ++runs) {
    auto store = store::SqliteStore::Open(directory.path(), {}, clock, metrics).value();
    ExportLoop loop(
        {.cursor_name = "test", .metric_label = "otlp", .builder = {.bytes_soft = 4000}}, *store,
        [](const ExecutableId&) { return std::shared_ptr<const SymbolTable>(); },
        std::make_unique<LimitedSender>(1, &times), clock, metrics);
    loop.Flush(MonotonicNs{INT64_MAX});
  }
  EXPECT_GT(runs, 2);
  EXPECT_EQ(times.size(), kSamples);
  EXPECT_EQ(std::set<uint64_t>(times.begin(), times.end()).size(), kSamples) << "each sample is sent once";
  auto store = store::SqliteStore::Open(directory.path(), {}, clock, metrics).value();
  EXPECT_EQ(store->positions().LoadPosition("test", 0).value()->cursor.samples, kSamples);
}

}  // namespace
}  // namespace tributary
