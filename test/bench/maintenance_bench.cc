// Measures the maintenance of a shard that gets 15 commits a second and has done so for 7 days. The file is written
// straight through its tables. Then the program lets 20 minutes around midnight pass, without waiting: each second adds
// 15 commits, and runs maintenance once, as the store writer does.
//   maintenance_bench [SHARE]    SHARE: of the rows and commits, 1 by default; docs/benchmarks.md has the figures.
// Prints JSON: the CPU time of maintenance in ms for each second, on average and at most, before and after midnight.

#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "base/directory_testing.h"
#include "base/status.h"
#include "reducer/sqlite/column_codec.h"
#include "reducer/sqlite/column_packing.h"
#include "reducer/sqlite/event_columns.h"
#include "reducer/sqlite/maintenance.h"
#include "reducer/sqlite/minute_sums.h"
#include "reducer/sqlite/node_ledger.h"
#include "reducer/sqlite/process_columns.h"
#include "reducer/sqlite/schema.h"
#include "reducer/store/trie.h"

namespace tributary::store {
namespace {

constexpr int64_t kMidnight = 19'700 * 86'400;  // unix time in s
constexpr int64_t kDaySeconds = 86'400, kBeforeSeconds = 600, kAfterSeconds = 600;
constexpr int kDays = 7, kCommitsPerSecond = 15, kSecondsBetweenBatches = 5;
constexpr int kSamples = 20, kSumsOfMinute = 100, kNewNodes = 3;

double CpuMs() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) / 1e6;
}

UnixNs At(int64_t second) { return UnixNs{second * kNsPerSecond}; }

class Shard {
 public:
  explicit Shard(double share)
      : commits_(std::max(static_cast<int>(kCommitsPerSecond * share), 1)),
        database_(OpenShardForWriting(directory_.path() + "/shard.db").value()),
        put_samples_(database_
                         .Prepare("INSERT INTO sample_chunk (minute, machine, type, samples, raw_bytes, columns, "
                                  "samples_end) VALUES (?, ?, 1, ?, ?, ?, ?)")
                         .value()),
        put_sum_(database_.Prepare(kInsertMinuteSum).value()),
        put_trie_(database_.Prepare("INSERT INTO trie_chunk (day, raw_bytes, columns) VALUES (?, ?, ?)").value()),
        put_processes_(database_
                           .Prepare("INSERT INTO process_chunk (first_slot, last_slot, raw_bytes, columns, machine) "
                                    "VALUES (?1, ?1, ?2, ?3, ?4)")
                           .value()),
        put_events_(database_
                        .Prepare("INSERT INTO event_chunk (slot, machine, events, raw_bytes, columns) VALUES (?, ?, "
                                 "?, ?, ?)")
                        .value()),
        ledger_(NodeLedger::Prepare(database_, 1u << 30).value()) {
    FillWeek();
    maintenance_ = Maintenance::Prepare(database_, *ledger_, {}).value();
  }

