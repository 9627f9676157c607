#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "reducer/profile_metrics/profile_metrics_loop.h"
#include "reducer/sqlite/sqlite_store.h"
#include "reducer/store/store_testing.h"

namespace tributary {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr UnixNs kNow{1'700'000'040 * kNsPerSecond};
constexpr uint64_t kValue = 10'000'000;

class ProfileMetricsFromSqlite : public ::testing::Test {
 protected:
  void Open() {
    loop_.reset();
    store_.reset();
    store_ = store::SqliteStore::Open(directory_.path(), {}, clock_, metrics_).value();
    writer_ = store_->OpenWriter(0).value();
    collector_.StartGeneration();
  }
  void Begin(const std::string& spec) {
    registry_ = std::make_unique<Metrics>();
    loop_ = std::make_unique<ProfileMetricsLoop>(
        ProfileMetricsLoop::Options{.specs = ParseMetricSpecs({spec}).value(), .hold_ns = 0}, *store_,
        [](const ExecutableId&) { return nullptr; }, clock_, *registry_);
  }
  // Commits a chunk, with samples from two processes and with two stacks.
  void Commit(int samples, int64_t ago_ns = kNsPerSecond) {
    for (int i = 0; i < samples; ++i) {
      collector_.Add(UnixNs{kNow.value - ago_ns - i}, collector_.Thread(1 + i % 2, "t"),
                     collector_.Stack({1, static_cast<uint64_t>(2 + i % 3)}), kValue);
    }
    const RowBatch batch = collector_.Take(UnixNs{kNow.value - ago_ns});
    ASSERT_TRUE(writer_->Commit({&batch, 1}).ok());
  }

  const TestDirectory directory_;
  FakeClock clock_{MonotonicNs{kNsPerSecond}, kNow};
  Metrics metrics_;
  store::TestCollector collector_{"node-a"};
  std::unique_ptr<store::SqliteStore> store_;
  std::unique_ptr<store::ShardWriter> writer_;
  std::unique_ptr<Metrics> registry_;
  std::unique_ptr<ProfileMetricsLoop> loop_;
};

TEST_F(ProfileMetricsFromSqlite, CountsWhatIsCommittedAfterItsStart) {
  Open();
  Commit(300);
  Begin("name=cpu_total,by=language,host.name");
  loop_->RunOnce();
  EXPECT_THAT(registry_->PrometheusText(), Not(HasSubstr("\ncpu_total{")));
  Commit(100);
  Commit(200, 3 * kNsPerMinute);  // late samples, of another minute
  loop_->RunOnce();
  loop_->RunOnce();
  EXPECT_THAT(registry_->PrometheusText(), HasSubstr("\ncpu_total{language=\"native\",host_name="));
  EXPECT_THAT(registry_->PrometheusText(), HasSubstr("\"} 3\n"));
  EXPECT_THAT(registry_->PrometheusText(), HasSubstr("tributary_profile_metrics_expired_samples_total 0\n"));
}

TEST_F(ProfileMetricsFromSqlite, BeginsAtZeroAfterARestart) {
  Open();
  Begin("name=cpu_total");
  Commit(100);
  loop_->RunOnce();
  EXPECT_THAT(registry_->PrometheusText(), HasSubstr("\ncpu_total 1\n"));
  Open();
  Begin("name=cpu_total");
  Commit(200);
  loop_->RunOnce();
  EXPECT_THAT(registry_->PrometheusText(), HasSubstr("\ncpu_total 2\n"));
}

TEST_F(ProfileMetricsFromSqlite, ReportsSamplesThatWereTooOldForAScan) {
  Open();
  Begin("name=cpu_total");
  Commit(100);
  loop_->RunOnce();
  clock_.Advance(10 * kNsPerMinute);
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(writer_->Maintain(clock_.Unix()).ok());  // makes the sums of past minutes
  Commit(50, 2 * kNsPerDay);                                                        // only stored in sums
  Commit(100);
  loop_->RunOnce();
  EXPECT_THAT(registry_->PrometheusText(), HasSubstr("\ncpu_total 2\n"));
  EXPECT_THAT(registry_->PrometheusText(), HasSubstr("tributary_profile_metrics_expired_samples_total 50\n"));
}

}  // namespace
}  // namespace tributary
