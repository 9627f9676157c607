#include "profile/row_batch.h"

#include <gtest/gtest.h>

#include "profile/attributes.h"
#include "reducer/store/store_conformance_testing.h"

// Rows from a source without the wire protocol and without a session, committed through the same contract.
namespace tributary::store {

RowBatch RowBatchConformance::OneSample(std::string_view service, uint64_t value) {
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

std::string RowBatchConformance::Encode(std::string_view key, std::string_view value) {
  return EncodeAttributes({{std::string(key), std::string(value)}}, 4096, nullptr);
}

namespace {

TEST_P(RowBatchConformance, RowsComeBackWithTheirResourceAndTheirOwnAttributes) {
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
  EXPECT_EQ(trie.frame_rows[trie.frames[chunks[0].nodes[0].value]].address, 0x20u);
}

TEST_P(RowBatchConformance, UnnumberedBatchesAreNeverDuplicatesAndTotalsAddUp) {
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

TEST_P(RowBatchConformance, ANumberedBatchSentTwiceChangesNothingEvenAfterARestart) {
  RowBatch batch = OneSample("shop", 1);
  batch.sequence = 1;
  EXPECT_EQ(CommitOne(batch).sequence, 1u);
  EXPECT_EQ(CommitOne(batch).sequence, 1u);
  Reopen();
  EXPECT_EQ(CommitOne(batch).sequence, 1u);
  EXPECT_EQ(CountSamples(*Reader()), 1u);
  EXPECT_EQ(TotalsOf(*Reader()).captured, 1u);
}

TEST_P(RowBatchConformance, SourcesOfDifferentKindsMayShareAnId) {
  RowBatch import = OneSample("shop", 1);
  import.source.id = std::string(16, 'a');
  import.sequence = 1;
  RowBatch session = import;
  session.source.kind = SourceKind::kSession;
  CommitOne(import);
  CommitOne(session);
  EXPECT_EQ(CountSamples(*Reader()), 2u);
}

TEST_P(RowBatchConformance, RefusesRowsWithUndefinedReferences) {
  RowBatch thread = OneSample("shop", 1), attributes = thread, before = thread;
  thread.samples[0].thread = ThreadRef{2};
  attributes.samples[0].attributes = StringRef{99};
  before.before.strings = 2;
  for (const RowBatch& batch : {thread, attributes, before}) EXPECT_TRUE(CommitOne(batch).need_dictionary);
  EXPECT_EQ(CountSamples(*Reader()), 0u);
}

TEST_P(RowBatchConformance, TypesComeWithTheData) {
  const SampleTypeInfo bytes{"alloc_space", "bytes"}, objects{"alloc_objects", "count"};
  auto of_type = [](std::string_view service, uint8_t number, const SampleTypeInfo& info) {
    RowBatch batch = OneSample(service, number);
    batch.samples[0].type = static_cast<SampleType>(number);
    batch.sample_types = {{static_cast<SampleType>(number), info}};
    return batch;
  };
  EXPECT_TRUE(Reader()->SampleTypes().value().empty()) << "no batch was committed yet";
  CommitOne(of_type("shop", 200, bytes));
  CommitOne(of_type("cart", 3, bytes));
  CommitOne(of_type("cart", 200, objects));
  CommitOne(OneSample("cart", 1));
  RowBatch strange = OneSample("cart", 99);
  strange.samples[0].type = static_cast<SampleType>(99);
  CommitOne(strange);
  Reopen();
  CommitOne(of_type("shop", 4, objects));

  auto reader = Reader();
  const std::map<TypeNo, SampleTypeInfo> types = reader->SampleTypes().value();
  ASSERT_EQ(types.size(), 3u) << "two sources may use one number for different types";
  EXPECT_EQ(types.at(TypeNo{1}), (SampleTypeInfo{"cpu", "nanoseconds"}));
  std::map<SampleTypeInfo, uint64_t> values;
  for (const SampleColumns& columns : Chunks(*reader)) {
    const auto type = types.find(columns.type);
    for (uint64_t value : columns.values) values[type != types.end() ? type->second : SampleTypeInfo()] += value;
  }
  EXPECT_EQ(values,
            (std::map<SampleTypeInfo, uint64_t>{{{}, 99}, {bytes, 203}, {{"cpu", "nanoseconds"}, 1}, {objects, 204}}));
}

TEST_P(RowBatchConformance, ADefinitionDoesNotChangeABuiltInType) {
  RowBatch batch = OneSample("shop", 7);
  batch.sample_types = {{SampleType::kCpu, {"mine", "bytes"}}};
  CommitOne(batch);
  EXPECT_EQ(Reader()->SampleTypes().value().at(TypeNo{1}).name, "cpu");
}

TEST_P(RowBatchConformance, TypesBeyondALimitHaveNoNameButBuiltInTypesDo) {
  constexpr size_t kShare = kSampleTypesOfMachineMax, kAll = kSampleTypesOfShardMax;
  auto commit = [this](const std::string& machine, size_t type) {
    RowBatch batch = OneSample(machine, 1);
    batch.node = std::make_shared<NodeInfo>(NodeInfo{.node_id = machine});
    batch.samples[0].type = static_cast<SampleType>(9);
    batch.sample_types = {{static_cast<SampleType>(9), {"type-" + std::to_string(type), "bytes"}}};
    CommitOne(batch);
  };
  auto refused = [this](size_t count) {
    return metrics_.PrometheusText().find("tributary_reducer_refused_types_total " + std::to_string(count) + "\n") !=
           std::string::npos;
  };
  for (size_t i = 0; i < kShare + 9; ++i) commit("greedy", i);
  EXPECT_EQ(Reader()->SampleTypes().value().size(), kShare);
  EXPECT_TRUE(refused(9)) << "its share is full";
  Reopen();
  for (size_t i = kShare; i < kAll + 5; ++i) commit("m" + std::to_string(i / kShare), i);
  EXPECT_EQ(Reader()->SampleTypes().value().size(), kAll);
  EXPECT_TRUE(refused(9 + 5)) << "the shard is full";
  commit("greedy", kAll - 1);
  EXPECT_TRUE(refused(9 + 5)) << "each machine may use a type that the shard knows";
  CommitOne(OneSample("shop", 1));
  EXPECT_EQ(Reader()->SampleTypes().value().size(), kAll + 1);
  EXPECT_EQ(CountSamples(*Reader()), kAll + 9 + 5 + 2);
}

TEST_P(RowBatchConformance, TooManyOwnAttributesAreLeftOutAndCounted) {
  RowBatch batch = OneSample("shop", 1);
  std::string many = "a=1";
  for (size_t i = 1; i <= kSampleAttributesMax; ++i) many += ",a" + std::to_string(i) + "=1";
  const std::string refused[] = {many, Encode("k", std::string(kSampleAttributeBytesMax, 'x'))};
  for (const std::string& text : refused) {
    batch.definitions.strings.push_back(text);
    batch.samples.push_back(batch.samples[0]);
    batch.samples.back().attributes = StringRef{static_cast<uint32_t>(batch.definitions.strings.size())};
  }
  CommitOne(batch);
  auto reader = Reader();
  std::vector<std::string> kept;
  for (const SampleColumns& chunk : Chunks(*reader)) {
    for (StringId id : chunk.attributes) kept.emplace_back(reader->Text(id).value());
  }
  EXPECT_EQ(kept, (std::vector<std::string>{"request=42", "", ""}));
  EXPECT_NE(metrics_.PrometheusText().find("tributary_reducer_refused_attributes_total 2\n"), std::string::npos);
}

// The sums of days, and rows that only these sums refer to, are removed by age.
TEST_P(RowBatchConformance, ATypeIsRemovedWithItsLastData) {
  RowBatch batch = OneSample("shop", 1);
  batch.samples[0].type = static_cast<SampleType>(9);
  batch.sample_types = {{static_cast<SampleType>(9), {"short-lived", "bytes"}}};
  CommitOne(batch);
  CommitOne(OneSample("cart", 1));
  clock_.Advance(20 * kNsPerDay);
  RowBatch later = OneSample("cart", 1);
  later.clock = {MonotonicNs{clock_.Unix().value}, clock_.Unix()};
  later.samples[0].time = MonotonicNs{clock_.Unix().value};
  CommitOne(later);
  for (int i = 0; i < 50; ++i) ASSERT_TRUE(writer_->Maintain(clock_.Unix()).ok());
  EXPECT_EQ(Reader()->SampleTypes().value(), (std::map<TypeNo, SampleTypeInfo>{{TypeNo{1}, {"cpu", "nanoseconds"}}}));
  batch.clock = later.clock;
  batch.samples[0].time = later.samples[0].time;
  CommitOne(batch);
  EXPECT_EQ(Reader()->SampleTypes().value().size(), 2u) << "a removed type is stored again";
}

// An import does not know the boot of its machine, so it ends none of the machine's sessions.
TEST_P(RowBatchConformance, ImportsAndSessionsOfOneMachineDoNotEndEachOther) {
  RowBatch of_session = OneSample("shop", 1);
  of_session.source = {SourceKind::kSession, std::string(16, 's')};
  of_session.sequence = 1;
  of_session.clock.monotonic = MonotonicNs{kNsPerSecond};
  of_session.samples[0].time = MonotonicNs{0};
  of_session.accounting.captured = 5;  // four are on their way
  auto node = std::make_shared<NodeInfo>(*of_session.node);
  node->boot_id = "a boot";
  of_session.node = node;
  RowBatch import = OneSample("shop", 1);
  import.sequence = 1;
  import.accounting.captured = 7;
  import.clock.monotonic = MonotonicNs{0};
  import.samples[0].time = MonotonicNs{0};
  CommitOne(import);
  CommitOne(of_session);
  EXPECT_EQ(TotalsOf(*Reader()).lost, 0u);
  import.source.id = "another";
  CommitOne(import);
  EXPECT_EQ(TotalsOf(*Reader()).lost, 0u);
}

TEST_P(RowBatchConformance, SumsLeaveAttributesOut) {
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
