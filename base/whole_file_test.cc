#include "base/whole_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "base/directory_testing.h"
#include "base/fd.h"

namespace tributary {
namespace {

class WholeFileTest : public ::testing::Test {
 protected:
  static std::string Read(const std::string& path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  size_t Entries() {
    return static_cast<size_t>(std::distance(std::filesystem::directory_iterator(directory_.path()), {}));
  }
  const TestDirectory directory_;
};

TEST_F(WholeFileTest, ReplacesTheOldFile) {
  const std::string path = directory_.path() + "/f";
  const std::string_view first[] = {"a", "", "bc"};
  ASSERT_TRUE(WriteWholeFile(path, first, /*durable=*/true, 0600).ok());
  EXPECT_EQ(Read(path), "abc");
  struct stat info{};
  ASSERT_EQ(stat(path.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777u, 0600u);
  const std::string_view second[] = {"d"};
  ASSERT_TRUE(WriteWholeFile(path, second, /*durable=*/false).ok());
  EXPECT_EQ(Read(path), "d");
  EXPECT_EQ(Entries(), 1u);
}

TEST_F(WholeFileTest, LeavesNothingIfTheRenameFails) {
  const std::string path = directory_.path() + "/d";
  ASSERT_TRUE(std::filesystem::create_directories(path + "/full"));
  const std::string_view parts[] = {"a"};
  EXPECT_FALSE(WriteWholeFile(path, parts, false).ok());
  EXPECT_EQ(Entries(), 1u);
}

TEST_F(WholeFileTest, ErrorNamesTheFile) {
  const std::string_view parts[] = {"a"};
  const absl::Status status = WriteWholeFile(directory_.path() + "/none/f", parts, false);
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_NE(status.message().find("none/f"), status.message().npos);
}

TEST_F(WholeFileTest, ReadsFromTheBeginningUpToALimit) {
  const std::string path = directory_.path() + "/f", text(100'000, 'x');
  const std::string_view parts[] = {text};
  ASSERT_TRUE(WriteWholeFile(path, parts, false).ok());
  const Fd file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  ASSERT_EQ(lseek(file.get(), 7, SEEK_SET), 7);
  const auto all = ReadWholeFile(file.get(), text.size(), "f");
  ASSERT_TRUE(all.ok()) << all.status();
  EXPECT_EQ(*all, text);
  EXPECT_EQ(ReadWholeFile(file.get(), text.size() - 1, "f").status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_NE(ReadWholeFile(-1, 1, "the file").status().message().find("the file"), std::string_view::npos);
}

}  // namespace
}  // namespace tributary
