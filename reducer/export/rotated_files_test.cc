#include "reducer/export/rotated_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

#include "base/directory_testing.h"
#include "reducer/export/file_size_limit_testing.h"

namespace tributary {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

bool Never() { return false; }

int FailedSync(int) {
  errno = EIO;
  return -1;
}

class RotatedFilesTest : public ::testing::Test {
 protected:
  std::string PathOf(const std::string& name) const { return directory_.path() + "/d/" + name; }
  RotatedFiles::Options Options() const {
    return {.directory = directory_.path() + "/d",
            .extension = "folded",
            .rotate_bytes = 10,
            .rotate_after_ns = 60 * kNsPerSecond,
            .keep = 3,
            .sync = sync_};
  }
  void Open() {
    files_.reset();
    auto opened = RotatedFiles::Open(Options(), clock_, metrics_);
    ASSERT_TRUE(opened.ok()) << opened.status();
    files_ = *std::move(opened);
  }
  void Append(const std::string& stem, std::string_view lines) {
    const absl::Status status = files_->Append(stem, lines);
    EXPECT_TRUE(status.ok()) << status;
  }
  std::vector<std::string> List() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(PathOf(""))) {
      if (entry.path().filename() != ".lock") names.push_back(entry.path().filename());
    }
    std::sort(names.begin(), names.end());
    return names;
  }
  std::string Read(const std::string& name) const {
    std::ifstream file(PathOf(name));
    EXPECT_TRUE(file) << name;
    return {std::istreambuf_iterator<char>(file), {}};
  }
  void Write(const std::string& name, const std::string& text) {
    fs::create_directories(PathOf(""));
    std::ofstream(PathOf(name)) << text;
  }
  mode_t ModeOf(const std::string& name) const {
    struct stat info{};
    EXPECT_EQ(stat(PathOf(name).c_str(), &info), 0);
    return info.st_mode & 07777;
  }

  uint64_t Unusable() {
    return metrics_.AddCounter("tributary_export_unusable_files_total", "", {{"exporter", "file"}}).value();
  }

  const TestDirectory directory_;
  FakeClock clock_;  // 2023-11-14 22:13:20
  Metrics metrics_;
  int (*sync_)(int) = fdatasync;
  std::unique_ptr<RotatedFiles> files_;
};

TEST_F(RotatedFilesTest, AppendsToAnUnfinishedFile) {
  Open();
  Append("a.cpu.ns", "x 1\n");
  Append("a.cpu.ns", "y 2\n");
  Append("b.cpu.ns", "z 3\n");
  EXPECT_THAT(List(),
              ElementsAre("a.cpu.ns.20231114T221320000Z.folded.part", "b.cpu.ns.20231114T221320000Z.folded.part"));
  EXPECT_EQ(Read("a.cpu.ns.20231114T221320000Z.folded.part"), "x 1\ny 2\n");
}

TEST_F(RotatedFilesTest, FilesAndDirectoryAreNotForOtherUsers) {
  const mode_t old = umask(077);
  Open();
  Append("a", "x 1\n");
  umask(old);
  EXPECT_EQ(ModeOf("a.20231114T221320000Z.folded.part"), 0640u);
  EXPECT_EQ(ModeOf("") & 0007, 0u);
}

TEST_F(RotatedFilesTest, FinishesALargeFile) {
  Open();
  Append("a", "xxxxx\n");
  Append("a", "yyy\n");  // 10 bytes
  EXPECT_THAT(List(), ElementsAre("a.20231114T221320000Z.folded.part"));
  Append("a", "z\n");
  EXPECT_THAT(List(), ElementsAre("a.20231114T221320000Z.folded", "a.20231114T221320001Z.folded.part"));
  EXPECT_EQ(Read("a.20231114T221320000Z.folded"), "xxxxx\nyyy\n");
  EXPECT_EQ(Read("a.20231114T221320001Z.folded.part"), "z\n");
}

TEST_F(RotatedFilesTest, ALineIsNeverDivided) {
  Open();
  Append("a", "longer than a file\n");
  Append("a", "longer than a file\n");
  EXPECT_THAT(List(), ElementsAre("a.20231114T221320000Z.folded", "a.20231114T221320001Z.folded.part"));
}

TEST_F(RotatedFilesTest, FinishesAnOldFile) {
  Open();
  Append("a", "x\n");
  clock_.Advance(59 * kNsPerSecond);
  ASSERT_TRUE(files_->Sweep(Never).ok());
  EXPECT_THAT(List(), ElementsAre("a.20231114T221320000Z.folded.part"));
  clock_.Advance(kNsPerSecond);
  ASSERT_TRUE(files_->Sweep(Never).ok());
  EXPECT_THAT(List(), ElementsAre("a.20231114T221320000Z.folded"));
}

