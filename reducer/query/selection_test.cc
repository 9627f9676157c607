#include "reducer/query/selection.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "base/heap.h"
#include "base/status.h"
#include "reducer/query/resource_query_testing.h"
#include "reducer/store/memory_reader.h"

namespace tributary {
namespace {

using ::testing::HasSubstr;

// What a process may cost a query if 50 million of them may cost 256 MiB.
constexpr size_t kBytesPer50MillionProcesses = 256u << 20;
constexpr size_t BytesOf(size_t processes) { return processes * kBytesPer50MillionProcesses / 50'000'000; }

// Returns the largest memory since the last call of StartPeak.
int64_t PeakMib() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmHWM:")) return std::stoll(line.substr(6)) / 1024;
  }
  return 0;
}

int64_t StartPeak() {
  TrimHeap();
  std::ofstream("/proc/self/clear_refs") << "5" << std::flush;
  return PeakMib();
}

// Evaluates every matcher for every process, as its row describes it.
class NaiveSelection {
 public:
  NaiveSelection(const Selector& selector, const ResourceJoiner* joiner, store::TimeRange range)
      : selector_(selector), joiner_(joiner), range_(range) {}

  bool Has(const store::ProcessRow& process, const store::ThreadRow& thread, UnixNs at) const {
    for (const Selector::Matcher& matcher : selector_.matchers()) {
      if (!matcher.Holds(Value(matcher, process, thread, at))) return false;
    }
    return true;
  }

 private:
  std::string Value(const Selector::Matcher& matcher, const store::ProcessRow& process, const store::ThreadRow& thread,
                    UnixNs at) const {
    const std::optional<Label> label = FindLabel(matcher.label);
    if (label && IsThreadLabel(*label)) return LabelValue(*label, thread);
    if (label && (joiner_ == nullptr || !IsHostLabel(*label))) return LabelValue(*label, process);
    if (joiner_ == nullptr) return "";
    const ResourceStates states = joiner_->Join(process, range_);
    for (const Attribute& attribute : ResourceAt(states, at)->attributes) {
      if (IsNormalizedAs(attribute.key, matcher.label)) return attribute.value;
    }
    return "";
  }

  const Selector& selector_;
  const ResourceJoiner* const joiner_;
  const store::TimeRange range_;
};

