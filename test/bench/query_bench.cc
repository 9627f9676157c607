// Measures queries over a store that many nodes have filled.
//   query_bench fill DIR NODES SAMPLES SEED   writes a store into DIR through the store's writers
//   query_bench ask DIR RUNS [QUESTION]       asks each question RUNS times and prints one JSON object for each
// The store has the last kHours of a day of NODES mixed nodes. Each node runs services in containers and on the host,
// which other nodes run too. Every fourth node also builds software: each batch has compilers that have just started.
// `dev/bench query` calls both commands; docs/benchmarks.md explains the figures.

#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/heap.h"
#include "base/heap_trimmer.h"
#include "base/metrics.h"
#include "base/process_status_testing.h"
#include "base/status.h"
#include "profile/attributes.h"
#include "profile/dictionary.h"
#include "reducer/metadata/resource_joiner.h"
#include "reducer/query/query_engine.h"
#include "reducer/sqlite/schema.h"
#include "reducer/sqlite/sqlite_store.h"
#include "symbols/symbol_builder.h"
#include "symbols/symbol_codec.h"

namespace tributary {
namespace {

constexpr uint32_t kShards = 2;
constexpr int64_t kHours = 3, kBatchNs = 5 * kNsPerSecond;
constexpr UnixNs kEnd{20'000 * kNsPerDay + 15 * 60 * kNsPerMinute};
constexpr UnixNs kBegin{kEnd.value - kHours * 60 * kNsPerMinute};
constexpr int64_t kBatches = (kEnd.value - kBegin.value) / kBatchNs;
constexpr int kServices = 40, kServicesOfNode = 12, kThreadsOfService = 8, kCompilersOfBatch = 2;
constexpr int kFunctions = 600;  // of an executable
constexpr uint64_t kFunctionBytes = 0x100;
constexpr uint64_t kPeriodNs = 52'631'579;
constexpr int64_t kBootNs = 1'600'000'000 * kNsPerSecond;

std::string NodeId(int node) { return fmt::format("{:032x}", 0x5eed0000 + node); }
std::string ServiceName(int service) { return fmt::format("service-{}", service); }
std::string ContainerId(int node, int service) { return fmt::format("{:056x}{:04x}{:04x}", 0xc0, node, service); }
ExecutableId ExecutableOf(int service) {
  return *ExecutableId::Make(ExecutableIdKind::kGnuBuildId, fmt::format("executable-{:09}", service));
}
store::StoreOptions Options() { return {.shards = kShards}; }

// Those of a reducer (Pipeline::kHeapLimits).
constexpr HeapLimits kHeapLimits{.heaps_max = 8, .large_block_bytes = 1u << 20, .kept_at_top_bytes = 16u << 20};

// One node with its dictionary.
class Node {
 public:
  Node(int number, uint64_t seed) : number_(number), random_(seed * 1'000'003 + static_cast<uint64_t>(number)) {
    info_->session_id.fill(static_cast<uint8_t>(number));
    info_->session_id[0] = static_cast<uint8_t>(number >> 8);
    info_->node_id = NodeId(number);
    info_->host_name = fmt::format("host-{}", number);
    info_->boot_id = "boot";
    info_->cpu_count = 4;
    info_->sample_rate_hz = 19;
    for (int i = 0; i < kServicesOfNode; ++i) {
      const int service = (number * 7 + i * 11) % kServices;
      services_.push_back(service);
      Process process{.key = {Pid{100 + i}, 1000 + i, 1}, .parent = Pid{1}};
      Describe(service, ServiceName(service), i % 3 != 0, &process);
      const ProcessRef ref = dictionary_->InternProcess(process);
      for (int t = 0; t < kThreadsOfService; ++t) {
        const StringRef name = dictionary_->InternString(fmt::format("worker-{}", t));
        threads_.push_back(dictionary_->InternThread({ref, Tid{100 + i + 1000 * t}, name}));
      }
    }
  }

  RowBatch Take(UnixNs closed, int samples) {
    RowBatch batch;
    batch.SetSession(info_);
    batch.sequence = ++sequence_;
    batch.generation = 1;
    batch.before = sent_;
    std::vector<ThreadRef> compilers;
    for (int i = 0; number_ % 4 == 0 && i < kCompilersOfBatch; ++i) compilers.push_back(StartCompiler());
    for (int i = 0; i < samples; ++i) {
      const bool compiles = !compilers.empty() && i % 2 == 0;
      // A few services take most of the CPU.
      const auto slot = static_cast<size_t>(std::pow(Uniform(), 2) * kServicesOfNode);
      const int program = compiles ? kServices : services_[slot];
      const ThreadRef thread = compiles ? compilers[random_() % compilers.size()]
                                        : threads_[slot * kThreadsOfService + random_() % kThreadsOfService];
      const int64_t time = closed.value - kBatchNs + kBatchNs * i / samples;
      batch.samples.push_back({.time = MonotonicNs{time - kBootNs},
                               .thread = thread,
                               .node = Stack(program, compiles ? 3000 : 800),
                               .ending = Ending::kComplete,
                               .cpu = static_cast<uint16_t>(i % 4),
                               .value = kPeriodNs});
    }
    accounting_.captured += static_cast<uint64_t>(samples);
    batch.accounting = accounting_;
    batch.clock = {MonotonicNs{closed.value - kBootNs}, closed};
    batch.definitions = dictionary_->DefinedSince(sent_);
    sent_ = dictionary_->counts();
    return batch;
  }

  const std::string& node_id() const { return info_->node_id; }

 private:
  double Uniform() { return std::uniform_real_distribution<double>(0, 1)(random_); }

  void Describe(int program, const std::string& name, bool in_container, Process* process) {
    process->comm = dictionary_->InternString(name);
    process->executable = dictionary_->InternExecutable(ExecutableOf(program), "/usr/bin/" + name);
    process->executable_path = dictionary_->InternString("/usr/bin/" + name);
    if (!in_container) {
      process->cgroup_path = dictionary_->InternString("/system.slice/" + name + ".service");
      return;
    }
    const std::string container = ContainerId(number_, program);
    process->container_id = dictionary_->InternString(container);
    process->cgroup_path = dictionary_->InternString("/docker/" + container);
    process->attributes = dictionary_->InternString("service.name=" + name + ",service.namespace=shop");
  }

  ThreadRef StartCompiler() {
    ++compilers_;
    Process process{.key = {Pid{10'000 + compilers_ % 20'000}, 1'000'000 + compilers_, 1}, .parent = Pid{1}};
    Describe(kServices, "cc1plus", true, &process);
    return dictionary_->InternThread(
        {dictionary_->InternProcess(process), Tid{process.key.pid.value}, dictionary_->InternString("cc1plus")});
  }

  // Returns one of `stacks` stacks of the program. A few of them are frequent.
  NodeRef Stack(int program, int stacks) {
    const auto stack = static_cast<uint64_t>(std::pow(Uniform(), 4) * stacks);
    std::mt19937_64 shape(stack * 1000 + static_cast<uint64_t>(program));
    const ExecutableRef executable = dictionary_->InternExecutable(ExecutableOf(program), "");
    const int depth = 10 + static_cast<int>(shape() % 20);
    NodeRef node;
    for (int i = 0; i < depth; ++i) {
      const uint64_t spread = i < 6 ? 2 : kFunctions;
      const uint64_t function = (static_cast<uint64_t>(i) * 31 + shape() % spread) % kFunctions;
      const uint64_t address = (function + 1) * kFunctionBytes + shape() % 4 * 8;
      node = dictionary_->InternNode(
          {node, dictionary_->InternFrame({FrameKind::kNative, i + 1 < depth, executable, address})});
    }
    return node;
  }

  const int number_;
  std::mt19937_64 random_;
  std::shared_ptr<SessionInfo> info_ = std::make_shared<SessionInfo>();
  std::shared_ptr<Dictionary> dictionary_ = std::make_shared<Dictionary>();
  std::vector<int> services_;
  std::vector<ThreadRef> threads_;  // kThreadsOfService for each of services_
  int32_t compilers_ = 0;
  DictionaryCounts sent_;
  uint64_t sequence_ = 0;
  Accounting accounting_;
};

FakeClock ClockAt(UnixNs time) { return FakeClock(MonotonicNs{time.value - kBootNs}, time); }

void Commit(store::ShardWriter& writer, std::vector<RowBatch>* group) {
  if (group->empty()) return;
  const auto outcomes = writer.Commit(*group);
  TRIBUTARY_CHECK(outcomes.ok());
  for (const store::ShardWriter::Outcome& outcome : *outcomes) TRIBUTARY_CHECK(!outcome.need_dictionary);
  group->clear();
}

int Fill(const std::string& directory, int nodes, int64_t samples, uint64_t seed) {
  FakeClock clock = ClockAt(kBegin);
  Metrics metrics;
  const auto store = store::SqliteStore::Open(directory, Options(), clock, metrics).value();
  std::vector<std::unique_ptr<store::ShardWriter>> writers;
  for (uint32_t shard = 0; shard < kShards; ++shard) writers.push_back(store->OpenWriter(shard).value());
  std::vector<Node> all;
  all.reserve(static_cast<size_t>(nodes));
  for (int i = 0; i < nodes; ++i) all.emplace_back(i, seed);
  int64_t left = samples;
  std::vector<std::vector<RowBatch>> groups(kShards);
  for (int64_t b = 0; b < kBatches; ++b) {
    clock.Advance(kBatchNs);
    for (int i = 0; i < nodes; ++i) {
      Node& node = all[static_cast<size_t>(i)];
      const int64_t batches_left = (kBatches - b) * nodes - i;
      const int64_t take = left / batches_left;
      left -= take;
      if (take == 0) continue;
      groups[store::ShardOf(node.node_id(), kShards)].push_back(node.Take(clock.Unix(), static_cast<int>(take)));
    }
    for (uint32_t shard = 0; shard < kShards; ++shard) {
      Commit(*writers[shard], &groups[shard]);
      TRIBUTARY_CHECK(writers[shard]->Maintain(clock.Unix()).ok());
    }
  }
  // The last minutes are closed as in a running reducer: a little later.
  for (int i = 0; i < 60; ++i) {
    clock.Advance(kNsPerSecond);
    for (auto& writer : writers) TRIBUTARY_CHECK(writer->Maintain(clock.Unix()).ok());
  }
  fmt::print("{{\"samples\": {}, \"disk_bytes\": {}}}\n", samples - left, store->disk_bytes());
  return 0;
}

void PutSymbols(SymbolStore& symbols) {
  for (int program = 0; program <= kServices; ++program) {
    std::vector<std::string> names;
    for (int i = 0; i < kFunctions; ++i) names.push_back(fmt::format("_ZN8program{:02}9Component{:04}Ev", program, i));
    std::vector<SymbolRange> ranges;
    for (int i = 0; i < kFunctions; ++i) {
      const uint64_t address = static_cast<uint64_t>(i + 1) * kFunctionBytes;
      ranges.push_back({address, kFunctionBytes, names[static_cast<size_t>(i)]});
    }
    const auto table = BuildSymbolTable(ExecutableOf(program), SymbolSource::kSymtab, ranges);
    TRIBUTARY_CHECK(symbols.Put(ExecutableOf(program), EncodeSymbolTable(*table), SymbolOrigin::kNode).ok());
  }
}

double WallMs() {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now().time_since_epoch()).count();
}
double Median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

class Asker {
 public:
  // Asks only the question `only`, or all if it is empty.
  Asker(QueryEngine& engine, int runs, std::string_view only) : engine_(engine), runs_(runs), only_(only) {}

