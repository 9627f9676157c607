#include "reducer/symbolizer/symbol_store.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <atomic>
#include <ctime>
#include <deque>
#include <filesystem>
#include <fstream>
#include <thread>

#include "base/directory_testing.h"
#include "symbols/symbol_builder.h"
#include "symbols/symbol_codec.h"

namespace tributary {
namespace {

using ::testing::HasSubstr;

ExecutableId Id(uint8_t n) {
  const uint8_t bytes[] = {n, 0xaa, 0xbb};
  return *ExecutableId::Make(ExecutableIdKind::kGnuBuildId, std::span<const uint8_t>(bytes));
}

std::shared_ptr<const SymbolTable> Table(uint8_t n, SymbolSource source = SymbolSource::kSymtab, int symbols = 3) {
  std::deque<std::string> names;
  std::vector<SymbolRange> ranges;
  for (int i = 0; i < symbols; ++i) {
    names.push_back("function_" + std::to_string(i));
    ranges.push_back(SymbolRange{0x1000u + 0x100u * static_cast<uint64_t>(i), 0x80, names.back()});
  }
  return BuildSymbolTable(Id(n), source, ranges);
}

class SymbolStoreTest : public ::testing::Test {
 protected:
  void Open(SymbolStore::Options options = {}) {
    if (options.directory.empty()) options.directory = directory_.path() + "/symbols";
    absl::StatusOr<std::unique_ptr<SymbolStore>> opened = SymbolStore::Open(options, clock_, metrics_);
    ASSERT_TRUE(opened.ok()) << opened.status();
    store_ = *std::move(opened);
  }
  void PutTable(const SymbolTable& table) {
    const auto kept = store_->Put(table.id(), EncodeSymbolTable(table), SymbolOrigin::kNode);
    ASSERT_TRUE(kept.ok()) << kept.status();
    clock_.Advance(kNsPerSecond);
  }
  uint64_t Uploads(const std::string& result) {
    return metrics_.AddCounter("tributary_symbolizer_uploads_total", "", {{"result", result}}).value();
  }
  uint64_t Evictions(const std::string& from) {
    return metrics_.AddCounter("tributary_symbolizer_evictions_total", "", {{"from", from}}).value();
  }
  std::vector<SymbolFiles::Row> List() {
    absl::StatusOr<std::vector<SymbolFiles::Row>> listed = store_->List();
    EXPECT_TRUE(listed.ok());
    return *listed;
  }

