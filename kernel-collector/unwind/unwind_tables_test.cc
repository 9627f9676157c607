#include "kernel-collector/unwind/unwind_tables.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

#include "kernel-collector/probes/fake_unwind_maps_testing.h"
#include "kernel-collector/unwind/unwind_testing.h"

namespace tributary {
namespace {

constexpr uint64_t kUnit = UnwindTables::kUnitBytes;

class UnwindTablesTest : public testing::Test {
 protected:
  void SetUp() override { Make(); }
  void Make() {
    tables.reset();
    maps.chunks.clear();
    for (auto span : {maps.rules(), maps.pages(), maps.touches()}) std::ranges::fill(span, 0);
    tables = std::make_unique<UnwindTables>(maps, executor, clock, metrics, options, compiler);
  }
  void Settle() {
    do {
      tables->Tick();
    } while (executor.RunAll() > 0);
  }
  void Load(const CodeFilePtr& file, uint64_t address) {
    tables->Request(file, address);
    Settle();
  }
  // Returns the rule that the walk in the kernel finds.
  std::optional<uint64_t> InKernel(const CodeFilePtr& file, uint64_t address) {
    uint32_t page = *tables->FirstPage(file) + static_cast<uint32_t>(address >> TRIB_PAGE_SHIFT);
    uint64_t entry = maps.pages()[page];
    if ((entry & TRIB_PAGE_LOADED) == 0) return std::nullopt;
    return maps.Rule(entry, address % TRIB_PAGE_BYTES);
  }
  bool HasMetric(std::string_view line) { return metrics.PrometheusText().find(line) != std::string::npos; }