  // Adds the commits of a second. Each has a batch of another machine.
  void Commit(int64_t second) {
    Transaction transaction = Transaction::Begin(database_).value();
    for (int i = 0; i < commits_; ++i) {
      const int64_t machine = MachineOf(second, i);
      AddSamples(second, machine);
      AddTriePiece(second);
      AddProcesses(second, machine);
      StoredEvent event{.time_ns = At(second).value, .kind = ProcessEventKind::kExit, .pid = Random(30'000)};
      const PackedColumns packed = PackColumns(EncodeEvents({&event, 1}));
      Check(put_events_.Bind(SlotOf(At(second)).value, machine, 1, packed.raw_bytes, packed.bytes).Run());
    }
    Check(transaction.Commit());
  }
  // Returns the CPU time.
  double Maintain(int64_t second) {
    const double before = CpuMs();
    Maintenance::Removed removed;
    Check(maintenance_->Run(At(second), &removed));
    return CpuMs() - before;
  }
  uint64_t bytes() const { return std::filesystem::file_size(database_.path()); }

 private:
  static void Check(const absl::Status& status) { TRIBUTARY_CHECK(status.ok()); }
  int64_t Machines() const { return int64_t{commits_} * kSecondsBetweenBatches; }
  // The machine whose batch the second's commit `i` contains.
  int64_t MachineOf(int64_t second, int i) const { return 1 + (second % kSecondsBetweenBatches) * commits_ + i; }
  int32_t Random(uint32_t below) { return static_cast<int32_t>(random_() % below); }

  // The state that this load leaves: a day of samples, 7 days of sums, and joined processes and tries of all days that
  // have sums. Leaves out events, which are joined an hour after their slot.
  void FillWeek() {
    constexpr int64_t kEnd = kMidnight - kBeforeSeconds, kBegin = kMidnight - (kDays + 1) * kDaySeconds;
    Check(database_.Execute("PRAGMA synchronous = OFF"));
    for (int64_t hour = kBegin; hour < kEnd; hour += 3600) {
      Transaction transaction = Transaction::Begin(database_).value();
      for (int64_t second = hour; second < std::min(hour + 3600, kEnd); ++second) {
        if (second >= kEnd - 2 * 3600) {
          for (int i = 0; i < commits_; ++i) AddProcesses(second, MachineOf(second, i));
        } else if (second % 600 == 0) {
          for (int64_t machine = 1; machine <= Machines(); ++machine) {
            AddProcesses(second, machine, 600 / kSecondsBetweenBatches);
          }
        }
        if (second >= kEnd - kDaySeconds) {
          for (int i = 0; i < commits_; ++i) {
            AddSamples(second, MachineOf(second, i));
          }
        }
        if (second % 60 == 0 && second >= kEnd - kDays * kDaySeconds) AddSums(second);
      }
      AddTriePiece(hour);
      CountBytes(hour);
      Check(transaction.Commit());
    }
    Check(
        database_.Execute(fmt::format("UPDATE watermark SET value = {} WHERE name = 'closed_before'", kEnd / 60 - 2)));
    Check(database_.Execute(
        fmt::format("UPDATE watermark SET value = {} WHERE name = 'raw_from'", (kEnd - kDaySeconds) / 60)));
    Check(database_.Execute("PRAGMA synchronous = FULL"));
  }
  void AddSamples(int64_t second, int64_t machine) {
    std::vector<StoredSample> samples(kSamples);
    for (int i = 0; i < kSamples; ++i) {
      samples[i] = {.time_ns = At(second).value - (kSamples - i) * kNsPerMs,
                    .process = static_cast<uint32_t>(Random(1'000)),
                    .thread = static_cast<uint32_t>(Random(1'000)),
                    .node = static_cast<uint32_t>(Random(100'000)),
                    .count = 1,
                    .value = 52'631'579,
                    .ending = Ending::kComplete};
    }
    const PackedColumns packed = PackColumns(EncodeSamples(samples));
    samples_end_ += kSamples;
    Check(
        put_samples_.Bind(MinuteOf(At(second)), machine, kSamples, packed.raw_bytes, packed.bytes, samples_end_).Run());
  }
  void AddSums(int64_t second) {
    for (int64_t machine = 1; machine <= Machines(); ++machine) {
      MinuteSums sums;
      for (int i = 0; i < kSumsOfMinute; ++i) {
        sums.Add(StoredSample{.process = static_cast<uint32_t>(Random(1'000)),
                              .thread = static_cast<uint32_t>(Random(1'000)),
                              .node = static_cast<uint32_t>(1'000 * i + Random(1'000)),
                              .count = 1,
                              .value = 52'631'579});
      }
      Check(InsertMinuteSum(put_sum_, {second / 60, machine, 1}, sums).status());
    }
  }
  void AddTriePiece(int64_t second) {
    TrieTail piece{.first_node = 1'000'000, .first_frame = 1'000'000, .added = {}};
    for (int i = 0; i < kNewNodes; ++i) {
      piece.added.parents.push_back(NodeNo{static_cast<uint32_t>(Random(1'000'000))});
      piece.added.frames.push_back(static_cast<uint32_t>(Random(1'000'000)));
    }
    const PackedColumns packed = PackColumns(EncodeTriePiece(piece));
    Check(put_trie_.Bind(DayOf(At(second)).value, packed.raw_bytes, packed.bytes).Run());
  }
  // The ledger has more bytes than the machines' rows need.
  void CountBytes(int64_t second) {
    for (int64_t machine = 1; machine <= Machines(); ++machine) {
      ledger_->SetToday(DayOf(At(second)));
      ledger_->AddDefinitions(machine, 1u << 20);
      ledger_->AddData(DayOf(At(second)), machine, 1 << 20);
    }
    Check(ledger_->Write());
    ledger_->MarkCommitted();
  }
  void AddProcesses(int64_t second, int64_t machine, int count = 1) {
    StoredProcesses rows;
    for (int i = 0; i < count; ++i) {
      rows.processes.push_back({.no = static_cast<uint32_t>(random_()), .machine = machine, .pid = Random(30'000)});
    }
    const PackedColumns packed = PackColumns(EncodeProcesses(rows));
    Check(put_processes_.Bind(SlotOf(At(second)).value, packed.raw_bytes, packed.bytes, machine).Run());
  }

  const TestDirectory directory_;
  const int commits_;
  Database database_;
  Statement put_samples_, put_sum_, put_trie_, put_processes_, put_events_;
  std::unique_ptr<NodeLedger> ledger_;
  std::mt19937_64 random_{1};
  uint64_t samples_end_ = 0;
  std::unique_ptr<Maintenance> maintenance_;
};

struct Cost {
  double mean_ms = 0, max_ms = 0;
};
Cost Simulate(Shard& shard, int64_t from, int64_t to) {
  Cost cost;
  for (int64_t second = from; second < to; ++second) {
    shard.Commit(second);
    const double ms = shard.Maintain(second);
    cost.mean_ms += ms / static_cast<double>(to - from);
    cost.max_ms = std::max(cost.max_ms, ms);
  }
  return cost;
}

}  // namespace
}  // namespace tributary::store

int main(int argc, char** argv) {
  using namespace tributary::store;  // NOLINT: the program is one file
  Shard shard(argc > 1 ? std::atof(argv[1]) : 1);
  const uint64_t bytes = shard.bytes();
  const Cost before = Simulate(shard, kMidnight - kBeforeSeconds, kMidnight);
  const Cost after = Simulate(shard, kMidnight, kMidnight + kAfterSeconds);
  fmt::print(
      "{{\"file_bytes\": {}, \"before_mean_ms\": {:.3f}, \"before_max_ms\": {:.1f}, \"after_mean_ms\": {:.3f}, "
      "\"after_max_ms\": {:.1f}}}\n",
      bytes, before.mean_ms, before.max_ms, after.mean_ms, after.max_ms);
  return 0;
}