  const TestDirectory directory_;
  FakeClock clock_;
  Metrics metrics_;
  std::unique_ptr<SymbolStore> store_;
};

TEST_F(SymbolStoreTest, KeepsATable) {
  Open();
  EXPECT_EQ(store_->Get(Id(1)), nullptr);
  PutTable(*Table(1));
  std::shared_ptr<const SymbolTable> table = store_->Get(Id(1));
  ASSERT_NE(table, nullptr);
  ASSERT_TRUE(table->Find(0x1110));
  EXPECT_EQ(table->Find(0x1110)->name, "function_1");
  EXPECT_EQ(store_->Get(Id(1)), table);  // from memory
  EXPECT_EQ(store_->Get(Id(2)), nullptr);
  EXPECT_EQ(Uploads("stored"), 1u);
}

TEST_F(SymbolStoreTest, RefusesTablesOfOtherExecutables) {
  Open();
  std::string encoded = EncodeSymbolTable(*Table(1));
  EXPECT_EQ(store_->Put(Id(2), encoded, SymbolOrigin::kNode).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(store_->Put(ExecutableId(), encoded, SymbolOrigin::kNode).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(store_->Put(Id(1), "", SymbolOrigin::kNode).status().code(), absl::StatusCode::kInvalidArgument);
  uint64_t refused = 3;
  for (size_t size = 0; size < encoded.size(); size += 3) {
    EXPECT_FALSE(store_->Put(Id(1), std::string_view(encoded).substr(0, size), SymbolOrigin::kNode).ok()) << size;
    ++refused;
  }
  EXPECT_EQ(Uploads("refused"), refused);
  EXPECT_TRUE(List().empty());
  EXPECT_TRUE(store_->ShouldRequest(Id(1)));
}

TEST_F(SymbolStoreTest, BetterSourceReplacesAndWorseChangesNothing) {
  Open();
  PutTable(*Table(1, SymbolSource::kSymtab, 3));
  PutTable(*Table(1, SymbolSource::kDynsym, 9));
  EXPECT_EQ(store_->Get(Id(1))->function_count(), 3u);
  EXPECT_EQ(Uploads("kept_better"), 1u);
  PutTable(*Table(1, SymbolSource::kKallsyms, 2));
  EXPECT_EQ(store_->Get(Id(1))->function_count(), 2u);
  EXPECT_EQ(store_->Get(Id(1))->source(), SymbolSource::kKallsyms);
  ASSERT_EQ(List().size(), 1u);
  EXPECT_EQ(List()[0].header.functions, 2u);
}

// Two nodes were asked, because the first was silent for long. Both answer.
TEST_F(SymbolStoreTest, ASecondUploadOfATableIsNotStored) {
  SymbolStore::Options options;
  Open(options);
  EXPECT_TRUE(store_->ShouldRequest(Id(1), SymbolAsker{1}));
  clock_.Advance(options.demand.timeout_ns);
  EXPECT_TRUE(store_->ShouldRequest(Id(1), SymbolAsker{2}));
  PutTable(*Table(1));
  PutTable(*Table(1));
  EXPECT_EQ(Uploads("stored"), 1u);
  EXPECT_EQ(Uploads("kept_better"), 1u);
  EXPECT_EQ(List().size(), 1u);
  store_->demand().Release(SymbolAsker{2});
  EXPECT_FALSE(store_->ShouldRequest(Id(1), SymbolAsker{3})) << "it is here";
}

TEST_F(SymbolStoreTest, AsksOnceUntilTheTimeout) {
  SymbolStore::Options options;
  Open(options);
  EXPECT_FALSE(store_->ShouldRequest(ExecutableId()));
  EXPECT_TRUE(store_->ShouldRequest(Id(1)));
  EXPECT_FALSE(store_->ShouldRequest(Id(1)));
  clock_.Advance(options.demand.timeout_ns - 1);
  EXPECT_FALSE(store_->ShouldRequest(Id(1)));
  clock_.Advance(1);
  EXPECT_TRUE(store_->ShouldRequest(Id(1)));
  PutTable(*Table(1));
  clock_.Advance(100 * options.demand.timeout_ns);
  EXPECT_FALSE(store_->ShouldRequest(Id(1)));
}

TEST_F(SymbolStoreTest, AsksAgainLongAfterANodeHadNone) {
  SymbolStore::Options options;
  Open(options);
  EXPECT_TRUE(store_->ShouldRequest(Id(1)));
  store_->PutUnavailable(Id(1), "no sections\x1b[2J");
  clock_.Advance(options.demand.unavailable_ns - 1);
  EXPECT_FALSE(store_->ShouldRequest(Id(1)));
  clock_.Advance(1);
  EXPECT_TRUE(store_->ShouldRequest(Id(1)));
}

TEST_F(SymbolStoreTest, OpenRequestsAreBounded) {
  SymbolStore::Options options;
  Open(options);
  auto id = [](uint32_t n) {
    return *ExecutableId::Make(ExecutableIdKind::kGnuBuildId,
                               std::string_view(reinterpret_cast<const char*>(&n), sizeof(n)));
  };
  for (uint32_t n = 0; n < 65'536; ++n) ASSERT_TRUE(store_->ShouldRequest(id(n)));
  EXPECT_FALSE(store_->ShouldRequest(id(70'000)));
  EXPECT_EQ(metrics_.AddCounter("tributary_symbolizer_requests_deferred_total", "").value(), 1u);
  clock_.Advance(options.demand.timeout_ns);
  EXPECT_TRUE(store_->ShouldRequest(id(70'000)));
}

TEST_F(SymbolStoreTest, LimitsMappedTables) {
  SymbolStore::Options options;
  options.mapped_max = 2;
  Open(options);
  for (uint8_t n = 1; n <= 3; ++n) PutTable(*Table(n));
  std::shared_ptr<const SymbolTable> first = store_->Get(Id(1));
  std::shared_ptr<const SymbolTable> second = store_->Get(Id(2));
  EXPECT_EQ(store_->Get(Id(1)), first);
  store_->Get(Id(3));  // evicts 2
  EXPECT_EQ(store_->Get(Id(1)), first);
  std::shared_ptr<const SymbolTable> second_again = store_->Get(Id(2));
  EXPECT_NE(second_again, second);
  EXPECT_EQ(second_again->function_count(), second->function_count());
}

// Half of the directory's bytes are for tables, each with a page of overhead.
constexpr uint64_t BytesForTables(double tables, uint64_t stored_bytes) {
  return static_cast<uint64_t>(2 * tables * static_cast<double>(stored_bytes + 4096));
}

TEST_F(SymbolStoreTest, DiskHoldsTheMostRecentlyUsed) {
  Open();
  PutTable(*Table(1));
  SymbolStore::Options options;
  options.disk_bytes_max = BytesForTables(2.5, List()[0].stored_bytes);
  Open(options);
  PutTable(*Table(2));
  clock_.Advance(2 * 3600 * kNsPerSecond);  // a use is recorded once an hour
  store_->Get(Id(1));
  clock_.Advance(kNsPerSecond);
  PutTable(*Table(3));
  EXPECT_EQ(Evictions("disk"), 1u);
  EXPECT_NE(store_->Get(Id(1)), nullptr);
  EXPECT_EQ(store_->Get(Id(2)), nullptr);
  EXPECT_NE(store_->Get(Id(3)), nullptr);
  EXPECT_EQ(List().size(), 2u);
}

TEST_F(SymbolStoreTest, EvictsFlatFormsBeforeTablesAndMakesThemAgain) {
  Open();
  PutTable(*Table(1, SymbolSource::kSymtab, 2000));
  PutTable(*Table(2, SymbolSource::kSymtab, 2000));
  SymbolStore::Options options;
  options.disk_bytes_max = 2 * (Table(1, SymbolSource::kSymtab, 2000)->bytes().size() + 100);
  Open(options);
  EXPECT_EQ(Evictions("flat"), 1u);
  EXPECT_EQ(Evictions("disk"), 0u);
  for (uint8_t n = 1; n <= 2; ++n) {
    ASSERT_NE(store_->Get(Id(n)), nullptr);
    EXPECT_EQ(store_->Get(Id(n))->function_count(), 2000u);
  }
}

TEST_F(SymbolStoreTest, RefusesATableOverTheWholeCap) {
  SymbolStore::Options options;
  options.disk_bytes_max = 600;
  Open(options);
  EXPECT_EQ(store_->Put(Id(1), EncodeSymbolTable(*Table(1, SymbolSource::kSymtab, 2000)), SymbolOrigin::kNode)
                .status()
                .code(),
            absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(Uploads("no_room"), 1u);
  EXPECT_TRUE(List().empty());
}

// The first node that was asked sent invented names, and many of them.
TEST_F(SymbolStoreTest, AnUploadReplacesANodesTableWithMoreFunctions) {
  Open();
  PutTable(*Table(1, SymbolSource::kSymtab, 200));
  const auto kept = store_->Put(Id(1), EncodeSymbolTable(*Table(1, SymbolSource::kSymtab, 3)), SymbolOrigin::kUpload);
  ASSERT_TRUE(kept.ok()) << kept.status();
  EXPECT_TRUE(kept->stored);
  EXPECT_EQ(List()[0].origin(), SymbolOrigin::kUpload);
  EXPECT_EQ(store_->Get(Id(1))->function_count(), 3u);
}

TEST_F(SymbolStoreTest, NoNodeReplacesAnUpload) {
  Open();
  ASSERT_TRUE(
      store_->Put(Id(1), EncodeSymbolTable(*Table(1, SymbolSource::kDynsym, 3)), SymbolOrigin::kUpload)->stored);
  PutTable(*Table(1, SymbolSource::kDwarf, 200));
  EXPECT_EQ(List()[0].origin(), SymbolOrigin::kUpload);
  EXPECT_EQ(store_->Get(Id(1))->function_count(), 3u);
}

TEST_F(SymbolStoreTest, RanksOriginsBeforeNumbersOfFunctions) {
  Open();
  constexpr auto kDwarf = SymbolSource::kDwarf;
  const SymbolOrigin ascending[] = {SymbolOrigin::kNode, SymbolOrigin::kNodes, SymbolOrigin::kDebuginfod,
                                    SymbolOrigin::kDebugDirectory, SymbolOrigin::kUpload};
  int functions = 200;
  for (const SymbolOrigin origin : ascending) {
    ASSERT_TRUE(store_->Put(Id(1), EncodeSymbolTable(*Table(1, kDwarf, --functions)), origin)->stored);
    EXPECT_EQ(List()[0].origin(), origin);
  }
  for (const SymbolOrigin origin :
       {SymbolOrigin::kNode, SymbolOrigin::kNodes, SymbolOrigin::kDebuginfod, SymbolOrigin::kDebugDirectory}) {
    EXPECT_FALSE(store_->Put(Id(1), EncodeSymbolTable(*Table(1, kDwarf, 300)), origin)->stored);
  }
  EXPECT_EQ(List()[0].header.functions, static_cast<uint64_t>(functions));
}

TEST_F(SymbolStoreTest, AStrippedFileInADirectoryDoesNotHideDebugInformation) {
  Open();
  auto put = [&](SymbolSource source, SymbolOrigin origin) {
    return store_->Put(Id(1), EncodeSymbolTable(*Table(1, source, 9)), origin)->stored;
  };
  EXPECT_TRUE(put(SymbolSource::kDynsym, SymbolOrigin::kDebugDirectory));
  EXPECT_TRUE(put(SymbolSource::kDwarf, SymbolOrigin::kDebuginfod));
  EXPECT_FALSE(put(SymbolSource::kDynsym, SymbolOrigin::kDebugDirectory));
}

TEST_F(SymbolStoreTest, TheNewerOfTwoEqualUploadsIsKept) {
  Open();
  auto put = [&](const char* name) {
    const auto table = BuildSymbolTable(Id(1), SymbolSource::kSymtab, {{0x1000, 0x80, name}});
    return store_->Put(Id(1), EncodeSymbolTable(*table), SymbolOrigin::kUpload)->stored;
  };
  EXPECT_TRUE(put("wrong"));
  EXPECT_TRUE(put("right"));
  EXPECT_FALSE(put("right"));
  EXPECT_EQ(store_->Get(Id(1))->Find(0x1000)->name, "right");
}

TEST_F(SymbolStoreTest, TwoNodesWithTheSameTableAgree) {
  Open();
  const std::string encoded = EncodeSymbolTable(*Table(1));
  auto put = [&](const char* node) {
    return store_->Put(Id(1), encoded, SymbolOrigin::kNode, {.node_id = node, .version = "1.0"})->stored;
  };
  EXPECT_TRUE(put("a"));
  EXPECT_FALSE(put("a"));
  EXPECT_EQ(List()[0].origin(), SymbolOrigin::kNode) << "a node cannot agree with itself";
  EXPECT_FALSE(put("b"));
  EXPECT_EQ(List()[0].origin(), SymbolOrigin::kNodes);
  store_.reset();
  Open();
  EXPECT_EQ(List()[0].origin(), SymbolOrigin::kNodes);
  EXPECT_EQ(List()[0].notes().nodes, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(List()[0].notes().version, "1.0");
  ASSERT_NE(store_->Get(Id(1)), nullptr);
  EXPECT_FALSE(store_->Put(Id(1), EncodeSymbolTable(*Table(1, SymbolSource::kDwarf, 99)), SymbolOrigin::kNode)->stored);
}

TEST_F(SymbolStoreTest, ARemovedTableMayBeRequestedAgain) {
  Open();
  EXPECT_TRUE(absl::IsNotFound(store_->Remove(Id(1))));
  EXPECT_TRUE(store_->ShouldRequest(Id(1)));
  PutTable(*Table(1));
  EXPECT_NE(store_->Get(Id(1)), nullptr);
  EXPECT_FALSE(store_->ShouldRequest(Id(1)));
  EXPECT_TRUE(store_->Remove(Id(1)).ok());
  EXPECT_EQ(store_->Get(Id(1)), nullptr);
  EXPECT_TRUE(List().empty());
  EXPECT_TRUE(store_->ShouldRequest(Id(1)));
}

TEST_F(SymbolStoreTest, ReportsTwoFilesWithOneId) {
  Open();
  PutTable(*Table(1, SymbolSource::kSymtab, 20));
  std::vector<SymbolRange> elsewhere;
  for (uint64_t i = 0; i < 30; ++i) elsewhere.push_back({0x9000 + i * 0x30, 0x20, "other"});
  const auto other = BuildSymbolTable(Id(1), SymbolSource::kSymtab, elsewhere);
  auto kept = store_->Put(Id(1), EncodeSymbolTable(*other), SymbolOrigin::kUpload);
  ASSERT_TRUE(kept.ok()) << kept.status();
  EXPECT_TRUE(kept->contested);
  EXPECT_TRUE(kept->stored);  // it has more functions
  ASSERT_EQ(List().size(), 1u);
  EXPECT_TRUE(List()[0].header.contested);
  EXPECT_EQ(List()[0].origin(), SymbolOrigin::kUpload);
  // The worse table changes nothing except `contested`.
  kept = store_->Put(Id(1), EncodeSymbolTable(*Table(1, SymbolSource::kSymtab, 20)), SymbolOrigin::kUpload);
  ASSERT_TRUE(kept.ok()) << kept.status();
  EXPECT_TRUE(kept->contested);
  EXPECT_FALSE(kept->stored);
  EXPECT_EQ(store_->Get(Id(1))->Find(0x9000)->name, "other");
  EXPECT_EQ(Uploads("contested"), 2u);
}

TEST_F(SymbolStoreTest, BetterNamesOfTheSameCodeAreNotAnotherFile) {
  Open();
  PutTable(*Table(1, SymbolSource::kDynsym, 20));
  auto kept = store_->Put(Id(1), EncodeSymbolTable(*Table(1, SymbolSource::kDwarf, 200)), SymbolOrigin::kUpload);
  ASSERT_TRUE(kept.ok()) << kept.status();
  EXPECT_TRUE(kept->stored);
  EXPECT_FALSE(kept->contested);
  EXPECT_FALSE(List()[0].header.contested);
}

TEST_F(SymbolStoreTest, ReducersShareADirectory) {
  Open();
  Metrics other_metrics;
  SymbolStore::Options options;
  options.directory = directory_.path() + "/symbols";
  auto other = SymbolStore::Open(options, clock_, other_metrics);
  ASSERT_TRUE(other.ok()) << other.status();
  PutTable(*Table(1, SymbolSource::kDynsym));
  EXPECT_FALSE((*other)->ShouldRequest(Id(1)));
  ASSERT_NE((*other)->Get(Id(1)), nullptr);
  PutTable(*Table(1, SymbolSource::kDwarf));
  ASSERT_NE((*other)->Get(Id(1)), nullptr);
  EXPECT_EQ((*other)->Get(Id(1))->source(), SymbolSource::kDwarf);
}

TEST_F(SymbolStoreTest, AnyThreadMayCall) {
  SymbolStore::Options options;
  options.mapped_max = 3;
  options.disk_bytes_max = BytesForTables(3.5, 300);  // both limits are reached all the time
  Open(options);
  std::atomic<int> found = 0;
  auto work = [&](uint8_t first) {
    for (uint8_t i = 0; i < 40; ++i) {
      auto n = static_cast<uint8_t>(1 + (first + i) % 10);
      store_->ShouldRequest(Id(n));
      EXPECT_TRUE(store_->Put(Id(n), EncodeSymbolTable(*Table(n)), SymbolOrigin::kNode).ok());
      if (std::shared_ptr<const SymbolTable> table = store_->Get(Id(n))) {
        EXPECT_EQ(table->id(), Id(n));
        ++found;
      }
      store_->PutUnavailable(Id(n), "gone");
      EXPECT_TRUE(store_->List().ok());
    }
  };
  std::vector<std::thread> threads;
  for (uint8_t t = 0; t < 4; ++t) threads.emplace_back(work, static_cast<uint8_t>(3 * t));
  for (std::thread& thread : threads) thread.join();
  EXPECT_GT(found, 0);
  uint64_t bytes = 0;
  for (const SymbolFiles::Row& row : List()) bytes += row.stored_bytes + 4096;
  EXPECT_LE(bytes, options.disk_bytes_max / 2);
  EXPECT_GT(Evictions("disk"), 0u);
}

TEST_F(SymbolStoreTest, TablesSurviveARestart) {
  Open();
  PutTable(*Table(1));
  PutTable(*Table(2, SymbolSource::kDynsym));
  store_.reset();
  Open();
  ASSERT_EQ(List().size(), 2u);
  EXPECT_EQ(List()[1].header.source, SymbolSource::kDynsym);
  EXPECT_FALSE(store_->ShouldRequest(Id(1)));
  ASSERT_NE(store_->Get(Id(1)), nullptr);
  EXPECT_EQ(store_->Get(Id(1))->Find(0x1000)->name, "function_0");
}

TEST_F(SymbolStoreTest, TableSpoiledOnDiskIsForgottenAndAskedForAgain) {
  Open();
  PutTable(*Table(1));
  store_.reset();
  for (const auto& entry : std::filesystem::recursive_directory_iterator(directory_.path())) {
    const std::string path = entry.path().string();
    if (path.ends_with(".flat")) std::filesystem::remove(path);
    if (path.ends_with(".tsym")) std::filesystem::resize_file(path, std::filesystem::file_size(path) - 1);
  }
  Open();
  EXPECT_EQ(store_->Get(Id(1)), nullptr);
  EXPECT_TRUE(List().empty());
  EXPECT_TRUE(store_->ShouldRequest(Id(1)));
  EXPECT_EQ(metrics_.AddCounter("tributary_symbolizer_unreadable_tables_total", "").value(), 1u);
}

TEST_F(SymbolStoreTest, LeavesOtherFilesInTheDirectoryAlone) {
  Open();
  PutTable(*Table(1));
  const std::string folder = directory_.path() + "/symbols/01";
  std::ofstream(folder + "/1-01ff.tsym") << "this is no table";
  std::ofstream(directory_.path() + "/symbols/README") << "hello";
  store_.reset();
  Open();
  EXPECT_EQ(List().size(), 1u);
  EXPECT_TRUE(std::filesystem::exists(directory_.path() + "/symbols/README"));
}

// A killed reducer leaves such files. A younger file may belong to another reducer that is still writing.
TEST_F(SymbolStoreTest, RemovesUnfinishedFilesAfterAnHour) {
  Open();
  PutTable(*Table(1));
  store_.reset();
  const std::string folder = directory_.path() + "/symbols/01/";
  auto write = [&](const std::string& name, int64_t age_ns) {
    std::ofstream(folder + name) << "a part";
    const int64_t at = clock_.Unix().value - age_ns;
    const timespec times[] = {{.tv_sec = 0, .tv_nsec = UTIME_OMIT},
                              {.tv_sec = at / kNsPerSecond, .tv_nsec = at % kNsPerSecond}};
    ASSERT_EQ(utimensat(AT_FDCWD, (folder + name).c_str(), times, 0), 0);
  };
  constexpr int64_t kHour = SymbolFiles::kAbandonedAfterNs;
  write("1-01aabb.tsym.4711-0.new", kHour);
  write("1-01aabb-0123456789abcdef.flat.4711-12.new", 24 * kHour);
  write("1-01aacc.tsym.4712-3.new", kHour - kNsPerSecond);
  const std::string others[] = {"notes.new", "1-01aabb.tsym.new", "1-01aabb.tsym.4711-x.new", "1-01aabb.tsym.4711-0"};
  for (const std::string& name : others) write(name, 24 * kHour);
  auto exists = [&](const std::string& name) { return std::filesystem::exists(folder + name); };

  Open();
  EXPECT_FALSE(exists("1-01aabb.tsym.4711-0.new"));
  EXPECT_FALSE(exists("1-01aabb-0123456789abcdef.flat.4711-12.new"));
  EXPECT_TRUE(exists("1-01aacc.tsym.4712-3.new"));
  for (const std::string& name : others) EXPECT_TRUE(exists(name)) << name;
  EXPECT_NE(store_->Get(Id(1)), nullptr);

  clock_.Advance(60 * kNsPerSecond);
  EXPECT_EQ(List().size(), 1u);
  EXPECT_FALSE(exists("1-01aacc.tsym.4712-3.new")) << "without a restart, too";
}

TEST_F(SymbolStoreTest, SaysWhyAnUnfinishedFileWasNotRemoved) {
  const SymbolFiles files = SymbolFiles::Open(directory_.path() + "/symbols").value();
  std::filesystem::create_directories(directory_.path() + "/symbols/01/x.tsym.1-1.new");
  const absl::Status status = files.DeleteAbandoned(directory_.path() + "/symbols/01/x.tsym.1-1.new");
  EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr("01/x.tsym.1-1.new"));
}

TEST_F(SymbolStoreTest, RemovesABoundedNumberOfUnfinishedFilesAtATime) {
  Open();
  std::filesystem::create_directories(directory_.path() + "/symbols/01");
  for (size_t i = 0; i < SymbolFiles::kAbandonedMax + 5; ++i) {
    std::ofstream(directory_.path() + "/symbols/01/1-01aabb.tsym.1-" + std::to_string(i) + ".new") << "x";
  }
  clock_.Advance(std::time(nullptr) * kNsPerSecond - clock_.Unix().value + 2 * SymbolFiles::kAbandonedAfterNs);
  auto left = [&] {
    return std::distance(std::filesystem::directory_iterator(directory_.path() + "/symbols/01"),
                         std::filesystem::directory_iterator());
  };
  Open();
  EXPECT_EQ(left(), 5);
  Open();
  EXPECT_EQ(left(), 0);
}

TEST_F(SymbolStoreTest, DirectoryThatIsAFileIsAnError) {
  SymbolStore::Options options;
  options.directory = directory_.path() + "/file";
  std::ofstream(options.directory) << "x";
  absl::StatusOr<std::unique_ptr<SymbolStore>> opened = SymbolStore::Open(options, clock_, metrics_);
  ASSERT_FALSE(opened.ok());
  EXPECT_THAT(std::string(opened.status().message()), HasSubstr(options.directory));
}

}  // namespace
}  // namespace tributary
