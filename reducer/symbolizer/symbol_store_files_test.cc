#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <ctime>
#include <filesystem>
#include <fstream>

#include "reducer/symbolizer/symbol_store_testing.h"

// The directory of a SymbolStore: restarts, damaged files, and unfinished files of killed reducers.

namespace tributary {
namespace {

using ::testing::HasSubstr;

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

}  // namespace
}  // namespace tributary
