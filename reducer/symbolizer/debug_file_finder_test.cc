#include "reducer/symbolizer/debug_file_finder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "base/directory_testing.h"
#include "base/hex.h"
#include "elf/elf_file.h"
#include "reducer/symbolizer/extractor_testing.h"

namespace tributary {
namespace {

using ::testing::HasSubstr;
namespace fs = std::filesystem;

ExecutableId SelfId() {
  auto file = ElfFile::Open(Fd(open("/proc/self/exe", O_RDONLY | O_CLOEXEC)));
  return *(*file)->Identity();
}

class DebugFileFinderTest : public ::testing::Test {
 protected:
  DebugFileFinder& Open(std::vector<std::string> directories) {
    finder_ = std::make_unique<DebugFileFinder>(DebugFileFinder::Options{.directories = std::move(directories),
                                                                         .executables = [this] { return executables_; },
                                                                         .temporary_directory = directory_.path(),
                                                                         .period_ms = 0},
                                                *store_, importer_, notices_, clock_, metrics_);
    return *finder_;
  }
  std::string Directory(std::string_view name) {
    const std::string path = fmt::format("{}/{}", directory_.path(), name);
    fs::create_directories(path);
    return path;
  }

  const TestDirectory directory_;
  FakeClock clock_;
  Metrics metrics_;
  SymbolNotices notices_{clock_};
  std::unique_ptr<SymbolStore> store_ =
      *SymbolStore::Open({.directory = directory_.path() + "/symbols"}, clock_, metrics_);
  SymbolExtractor extractor_{{}, ForkExtractor, metrics_};
  SymbolImporter importer_{*store_, extractor_, notices_};
  std::vector<store::ExecutableRow> executables_ = {{}, {SelfId(), "/usr/bin/program"}};
  std::unique_ptr<DebugFileFinder> finder_;
};

TEST_F(DebugFileFinderTest, FindsByBuildId) {
  const std::string hex = ToHex(SelfId().bytes());
  const std::string folder = Directory("debug/.build-id/" + hex.substr(0, 2));
  fs::copy_file("/proc/self/exe", folder + "/" + hex.substr(2) + ".debug");
  Open({directory_.path() + "/debug"}).LookForAll();
  const auto row = store_->Find(SelfId());
  ASSERT_TRUE(row.ok()) << row.status();
  EXPECT_EQ(row->origin(), SymbolOrigin::kDebugDirectory);
  EXPECT_EQ(row->header.source, SymbolSource::kDwarf);
  EXPECT_TRUE(finder_->FindShared(SelfId()).valid());
}

TEST_F(DebugFileFinderTest, FindsByNameAndTrustsOnlyTheBuildId) {
  const std::string debug = Directory("debug");
  fs::copy_file("/bin/sh", debug + "/program");
  Open({debug}).LookForAll();
  EXPECT_TRUE(absl::IsNotFound(store_->Find(SelfId()).status()));
  EXPECT_TRUE(notices_.List().empty());
  Directory("debug/usr/bin");
  fs::copy_file("/proc/self/exe", debug + "/usr/bin/program.debug");
  finder_->LookForAll();  // too soon
  EXPECT_TRUE(absl::IsNotFound(store_->Find(SelfId()).status()));
  clock_.Advance(60 * kNsPerSecond);
  finder_->LookForAll();
  EXPECT_TRUE(store_->Find(SelfId()).ok());
}

// The paths of executables come from nodes. Here each path leads to a file outside of the directory that has the right
// build-id.
TEST_F(DebugFileFinderTest, OpensNoFileOutsideOfTheDirectory) {
  const std::string debug = Directory("debug/usr/bin"), outside = Directory("outside");
  fs::copy_file("/proc/self/exe", outside + "/program.debug");
  fs::create_symlink("../../../outside/program.debug", debug + "/relative.debug");
  fs::create_symlink(outside + "/program.debug", debug + "/absolute.debug");
  fs::create_symlink(outside, directory_.path() + "/debug/folder");
  for (const std::string& path : std::vector<std::string>{
           "/../outside/program", "/usr/bin/../../../outside/program", "//../outside/program", outside + "/program",
           "/usr/bin/relative", "/usr/bin/absolute", "/folder/program", "/outside/..", "..", "/"}) {
    executables_ = {{}, {SelfId(), path}};
    Open({directory_.path() + "/debug"}).LookForAll();
    EXPECT_TRUE(absl::IsNotFound(store_->Find(SelfId()).status())) << path;
  }
  ASSERT_FALSE(notices_.List().empty());
  EXPECT_THAT(notices_.List()[0].text, HasSubstr("leads out of --debug-dir"));
}

TEST_F(DebugFileFinderTest, SaysHowToMendAnAbsoluteLink) {
  const std::string debug = Directory("debug");
  fs::copy_file("/proc/self/exe", debug + "/real.debug");
  fs::create_symlink(debug + "/real.debug", debug + "/program.debug");
  Open({debug}).LookForAll();
  EXPECT_TRUE(absl::IsNotFound(store_->Find(SelfId()).status()));
  ASSERT_FALSE(notices_.List().empty());
  EXPECT_THAT(notices_.List().back().text, HasSubstr("make the link relative"));
}

TEST_F(DebugFileFinderTest, FollowsLinksInsideTheDirectoryAndLinksOfBuildIds) {
  const std::string debug = Directory("debug"), outside = Directory("outside");
  fs::copy_file("/proc/self/exe", debug + "/real.debug");
  fs::create_symlink("real.debug", debug + "/program.debug");
  Open({debug}).LookForAll();
  EXPECT_TRUE(store_->Find(SelfId()).ok());

  fs::rename(debug + "/real.debug", outside + "/real.debug");
  const std::string hex = ToHex(SelfId().bytes());
  fs::create_symlink(outside + "/real.debug",
                     Directory("debug/.build-id/" + hex.substr(0, 2)) + "/" + hex.substr(2) + ".debug");
  EXPECT_TRUE(finder_->FindShared(SelfId()).valid());
}

TEST_F(DebugFileFinderTest, ReportsAnUnreadableDirectory) {
  Open({directory_.path() + "/none"}).LookForAll();
  ASSERT_EQ(notices_.List().size(), 1u);
  EXPECT_THAT(notices_.List()[0].text, HasSubstr("--debug-dir"));
}

}  // namespace
}  // namespace tributary