TEST_F(RotatedFilesTest, ASweepFinishesAFewFiles) {
  Open();
  for (size_t i = 0; i < RotatedFiles::kFinishesMax + 1; ++i) Append("s" + std::to_string(i), "x\n");
  clock_.Advance(60 * kNsPerSecond);
  ASSERT_TRUE(files_->Sweep(Never).ok());
  const auto parts = [this] {
    const std::vector<std::string> names = List();
    return std::count_if(names.begin(), names.end(), [](const std::string& name) { return name.ends_with(".part"); });
  };
  EXPECT_EQ(parts(), 1);
  ASSERT_TRUE(files_->Sweep(Never).ok());
  EXPECT_EQ(parts(), 0);
}

TEST_F(RotatedFilesTest, KeepsTheNewestFinishedFiles) {
  Open();
  for (int i = 0; i < 5; ++i) Append("a", "123456789\n");
  Append("b", "x\n");
  EXPECT_THAT(List(), ElementsAre("a.20231114T221320001Z.folded", "a.20231114T221320002Z.folded",
                                  "a.20231114T221320003Z.folded", "a.20231114T221320004Z.folded.part",
                                  "b.20231114T221320000Z.folded.part"));
  // A later run knows the files of this one.
  files_.reset();
  Open();
  for (int i = 0; i < 2; ++i) Append("a", "123456789\n");
  EXPECT_THAT(List(), ElementsAre("a.20231114T221320003Z.folded", "a.20231114T221320004Z.folded",
                                  "a.20231114T221320005Z.folded", "a.20231114T221320006Z.folded.part",
                                  "b.20231114T221320000Z.folded"));
}