  // `ask` returns the number of samples, or of other things, in the answer.
  void Ask(std::string_view name, std::string_view selector,
           const std::function<uint64_t(const QueryRequest&)>& ask) const {
    if (!only_.empty() && name != only_) return;
    has_asked_ = true;
    const QueryRequest request{.selector = Selector::Parse(selector).value(), .range = {kBegin, kEnd}};
    std::vector<double> cpu, wall;
    uint64_t answer = 0;
    for (int i = 0; i < runs_; ++i) {
      const double cpu_begin = CpuMs(), wall_begin = WallMs();
      answer = ask(request);
      cpu.push_back(CpuMs() - cpu_begin);
      wall.push_back(WallMs() - wall_begin);
    }
    fmt::print("{{\"question\": \"{}\", \"cpu_ms\": {:.2f}, \"wall_ms\": {:.2f}, \"answer\": {}}}\n", name, Median(cpu),
               Median(wall), answer);
  }
  bool has_asked() const { return has_asked_; }
  void FlameGraph(std::string_view name, std::string_view selector) const {
    Ask(name, selector, [this](const QueryRequest& request) {
      const auto graph = engine_.QueryFlameGraph(request, 5000);
      TRIBUTARY_CHECK(graph.ok());
      return graph->total_counts.front();
    });
  }

