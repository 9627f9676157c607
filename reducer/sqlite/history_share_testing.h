#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/refusals.h"
#include "reducer/sqlite/shard_writer.h"
#include "reducer/sqlite/sqlite_store_testing.h"
#include "reducer/store/store_testing.h"

namespace tributary::store {

// One node sends far more definitions than samples.
class HistoryShareTest : public SqliteStoreTest {
 protected:
  static constexpr int kMinutes = 240, kSamplesPerMinute = 50;

  void Open(uint64_t bytes_max) {
    options_.bytes_max = bytes_max;
    options_.refusals = &refusals_;
    Reopen();
  }
  void CommitOf(TestCollector& collector) { ASSERT_FALSE(CommitOne(collector.Take(clock_.Unix())).need_dictionary); }
  void Maintain(int calls = 300) {
    for (int i = 0; i < calls; ++i) {
      const absl::Status status = writer_->Maintain(clock_.Unix());
      ASSERT_TRUE(status.ok()) << status;
    }
  }
  // Samples of a node that shares the store with the hostile one. By default, of four hours.
  void CommitHonest(int minutes = kMinutes) {
    for (int minute = 0; minute < minutes; ++minute) {
      clock_.Advance(kNsPerMinute);
      for (int i = 0; i < kSamplesPerMinute; ++i) {
        honest_.Add(clock_.Unix(), honest_.Thread(1 + i % 5, "worker"), honest_.Stack({1, static_cast<uint64_t>(i)}));
      }
      CommitOf(honest_);
    }
  }
  // One batch of samples of processes whose names were never sent before.
  void CommitNames(TestCollector& collector, int processes, size_t name_bytes) {
    for (int i = 0; i < processes; ++i) {
      const std::string name = fmt::format("{:0{}}", next_name_++, name_bytes);
      collector.Add(clock_.Unix(), collector.Thread(next_name_, name), collector.Stack({7}));
    }
    CommitOf(collector);
  }
  // Adds samples of processes with executables whose build-ids and paths (of 2,000 bytes) are numbered from 0.
  void AddExecutables(TestCollector& collector, int executables) {
    Dictionary& dictionary = collector.dictionary();
    for (int i = 0; i < executables; ++i) {
      Process process;
      process.comm = dictionary.InternString("x");
      process.executable =
          dictionary.InternExecutable(*ExecutableId::Make(ExecutableIdKind::kGnuBuildId, fmt::format("{:020}", i)),
                                      fmt::format("/usr/lib/{:02000}", i));
      process.key = {Pid{i + 1}, clock_.Unix().value, 1};
      collector.Add(clock_.Unix(),
                    dictionary.InternThread({dictionary.InternProcess(process), Tid{i + 1}, process.comm}),
                    collector.Stack({7}));
    }
  }
  uint64_t SamplesOf(std::string_view node_id) {
    uint64_t samples = 0;
    EXPECT_TRUE(Reader()
                    ->ScanSums({UnixNs{0}, UnixNs{4'000'000'000 * kNsPerSecond}},
                               [&](const SumColumns& columns) {
                                 if (columns.node_id != node_id) return absl::OkStatus();
                                 for (uint64_t count : columns.counts) samples += count;
                                 return absl::OkStatus();
                               })
                    .ok());
    return samples;
  }
  Database& Shard() { return static_cast<SqliteShardWriter*>(writer_.get())->database(); }
  int64_t Query(const std::string& sql) {
    const absl::StatusOr<int64_t> value = Shard().QueryInt(sql);
    EXPECT_TRUE(value.ok()) << sql << ": " << value.status();
    return value.value_or(-1);
  }
  uint64_t UsedBytes() {
    const int64_t pages = Query("PRAGMA page_count") - Query("PRAGMA freelist_count");
    return static_cast<uint64_t>(pages * Query("PRAGMA page_size"));
  }
  std::vector<ProcessRow> Processes() {
    return Reader()->Processes({UnixNs{0}, UnixNs{4'000'000'000 * kNsPerSecond}}, nullptr).value();
  }
  // The value of a counter of the store.
  uint64_t Metric(std::string_view name) { return metrics_.AddCounter(std::string(name), "").value(); }

  TestCollector honest_{"honest", 1}, hostile_{"hostile", 2};
  Refusals refusals_{clock_, metrics_};
  int next_name_ = 1;
};

}  // namespace tributary::store
