#include "reducer/sqlite/schema.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

#include "base/status.h"
#include "reducer/sqlite/shard_reader.h"
#include "reducer/sqlite/sqlite_store.h"
#include "reducer/store/store_testing.h"

namespace tributary::store {
namespace {

// Files of earlier schemas.
class SchemaTest : public testing::Test {
 protected:
  static UnixNs At(int64_t minutes) { return UnixNs{(1'760'000'400 + minutes * 60) * kNsPerSecond}; }

  // Removes what schemas 11 to 18 added.
  static constexpr char kToSchemaTen[] =
      "DROP INDEX event_chunk_events; DELETE FROM watermark WHERE name = 'events_committed';"
      "DROP TABLE loss; DELETE FROM watermark WHERE name = 'losses_sealed';"
      "ALTER TABLE trie_chunk DROP COLUMN nodes_end; ALTER TABLE trie_chunk DROP COLUMN frames_end;"
      "DELETE FROM watermark WHERE name = 'threads_from';"
      "DROP TABLE trie_gap; DROP TABLE set_aside; DROP TABLE number_day;"
      "DROP INDEX process_chunk_long; DROP TABLE trie_share; DROP TABLE node_day; DELETE FROM watermark WHERE name "
      "LIKE 'string_key%';"
      "CREATE TABLE old_string (id INTEGER PRIMARY KEY, text BLOB NOT NULL UNIQUE, last_day INTEGER NOT NULL);"
      "INSERT INTO old_string SELECT id, text, last_day FROM string;"
      "DROP TABLE string; ALTER TABLE old_string RENAME TO string;"
      "CREATE INDEX string_last_day ON string (last_day);"
      "CREATE TABLE old_executable (id INTEGER PRIMARY KEY, kind INTEGER NOT NULL, bytes BLOB NOT NULL, "
      "path INTEGER NOT NULL, last_day INTEGER NOT NULL, UNIQUE (kind, bytes));"
      "INSERT INTO old_executable SELECT id, kind, bytes, path, last_day FROM executable;"
      "DROP TABLE executable; ALTER TABLE old_executable RENAME TO executable;"
      "DROP INDEX process_chunk_slots; ALTER TABLE process_chunk DROP COLUMN machine;"
      "CREATE INDEX process_chunk_slots ON process_chunk (last_slot, first_slot);"
      "PRAGMA user_version = 10;";
  static absl::Status ToSchemaNine(Database& database) {
    RETURN_IF_ERROR(database.Execute(kToSchemaTen));
    return database.Execute(kToSchemaNine);
  }
  // Removes what schema 10 added.
  static constexpr char kToSchemaNine[] =
      "ALTER TABLE sample_chunk DROP COLUMN samples_end; DELETE FROM watermark WHERE name = 'samples_end';";

  const TestDirectory directory_;
};

// In a file of schema 2, processes and threads were rows.
TEST_F(SchemaTest, RowsOfSchemaTwoAreConverted) {
  const std::string path = directory_.path() + "/old.db";
  {
    Database old = OpenShardForWriting(path).value();
    ASSERT_TRUE(ToSchemaNine(old).ok());
    ASSERT_TRUE(old.Execute(R"sql(
      DROP TABLE process_chunk;
      DROP TABLE event_chunk;
      DROP TABLE sample_type;
      DELETE FROM watermark WHERE name LIKE 'next%';
      CREATE INDEX session_last_seen ON session (last_seen);
      CREATE TABLE process (
        id INTEGER PRIMARY KEY, machine INTEGER NOT NULL, boot INTEGER NOT NULL, pid INTEGER NOT NULL,
        start_time_ns INTEGER NOT NULL, exec_sequence INTEGER NOT NULL, parent INTEGER NOT NULL, comm INTEGER NOT NULL,
        executable_path INTEGER NOT NULL, container_id INTEGER NOT NULL, cgroup_path INTEGER NOT NULL,
        executable INTEGER NOT NULL, first_seen INTEGER NOT NULL, last_seen INTEGER NOT NULL,
        UNIQUE (machine, boot, pid, start_time_ns, exec_sequence));
      CREATE TABLE thread (
        id INTEGER PRIMARY KEY, process INTEGER NOT NULL, tid INTEGER NOT NULL, name INTEGER NOT NULL,
        last_day INTEGER NOT NULL, UNIQUE (process, tid, name));
      INSERT INTO machine VALUES (1, 'node-a', 'host-a', '', '', '', 2, 19);
      INSERT INTO string VALUES (1, '', 0), (2, 'worker', 0), (3, 'c0ffee', 0);
      INSERT INTO executable VALUES (5, 1, 'main-exe', 2, 0);
      INSERT INTO process VALUES (7, 1, 1, 42, 99, 1, 41, 2, 1, 3, 1, 5, 1760000400000000000, 1760004000000000000);
      INSERT INTO thread VALUES (9, 7, 43, 2, 20370);
      ALTER TABLE session DROP COLUMN types;
      PRAGMA user_version = 2;
    )sql")
                    .ok());
  }
  Database upgraded = OpenShardForWriting(path).value();
  EXPECT_EQ(upgraded.QueryInt("PRAGMA user_version").value(), kShardSchema);
  EXPECT_EQ(upgraded.QueryInt("SELECT value FROM watermark WHERE name = 'next_process'").value(), 8);
  EXPECT_EQ(upgraded.QueryInt("SELECT value FROM watermark WHERE name = 'next_thread'").value(), 10);
  EXPECT_EQ(upgraded.QueryInt("SELECT count(*) FROM sqlite_schema WHERE name IN ('process', 'thread')").value(), 0);
  TrieCache cache(1000);
  SharedExecutableNumbers executables;
  DamageReports damage;
  auto reader = SqliteShardReader::Open(path, 0, {cache, executables, damage}).value();
  for (int64_t minute : {0, 30, 59}) {
    const TimeRange range{At(minute), At(minute + 1)};
    auto processes = reader->Processes(range, nullptr).value();
    ASSERT_EQ(processes.size(), 1u) << minute;
    EXPECT_EQ(processes[0].no, ProcessNo{7});
    EXPECT_EQ(processes[0].host_name, "host-a");
    EXPECT_EQ(processes[0].pid, Pid{42});
    EXPECT_EQ(processes[0].parent, Pid{41});
    EXPECT_EQ(processes[0].start_time_ns, 99);
    EXPECT_EQ(processes[0].exec_sequence, 1u);
    EXPECT_EQ(processes[0].comm, "worker");
    EXPECT_EQ(processes[0].container_id, "c0ffee");
    EXPECT_EQ(reader->Executables()->at(processes[0].executable.value).path, "worker");
    auto threads = reader->Threads(range, {ProcessNo{7}}).value();
    ASSERT_EQ(threads.size(), 1u);
    EXPECT_EQ(threads[0].no, ThreadNo{9});
    EXPECT_EQ(threads[0].tid, Tid{43});
    EXPECT_EQ(threads[0].name, "worker");
  }
  EXPECT_TRUE(reader->Processes({At(-20), At(-10)}, nullptr)->empty());
}

// The reader returns the types that a file of schema 4 has samples of, and no other types.
TEST_F(SchemaTest, TypesOfSchemaFourAreFound) {
  FakeClock clock(MonotonicNs{kNsPerSecond}, At(0));
  Metrics metrics;
  std::string path;
  {
    auto store = SqliteStore::Open(directory_.path(), {}, clock, metrics).value();
    path = store->ShardPath(0);
    TestCollector collector("node-a");
    collector.Add(At(0), collector.Thread(1, "a"), collector.Stack({1}));
    const RowBatch batch = collector.Take(At(0));
    ASSERT_TRUE(store->OpenWriter(0).value()->Commit({&batch, 1}).ok());
  }
  {
    Database old = OpenShardForWriting(path).value();
    ASSERT_TRUE(ToSchemaNine(old).ok());
    ASSERT_TRUE(
        old.Execute("DROP TABLE event_chunk; DROP TABLE sample_type; ALTER TABLE session DROP COLUMN types; PRAGMA "
                    "user_version = 4;")
            .ok());
  }
  auto store = SqliteStore::Open(directory_.path(), {}, clock, metrics).value();
  auto writer = store->OpenWriter(0).value();
  EXPECT_EQ(store->OpenReader(0).value()->SampleTypes().value(),
            (std::map<TypeNo, SampleTypeInfo>{{TypeNo{1}, {"cpu", "nanoseconds"}}}));
}

// In schema 7, the identity of a type had no aggregation, and the counts of sessions had none either.
TEST_F(SchemaTest, ASumAndAGaugeOfOneNameFitIntoAFileOfSchemaSeven) {
  FakeClock clock(MonotonicNs{kNsPerSecond}, At(0));
  Metrics metrics;
  constexpr auto kType = static_cast<SampleType>(9);
  TestCollector collector("node-a");
  auto commit = [&](SqliteStore& store, Aggregation aggregation) {
    collector.Add(At(0), collector.Thread(1, "a"), collector.Stack({1}));
    RowBatch batch = collector.Take(At(0));
    batch.samples[0].type = kType;
    batch.sample_types = {{kType, {"heap", "bytes", aggregation}}};
    return store.OpenWriter(0).value()->Commit({&batch, 1});
  };
  std::string path;
  {
    auto store = SqliteStore::Open(directory_.path(), {}, clock, metrics).value();
    path = store->ShardPath(0);
    ASSERT_TRUE(commit(*store, Aggregation::kSum).ok());
  }
  {
    Database old = OpenShardForWriting(path).value();
    ASSERT_TRUE(ToSchemaNine(old).ok());
    ASSERT_TRUE(
        old.Execute("DROP TABLE event_chunk; CREATE TABLE old (id INTEGER PRIMARY KEY, name BLOB, unit BLOB, machine "
                    "INTEGER, last_day "
                    "INTEGER, aggregation INTEGER, UNIQUE (name, unit)); INSERT INTO old SELECT * FROM "
                    "sample_type; DROP TABLE sample_type; ALTER TABLE old RENAME TO sample_type; UPDATE session "
                    "SET types = x'0161016200010b00'; PRAGMA user_version = 7;")
            .ok());
  }
  auto store = SqliteStore::Open(directory_.path(), {}, clock, metrics).value();
  TestCollector next("node-a", 2);
  std::swap(collector, next);
  const auto outcomes = commit(*store, Aggregation::kLast);
  ASSERT_TRUE(outcomes.ok()) << outcomes.status();
  EXPECT_EQ(store->OpenReader(0).value()->SampleTypes().value().size(), 2u);
  const std::vector<NodeStatus> nodes = store->OpenReader(0).value()->Nodes().value();
  EXPECT_EQ(nodes.at(0).stored.total(), 2u);
}

// Schema 8 had no process events.
TEST_F(SchemaTest, EventsFitIntoAFileOfSchemaEight) {
  FakeClock clock(MonotonicNs{kNsPerSecond}, At(0));
  Metrics metrics;
  TestCollector collector("node-a");
  std::string path;
  {
    auto store = SqliteStore::Open(directory_.path(), {}, clock, metrics).value();
    path = store->ShardPath(0);
    collector.Add(At(0), collector.Thread(1, "a"), collector.Stack({1}));
    const RowBatch batch = collector.Take(At(0));
    ASSERT_TRUE(store->OpenWriter(0).value()->Commit({&batch, 1}).ok());
  }
  {
    Database old = OpenShardForWriting(path).value();
    ASSERT_TRUE(ToSchemaNine(old).ok());
    ASSERT_TRUE(old.Execute("DROP TABLE event_chunk; PRAGMA user_version = 8;").ok());
  }
  auto store = SqliteStore::Open(directory_.path(), {}, clock, metrics).value();
  EXPECT_TRUE(store->OpenReader(0).value()->Nodes()->empty()) << "the writer has not updated the schema yet";
  auto writer = store->OpenWriter(0).value();
  collector.StartGeneration();
  collector.Add(At(1), collector.Event(ProcessEventKind::kStart, 7, "sh"));
  const RowBatch batch = collector.Take(At(1));
  const auto outcomes = writer->Commit({&batch, 1});
  ASSERT_TRUE(outcomes.ok()) << outcomes.status();
  EXPECT_EQ(outcomes->at(0).sequence, 2u);
  const std::vector<NodeStatus> nodes = store->OpenReader(0).value()->Nodes().value();
  EXPECT_EQ(nodes.at(0).stored.total(), 1u);
  EXPECT_EQ(nodes.at(0).stored.events(), 1u);
}

// Schema 9 did not count the samples of chunks. The cursors of its exporters had no samples and ended between chunks.
TEST_F(SchemaTest, ExportersContinueInFilesOfSchemaNine) {
  FakeClock clock(MonotonicNs{kNsPerSecond}, At(0));
  Metrics metrics;
  TestCollector collector("node-a");
  auto commit = [&](SqliteStore& store, int minute) {
    collector.StartGeneration();
    collector.Add(At(minute), collector.Thread(1, "a"), collector.Stack({1}));
    const RowBatch batch = collector.Take(At(minute));
    ASSERT_TRUE(store.OpenWriter(0).value()->Commit({&batch, 1}).ok());
  };
  for (int minute : {0, 1, 2}) commit(*SqliteStore::Open(directory_.path(), {}, clock, metrics).value(), minute);
  {
    auto store = SqliteStore::Open(directory_.path(), {}, clock, metrics).value();
    Database old = OpenShardForWriting(store->ShardPath(0)).value();
    ASSERT_TRUE(ToSchemaNine(old).ok());
    ASSERT_TRUE(old.Execute("DELETE FROM sample_chunk WHERE id = 2; PRAGMA user_version = 9;").ok());
  }
  {
    Database old = OpenDirectoryForWriting(directory_.path() + "/store.db").value();
    ASSERT_TRUE(old.Execute("ALTER TABLE cursor DROP COLUMN next_rows; ALTER TABLE cursor DROP COLUMN samples; "
                            "ALTER TABLE cursor DROP COLUMN request_session; ALTER TABLE cursor DROP COLUMN "
                            "request_sender; ALTER TABLE cursor DROP COLUMN request_end_chunk; ALTER TABLE cursor DROP "
                            "COLUMN request_end_rows; ALTER TABLE cursor DROP COLUMN request_end_samples; ALTER TABLE "
                            "cursor DROP COLUMN request_first; ALTER TABLE cursor DROP COLUMN request_count; ALTER "
                            "TABLE cursor DROP COLUMN request_content; "
                            "INSERT INTO cursor VALUES ('otlp', 0, 1); PRAGMA user_version = 1;")
                    .ok());
  }
  auto store = SqliteStore::Open(directory_.path(), {}, clock, metrics).value();
  commit(*store, 3);
  const ExportPosition position = store->positions().LoadPosition("otlp", 0).value().value();
  const Cursor cursor = position.cursor;
  EXPECT_EQ(cursor, (Cursor{.chunk = 1, .samples = std::nullopt}));
  EXPECT_EQ(position.request, std::nullopt);
  std::vector<Cursor> begins;
  const CommittedScan scan = store->OpenReader(0)
                                 .value()
                                 ->ScanCommitted(cursor, 100,
                                                 [&](const SampleColumns&, const Cursor& begin) {
                                                   begins.push_back(begin);
                                                   return absl::OkStatus();
                                                 })
                                 .value();
  EXPECT_EQ(begins, (std::vector<Cursor>{{.chunk = 2, .samples = std::nullopt}, {.chunk = 3, .samples = 0}}));
  EXPECT_EQ(scan.expired_chunks, 1u);
  EXPECT_EQ(scan.expired_samples, 0u) << "the number is not known";
  EXPECT_EQ(scan.next, (Cursor{.chunk = 4, .samples = 1}));
}

// In schema 10, each text was stored twice: in a row and in an index.
TEST_F(SchemaTest, TextsOfSchemaTenAreKeptOnce) {
  FakeClock clock(MonotonicNs{kNsPerSecond}, At(0));
  Metrics metrics;
  const std::string name = "worker with a name that does not occur in any other place";
  auto commit = [&](SqliteStore& store, uint8_t session) {
    TestCollector collector("node-a", session);
    collector.Add(At(0), collector.Thread(1, name), collector.Stack({1}));
    const RowBatch batch = collector.Take(At(0));
    auto writer = store.OpenWriter(0).value();
    ASSERT_TRUE(writer->Commit({&batch, 1}).ok());
  };
  std::string path;
  {
    auto store = SqliteStore::Open(directory_.path(), {}, clock, metrics).value();
    path = store->ShardPath(0);
    commit(*store, 1);
  }
  int64_t strings = 0;
  {
    Database old = OpenShardForWriting(path).value();
    ASSERT_TRUE(old.Execute(kToSchemaTen).ok());
    strings = old.QueryInt("SELECT count(*) FROM string").value();
  }
  {
    Database upgraded = OpenShardForWriting(path).value();
    EXPECT_EQ(upgraded.QueryInt("SELECT count(*) FROM string").value(), strings);
    EXPECT_EQ(upgraded.QueryInt("SELECT count(*) FROM pragma_index_list('string') WHERE origin = 'u'").value(), 0);
    EXPECT_GT(upgraded.QueryInt("SELECT definition_bytes FROM node_day WHERE machine = 0").value(), 0);
    EXPECT_EQ(upgraded.QueryInt("SELECT seq = (SELECT max(id) FROM string) FROM sqlite_sequence WHERE name = 'string'")
                  .value(),
              1)
        << "new texts must not get ids that were used";
  }
  auto store = SqliteStore::Open(directory_.path(), {}, clock, metrics).value();
  commit(*store, 2);
  Database upgraded = OpenShardForWriting(path).value();
  EXPECT_EQ(upgraded.QueryInt("SELECT count(*) FROM string").value(), strings) << "equal texts are found by their hash";
  const auto processes = store->OpenReader(0).value()->Processes({At(0), At(1)}, nullptr).value();
  ASSERT_EQ(processes.size(), 2u);
  EXPECT_EQ(processes[0].comm, name);
  EXPECT_EQ(processes[1].comm, name);
}

}  // namespace
}  // namespace tributary::store