 private:
  QueryEngine& engine_;
  const int runs_;
  const std::string_view only_;
  mutable bool has_asked_ = false;
};

int AskAll(const std::string& directory, int runs, std::string_view only) {
  LimitHeap(kHeapLimits);
  const FakeClock clock = ClockAt(UnixNs{kEnd.value + kNsPerMinute});
  Metrics metrics;
  const auto store = store::SqliteStore::Open(directory, Options(), clock, metrics).value();
  // An earlier build may have made the store. Readers see nothing until a writer has brought it up to date.
  for (uint32_t shard = 0; shard < kShards; ++shard) TRIBUTARY_CHECK(store->OpenWriter(shard).ok());
  const auto symbols = SymbolStore::Open({.directory = directory + "/symbols"}, clock, metrics).value();
  PutSymbols(*symbols);
  K8sNameRules rules;
  AttributeNames names;
  MetadataStore metadata(MetadataStore::Options{}, rules, names, clock, metrics);
  const ResourceJoiner joiner(metadata, rules, names, {}, metrics);
  QueryEngine engine(*store, *symbols, {}, &joiner, kShards - 1);
  const Asker asker(engine, runs, only);
  HeapTrimmer trimmer({}, metrics.AddCounter("trims", ""));  // a reducer's trims a few seconds after a query
  // The first question loads the tries and the symbols, which stay in memory.
  const auto first = engine.QueryFlameGraph({.selector = {}, .range = {kBegin, kEnd}}, 5000);
  TRIBUTARY_CHECK(first.ok() && first->total_counts.front() > 0);
  const auto trim = [&] {
    trimmer.Note();
    trimmer.Tick();
  };
  trim();
  const int64_t before = StatusKib("VmRSS:");
  asker.FlameGraph("all", "{}");
  asker.FlameGraph("node", fmt::format("{{node_id=\"{}\"}}", NodeId(8)));
  asker.FlameGraph("host", "{host_name=\"host-8\"}");
  asker.FlameGraph("service", "{service_name=\"service-16\"}");
  asker.FlameGraph("command", "{process_command=~\"cc1.*\"}");
  asker.FlameGraph("container", fmt::format("{{container_id=\"{}\"}}", ContainerId(8, (8 * 7 + 11) % kServices)));
  asker.Ask("series", "{}", [&](const QueryRequest& request) {
    const auto series = engine.QuerySeries(request, 1000);
    TRIBUTARY_CHECK(series.ok());
    return series->hosts.size();
  });
  asker.Ask("labels", "{}", [&](const QueryRequest& request) { return engine.QueryLabels(request).value().size(); });
  if (!asker.has_asked()) {
    fmt::print(stderr, "query_bench: there is no question {}\n", only);
    return 2;
  }
  trim();
  fmt::print("{{\"rss_before_kib\": {}, \"rss_after_kib\": {}, \"rss_peak_kib\": {}}}\n", before, StatusKib("VmRSS:"),
             StatusKib("VmHWM:"));
  return 0;
}

}  // namespace
}  // namespace tributary

int main(int argc, char** argv) {
  const std::string_view command = argc > 1 ? argv[1] : "";
  if (command == "fill" && argc == 6) {
    return tributary::Fill(argv[2], std::atoi(argv[3]), std::atoll(argv[4]), std::strtoull(argv[5], nullptr, 10));
  }
  if (command == "ask" && (argc == 4 || argc == 5)) {
    return tributary::AskAll(argv[2], std::atoi(argv[3]), argc == 5 ? argv[4] : "");
  }
  if (command == "schema" && argc == 2) {
    fmt::print("{}\n", tributary::store::kShardSchema);
    return 0;
  }
  fmt::print(stderr,
             "query_bench schema | query_bench fill DIR NODES SAMPLES SEED | query_bench ask DIR RUNS [QUESTION]\n");
  return 2;
}
