#include <gtest/gtest.h>

#include <fmt/format.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/directory_testing.h"
#include "reducer/query/query_engine.h"
#include "reducer/sqlite/sqlite.h"
#include "reducer/sqlite/sqlite_store.h"
#include "reducer/store/store_testing.h"

// Queries over processes whose numbers are from before and after the end of the numbers (sqlite/process_numbers.h).

namespace tributary {
namespace {

class ProcessNumbersQueryTest : public ::testing::Test {
 protected:
  static constexpr UnixNs kStart{20'000 * kNsPerDay};

  ProcessNumbersQueryTest() : clock_(MonotonicNs{kNsPerSecond}, kStart) {
    symbols_ = SymbolStore::Open({.directory = symbols_directory_.path()}, clock_, metrics_).value();
    Open();
  }

  void Open() {
    engine_.reset();
    writer_.reset();
    store_.reset();
    store_ = store::SqliteStore::Open(directory_.path(), {}, clock_, metrics_).value();
    writer_ = store_->OpenWriter(0).value();
    engine_ = std::make_unique<QueryEngine>(*store_, *symbols_);
  }
  // The next process and the next thread get this number.
  void SetNext(uint32_t next) {
    const std::string path = store_->ShardPath(0);
    writer_.reset();
    {
      auto database = store::Database::Open(path, store::Database::Mode::kReadWrite).value();
      const auto sql = fmt::format("UPDATE watermark SET value = {} WHERE name LIKE 'next%'", next);
      ASSERT_TRUE(database.Execute(sql).ok());
    }
    Open();
  }
  // A new session sends one sample of each process `first` to `last`. Process N has the name pN and the value N.
  void Commit(int first, int last) {
    store::TestCollector collector("node", ++sessions_);
    for (int pid = first; pid <= last; ++pid) {
      collector.Add(clock_.Unix(), collector.Thread(pid, fmt::format("p{}", pid)), collector.Stack({1, 2}),
                    static_cast<uint64_t>(pid));
    }
    const RowBatch batch = collector.Take(clock_.Unix());
    ASSERT_TRUE(writer_->Commit({&batch, 1}).ok());
  }
  void PassTime(int64_t ns) {
    clock_.Advance(ns);
    for (int i = 0; i < 50; ++i) ASSERT_TRUE(writer_->Maintain(clock_.Unix()).ok());
  }
  QueryRequest Request(const std::string& selector) {
    return {.selector = Selector::Parse(selector).value(),
            .range = {UnixNs{kStart.value - 60 * kNsPerMinute}, UnixNs{clock_.Unix().value + 60 * kNsPerMinute}}};
  }
  std::map<std::string, uint64_t> Series(const std::string& selector = "{}") {
    std::map<std::string, uint64_t> values;
    const SeriesList list = engine_->QuerySeries(Request(selector), 100).value();
    for (const SeriesList::Process& process : list.processes) values[process.row.comm] += process.value;
    return values;
  }
  uint64_t FlameGraphOf(const std::string& selector) {
    const auto graph = engine_->QueryFlameGraph(Request(selector), 100);
    EXPECT_TRUE(graph.ok()) << graph.status();
    return graph.ok() && !graph->total_values.empty() ? graph->total_values[0] : 0;
  }
  // Each process is shown with its own samples, in all kinds of answers.
  void ExpectOwnSamples(int first, int last) {
    const std::map<std::string, uint64_t> series = Series();
    for (int pid = first; pid <= last; ++pid) {
      const std::string name = fmt::format("p{}", pid);
      const auto value = static_cast<uint64_t>(pid);
      const auto found = series.find(name);
      EXPECT_TRUE(found != series.end() && found->second == value) << name;
      EXPECT_EQ(Series(fmt::format("{{process_pid=\"{}\"}}", pid)), (std::map<std::string, uint64_t>{{name, value}}));
      EXPECT_EQ(FlameGraphOf(fmt::format("{{process_pid=\"{}\"}}", pid)), value) << name;
      EXPECT_EQ(FlameGraphOf(fmt::format("{{process_command=\"{}\"}}", name)), value) << name;
    }
  }

  const TestDirectory directory_, symbols_directory_;
  FakeClock clock_;
  Metrics metrics_;
  std::unique_ptr<SymbolStore> symbols_;
  std::unique_ptr<store::SqliteStore> store_;
  std::unique_ptr<store::ShardWriter> writer_;
  std::unique_ptr<QueryEngine> engine_;
  uint8_t sessions_ = 0;
};

TEST_F(ProcessNumbersQueryTest, ProcessesBeforeAndAfterTheEndAreToldApart) {
  SetNext(UINT32_MAX - 2);
  Commit(1, 2);
  Open();
  Commit(3, 5);
  ExpectOwnSamples(1, 5);
  PassTime(2 * kNsPerDay);  // only sums are left
  Commit(6, 8);
  PassTime(5 * kNsPerMinute);
  ExpectOwnSamples(1, 8);
  EXPECT_EQ(FlameGraphOf("{}"), 36u);
}

TEST_F(ProcessNumbersQueryTest, ASampleIsNeverShownUnderAnotherProcess) {
  Commit(1, 5);
  PassTime(2 * kNsPerDay);
  SetNext(UINT32_MAX - 2);
  Commit(11, 15);  // of these, no one gets a number: 1 to 5 are still in use
  PassTime(5 * kNsPerMinute);
  ExpectOwnSamples(1, 5);
  EXPECT_EQ(FlameGraphOf("{}"), 15u + 65u);

  PassTime(6 * kNsPerDay);  // the first processes expire
  Commit(21, 25);
  PassTime(5 * kNsPerMinute);
  ExpectOwnSamples(21, 25);
  EXPECT_EQ(FlameGraphOf("{}"), 65u + 115u);
}

}  // namespace
}  // namespace tributary
