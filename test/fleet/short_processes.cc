// Writes a day of processes that live for one sample each, and measures the memory of questions about them.
//   short_processes fill DIR SHARDS NODES PROCESSES NAMES  NAMES: few, or own: each process has a name,
//                                                         a container and attributes of its own
//   short_processes ask DIR SHARDS SHARE QUESTION SELECTOR
// `ask` is one process for one question: labels, series, flamegraph, timeline. It divides the limits of queries by
// SHARE, so a store with a 25th of the processes has a 25th of the memory. It prints a JSON object and a line with the
// error's message. The object says how the question ended, which memory it took above that of a process at rest, and
// its CPU time. `ask` then asks again, and cancels the question in the middle.

#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/heap.h"
#include "base/metrics.h"
#include "base/process_status_testing.h"
#include "base/status.h"
#include "profile/dictionary.h"
#include "reducer/metadata/resource_joiner.h"
#include "reducer/query/query_engine.h"
#include "reducer/sqlite/sqlite_store.h"

namespace tributary {
namespace {

constexpr UnixNs kBegin{20'000 * kNsPerDay};
constexpr int kRounds = 144;  // of ten minutes
constexpr int64_t kRoundNs = kNsPerDay / kRounds;
constexpr int kPrograms = 200, kContainers = 10, kServices = 40, kStacks = 50;
constexpr size_t kBatchesOfCommit = 32;
constexpr int64_t kBootNs = kBegin.value - 1'000'000 * kNsPerSecond;

// Those of a reducer (Pipeline::kHeapLimits).
constexpr HeapLimits kHeapLimits{.heaps_max = 8, .large_block_bytes = 1u << 20, .kept_at_top_bytes = 16u << 20};

FakeClock ClockAt(UnixNs time) { return FakeClock(MonotonicNs{time.value - kBootNs}, time); }
store::StoreOptions Options(uint32_t shards) { return {.shards = shards, .bytes_max = 100ull << 30}; }

// A node whose processes all differ.
class Node {
 public:
  Node(int number, bool has_own_names) : number_(number), has_own_names_(has_own_names) {
    info_->session_id.fill(static_cast<uint8_t>(number));
    info_->session_id[0] = static_cast<uint8_t>(number >> 8);
    info_->node_id = fmt::format("node-{}", number);
    info_->host_name = fmt::format("host-{}", number);
    info_->boot_id = "boot";
    info_->cpu_count = 4;
    info_->sample_rate_hz = 19;
  }

  // Each batch starts a new dictionary, because none of its processes was in an earlier batch.
  RowBatch Take(UnixNs closed, int64_t processes) {
    Dictionary dictionary;
    RowBatch batch;
    batch.SetSession(info_);
    batch.sequence = ++sequence_;
    batch.generation = static_cast<uint32_t>(sequence_);
    for (int64_t i = 0; i < processes; ++i) {
      const int64_t time = closed.value - kRoundNs + kRoundNs * i / processes;
      batch.samples.push_back({.time = MonotonicNs{time - kBootNs},
                               .thread = Start(dictionary, time - kBootNs),
                               .node = Stack(dictionary),
                               .ending = Ending::kComplete,
                               .value = 52'631'579});
    }
    captured_ += static_cast<uint64_t>(processes);
    batch.accounting.captured = captured_;
    batch.clock = {MonotonicNs{closed.value - kBootNs}, closed};
    batch.definitions = dictionary.DefinedSince({});
    batch.wire_bytes = static_cast<uint64_t>(processes) * (has_own_names_ ? 300 : 20);
    return batch;
  }

  const std::string& node_id() const { return info_->node_id; }

 private:
  ThreadRef Start(Dictionary& dictionary, int64_t time_ns) {
    const int64_t number = started_++;
    const int64_t program = number * 7 % kPrograms, place = number % kContainers + number_ * kContainers;
    Process process{.key = {Pid{static_cast<int32_t>(1000 + number % 4'000'000)}, time_ns, 1}, .parent = Pid{1}};
    const std::string name =
        has_own_names_ ? fmt::format("run-{}-{}", number_, number) : fmt::format("program-{}", program);
    process.comm = dictionary.InternString(name);
    process.executable_path = dictionary.InternString(fmt::format("/usr/bin/program-{}", program));
    const std::string container =
        has_own_names_ ? fmt::format("{:032x}{:032x}", place, number) : fmt::format("{:064x}", place);
    process.container_id = dictionary.InternString(container);
    process.cgroup_path = dictionary.InternString("/docker/" + container);
    process.attributes = dictionary.InternString(
        has_own_names_ ? fmt::format("service.name=service-{},run=r{}-{}", place % kServices, number_, number)
                       : fmt::format("service.name=service-{},program{}=1", place % kServices, program));
    return dictionary.InternThread(
        {dictionary.InternProcess(process), Tid{process.key.pid.value}, dictionary.InternString(name)});
  }

  NodeRef Stack(Dictionary& dictionary) {
    static const ExecutableId kProgram = *ExecutableId::Make(ExecutableIdKind::kGnuBuildId, "a short program");
    const auto stack = static_cast<uint64_t>(started_ % kStacks);
    NodeRef node;
    for (uint64_t depth = 0; depth < 10; ++depth) {
      const uint64_t address = 0x1000 + 0x100 * (depth < 5 ? depth : depth * stack);
      const ExecutableRef executable = dictionary.InternExecutable(kProgram, "/usr/bin/program");
      node =
          dictionary.InternNode({node, dictionary.InternFrame({FrameKind::kNative, depth < 9, executable, address})});
    }
    return node;
  }

  const int number_;
  const bool has_own_names_;
  std::shared_ptr<SessionInfo> info_ = std::make_shared<SessionInfo>();
  int64_t started_ = 0;
  uint64_t sequence_ = 0, captured_ = 0;
};

void Commit(store::ShardWriter& writer, std::vector<RowBatch>* group) {
  if (group->empty()) return;
  const auto outcomes = writer.Commit(*group);
  TRIBUTARY_CHECK(outcomes.ok());
  for (const store::ShardWriter::Outcome& outcome : *outcomes) TRIBUTARY_CHECK(!outcome.need_dictionary);
  group->clear();
}

int Fill(const std::string& directory, uint32_t shards, int nodes, int64_t processes, bool has_own_names) {
  FakeClock clock = ClockAt(kBegin);
  Metrics metrics;
  const auto store = store::SqliteStore::Open(directory, Options(shards), clock, metrics).value();
  std::vector<std::unique_ptr<store::ShardWriter>> writers;
  for (uint32_t shard = 0; shard < shards; ++shard) writers.push_back(store->OpenWriter(shard).value());
  std::vector<Node> all;
  for (int i = 0; i < nodes; ++i) all.emplace_back(i, has_own_names);
  const auto maintain = [&] {
    for (auto& writer : writers) TRIBUTARY_CHECK(writer->Maintain(clock.Unix()).ok());
  };
  int64_t left = processes;
  for (int round = 0; round < kRounds; ++round) {
    clock.Advance(kRoundNs);
    std::vector<std::vector<RowBatch>> groups(shards);
    for (int i = 0; i < nodes; ++i) {
      Node& node = all[static_cast<size_t>(i)];
      const int64_t take = left / (int64_t{kRounds - round} * nodes - i);
      left -= take;
      if (take == 0) continue;
      std::vector<RowBatch>& group = groups[store::ShardOf(node.node_id(), shards)];
      group.push_back(node.Take(clock.Unix(), take));
      if (group.size() >= kBatchesOfCommit) Commit(*writers[store::ShardOf(node.node_id(), shards)], &group);
    }
    for (uint32_t shard = 0; shard < shards; ++shard) Commit(*writers[shard], &groups[shard]);
    for (int i = 0; i < 10; ++i) maintain();
  }
  for (int i = 0; i < 60; ++i) {
    clock.Advance(kNsPerSecond);
    maintain();
  }
  fmt::print("{{\"processes\": {}, \"disk_bytes\": {}}}\n", processes - left, store->disk_bytes());
  return 0;
}

// Cancels a question when it has been asked for a number of times whether it is cancelled. Measures the CPU time of the
// whole process between two such times. Thread-safe.
class Canceller {
 public:
  explicit Canceller(uint64_t cancel_at) : cancel_at_(cancel_at) {}
  bool Ask() {
    const std::lock_guard lock(mutex_);
    const double now = CpuMs();
    gap_ms_ = std::max(gap_ms_, now - last_);
    last_ = now;
    return ++times_ >= cancel_at_;
  }
  uint64_t times() const { return times_; }
  double gap_ms() const { return std::max(gap_ms_, CpuMs() - last_); }

 private:
  const uint64_t cancel_at_;
  std::mutex mutex_;
  double last_ = CpuMs(), gap_ms_ = 0;
  uint64_t times_ = 0;
};

// Returns the size of the answer.
absl::StatusOr<uint64_t> Put(QueryEngine& engine, std::string_view question, const QueryRequest& request) {
  if (question == "labels") {
    ASSIGN_OR_RETURN(const auto labels, engine.QueryLabels(request));
    return labels.size();
  }
  if (question == "series") {
    ASSIGN_OR_RETURN(const SeriesList series, engine.QuerySeries(request, 1000));
    uint64_t count = 0;
    for (const SeriesList::Named& host : series.hosts) count += host.count;
    return count;
  }
  if (question == "timeline") {
    ASSIGN_OR_RETURN(const Timeline timeline, engine.QueryTimeline(request, 100));
    uint64_t count = 0;
    for (const uint64_t of_bucket : timeline.counts) count += of_bucket;
    return count;
  }
  TRIBUTARY_CHECK(question == "flamegraph");
  ASSIGN_OR_RETURN(const FlameGraph graph, engine.QueryFlameGraph(request, 5000));
  return graph.total_counts.front();
}

int Ask(const std::string& directory, uint32_t shards, size_t share, std::string_view question,
        std::string_view selector) {
  LimitHeap(kHeapLimits);
  const FakeClock clock = ClockAt(UnixNs{kBegin.value + kNsPerDay + kNsPerMinute});
  Metrics metrics;
  const auto store = store::SqliteStore::Open(directory, Options(shards), clock, metrics).value();
  const auto symbols = SymbolStore::Open({.directory = directory + "/symbols"}, clock, metrics).value();
  K8sNameRules rules;
  AttributeNames names;
  MetadataStore metadata(MetadataStore::Options{}, rules, names, clock, metrics);
  const ResourceJoiner joiner(metadata, rules, names, {}, metrics);
  QueryEngine engine(*store, *symbols, QueryLimits().DividedBy(share), &joiner, shards - 1);
  QueryRequest request{.selector = {}, .range = {kBegin, UnixNs{kBegin.value + kNsPerMinute}}};
  TRIBUTARY_CHECK(engine.QueryFlameGraph(request, 5000).ok());  // loads the tries, which stay in memory
  TrimHeap();
  std::ofstream("/proc/self/clear_refs") << "5" << std::flush;  // the peak starts anew
  const int64_t rest_kib = StatusKib("VmRSS:");

  request.selector = Selector::Parse(selector).value();
  request.range.to.value = kBegin.value + kNsPerDay;
  Canceller never(UINT64_MAX);
  request.is_cancelled = [&never] { return never.Ask(); };
  const double begin_ms = CpuMs();
  const absl::StatusOr<uint64_t> answer = Put(engine, question, request);
  const double cpu_ms = CpuMs() - begin_ms, gap_ms = never.gap_ms();
  const int64_t peak_kib = StatusKib("VmHWM:") - rest_kib;

  Canceller halfway(never.times() / 2 + 1);
  request.is_cancelled = [&halfway] { return halfway.Ask(); };
  const absl::StatusOr<uint64_t> cancelled = Put(engine, question, request);
  fmt::print(
      "{{\"answer\": {}, \"code\": \"{}\", \"peak_kib\": {}, \"cpu_ms\": {:.0f}, \"gap_ms\": {:.0f}, \"cancelled\": "
      "\"{}\"}}\n{}\n",
      answer.value_or(0), absl::StatusCodeToString(answer.status().code()), peak_kib, cpu_ms, gap_ms,
      absl::StatusCodeToString(cancelled.status().code()), Message(answer.status()));
  return 0;
}

}  // namespace
}  // namespace tributary

int main(int argc, char** argv) {
  const std::string_view command = argc == 7 ? argv[1] : "";
  const auto number = [argv](int i) { return std::strtoull(argv[i], nullptr, 10); };
  if (command == "fill") {
    return tributary::Fill(argv[2], static_cast<uint32_t>(number(3)), static_cast<int>(number(4)),
                           static_cast<int64_t>(number(5)), argv[6] == std::string_view("own"));
  }
  if (command == "ask") {
    return tributary::Ask(argv[2], static_cast<uint32_t>(number(3)), number(4), argv[5], argv[6]);
  }
  fmt::print(stderr,
             "short_processes fill DIR SHARDS NODES PROCESSES few|own\n"
             "short_processes ask DIR SHARDS SHARE labels|series|flamegraph|timeline SELECTOR\n");
  return 2;
}