class SelectionTest : public ResourceQueryTest {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(ResourceQueryTest::SetUp());
    store_.shards[0].processes.clear();
    store_.shards[0].threads.clear();
  }

  template <typename T>
  const T& Pick(const std::vector<T>& from) {
    return from[random_() % from.size()];
  }

  void AddRandomProcesses(int count) {
    store::FakeShard& shard = store_.shards[0];
    for (int i = 0; i < count; ++i) {
      store::ProcessRow row;
      no_ += 1 + static_cast<uint32_t>(random_() % 3 == 0 ? random_() % 1'000'000 : 0);
      row.no = store::ProcessNo{no_};
      const int node = static_cast<int>(random_() % 4);
      row.node_id = fmt::format("node-{}", node);
      row.host_name = fmt::format("host-{}", node / 2);
      row.pid = Pid{static_cast<int32_t>(random_() % 5)};
      row.parent = Pid{static_cast<int32_t>(1 + random_() % 2)};
      row.comm = Pick<std::string>({"", "web", "kworker/3:1", "kworker/u9:0", "s\xff"});
      row.executable_path = Pick<std::string>({"", "/usr/bin/web", "/opt/web", "/opt/", "/usr/bin/db"});
      row.container_id = Pick<std::string>({"", "", "c0ffee", kContainer});
      if (row.container_id == kContainer) row.cgroup_path = std::string("/kubepods/pod") + kPodUid + "/" + kContainer;
      row.attributes = Pick<std::string>({"", "tier=gold", "service.name=pay,tier=silver", "host.name=liar"});
      row.as_of = kStart;
      shard.processes.push_back(row);
      shard.threads.push_back({store::ThreadNo{no_}, row.no, Tid{i}, Pick<std::string>({"main", "worker", "gc"})});
      for (int s = 0; s < 2; ++s) {
        shard.samples.push_back({.time = At(static_cast<int64_t>(random_() % 60) * kNsPerSecond),
                                 .process = row.no,
                                 .thread = store::ThreadNo{no_},
                                 .node = work_,
                                 .value = 1 + random_() % 1000,
                                 .node_id = row.node_id});
      }
    }
    // The store lost the descriptions of these.
    shard.samples.push_back({At(5), store::ProcessNo{no_ + 7}, store::ThreadNo{no_ + 7}, work_, 3, 1});
  }

  std::string RandomSelector() {
    static const std::vector<std::pair<std::string, std::vector<std::string>>> kLabels = {
        {"node_id", {"node-1", "node-.*", ""}},
        {"host_name", {"host-1", "host-0", "liar", ""}},
        {"host_id", {"node-2", ".*"}},
        {"process_pid", {"3", "[12]", ""}},
        {"process_command", {"web", "k.*", "s.", ""}},
        {"process_executable_name", {"web", "", "d.*"}},
        {"process_executable_path", {"/opt/.*", ""}},
        {"container_id", {"c0ffee", "", "4.*"}},
        {"service_name", {"pay", "web", "kworker.*", ""}},
        {"tier", {"gold", "", ".*l.*"}},
        {"k8s_pod_label_version", {"1", "2", ""}},
        {"k8s_namespace_name", {"shop", ""}},
        {"thread_name", {"main", "w.*"}},
        {"thread_id", {"[0-9]", "3"}}};
    std::string text = "{";
    for (size_t i = 0, most = 1 + random_() % 3; i < most; ++i) {
      const auto& [label, values] = Pick(kLabels);
      text += fmt::format("{}{}{}\"{}\"", i == 0 ? "" : ",", label, Pick<std::string>({"=", "!=", "=~", "!~"}),
                          Pick(values));
    }
    return text + "}";
  }

  uint64_t NaiveTotal(const QueryRequest& request, const ResourceJoiner* joiner) {
    const store::FakeShard& shard = store_.shards[0];
    const NaiveSelection selection(request.selector, joiner, request.range);
    const bool uses_threads = request.selector.Uses("thread_name") || request.selector.Uses("thread_id");
    uint64_t total = 0;
    for (const store::FakeShard::Sample& sample : shard.samples) {
      store::ProcessRow process;
      store::ThreadRow thread;
      for (const store::ProcessRow& row : shard.processes) {
        if (row.no == sample.process) process = row;
      }
      for (const store::ThreadRow& row : shard.threads) {
        if (row.no == sample.thread) thread = row;
      }
      const UnixNs at = uses_threads ? sample.time : MiddleOf(kStart);
      // The samples of a process without a description have no resource.
      if (selection.Has(process, thread, at)) total += sample.value;
    }
    return total;
  }

  std::mt19937_64 random_{23};
  uint32_t no_ = 0;
};

TEST_F(SelectionTest, SelectsTheSameAsTheNaiveSelection) {
  ReportPod("1", kStart);
  ReportPod("2", At(20 * kNsPerSecond));
  AddRandomProcesses(80);
  // A process without a description has no attributes, not even those of an empty place.
  store_.shards[0].samples.pop_back();
  int selected = 0;
  for (int i = 0; i < 300; ++i) {
    const std::string text = RandomSelector();
    const QueryRequest request = Request(text);
    for (const bool has_metadata : {false, true}) {
      QueryEngine engine(store_, *symbols_, {}, has_metadata ? joiner_.get() : nullptr);
      const absl::StatusOr<FlameGraph> graph = engine.QueryFlameGraph(request, 100);
      if (absl::IsInvalidArgument(graph.status())) continue;  // without metadata, some labels are unknown
      ASSERT_TRUE(graph.ok()) << text << graph.status();
      const uint64_t expected = NaiveTotal(request, has_metadata ? joiner_.get() : nullptr);
      ASSERT_EQ(graph->total_values.at(0), expected) << text << (has_metadata ? " with metadata" : "");
      selected += expected != 0 ? 1 : 0;
    }
  }
  EXPECT_GT(selected, 100);
}

