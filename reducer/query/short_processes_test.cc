#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "reducer/query/peak_testing.h"
#include "reducer/query/resource_query_testing.h"
#include "reducer/query/selection.h"
#include "reducer/store/memory_reader.h"

namespace tributary {
namespace {

using ::testing::HasSubstr;

// What a process may cost a query if 50 million of them may cost 256 MiB.
constexpr size_t kBytesPer50MillionProcesses = 256u << 20;
constexpr size_t BytesOf(size_t processes) { return processes * kBytesPer50MillionProcesses / 50'000'000; }

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
  absl::StatusOr<std::vector<store::ProcessRow>> Processes(store::TimeRange, const store::ProcessSet*) override {
    return Error(absl::StatusCode::kInternal, "processes were described");
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

  size_t texts_read = 0;
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

class ShortProcessesTest : public ResourceQueryTest {
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
  const int64_t before = StartPeak();
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
