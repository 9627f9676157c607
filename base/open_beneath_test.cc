#include "base/open_beneath.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "base/directory_testing.h"

namespace tributary {
namespace {

namespace fs = std::filesystem;

class OpenBeneathTest : public ::testing::Test {
 protected:
  void SetUp() override {
    fs::create_directories(directory_.path() + "/tree/usr/bin");
    std::ofstream(directory_.path() + "/tree/usr/bin/program") << "inside";
    std::ofstream(directory_.path() + "/secret") << "outside";
    fs::create_symlink("program", directory_.path() + "/tree/usr/bin/link");
    fs::create_symlink("usr/bin", directory_.path() + "/tree/folder");
    fs::create_symlink("../secret", directory_.path() + "/tree/out");
    fs::create_symlink(directory_.path(), directory_.path() + "/tree/up");
    fs::create_symlink(directory_.path() + "/tree/usr/bin/program", directory_.path() + "/tree/absolute");
    tree_ = Fd(open((directory_.path() + "/tree").c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  }
  // Paths that lead out of the directory, whatever they lead to.
  std::vector<std::string> Outside() const {
    return {"../secret",
            "usr/../../secret",
            "usr/bin/../../../secret",
            "..",
            "out",
            "up/secret",
            "up/tree/usr/bin/program",
            directory_.path() + "/secret",
            directory_.path() + "/tree/usr/bin/program",
            "absolute",
            "/etc/passwd",
            "/"};
  }
  static std::string Read(const Fd& file) {
    char bytes[100];
    const ssize_t n = read(file.get(), bytes, sizeof(bytes));
    return n < 0 ? "" : std::string(bytes, static_cast<size_t>(n));
  }

  const TestDirectory directory_;
  Fd tree_;
};

TEST_F(OpenBeneathTest, OpensFilesOfTheDirectory) {
  for (const char* path :
       {"usr/bin/program", "usr//bin/./program", "usr/bin/link", "folder/program", "usr/../folder/link"}) {
    EXPECT_EQ(Read(OpenBeneath(tree_.get(), path)), "inside") << path;
  }
  EXPECT_FALSE(OpenBeneath(tree_.get(), "usr/bin/none").valid());
  EXPECT_EQ(errno, ENOENT);
}

TEST_F(OpenBeneathTest, OpensNothingOutside) {
  for (const std::string& path : Outside()) {
    EXPECT_FALSE(OpenBeneath(tree_.get(), path).valid()) << path;
    EXPECT_EQ(errno, EXDEV) << path;
  }
}

TEST_F(OpenBeneathTest, WithoutLinksOpensPlainPaths) {
  for (const char* path : {"usr/bin/program", "usr//bin/./program"}) {
    EXPECT_EQ(Read(OpenWithoutLinks(tree_.get(), path)), "inside") << path;
  }
  for (const char* path : {"usr/bin/none", "usr/bin/none/program", ""}) {
    EXPECT_FALSE(OpenWithoutLinks(tree_.get(), path).valid()) << path;
    EXPECT_EQ(errno, ENOENT) << path;
  }
  EXPECT_FALSE(OpenWithoutLinks(tree_.get(), "usr/../folder/link").valid());
  for (const char* path : {"usr/bin/link", "folder/program", "absolute"}) {
    EXPECT_FALSE(OpenWithoutLinks(tree_.get(), path).valid()) << path;
    EXPECT_EQ(errno, ELOOP) << path;
  }
  EXPECT_FALSE(OpenWithoutLinks(tree_.get(), "usr/bin/program/x").valid());
  EXPECT_EQ(errno, ENOTDIR);
}

TEST_F(OpenBeneathTest, WithoutLinksOpensNothingOutside) {
  for (const std::string& path : Outside()) EXPECT_FALSE(OpenWithoutLinks(tree_.get(), path).valid()) << path;
}

TEST_F(OpenBeneathTest, DoesNotWaitForAFifo) {
  ASSERT_EQ(mkfifo((directory_.path() + "/tree/fifo").c_str(), 0600), 0);
  EXPECT_TRUE(OpenBeneath(tree_.get(), "fifo").valid());
  EXPECT_TRUE(OpenWithoutLinks(tree_.get(), "fifo").valid());
}

}  // namespace
}  // namespace tributary
