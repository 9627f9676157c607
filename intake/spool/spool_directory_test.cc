#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "base/status.h"
#include "intake/spool/spool_directory.h"

namespace tributary::intake {
namespace {

using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

class SpoolDirectory : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = ::testing::TempDir() + "/spool_XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    root_ = pattern;
    path_ = root_ + "/deep/spool";
  }
  void TearDown() override { std::filesystem::remove_all(root_); }
  mode_t ModeOf(const std::string& path) {
    struct stat info{};
    EXPECT_EQ(stat(path.c_str(), &info), 0);
    return info.st_mode & 07777;
  }

  std::string root_, path_;
};

TEST_F(SpoolDirectory, IsAccessibleToItsOwnerOnly) {
  auto storage = OpenSpoolDirectory(path_);
  ASSERT_TRUE(storage.ok()) << storage.status();
  EXPECT_EQ(ModeOf(path_), 0700u);
  ASSERT_TRUE((*storage)->Append("file", "abc").ok());
  EXPECT_EQ(ModeOf(path_ + "/file"), 0600u);
}

TEST_F(SpoolDirectory, AppendsOverwritesTruncatesAndRemovesFiles) {
  auto storage = OpenSpoolDirectory(path_ + "/");
  ASSERT_TRUE(storage.ok()) << storage.status();
  SpoolStorage& files = **storage;
  ASSERT_TRUE(files.Append("a", "abcdef").ok());
  ASSERT_TRUE(files.Append("a", "ghi").ok());
  ASSERT_TRUE(files.Overwrite("a", 2, "XY").ok());
  ASSERT_TRUE(files.Sync("a").ok());
  EXPECT_EQ(*files.Read("a"), "abXYefghi");
  ASSERT_TRUE(files.Truncate("a", 4).ok());
  EXPECT_EQ(*files.Read("a"), "abXY");
  EXPECT_THAT(*files.List(), UnorderedElementsAre("LOCK", "a"));
  ASSERT_TRUE(files.Remove("a").ok());
  EXPECT_TRUE(files.Remove("a").ok());
  EXPECT_EQ(files.Read("a").status().code(), absl::StatusCode::kNotFound);
  EXPECT_FALSE(files.Overwrite("a", 0, "x").ok());
  EXPECT_FALSE(files.Sync("a").ok());
}

TEST_F(SpoolDirectory, IsLocked) {
  auto first = OpenSpoolDirectory(path_);
  ASSERT_TRUE(first.ok()) << first.status();
  auto second = OpenSpoolDirectory(path_);
  EXPECT_EQ(second.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(Message(second.status()), HasSubstr("in use by another collector (pid " + std::to_string(getpid())));
  first->reset();
  EXPECT_TRUE(OpenSpoolDirectory(path_).ok());
}

TEST_F(SpoolDirectory, RefusesADirectoryWritableByOthers) {
  for (mode_t mode : {0777u, 0770u, 0702u}) {
    std::filesystem::create_directories(path_);
    ASSERT_EQ(chmod(path_.c_str(), mode), 0);
    auto storage = OpenSpoolDirectory(path_);
    EXPECT_EQ(storage.status().code(), absl::StatusCode::kPermissionDenied);
    EXPECT_THAT(Message(storage.status()), HasSubstr("chmod 700"));
  }
}

TEST_F(SpoolDirectory, RefusesADirectoryOfAnotherUser) {
  std::filesystem::create_directories(path_);
  if (chown(path_.c_str(), 12345, 12345) != 0) {  // not root: the root directory belongs to another user
    path_ = "/";
  }
  auto storage = OpenSpoolDirectory(path_);
  EXPECT_EQ(storage.status().code(), absl::StatusCode::kPermissionDenied) << storage.status();
  EXPECT_THAT(Message(storage.status()), HasSubstr("belongs to user"));
}

TEST_F(SpoolDirectory, DoesNotFollowLinks) {
  std::filesystem::create_directories(root_ + "/real");
  ASSERT_EQ(chmod((root_ + "/real").c_str(), 0700), 0);
  ASSERT_EQ(symlink("real", (root_ + "/link").c_str()), 0);
  auto through_link = OpenSpoolDirectory(root_ + "/link");
  EXPECT_EQ(through_link.status().code(), absl::StatusCode::kInvalidArgument) << through_link.status();
  auto storage = OpenSpoolDirectory(root_ + "/real");
  ASSERT_TRUE(storage.ok()) << storage.status();
  std::ofstream(root_ + "/victim") << "untouched";
  ASSERT_EQ(symlink("../victim", (root_ + "/real/a").c_str()), 0);
  EXPECT_FALSE((*storage)->Append("a", "x").ok());
  EXPECT_FALSE((*storage)->Read("a").ok());
  EXPECT_FALSE((*storage)->Truncate("a", 0).ok());
  EXPECT_EQ(std::filesystem::file_size(root_ + "/victim"), 9u);
}

TEST_F(SpoolDirectory, DoesNotReadHugeOrSpecialFiles) {
  auto storage = OpenSpoolDirectory(path_);
  ASSERT_TRUE(storage.ok()) << storage.status();
  ASSERT_TRUE((*storage)->Append("huge", "x").ok());
  ASSERT_EQ(truncate((path_ + "/huge").c_str(), static_cast<off_t>(kSpoolFileBytesMax) + 1), 0);
  EXPECT_EQ((*storage)->Read("huge").status().code(), absl::StatusCode::kOutOfRange);
  const absl::StatusOr<SpoolStorage::Start> start = (*storage)->ReadStart("huge", 2);
  ASSERT_TRUE(start.ok()) << start.status();
  EXPECT_EQ(start->bytes, std::string("x\0", 2));
  EXPECT_EQ(start->file_bytes, kSpoolFileBytesMax + 1);
  EXPECT_EQ(*(*storage)->Size("huge"), kSpoolFileBytesMax + 1);
  EXPECT_EQ((*storage)->Size("none").status().code(), absl::StatusCode::kNotFound);
  ASSERT_EQ(mkfifo((path_ + "/pipe").c_str(), 0600), 0);
  EXPECT_FALSE((*storage)->Read("pipe").ok());
  EXPECT_FALSE((*storage)->ReadStart("pipe", 1).ok());
}

TEST_F(SpoolDirectory, SyncsAllFilesAlsoIfOneIsMissing) {
  auto storage = OpenSpoolDirectory(path_);
  ASSERT_TRUE(storage.ok()) << storage.status();
  for (const char* name : {"a", "b"}) ASSERT_TRUE((*storage)->Append(name, "x").ok());
  EXPECT_TRUE((*storage)->SyncAll({"a", "b"}).ok());
  EXPECT_TRUE((*storage)->SyncAll({}).ok());
  EXPECT_EQ((*storage)->SyncAll({"none", "b"}).code(), absl::StatusCode::kNotFound);
}

TEST_F(SpoolDirectory, RefusesAnEmptyNameOrAFile) {
  auto status = OpenSpoolDirectory("");
  EXPECT_EQ(status.status().code(), absl::StatusCode::kInvalidArgument);
  std::ofstream(root_ + "/file") << "x";
  EXPECT_EQ(OpenSpoolDirectory(root_ + "/file").status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace tributary::intake
