#include "reducer/sqlite/row_ids.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "reducer/sqlite/executable_reader.h"
#include "reducer/sqlite/sqlite_store_testing.h"

namespace tributary::store {
namespace {

using ::testing::ElementsAre;

// Changes ids of rows in a shard's file.
class RowIdsTest : public SqliteStoreTest {
 protected:
  void Execute(const std::string& sql) {
    const absl::Status status = database().Execute(sql);
    ASSERT_TRUE(status.ok()) << status;
  }
  Database& database() { return static_cast<SqliteShardWriter*>(writer_.get())->database(); }
  // Commits a sample of a process in an executable of its own.
  void Commit(int number) {
    collector_.StartGeneration();
    Dictionary& dictionary = collector_.dictionary();
    Process process;
    process.key = {Pid{number}, number, 1};
    process.comm = dictionary.InternString(fmt::format("comm-{}", number));
    process.executable =
        dictionary.InternExecutable(*ExecutableId::Make(ExecutableIdKind::kGnuBuildId, fmt::format("id-{}", number)),
                                    fmt::format("/bin/{}", number));
    const ThreadRef thread = dictionary.InternThread({dictionary.InternProcess(process), Tid{number}, process.comm});
    const FrameRef frame = dictionary.InternFrame({FrameKind::kNative, false, process.executable, 1});
    collector_.Add(At(-10), thread, dictionary.InternNode({NodeRef{}, frame}));
    CommitOne(collector_.Take(At(-10)));
  }
  // Returns "process: path of the executable, path of the frame's executable" of all samples.
  std::vector<std::string> Samples() {
    std::vector<std::string> samples;
    const auto reader = Reader();
    const std::vector<ExecutableRow> executables = reader->Executables().value();
    const std::vector<ProcessRow> processes = reader->Processes(kAlways, nullptr).value();
    const absl::Status scanned = reader->ScanSamples(kAlways, [&](const SampleColumns& columns) -> absl::Status {
      const auto trie = reader->LoadTrie(columns.day).value();
      const FrameRow& frame = trie.frame_rows[trie.frames[columns.nodes[0].value]];
      EXPECT_EQ(reader->Executable(frame.executable)->path, executables.at(frame.executable.value).path);
      for (const ProcessRow& process : processes) {
        if (process.no != columns.processes[0]) continue;
        samples.push_back(fmt::format("{}: {}, {}", process.comm, executables.at(process.executable.value).path,
                                      executables.at(frame.executable.value).path));
      }
      return absl::OkStatus();
    });
    EXPECT_TRUE(scanned.ok()) << scanned;
    return samples;
  }

  TestCollector collector_{"node-a"};
};

// Before, a query allocated a place for each number up to the highest id: here 280 GB.
TEST_F(RowIdsTest, AQueryNeedsMemoryForTheRowsAndNotForTheHighestId) {
  Commit(1);
  Execute("UPDATE sqlite_sequence SET seq = 4000000000 WHERE name = 'executable'");
  Reopen();
  Commit(2);
  ASSERT_EQ(database().QueryInt("SELECT max(id) FROM executable").value(), 4'000'000'001);
  EXPECT_EQ(Reader()->Executables()->size(), 3u);
  EXPECT_THAT(Samples(), ElementsAre("comm-1: /bin/1, /bin/1", "comm-2: /bin/2, /bin/2"));
}

TEST_F(RowIdsTest, AQuerySkipsARowWithADamagedId) {
  Commit(1);
  Commit(2);
  Execute("UPDATE executable SET id = 1 << 62 WHERE id = 1");
  EXPECT_EQ(Reader()->Executables()->size(), 2u);
  EXPECT_THAT(Samples(), ElementsAre("comm-1: , ", "comm-2: /bin/2, /bin/2"));
}

// Before, all new rows got ids after the damaged one. Cut to 32 bits, these are the ids of other rows.
TEST_F(RowIdsTest, NewRowsGetIdsThatFitBesideADamagedOne) {
  Commit(1);
  Execute(
      "UPDATE executable SET id = 1 << 40; UPDATE string SET id = 1 << 40 WHERE id = 2;"
      "UPDATE sqlite_sequence SET seq = 1 << 40");
  Reopen();
  Commit(2);
  Commit(3);
  EXPECT_EQ(database().QueryInt("SELECT max(id) < 100 FROM executable WHERE id < 1 << 40").value(), 1);
  const std::vector<std::string> samples = Samples();
  ASSERT_EQ(samples.size(), 3u);
  EXPECT_EQ(samples[1], "comm-2: /bin/2, /bin/2");
  EXPECT_EQ(samples[2], "comm-3: /bin/3, /bin/3");
  Commit(1);
  EXPECT_EQ(Samples().back(), "comm-1: /bin/1, /bin/1") << "the rows have got new ids";
  EXPECT_EQ(
      database().QueryInt("SELECT max((SELECT max(id) FROM executable), (SELECT max(id) FROM string)) < 100").value(),
      1);
}

TEST_F(RowIdsTest, AfterTheHighestIdComesTheLowestFreeOne) {
  Commit(1);
  const int64_t used = database().QueryInt("SELECT max(id) FROM string").value();
  Execute("DELETE FROM string WHERE text = CAST('comm-1' AS BLOB)");
  Execute(fmt::format("UPDATE sqlite_sequence SET seq = {} WHERE name = 'string'", kRowIdMax - 1));
  RowIds ids = RowIds::Prepare(database(), "string").value();
  EXPECT_EQ(ids.New().value(), kRowIdMax);
  const uint32_t free = ids.New().value();
  EXPECT_LE(free, used);
  EXPECT_EQ(ids.New().value(), used + 1);
}

TEST_F(RowIdsTest, ASampleTypeWithADamagedNumberGetsAnother) {
  Commit(1);
  Execute("UPDATE sample_type SET id = 1 << 40; UPDATE sample_chunk SET type = 1 << 40");
  EXPECT_TRUE(Reader()->SampleTypes()->empty());
  Reopen();
  Commit(2);
  EXPECT_EQ(Reader()->SampleTypes()->size(), 1u);
  EXPECT_EQ(database().QueryInt("SELECT max(id) FROM sample_type").value(), 1);
  EXPECT_EQ(CountSamples(*Reader()), 2u);
}

TEST(ExecutableNumbers, BeginAnewWhenMostExecutablesWereRemoved) {
  SharedExecutableNumbers shared;
  const auto numbers = shared.Get();
  for (uint32_t id = 1; id <= 2 * SharedExecutableNumbers::kUnusedMin; ++id) EXPECT_EQ(numbers->Add(id * 7), id);
  EXPECT_EQ(numbers->Find(7), 1u);
  EXPECT_EQ(numbers->Find(8), 0u);
  shared.Renew(numbers, SharedExecutableNumbers::kUnusedMin);
  EXPECT_EQ(shared.Get(), numbers);
  shared.Renew(numbers, 1);
  EXPECT_NE(shared.Get()->generation(), numbers->generation());
  EXPECT_EQ(shared.Get()->size(), 1u);
}

}  // namespace
}  // namespace tributary::store
