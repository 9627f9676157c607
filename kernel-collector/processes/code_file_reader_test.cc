#include "kernel-collector/processes/code_file_reader.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "kernel-collector/processes/fakes_testing.h"

namespace tributary {
namespace {

FileKey KeyOf(const std::string& path) {
  struct stat st{};
  EXPECT_EQ(stat(path.c_str(), &st), 0);
  return FileKey{ExecutableId(), major(st.st_dev), minor(st.st_dev), st.st_ino};
}

FileLocation At(int pid, std::string path) { return FileLocation{Pid{pid}, 0x1000, 0x2000, std::move(path)}; }

class CodeFileReader : public testing::Test {
 protected:
  CodeFileReader() {
    proc.AddProcess(42, {});
    full = proc.AddFile("/bin/a", TinyElf("build-a"));
  }
  absl::StatusOr<OpenedFile> Open(const FileKey& key, std::vector<FileLocation> locations) {
    return OpenCodeFile(proc.proc(), key, locations);
  }
  FakeProc proc;
  std::string full;
};

TEST_F(CodeFileReader, OpensByPathInTheProcessesRoot) {
  auto opened = Open(FileKey{.build_id = BuildId("build-a")}, {At(42, "/bin/a")});
  ASSERT_TRUE(opened.ok()) << opened.status();
  EXPECT_EQ(opened->id, BuildId("build-a"));
  EXPECT_EQ(FileOffsetToAddress(opened->file->segments(), 0x1010), 0x401010u);
  opened = Open(KeyOf(full), {At(42, "/bin/a")});
  ASSERT_TRUE(opened.ok()) << opened.status();
  EXPECT_EQ(opened->id, BuildId("build-a"));
}

TEST_F(CodeFileReader, PrefersTheMappingsOwnLink) {
  // The file at the path has been replaced since. The link still leads to the mapped file.
  std::string old = proc.AddFile("/old", TinyElf("build-old"));
  FileKey key = KeyOf(old);
  std::filesystem::create_symlink(old, proc.proc() + "/42/map_files/1000-2000");
  auto opened = Open(key, {At(42, "/bin/a")});
  ASSERT_TRUE(opened.ok()) << opened.status();
  EXPECT_EQ(opened->id, BuildId("build-old"));
}

TEST_F(CodeFileReader, RefusesAnotherFileUnderTheSameName) {
  EXPECT_EQ(Open(FileKey{.build_id = BuildId("build-z")}, {At(42, "/bin/a")}).status().code(),
            absl::StatusCode::kNotFound);
  FileKey other = KeyOf(full);
  other.inode += 1;
  EXPECT_FALSE(Open(other, {At(42, "/bin/a")}).ok());
  FileKey elsewhere = KeyOf(full);
  elsewhere.device_minor += 1;
  EXPECT_FALSE(Open(elsewhere, {At(42, "/bin/a")}).ok());
}

TEST_F(CodeFileReader, TriesEveryPlace) {
  proc.AddProcess(43, {});
  auto opened = Open(FileKey{.build_id = BuildId("build-a")},
                     {At(43, "/bin/a"), At(44, "/gone"), At(42, "[anon]"), At(42, "relative")});
  ASSERT_TRUE(opened.ok()) << opened.status();
  EXPECT_FALSE(Open(FileKey{.build_id = BuildId("build-a")}, {}).ok());
}

TEST_F(CodeFileReader, IsNeverBlockedByAFifo) {
  ASSERT_EQ(mkfifo((proc.files() + "/bin/fifo").c_str(), 0600), 0);
  EXPECT_FALSE(Open(KeyOf(proc.files() + "/bin/fifo"), {At(42, "/bin/fifo")}).ok());
}

TEST_F(CodeFileReader, RefusesFilesOtherThanElf) {
  std::string text = proc.AddFile("/bin/script", "#!/bin/sh\n");
  EXPECT_FALSE(Open(KeyOf(text), {At(42, "/bin/script")}).ok());
}

TEST_F(CodeFileReader, FindsByIdentity) {
  auto file = OpenIdentified(proc.proc(), BuildId("build-a"), {At(42, "/bin/a")});
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_FALSE(OpenIdentified(proc.proc(), BuildId("build-z"), {At(42, "/bin/a")}).ok());
}

TEST(OwnVdso, IsAnElfFileWithABuildId) {
  auto vdso = ReadOwnVdso();
  ASSERT_TRUE(vdso.ok()) << vdso.status();
  EXPECT_EQ(vdso->id.kind(), ExecutableIdKind::kGnuBuildId);
  EXPECT_FALSE(vdso->segments.empty());
}

}  // namespace
}  // namespace tributary
