#include "reducer/query/series.h"

#include <gtest/gtest.h>

#include <string>

#include "reducer/query/query_testing.h"

namespace tributary {
namespace {

class SeriesTest : public QueryTest {
 protected:
  // Adds a number of the process `pid` with one thread, and a sample of it.
  void AddNumber(uint32_t no, int32_t pid, Tid tid, const std::string& thread, uint64_t value) {
    store::FakeShard& shard = store_.shards[0];
    AddProcess(shard, no, pid, "truth", "");
    shard.threads.push_back({store::ThreadNo{no}, store::ProcessNo{no}, tid, thread});
    AddSample(no * kMs, no, no, work_, value);
  }
  SeriesList Series(size_t limit) {
    const absl::StatusOr<SeriesList> series = engine_->QuerySeries(Request(), limit);
    EXPECT_TRUE(series.ok()) << series.status();
    return series.value_or(SeriesList());
  }
};

// A list of one entry describes the two largest numbers.
TEST_F(SeriesTest, AProcessHasTheWeightsOfAllItsNumbers) {
  AddNumber(11, 300, Tid{301}, "worker", 100);
  AddNumber(12, 400, Tid{401}, "worker", 90);
  AddNumber(13, 300, Tid{301}, "worker", 5);
  AddNumber(14, 300, Tid{301}, "worker", 4);
  AddNumber(15, 300, Tid{302}, "worker", 3);  // another thread
  AddNumber(16, 300, Tid{301}, "worker", 2);  // of a process that started later
  store_.shards[0].processes.back().start_time_ns = 7;
  const SeriesList series = Series(1);
  EXPECT_TRUE(series.truncated);
  ASSERT_EQ(series.processes.size(), 1u);
  EXPECT_EQ(series.processes[0].row.pid, Pid{300});
  EXPECT_EQ(series.processes[0].value, 112u);
  EXPECT_EQ(series.processes[0].count, 4u);
  ASSERT_EQ(series.threads.size(), 1u);
  EXPECT_EQ(series.threads[0].row.tid, Tid{301});
  EXPECT_EQ(series.threads[0].value, 109u);
  ASSERT_EQ(series.hosts.size(), 1u);
  EXPECT_EQ(series.hosts[0].value, 204u);
}

TEST_F(SeriesTest, TheLargestNumbersOfOneProcessAreOneEntry) {
  AddNumber(11, 300, Tid{301}, "worker", 50);
  AddNumber(12, 300, Tid{301}, "worker", 40);
  AddNumber(13, 300, Tid{301}, "worker", 30);
  AddNumber(14, 400, Tid{401}, "worker", 20);
  const SeriesList series = Series(1);
  ASSERT_EQ(series.processes.size(), 1u);
  EXPECT_EQ(series.processes[0].value, 120u);
  ASSERT_EQ(series.threads.size(), 1u);
  EXPECT_EQ(series.threads[0].value, 120u);
}

// If some samples are left only in sums, threads have less weight than their process.
TEST_F(SeriesTest, ProcessesHaveTheWeightOfSumsIfSamplesHaveExpired) {
  AddNumber(11, 300, Tid{301}, "worker", 100);
  store_.shards[0].samples.push_back({At(2 * kNsPerMinute), store::ProcessNo{11}, store::ThreadNo{11}, work_, 30, 1});
  store_.shards[0].raw_expired_until = At(kNsPerMinute);
  const SeriesList series = engine_->QuerySeries(Request("{}", 0, 3 * kNsPerMinute), 10).value();
  ASSERT_EQ(series.processes.size(), 1u);
  EXPECT_EQ(series.processes[0].value, 130u);
  ASSERT_EQ(series.threads.size(), 1u);
  EXPECT_EQ(series.threads[0].value, 30u);
}

TEST_F(SeriesTest, SamplesOfAThreadMayHaveOtherProcesses) {
  AddNumber(11, 300, Tid{301}, "worker", 100);
  AddNumber(12, 400, Tid{401}, "worker", 50);
  AddSample(20 * kMs, 12, 11, work_, 7);
  AddSample(21 * kMs, 12, 11, work_, 8);
  const SeriesList series = Series(10);
  ASSERT_EQ(series.processes.size(), 2u);
  EXPECT_EQ(series.processes[0].value, 100u);
  EXPECT_EQ(series.processes[1].value, 65u);
  EXPECT_EQ(series.threads[0].value, 115u);
}

// Thread 0 stands for all threads without a number.
TEST_F(SeriesTest, SamplesWithoutAThreadDoNotCountForAnotherProcess) {
  AddNumber(12, 400, Tid{401}, "worker", 50);
  AddSample(1 * kMs, 0, 0, work_, 1000);
  AddSample(2 * kMs, 12, 0, work_, 7);
  const SeriesList series = Series(10);
  ASSERT_EQ(series.processes.size(), 1u);
  EXPECT_EQ(series.processes[0].value, 57u);
}

TEST_F(SeriesTest, AProcessWithoutADescriptionIsLeftOut) {
  AddNumber(11, 300, Tid{301}, "worker", 1);
  for (uint32_t no = 20; no < 30; ++no) AddSample(no * kMs, no, no, work_, 100);
  const SeriesList series = Series(1);
  ASSERT_EQ(series.processes.size(), 1u);
  EXPECT_EQ(series.processes[0].value, 1u);
}

}  // namespace
}  // namespace tributary
