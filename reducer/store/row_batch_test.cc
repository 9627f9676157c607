#include "profile/row_batch.h"

#include <gtest/gtest.h>

#include "profile/attributes.h"
#include "reducer/store/sqlite_store_testing.h"

// Rows from somebody who speaks no wire and has no session, committed through the same contract.
namespace tributary::store {
namespace {

class RowBatchTest : public SqliteStoreTest {
 protected:
  // One sample of `value` in the service's main, and all that describes it.
  static RowBatch OneSample(std::string_view service, uint64_t value) {
    Dictionary rows;
    const ExecutableRef executable =
        rows.InternExecutable(*ExecutableId::Make(ExecutableIdKind::kGnuBuildId, "build"), "/srv/app");
    Process process;
    process.key.pid = Pid{7};
    process.comm = rows.InternString("app");
    process.executable = executable;
    process.attributes = rows.InternString(Encode("service.name", service));
    const ThreadRef thread = rows.InternThread({rows.InternProcess(process), Tid{8}, rows.InternString("worker")});
    const std::vector<Frame> stack = {{FrameKind::kNative, true, executable, 0x10},
                                      {FrameKind::kNative, false, executable, 0x20}};

    RowBatch batch;
    batch.source = {SourceKind::kImport, std::string(service)};
    batch.node = std::make_shared<NodeInfo>(NodeInfo{.node_id = "importer"});
    batch.clock = {MonotonicNs{At(0).value}, At(0)};
    batch.samples.push_back({.time = MonotonicNs{At(-5).value},
                             .thread = thread,
                             .node = rows.InternStack(stack),
                             .ending = Ending::kComplete,
                             .value = value,
                             .attributes = rows.InternString(Encode("request", "42"))});
    batch.accounting.captured = 1;
    batch.definitions = rows.DefinedSince({});
    return batch;
  }

  static std::string Encode(std::string_view key, std::string_view value) {
    return EncodeAttributes({{std::string(key), std::string(value)}}, 4096, nullptr);
  }

  std::vector<SampleColumns> Chunks(StoreReader& reader) {
    std::vector<SampleColumns> chunks;
    EXPECT_TRUE(reader
                    .ScanSamples(kAlways,
                                 [&](const SampleColumns& columns) {
                                   chunks.push_back(columns);
                                   return absl::OkStatus();
                                 })
                    .ok());
    return chunks;
  }
};

TEST_F(RowBatchTest, RowsComeBackWithTheirResourceAndTheirOwnAttributes) {
  const ShardWriter::Outcome outcome = CommitOne(OneSample("shop", 11));
  EXPECT_EQ(outcome.sequence, 0u);
  EXPECT_FALSE(outcome.need_dictionary);

  auto reader = Reader();
  const std::vector<SampleColumns> chunks = Chunks(*reader);
  ASSERT_EQ(chunks.size(), 1u);
  EXPECT_EQ(chunks[0].times, std::vector<UnixNs>{At(-5)});
  EXPECT_EQ(chunks[0].values, std::vector<uint64_t>{11});
  ASSERT_EQ(chunks[0].attributes.size(), 1u);
  EXPECT_EQ(reader->Text(chunks[0].attributes[0]).value(), "request=42");
  const std::vector<ProcessRow> processes = reader->Processes(kAlways, nullptr).value();
  ASSERT_EQ(processes.size(), 1u);
  EXPECT_EQ(processes[0].attributes, "service.name=shop");
  EXPECT_EQ(processes[0].node_id, "importer");
  const auto trie = reader->LoadTrie(chunks[0].day).value();
  EXPECT_EQ(trie->frame_rows[trie->frames[chunks[0].nodes[0].value]].address, 0x20u);
}

TEST_F(RowBatchTest, WithoutANumberNothingIsADuplicateAndTotalsAddUp) {
  CommitOne(OneSample("shop", 1));
  CommitOne(OneSample("shop", 2));
  CommitOne(OneSample("cart", 4));
  auto reader = Reader();
  EXPECT_EQ(CountSamples(*reader), 3u);
  const Totals totals = TotalsOf(*reader);
  EXPECT_EQ(totals.captured, 3u);
  EXPECT_EQ(totals.stored, 3u);
  EXPECT_EQ(totals.lost, 0u);
}

TEST_F(RowBatchTest, WithANumberASecondTimeChangesNothingBeItAfterARestart) {
  RowBatch batch = OneSample("shop", 1);
  batch.sequence = 1;
  EXPECT_EQ(CommitOne(batch).sequence, 1u);
  EXPECT_EQ(CommitOne(batch).sequence, 1u);
  Reopen();
  EXPECT_EQ(CommitOne(batch).sequence, 1u);
  EXPECT_EQ(CountSamples(*Reader()), 1u);
  EXPECT_EQ(TotalsOf(*Reader()).captured, 1u);
}

TEST_F(RowBatchTest, OneSourceIsNoOtherKindsOfTheSameId) {
  RowBatch import = OneSample("shop", 1);
  import.source.id = std::string(16, 'a');
  import.sequence = 1;
  RowBatch session = import;
  session.source.kind = SourceKind::kSession;
  CommitOne(import);
  CommitOne(session);
  EXPECT_EQ(CountSamples(*Reader()), 2u);
}

TEST_F(RowBatchTest, RowsThatReferToWhatIsNotThereAreTurnedAway) {
  RowBatch thread = OneSample("shop", 1), attributes = thread, before = thread;
  thread.samples[0].thread = ThreadRef{2};
  attributes.samples[0].attributes = StringRef{99};
  before.before.strings = 2;
  for (const RowBatch& batch : {thread, attributes, before}) EXPECT_TRUE(CommitOne(batch).need_dictionary);
  EXPECT_EQ(CountSamples(*Reader()), 0u);
}

TEST_F(RowBatchTest, SumsLeaveAttributesOut) {
  RowBatch batch = OneSample("shop", 3);
  batch.samples.push_back(batch.samples[0]);
  batch.samples.back().attributes = {};
  CommitOne(batch);
  uint64_t rows = 0, value = 0;
  auto reader = Reader();
  ASSERT_TRUE(reader
                  ->ScanSums(kAlways,
                             [&](const SumColumns& columns) {
                               rows += columns.values.size();
                               for (uint64_t v : columns.values) value += v;
                               return absl::OkStatus();
                             })
                  .ok());
  EXPECT_EQ(rows, 1u);
  EXPECT_EQ(value, 6u);
}

}  // namespace
}  // namespace tributary::store