  FakeUnwindMaps maps;
  FakeExecutor executor;
  FakeClock clock;
  Metrics metrics;
  UnwindTables::Options options;
  std::shared_ptr<FakeCompiler> compiler = std::make_shared<FakeCompiler>();
  std::unique_ptr<UnwindTables> tables;
};

TEST_F(UnwindTablesTest, BeginsWithAChunk) {
  EXPECT_EQ(tables->memory_bytes(), 8u << 20);
  EXPECT_TRUE(tables->idle());
}

TEST_F(UnwindTablesTest, HasOneTablePerIdentity) {
  auto a = MakeCodeFile("a", 0x401000, 0x5000), again = MakeCodeFile("a", 0x401000, 0x5000);
  auto b = MakeCodeFile("b", 0x401000, 0x5000);
  uint32_t first = *tables->FirstPage(a);
  EXPECT_EQ(tables->FirstPage(again), first);
  EXPECT_EQ(a->unwind_table, again->unwind_table);
  EXPECT_NE(tables->FirstPage(b), first);
  // The table's entries begin at number 0, but its addresses do not.
  EXPECT_EQ(first + 0x401, 0u);
}

TEST_F(UnwindTablesTest, NoCodeHasNoTable) {
  auto file = MakeCodeFile("a", 0x1000, 0x1000);
  file->segments[0].executable = false;
  EXPECT_EQ(tables->FirstPage(file), std::nullopt);
  EXPECT_TRUE(HasMetric("unwind_executables_refused_total 0"));
  file->segments = {{0, 0x1000, UINT64_MAX - 0x100, 0x1000, true}, {0, 0x1000, UINT64_MAX - 0xfff, 0x1000, true}};
  EXPECT_EQ(tables->FirstPage(file), std::nullopt);
}

TEST_F(UnwindTablesTest, TooMuchCodeHasNoTableAndIsCounted) {
  auto file = MakeCodeFile("a", 0x1000, 0x1000);
  file->segments = {{0, 0x1000, 0, 0x1000, true}, {0, 0x1000, 1ull << 46, 0x1000, true}};
  EXPECT_EQ(tables->FirstPage(file), std::nullopt);
  EXPECT_TRUE(HasMetric("unwind_executables_refused_total 1"));
}

TEST_F(UnwindTablesTest, LoadsAUnitWhenItIsWanted) {
  auto file = MakeCodeFile("a", 0x401000, 2 * kUnit);
  uint64_t address = 0x401234;
  EXPECT_EQ(tables->Find(*file, address), std::nullopt);
  uint64_t before = tables->publications();
  tables->Request(file, address);
  EXPECT_FALSE(tables->idle());
  Settle();
  EXPECT_TRUE(tables->idle());
  EXPECT_GT(tables->publications(), before);
  EXPECT_EQ(tables->Find(*file, address), FakeRule(file->id, address));
  EXPECT_EQ(InKernel(file, address), FakeRule(file->id, address));
  EXPECT_EQ(tables->Find(*file, 0x401000 + kUnit), std::nullopt) << "the next unit";
  EXPECT_EQ(tables->Find(*file, 0x400fff), uint64_t{TRIB_RULE_NONE}) << "outside";
  Load(file, address);
  EXPECT_EQ(compiler->requests.size(), 1u);
  EXPECT_EQ(compiler->requests[0].range, (AddressRange{0x401000, 0x401000 + kUnit}));
  EXPECT_TRUE(HasMetric("unwind_units_loaded_total 1"));
}

TEST_F(UnwindTablesTest, TheHottestUnitComesFirst) {
  auto file = MakeCodeFile("a", 0, 8 * kUnit);
  for (uint64_t unit : {0, 1, 2, 3, 2, 2, 3}) tables->Request(file, unit * kUnit + 5);
  tables->Tick();
  EXPECT_EQ(executor.waiting(), 2u) << "no more at a time";
  Settle();
  ASSERT_EQ(compiler->requests.size(), 4u);
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(compiler->requests[i].range.begin / kUnit, (std::vector<uint64_t>{2, 3, 0, 1})[i]);
  }
}

TEST_F(UnwindTablesTest, CompilingKeepsToItsBudget) {
  compiler->cpu_ns = 2 * kNsPerSecond;
  auto file = MakeCodeFile("a", 0, 8 * kUnit);
  for (uint64_t unit = 0; unit < 8; ++unit) tables->Request(file, unit * kUnit);
  Settle();
  EXPECT_EQ(compiler->requests.size(), 3u);  // their cost is known afterwards: 3 s in debt
  clock.Advance(4 * kNsPerSecond);           // 0.8 s
  Settle();
  EXPECT_EQ(compiler->requests.size(), 3u);
  clock.Advance(12 * kNsPerSecond);
  Settle();
  EXPECT_EQ(compiler->requests.size(), 5u);
  EXPECT_FALSE(tables->idle());
  EXPECT_TRUE(HasMetric("unwind_compile_seconds_total 10"));
}

TEST_F(UnwindTablesTest, UsesFramePointersForAWhileAfterAFailure) {
  compiler->status = absl::NotFoundError("gone");
  auto file = MakeCodeFile("a", 0, 100);
  Load(file, 5);
  EXPECT_EQ(tables->Find(*file, 5), uint64_t{TRIB_RULE_NONE});
  compiler->status = absl::OkStatus();
  clock.Advance(options.retry_ns - 1);
  Load(file, 5);
  EXPECT_EQ(tables->Find(*file, 5), uint64_t{TRIB_RULE_NONE});
  clock.Advance(1);
  Settle();
  EXPECT_EQ(tables->Find(*file, 5), std::nullopt);
  Load(file, 5);
  EXPECT_EQ(tables->Find(*file, 5), FakeRule(file->id, 5));
  EXPECT_TRUE(HasMetric("unwind_units_failed_total 1"));
}

TEST_F(UnwindTablesTest, PublishesTheWholeFileWithoutUnwindInformation) {
  compiler->kind = UnwindSource::Kind::kNone;
  auto file = MakeCodeFile("a", 0, 3 * kUnit);
  tables->Request(file, kUnit);
  Load(file, 2 * kUnit);
  for (uint64_t unit = 0; unit < 3; ++unit) EXPECT_EQ(InKernel(file, unit * kUnit + 1), uint64_t{TRIB_RULE_NONE});
  size_t requests = compiler->requests.size();
  Load(file, 0);
  EXPECT_EQ(compiler->requests.size(), requests);
  EXPECT_TRUE(tables->idle());
}

TEST_F(UnwindTablesTest, TooManyRowsForAUnitAreAFailure) {
  compiler->row_bytes = 4;
  compiler->rule = [](uint64_t address) { return TRIB_RULE_SP | address % 512 << 8; };
  auto file = MakeCodeFile("a", 0, kUnit);
  Load(file, 0);
  EXPECT_EQ(tables->Find(*file, 8), uint64_t{TRIB_RULE_NONE});
  EXPECT_TRUE(HasMetric("unwind_units_failed_total 1"));
  EXPECT_TRUE(tables->idle());
}

TEST_F(UnwindTablesTest, SkipsAFileWithoutUsers) {
  auto file = MakeCodeFile("a", 0, 100);
  tables->Request(file, 0);
  file.reset();
  Settle();
  EXPECT_TRUE(tables->idle());
  EXPECT_TRUE(compiler->requests.empty());
  file = MakeCodeFile("a", 0, 100);
  Load(file, 0);
  EXPECT_EQ(tables->Find(*file, 0), FakeRule(file->id, 0));
}

TEST_F(UnwindTablesTest, KnowsWhereThreadsStart) {
  compiler->starts = {{0x100, 0x110}, {0x200, 0x220}};
  auto file = MakeCodeFile("a", 0, 0x1000);
  EXPECT_FALSE(tables->IsStart(*file, 0x100));
  Load(file, 0);
  EXPECT_TRUE(tables->IsStart(*file, 0x100));
  EXPECT_TRUE(tables->IsStart(*file, 0x21f));
  for (uint64_t address : {0xff, 0x110, 0x1ff, 0x220}) EXPECT_FALSE(tables->IsStart(*file, address));
}

TEST_F(UnwindTablesTest, RequestsAreCapped) {
  std::vector<CodeFilePtr> files;
  for (size_t i = 0; i <= UnwindTables::kQueueMax; ++i) {
    files.push_back(MakeCodeFile(fmt::format("{}", i), 0, 100));
    tables->Request(files.back(), 0);
  }
  EXPECT_TRUE(HasMetric("unwind_requests_refused_total 1"));
  compiler->row_bytes = 4096;
  Settle();
  EXPECT_EQ(compiler->requests.size(), UnwindTables::kQueueMax);
}

TEST_F(UnwindTablesTest, GrowsByChunksUpToItsLimit) {
  options.memory_bytes_max = 24u << 20;
  Make();
  std::vector<CodeFilePtr> files;
  for (int i = 0; i < 64; ++i) {  // 128 Ki rows each: 16 files per chunk
    files.push_back(MakeCodeFile(fmt::format("{}", i), 0, kUnit));
    Load(files.back(), 0);
    clock.Advance(kNsPerSecond);
    EXPECT_EQ(tables->memory_bytes(), std::min<uint64_t>(3, 1 + i / 16) * TRIB_CHUNK_BYTES) << i;
  }
  EXPECT_TRUE(tables->idle());
  EXPECT_EQ(tables->Find(*files[0], 0), std::nullopt) << "the oldest went";
  EXPECT_EQ(tables->Find(*files[63], 0), FakeRule(files[63]->id, 0));
}

TEST_F(UnwindTablesTest, WorksWhenTheKernelRefusesChunks) {
  maps.chunks_max = 2;
  Make();
  std::vector<CodeFilePtr> files;
  for (int i = 0; i < 40; ++i) {
    files.push_back(MakeCodeFile(fmt::format("{}", i), 0, kUnit));
    Load(files.back(), 0);
    EXPECT_EQ(tables->Find(*files.back(), 0), FakeRule(files.back()->id, 0)) << i;
  }
  EXPECT_TRUE(HasMetric("unwind_chunks_refused_total 1"));
}

TEST_F(UnwindTablesTest, TriesAgainLaterIfTheSystemHasNoMemoryForAUnit) {
  int failed = 0;
  for (bool* has_memory : {&maps.has_memory, &maps.has_memory_for_rules}) {
    Make();
    auto file = MakeCodeFile("a", 0, kUnit);
    *has_memory = false;
    Load(file, 0);
    EXPECT_EQ(InKernel(file, 0).has_value(), maps.has_memory) << "NONE, if it can be written";
    EXPECT_EQ(tables->Find(*file, 0), uint64_t{TRIB_RULE_NONE}) << "no sample waits for it";
    EXPECT_TRUE(HasMetric(fmt::format("unwind_units_failed_total {}", ++failed)));
    EXPECT_TRUE(HasMetric("unwind_rules_refused_total 0"));
    EXPECT_TRUE(HasMetric("unwind_rows 0"));
    EXPECT_TRUE(tables->idle());
    *has_memory = true;
    Load(file, 0);
    EXPECT_EQ(tables->Find(*file, 0), uint64_t{TRIB_RULE_NONE});
    clock.Advance(options.retry_ns);
    Settle();
    Load(file, 0);
    EXPECT_EQ(InKernel(file, 0), FakeRule(file->id, 0));
  }
}

TEST_F(UnwindTablesTest, TriesAgainLaterIfTheSystemHasNoMemoryForAFileWithoutUnwindInformation) {
  compiler->kind = UnwindSource::Kind::kNone;
  auto file = MakeCodeFile("a", 0, 3 * kUnit);
  maps.has_memory = false;
  Load(file, kUnit);
  EXPECT_EQ(InKernel(file, kUnit), std::nullopt);
  EXPECT_EQ(tables->Find(*file, kUnit), uint64_t{TRIB_RULE_NONE});
  EXPECT_EQ(tables->Find(*file, 0), std::nullopt) << "it was not requested";
  EXPECT_TRUE(HasMetric("unwind_units_failed_total 1"));
  EXPECT_TRUE(HasMetric("unwind_units_loaded_total 0"));
  EXPECT_TRUE(tables->idle());
  maps.has_memory = true;
  clock.Advance(options.retry_ns);
  Settle();
  EXPECT_EQ(tables->Find(*file, kUnit), std::nullopt);
  Load(file, kUnit);
  for (uint64_t unit = 0; unit < 3; ++unit) EXPECT_EQ(InKernel(file, unit * kUnit), uint64_t{TRIB_RULE_NONE}) << unit;
  EXPECT_EQ(compiler->requests.size(), 2u);
  EXPECT_TRUE(HasMetric("unwind_units_failed_total 1"));
  EXPECT_TRUE(HasMetric("unwind_units_loaded_total 1"));
}

TEST_F(UnwindTablesTest, UnitsInUseStay) {
  options.memory_bytes_max = 8u << 20;
  Make();
  auto hot = MakeCodeFile("hot", 0, kUnit);
  Load(hot, 0);
  uint32_t hot_page = *tables->FirstPage(hot);
  std::vector<CodeFilePtr> files;
  for (int i = 0; i < 64; ++i) {
    maps.touches()[hot_page >> TRIB_TOUCH_SHIFT] = 1;  // by the walk in the kernel
    clock.Advance(kNsPerSecond);
    files.push_back(MakeCodeFile(fmt::format("{}", i), 0, kUnit));
    Load(files.back(), 0);
    ASSERT_EQ(InKernel(hot, 77), FakeRule(hot->id, 77)) << i;
  }
  EXPECT_EQ(tables->memory_bytes(), TRIB_CHUNK_BYTES);
}

TEST_F(UnwindTablesTest, ReusesPageEntriesOfUnusedTables) {
  std::vector<CodeFilePtr> files;
  constexpr uint64_t kBytes = 256 * kUnit;  // half of all page entries
  for (int i = 0; i < 4; ++i) files.push_back(MakeCodeFile(fmt::format("{}", i), 0, kBytes));
  auto a = tables->Reserve(files[0]);
  ASSERT_TRUE(a);
  Load(files[0], 5);
  EXPECT_TRUE(tables->FirstPage(files[1]));
  Load(files[1], 5);
  EXPECT_TRUE(tables->FirstPage(files[2]));
  EXPECT_EQ(tables->Find(*files[1], 5), std::nullopt) << "its entries went";
  EXPECT_EQ(tables->Find(*files[2], 5), std::nullopt);
  EXPECT_EQ(InKernel(files[2], 5), std::nullopt);
  EXPECT_EQ(tables->Find(*files[0], 5), FakeRule(files[0]->id, 5));
  ASSERT_TRUE(tables->Reserve(files[2]));
  EXPECT_EQ(tables->FirstPage(files[3]), std::nullopt);
  EXPECT_TRUE(HasMetric("unwind_executables_refused_total 1"));
  tables->Release(a->number);
  EXPECT_TRUE(tables->FirstPage(files[3]));
  EXPECT_EQ(tables->Find(*files[0], 5), std::nullopt);
}

// Reads entries and rows like walks on other CPUs may: until a grace period after they read an entry.
class WatchedMaps : public FakeUnwindMaps {
 public:
  absl::Status WaitGrace() override {
    Check();
    seen.clear();
    return FakeUnwindMaps::WaitGrace();
  }
  void Check() {
    for (const Seen& s : seen) ASSERT_EQ(Rule(s.entry, s.offset), s.rule);
  }
  struct Seen {
    uint64_t entry;
    uint32_t offset;
    uint64_t rule;
  };
  std::vector<Seen> seen;
};

TEST(UnwindTablesChurn, ALookUpIsRightOrNotLoadedAndNothingIsReusedBeforeAGrace) {
  for (uint32_t seed = 1; seed <= 2; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    WatchedMaps maps;
    StepExecutor executor;
    FakeClock clock;
    Metrics metrics;
    auto compiler = std::make_shared<FakeCompiler>();
    UnwindTables::Options options;
    options.memory_bytes_max = 8u << 20;
    UnwindTables tables(maps, executor, clock, metrics, options, compiler);
    std::vector<CodeFilePtr> files;
    for (int i = 0; i < 40; ++i) {
      files.push_back(MakeCodeFile(fmt::format("{}", i), 0x1000 * (random() % 9), kUnit * (1 + random() % 10) / 4));
    }
    int right = 0, absent = 0;
    // Pages that a CPU remembers rules of, with the number of withdrawals at that time.
    std::map<uint32_t, int> remembered;
    for (int step = 0; step < 2000; ++step) {
      const CodeFilePtr& file = files[random() % files.size()];
      const ElfSegment& segment = file->segments[0];
      uint64_t address = segment.address + random() % segment.memory_size;
      switch (random() % 6) {
        case 0:
        case 1:
          tables.Request(file, address);
          break;
        case 2:
          clock.Advance(static_cast<int64_t>(random() % kNsPerSecond));
          tables.Tick();
          break;
        default:
          executor.RunOne();
          break;
      }
      maps.Check();
      uint32_t page = *tables.FirstPage(file) + static_cast<uint32_t>(address >> TRIB_PAGE_SHIFT);
      uint64_t entry = maps.pages()[page];
      auto found = tables.Find(*file, address);
      ASSERT_EQ(found.has_value(), (entry & TRIB_PAGE_LOADED) != 0);
      const auto [known, is_new] = remembered.try_emplace(page, maps.withdrawals);
      if (!found) {
        ASSERT_TRUE(is_new || known->second < maps.withdrawals) << "the rule of an entry taken back is still believed";
        remembered.erase(known);
        ++absent;
        continue;
      }
      ++right;
      known->second = maps.withdrawals;
      ASSERT_EQ(*found, FakeRule(file->id, address));
      if (maps.seen.size() < 50) maps.seen.push_back({entry, static_cast<uint32_t>(address % TRIB_PAGE_BYTES), *found});
    }
    EXPECT_GT(right, 200);
    EXPECT_GT(absent, 200);
    EXPECT_GT(maps.graces, 10);
    EXPECT_EQ(tables.memory_bytes(), TRIB_CHUNK_BYTES);
  }
}

}  // namespace
}  // namespace tributary
