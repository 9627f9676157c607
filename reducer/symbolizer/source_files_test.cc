#include "reducer/symbolizer/source_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/directory_testing.h"

namespace tributary {
namespace {

using ::testing::ElementsAre;
namespace fs = std::filesystem;

class SourceFilesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    fs::create_directories(directory_.path() + "/tree/src");
    std::ofstream(directory_.path() + "/tree/src/a.c") << "one\ntwo\nthree";
    std::ofstream(directory_.path() + "/secret") << "secret\n";
    fs::create_symlink("../secret", directory_.path() + "/tree/out.c");
    fs::create_symlink("/etc/passwd", directory_.path() + "/tree/src/passwd.c");
    fs::create_symlink("a.c", directory_.path() + "/tree/src/b.c");
  }
  const TestDirectory directory_;
  const SourceFiles sources_{{directory_.path() + "/none", directory_.path() + "/tree"}};
};

TEST_F(SourceFilesTest, FindsAPathOfAnyBuildDirectory) {
  EXPECT_THAT(*sources_.Read("src/a.c", 1, 2), ElementsAre("one", "two"));
  EXPECT_THAT(*sources_.Read("/home/me/build/src/a.c", 2, 100), ElementsAre("two", "three"));
  EXPECT_THAT(*sources_.Read("/x/src/b.c", 3, 3), ElementsAre("three"));
  EXPECT_TRUE(sources_.Read("/x/src/a.c", 7, 9)->empty());
  EXPECT_TRUE(absl::IsNotFound(sources_.Read("/x/y/a.c", 1, 2).status()));  // a name alone is not enough
  EXPECT_TRUE(absl::IsNotFound(sources_.Read("src", 1, 2).status()));
  EXPECT_TRUE(absl::IsNotFound(sources_.Read("", 1, 2).status()));
}

TEST_F(SourceFilesTest, ReadsNothingOutside) {
  for (const char* path : {"../secret", "/x/../../secret", "src/../../secret", "out.c", "src/passwd.c", "//etc/passwd",
                           "src/../../../../../../../../etc/passwd"}) {
    EXPECT_TRUE(absl::IsNotFound(sources_.Read(path, 1, 2).status())) << path;
  }
}

TEST_F(SourceFilesTest, LongLinesAreCutAndLongFilesRefused) {
  std::ofstream(directory_.path() + "/tree/src/long.c") << std::string(5'000'000, 'x');
  EXPECT_EQ(sources_.Read("src/long.c", 1, 1).status().code(), absl::StatusCode::kResourceExhausted);
  std::ofstream(directory_.path() + "/tree/src/wide.c") << std::string(5'000, 'x');
  EXPECT_EQ(sources_.Read("src/wide.c", 1, 1)->at(0).size(), SourceFiles::kLineBytesMax);
}

}  // namespace
}  // namespace tributary