// The order of the stamps is that of the files.
TEST_F(RotatedFilesTest, AClockThatIsSetBackOverwritesNothing) {
  Open();
  Append("a", "123456789\n");
  clock_ = FakeClock(clock_.Monotonic(), UnixNs{1'600'000'000 * kNsPerSecond});
  Append("a", "abcdefghi\n");
  Append("a", "x\n");
  EXPECT_EQ(Read("a.20231114T221320000Z.folded"), "123456789\n");
  EXPECT_EQ(Read("a.20231114T221320001Z.folded"), "abcdefghi\n");
  EXPECT_EQ(Read("a.20231114T221320002Z.folded.part"), "x\n");
}

TEST_F(RotatedFilesTest, FinishesFilesOfAKilledRunWithoutTheTornLine) {
  Write("a.20231114T221319000Z.folded.part", "whole 1\ntor");
  Write("b.20231114T221319000Z.folded.part", "only a torn line");
  Write("c.20231114T221319000Z.folded.part", "");
  Write("d.20231114T221319000Z.folded.part", std::string(200'000, 'x') + "\n" + std::string(200'000, 'y'));
  Write("not ours.folded.part", "x");
  Write("e.20231114T221319000Z.jsonl.part", "x");
  Open();
  EXPECT_THAT(List(), ElementsAre("a.20231114T221319000Z.folded", "d.20231114T221319000Z.folded",
                                  "e.20231114T221319000Z.jsonl.part", "not ours.folded.part"));
  EXPECT_EQ(Read("a.20231114T221319000Z.folded"), "whole 1\n");
  EXPECT_EQ(Read("d.20231114T221319000Z.folded"), std::string(200'000, 'x') + "\n");
}

TEST_F(RotatedFilesTest, FinishesAllFilesAtTheEnd) {
  Open();
  Append("a", "x\n");
  Append("b", "x\n");
  files_->FinishAll(0);
  EXPECT_THAT(List(), ElementsAre("a.20231114T221320000Z.folded.part", "b.20231114T221320000Z.folded.part"));
  files_->FinishAll(kNsPerSecond);
  EXPECT_THAT(List(), ElementsAre("a.20231114T221320000Z.folded", "b.20231114T221320000Z.folded"));
}

TEST_F(RotatedFilesTest, UndoesAUnitExceptInFinishedFiles) {
  Open();
  Append("a", "x 1\n");
  Append("c", "1234567\n");
  files_->Begin();
  Append("a", "y 2\n");
  Append("a", "z\n");
  Append("b", "x 1\n");
  Append("c", "x 1\n");  // finishes the first file of c
  Append("d", "1234567\n");
  Append("d", "x 1\n");  // finishes the first file of d
  Append("e", "1 1\n");
  fs::remove(PathOf("e.20231114T221320000Z.folded.part"));
  Append("e", "2 1\n");  // in a new file
  files_->Undo();
  EXPECT_EQ(Read("a.20231114T221320000Z.folded.part"), "x 1\n");
  files_->FinishAll(kNsPerSecond);
  EXPECT_THAT(List(), ElementsAre("a.20231114T221320000Z.folded", "c.20231114T221320000Z.folded",
                                  "d.20231114T221320000Z.folded"));
  EXPECT_EQ(Read("c.20231114T221320000Z.folded"), "1234567\n");
}

TEST_F(RotatedFilesTest, AFailedWriteLeavesNothing) {
  Open();
  Append("a", "x 1\n");
  {
    const FileSizeLimit limit(6);
    const absl::Status status = files_->Append("a", "y 22\n");
    EXPECT_THAT(std::string(status.message()), HasSubstr("EFBIG"));
    EXPECT_EQ(Read("a.20231114T221320000Z.folded.part"), "x 1\n");
  }
  Append("a", "y 22\n");
  EXPECT_EQ(Read("a.20231114T221320000Z.folded.part"), "x 1\ny 22\n");
}

TEST_F(RotatedFilesTest, AFailedFirstWriteLeavesAnEmptyFileThatIsUsedOrRemoved) {
  Open();
  {
    const FileSizeLimit limit(2);
    EXPECT_FALSE(files_->Append("a", "x 1\n").ok());
    EXPECT_FALSE(files_->Append("b", "x 1\n").ok());
  }
  Append("a", "x 1\n");
  clock_.Advance(60 * kNsPerSecond);
  ASSERT_TRUE(files_->Sweep(Never).ok());
  EXPECT_THAT(List(), ElementsAre("a.20231114T221320000Z.folded"));
}

// As after a write whose repair failed, too.
TEST_F(RotatedFilesTest, RemovesBytesBehindTheWholeLines) {
  Open();
  Append("a", "x 1\n");
  std::ofstream(PathOf("a.20231114T221320000Z.folded.part"), std::ios::app) << "tor";
  Append("a", "y 2\n");
  EXPECT_EQ(Read("a.20231114T221320000Z.folded.part"), "x 1\ny 2\n");
  std::ofstream(PathOf("a.20231114T221320000Z.folded.part"), std::ios::app) << "tor";
  files_->FinishAll(kNsPerSecond);
  EXPECT_EQ(Read("a.20231114T221320000Z.folded"), "x 1\ny 2\n");
}

TEST_F(RotatedFilesTest, ContinuesAfterAnotherProgramRemovedOrShortenedAFile) {
  Open();
  Append("a", "x 1\n");
  fs::resize_file(PathOf("a.20231114T221320000Z.folded.part"), 0);
  Append("a", "y 2\n");
  EXPECT_EQ(Read("a.20231114T221320000Z.folded.part"), "y 2\n");
  fs::remove(PathOf("a.20231114T221320000Z.folded.part"));
  clock_.Advance(kNsPerSecond);
  Append("a", "z 3\n");
  EXPECT_THAT(List(), ElementsAre("a.20231114T221321000Z.folded.part"));
  fs::remove(PathOf("a.20231114T221321000Z.folded.part"));
  files_->FinishAll(kNsPerSecond);
  EXPECT_THAT(List(), IsEmpty());
}

TEST_F(RotatedFilesTest, DoesNotFollowLinks) {
  const std::string victim = directory_.path() + "/victim";
  std::ofstream(victim) << "precious";
  fs::create_directory(PathOf(""));
  fs::create_symlink(victim, PathOf("a.20231114T221320000Z.folded.part"));
  fs::create_hard_link(victim, PathOf("b.20231114T221320000Z.folded.part"));
  Open();
  EXPECT_EQ(Unusable(), 2u);
  // The names with the next stamp are used.
  Append("a", "x\n");
  Append("b", "x\n");
  EXPECT_EQ(Read("a.20231114T221320001Z.folded.part"), "x\n");
  EXPECT_EQ(Read("b.20231114T221320001Z.folded.part"), "x\n");
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(std::ifstream(victim).rdbuf()), {}), "precious");
}

// Another program has changed the files. The other series go on.
TEST_F(RotatedFilesTest, AFileThatCannotBeUsedIsLeftAlone) {
  Open();
  for (const std::string stem : {"a", "b", "c", "d"}) Append(stem, "x 1\n");
  fs::create_hard_link(PathOf("a.20231114T221320000Z.folded.part"), directory_.path() + "/link");
  for (const std::string stem : {"b", "c"}) {
    fs::remove(PathOf(stem + ".20231114T221320000Z.folded.part"));
    fs::create_directory(PathOf(stem + ".20231114T221320000Z.folded.part"));
  }
  Append("a", "y 2\n");
  Append("b", "longer than a file\n");
  EXPECT_EQ(Unusable(), 2u);
  EXPECT_EQ(Read("a.20231114T221320000Z.folded.part"), "x 1\n");
  EXPECT_EQ(Read("a.20231114T221320001Z.folded.part"), "y 2\n");
  EXPECT_EQ(Read("b.20231114T221320001Z.folded.part"), "longer than a file\n");
  clock_.Advance(60 * kNsPerSecond);
  EXPECT_TRUE(files_->Sweep(Never).ok());
  EXPECT_EQ(Unusable(), 3u);
  EXPECT_EQ(Read("d.20231114T221320000Z.folded"), "x 1\n");
}

TEST_F(RotatedFilesTest, AnOldFileThatCannotBeRemovedIsLeftAlone) {
  fs::create_directories(PathOf("a.20231114T221319000Z.folded"));
  Open();
  for (int i = 0; i < 5; ++i) Append("a", "123456789\n");
  EXPECT_EQ(Unusable(), 1u);
  EXPECT_THAT(List(), ElementsAre("a.20231114T221319000Z.folded", "a.20231114T221320001Z.folded",
                                  "a.20231114T221320002Z.folded", "a.20231114T221320003Z.folded",
                                  "a.20231114T221320004Z.folded.part"));
}

// The kernel may have dropped the lines, so no other attempt proves that they are on disk.
TEST_F(RotatedFilesTest, AFileThatCouldNotBeSyncedIsDamaged) {
  sync_ = FailedSync;
  Open();
  for (int i = 0; i < 5; ++i) Append("a", "123456789\n");
  EXPECT_EQ(Unusable(), 4u);
  const auto names = ElementsAre("a.20231114T221320001Z.folded.damaged", "a.20231114T221320002Z.folded.damaged",
                                 "a.20231114T221320003Z.folded.damaged", "a.20231114T221320004Z.folded.part");
  EXPECT_THAT(List(), names) << "damaged files count for `keep`";
  files_.reset();
  sync_ = fdatasync;
  Open();
  EXPECT_THAT(List(), ElementsAre("a.20231114T221320001Z.folded.damaged", "a.20231114T221320002Z.folded.damaged",
                                  "a.20231114T221320003Z.folded.damaged", "a.20231114T221320004Z.folded"));
  ASSERT_TRUE(files_->Sweep(Never).ok());
  EXPECT_EQ(List().size(), 3u);
}

TEST_F(RotatedFilesTest, ASweepEndsWhenItMust) {
  Open();
  for (const std::string stem : {"a", "b", "c"}) Append(stem, "x\n");
  clock_.Advance(60 * kNsPerSecond);
  int calls = 0;
  ASSERT_TRUE(files_->Sweep([&calls] { return ++calls > 2; }).ok());
  EXPECT_THAT(List(), ElementsAre("a.20231114T221320000Z.folded", "b.20231114T221320000Z.folded",
                                  "c.20231114T221320000Z.folded.part"));
}

TEST_F(RotatedFilesTest, TheDirectoryHasOneWriter) {
  Open();
  const auto second = RotatedFiles::Open(Options(), clock_, metrics_);
  EXPECT_EQ(second.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(second.status().message()), HasSubstr("another exporter"));
  Open();
}

TEST_F(RotatedFilesTest, RefusesADirectoryThatAllUsersMayWrite) {
  fs::create_directory(PathOf(""));
  fs::permissions(PathOf(""), fs::perms::all);
  EXPECT_EQ(RotatedFiles::Open(Options(), clock_, metrics_).status().code(), absl::StatusCode::kPermissionDenied);
}

TEST_F(RotatedFilesTest, RefusesAFileInPlaceOfTheDirectory) {
  std::ofstream(directory_.path() + "/d") << "x";
  EXPECT_FALSE(RotatedFiles::Open(Options(), clock_, metrics_).ok());
}

TEST_F(RotatedFilesTest, TheNumberOfSeriesIsLimited) {
  Open();
  Append("a", "x\n");
  Append("b", "x\n");
  EXPECT_TRUE(files_->Admit("a", 2));
  EXPECT_FALSE(files_->Admit("c", 2));
  EXPECT_TRUE(files_->Admit("c", 3));
}

// `keep` × `rotate_after_ns` is 180 s.
TEST_F(RotatedFilesTest, AnEndedSeriesMakesRoomForANewOne) {
  Open();
  Append("a", "123456789\n");
  Append("a", "x\n");
  clock_.Advance(60 * kNsPerSecond);
  Append("b", "x\n");
  ASSERT_TRUE(files_->Sweep(Never).ok());  // finishes the file of a
  EXPECT_FALSE(files_->Admit("c", 2));
  clock_.Advance(121 * kNsPerSecond);
  EXPECT_TRUE(files_->Admit("b", 2));
  EXPECT_THAT(List(), ElementsAre("a.20231114T221320000Z.folded", "a.20231114T221320001Z.folded",
                                  "b.20231114T221420000Z.folded.part"));
  EXPECT_TRUE(files_->Admit("c", 2));
  EXPECT_THAT(List(), ElementsAre("b.20231114T221420000Z.folded.part"));
  Append("c", "x\n");
  EXPECT_FALSE(files_->Admit("d", 2));
}

}  // namespace
}  // namespace tributary