TEST_F(SelectionTest, ProcessesWithoutADescriptionHaveEmptyLabels) {
  AddRandomProcesses(1);
  store_.shards[0].samples.back().value = 1'000'000;
  EXPECT_GE(Total(R"({process_command!="none"})"), 1'000'000u);
  EXPECT_GE(Total(R"({node_id!="node-9"})"), 1'000'000u);
  EXPECT_LT(Total(R"({node_id=~".+"})"), 1'000'000u);
}

// A number late in the life of a store.
TEST_F(SelectionTest, OneProcessWithALargeNumberTakesLittleMemory) {
  AddProcess(store_.shards[0], 1'000'000'000, 300, "late", "");
  AddSample(1, 1'000'000'000, 1, work_, 7);
  const int64_t before = PeakMib();
  EXPECT_EQ(Total(R"({process_command="late"})"), 7u);
  EXPECT_LT(PeakMib() - before, 64) << "MiB";
}

// A shard with many short processes of three programs. Counts the texts that a query reads.
class ShortProcessesReader : public store::MemoryReader {
 public:
  ShortProcessesReader(store::MemoryShard shard, uint32_t processes, uint32_t texts)
      : store::MemoryReader(std::move(shard)), processes_(processes), texts_(texts) {}

  absl::StatusOr<std::map<store::MachineNo, store::MachineRow>> ListMachines() override {
    std::map<store::MachineNo, store::MachineRow> machines;
    if (lists_machine) machines[store::MachineNo{1}] = {"node-1", "host-1"};
    return machines;
  }
  absl::StatusOr<std::vector<store::ProcessRow>> Processes(store::TimeRange, const store::ProcessSet* only) override {
    if (only == nullptr) return Error(absl::StatusCode::kInternal, "all processes were described");
    described += only->size();
    return std::vector<store::ProcessRow>();
  }
  absl::Status ScanProcesses(store::TimeRange, const store::ProcessVisitor&) override {
    return Error(absl::StatusCode::kInternal, "all processes were described");
  }
  absl::Status ScanProcessIds(store::TimeRange, const store::ScanFilter& filter,
                              const store::ProcessIdsVisitor& visit) override {
    if (!filter.Has(store::MachineNo{1})) return absl::OkStatus();
    std::vector<store::ProcessIds> rows;
    for (uint32_t i = 0; i < processes_; ++i) {
      const store::StringId name{1 + i % texts_};
      rows.push_back({.no = store::ProcessNo{kFirst + i},
                      .machine = store::MachineNo{1},
                      .pid = Pid{1},
                      .parent = Pid{1},
                      .comm = name,
                      .executable_path = name,
                      .attributes = store::StringId{1 + i % places}});
      if (rows.size() < 4096 && i + 1 < processes_) continue;
      RETURN_IF_ERROR(visit(rows));
      rows.clear();
    }
    return absl::OkStatus();
  }
  absl::StatusOr<std::string_view> Text(store::StringId id) override {
    if (id.value != 0) ++texts_read;
    texts_read_[id.value] = fmt::format("program-{}=1", id.value);
    return texts_read_[id.value];
  }
  // Only sums are left.
  absl::StatusOr<UnixNs> RawFrom() override { return UnixNs{kStart.value + kNsPerDay}; }
  absl::Status ScanSums(store::TimeRange, const store::ScanFilter&, const store::SumVisitor& visit) override {
    store::SumColumns columns{.node_id = "node-1", .type = store::TypeNo{1}, .minute = kStart};
    for (uint32_t i = 0; i < processes_; ++i) {
      columns.processes.push_back(store::ProcessNo{kFirst + i});
      columns.nodes.push_back({});
      columns.values.push_back(1);
      columns.counts.push_back(1);
      if (columns.nodes.size() < 4096 && i + 1 < processes_) continue;
      RETURN_IF_ERROR(visit(columns));
      columns.processes.clear();
      columns.nodes.clear();
      columns.values.clear();
      columns.counts.clear();
    }
    return absl::OkStatus();
  }

  size_t texts_read = 0, described = 0;
  bool lists_machine = true;
  uint32_t places = 3;  // different attributes of processes

 private:
  static constexpr uint32_t kFirst = 3'000'000'000;
  const uint32_t processes_, texts_;
  std::map<uint32_t, std::string> texts_read_;
};

// Gives the same reader for each call, so that a test can look at what the query did.
class ShortProcessesStore : public store::FakeStore {
 public:
  ShortProcessesStore(uint32_t processes, uint32_t texts) : store::FakeStore{1}, processes_(processes), texts_(texts) {}

  absl::StatusOr<std::unique_ptr<store::StoreReader>> OpenReader(uint32_t) override {
    auto opened = std::make_unique<ShortProcessesReader>(store::MemoryShard(), processes_, texts_);
    reader = opened.get();
    return opened;
  }

  ShortProcessesReader* reader = nullptr;

 private:
  const uint32_t processes_, texts_;
};

class ShortProcessesTest : public SelectionTest {
 protected:
  static constexpr uint32_t kProcesses = 2'000'000;

  absl::StatusOr<Selection> Select(ShortProcessesReader& reader, ShortProcessesStore& store, const QueryLimits& limits,
                                   std::string_view selector) {
    request_ = Request(selector);
    auto resources = joins ? std::make_unique<ResourceCache>(*joiner_, request_.range) : nullptr;
    const QueryContext context{store, *symbols_, demangled_, request_, limits, std::move(resources), type_, 1};
    return Selection::Make(reader, context);
  }

  bool joins = false;  // processes with metadata

  DemangleCache demangled_;
  QueryRequest request_;
  SampleTypeInfo type_ = InfoOf(*FindSampleType(SampleType::kCpu));
};

TEST_F(ShortProcessesTest, ASelectorFitsIntoItsBytesPerProcess) {
  ShortProcessesStore store(kProcesses, 3);
  ShortProcessesReader reader(store::MemoryShard(), kProcesses, 3);
  const QueryLimits limits{.selection_bytes_max = BytesOf(kProcesses)};
  const int64_t before = PeakMib();
  const absl::StatusOr<Selection> selection = Select(reader, store, limits, R"({process_command=~"program-2.*"})");
  ASSERT_TRUE(selection.ok()) << selection.status();
  EXPECT_TRUE(selection->Has(store::ProcessNo{3'000'000'001}, kStart));
  EXPECT_FALSE(selection->Has(store::ProcessNo{3'000'000'002}, kStart));
  EXPECT_EQ(reader.texts_read, 3u);
  EXPECT_LT(PeakMib() - before, 64) << "MiB";
}

TEST_F(ShortProcessesTest, ASelectorOfAllReadsNoProcess) {
  ShortProcessesStore store(kProcesses, 3);
  ShortProcessesReader reader(store::MemoryShard(), kProcesses, 3);
  const absl::StatusOr<Selection> selection = Select(reader, store, {.selection_bytes_max = 0}, "{}");
  ASSERT_TRUE(selection.ok()) << selection.status();
  EXPECT_TRUE(selection->Has(store::ProcessNo{7}, kStart));
  EXPECT_FALSE(selection->filter().machines);
}

TEST_F(ShortProcessesTest, AMachineWithoutARowHasEmptyLabels) {
  ShortProcessesStore store(3, 3);
  ShortProcessesReader reader(store::MemoryShard(), 3, 3);
  reader.lists_machine = false;
  const store::ProcessNo second{3'000'000'001};
  const auto has = [&](std::string_view selector) {
    const absl::StatusOr<Selection> selection = Select(reader, store, {}, selector);
    return selection.ok() && selection->Has(second, kStart);
  };
  EXPECT_TRUE(has(R"({node_id!="node-2",process_command="program-2=1"})"));
  EXPECT_FALSE(has(R"({node_id!="node-2",process_command="program-1=1"})"));
  EXPECT_FALSE(has(R"({node_id="node-1",process_command="program-2=1"})"));
}

TEST_F(ShortProcessesTest, TooManyDifferentNamesAreRefusedWithAdvice) {
  ShortProcessesStore store(kProcesses, kProcesses);
  ShortProcessesReader reader(store::MemoryShard(), kProcesses, kProcesses);
  const absl::StatusOr<Selection> selection =
      Select(reader, store, {.selection_bytes_max = 1u << 20}, R"({process_command="program-2=1"})");
  EXPECT_EQ(selection.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(Message(selection.status()), HasSubstr("ask for a shorter time range, or for one node"));
  EXPECT_LT(reader.texts_read, 20'000u);  // refused early
}

// Containers of their own, with attributes that take 5 KB each when they are joined.
TEST_F(ShortProcessesTest, APlaceTakesFewBytes) {
  constexpr uint32_t kPlaces = 60'000;
  ShortProcessesStore store(kPlaces, kPlaces);
  ShortProcessesReader reader(store::MemoryShard(), kPlaces, 1);
  reader.places = kPlaces;
  joins = true;
  Attributes of_host;
  for (int i = 10; i < 40; ++i) of_host.push_back({fmt::format("host.label.{}", i), std::string(60, 'x')});
  metadata_->Take({false, "node-1"},
                  {.entities = {{.kind = EntityKind::kHost, .id = "node-1", .attributes = of_host}}});
  const int64_t before = StartPeak();
  const absl::StatusOr<Selection> selection = Select(reader, store, {}, R"({host_label_10=~"x*",program_9="1"})");
  ASSERT_TRUE(selection.ok()) << selection.status();
  EXPECT_TRUE(selection->Has(store::ProcessNo{3'000'000'008}, kStart));
  EXPECT_FALSE(selection->Has(store::ProcessNo{3'000'000'009}, kStart));
  const int64_t of_joiner = 6 * static_cast<int64_t>(ResourceJoiner::kPlacesKeptMax) / 1024;
  EXPECT_LT(PeakMib() - before, of_joiner + 64) << "MiB";

  const absl::Status refused = Select(reader, store, {.selection_bytes_max = 8u << 20}, R"({program_9="1"})").status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(Message(refused), HasSubstr("ask for a shorter time range, or for one node"));
}

TEST_F(ShortProcessesTest, LabelsReadEachDistinctTextOnce) {
  ShortProcessesStore store(kProcesses, 3);
  QueryEngine engine(store, *symbols_);
  const absl::StatusOr<std::vector<std::string>> labels = engine.QueryLabels(Request());
  ASSERT_TRUE(labels.ok()) << labels.status();
  EXPECT_THAT(*labels, ::testing::IsSupersetOf({"program-1", "program-2", "program-3"}));
}

TEST_F(ShortProcessesTest, SeriesAreRefusedWithAdviceOrDescribeTheLargest) {
  ShortProcessesStore store(kProcesses, 3);
  QueryEngine engine(store, *symbols_);
  const absl::StatusOr<SeriesList> refused = engine.QuerySeries(Request(), 100);
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(Message(refused.status()), HasSubstr("ask for a shorter time range or a narrower selector"));

  const uint32_t few = 10'000;
  ShortProcessesStore small(few, 3);
  QueryEngine small_engine(small, *symbols_);
  const absl::StatusOr<SeriesList> series = small_engine.QuerySeries(Request(), 100);
  ASSERT_TRUE(series.ok()) << series.status();
  EXPECT_TRUE(series->truncated);
  ASSERT_EQ(series->hosts.size(), 1u);
  EXPECT_EQ(series->hosts[0].value, few);
}

}  // namespace
}  // namespace tributary
