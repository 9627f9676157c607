#include "intake/codec/batch_decoder.h"
#include "intake/codec/batch_encoder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "base/status.h"
#include "base/varint.h"
#include "intake/codec/codec_testing.h"
#include "intake/codec/columns.h"
#include "intake/testing/batch_generator_testing.h"
#include "intake/wire/wire.h"

namespace tributary::intake {
namespace {

using testing::HasSubstr;

void ExpectEqualDictionaries(const Dictionary& a, const Dictionary& b) {
  ASSERT_EQ(a.counts(), b.counts());
  EXPECT_EQ(a.rolling_hash(), b.rolling_hash());
  for (uint32_t i = 0; i < a.string_count(); ++i) ASSERT_EQ(a.string(StringRef{i}), b.string(StringRef{i}));
  for (uint32_t i = 0; i < a.executable_count(); ++i) {
    ASSERT_EQ(a.executable(ExecutableRef{i}), b.executable(ExecutableRef{i}));
  }
  for (uint32_t i = 0; i < a.frame_count(); ++i) ASSERT_EQ(a.frame(FrameRef{i}), b.frame(FrameRef{i}));
  for (uint32_t i = 0; i < a.node_count(); ++i) ASSERT_EQ(a.node(NodeRef{i}), b.node(NodeRef{i}));
  for (uint32_t i = 0; i < a.process_count(); ++i) ASSERT_EQ(a.process(ProcessRef{i}), b.process(ProcessRef{i}));
  for (uint32_t i = 0; i < a.thread_count(); ++i) ASSERT_EQ(a.thread(ThreadRef{i}), b.thread(ThreadRef{i}));
}

// Returns a batch that defines `nodes` nodes. Each has its own frame, and its parent is the previous node or, if not
// `chained`, the root.
Batch BatchOfNodes(const std::shared_ptr<Dictionary>& dictionary, uint64_t nodes, bool chained) {
  NodeRef last;
  for (uint64_t i = 1; i <= nodes; ++i) {
    last = dictionary->InternNode(
        {chained ? last : NodeRef{0}, dictionary->InternFrame({FrameKind::kUnknown, false, {}, i})});
  }
  return {.sequence = 1, .dictionary = dictionary};
}

TEST(BatchDecoder, NoticesThatTheTwoEndsHaveDifferentNodes) {
  auto mine = std::make_shared<Dictionary>(), theirs = std::make_shared<Dictionary>();
  BatchDecoder decoder(1);
  Dictionary held;
  DecodeAll(BatchEncoder(1).Encode(BatchOfNodes(mine, 3, true)), decoder, held);
  const DictionaryCounts before = decoder.have();

  // The same number of definitions, but different ones, as a bug or damaged memory would leave.
  BatchOfNodes(theirs, 3, false);
  ASSERT_EQ(theirs->counts(), before);
  BatchEncoder encoder(1);
  encoder.set_sent(before);
  const Frame frame = Unframe(encoder.Encode({.sequence = 2, .dictionary = theirs}).back());
  EXPECT_EQ(decoder.Decode(frame.type, 2, frame.payload).status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(decoder.have(), before);
}

TEST(BatchCodec, DecodeOfEncodeGivesTheSameOverManyBatchesAndGenerations) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(seed);
    BatchGenerator generator(seed);
    std::mt19937_64 random(seed);
    for (uint32_t generation = 1; generation <= 3; ++generation) {
      generator.NewDictionary();
      BatchEncoder encoder(generation);
      BatchDecoder decoder(generation);
      Dictionary other;
      for (int i = 0; i < 6; ++i) {
        const Batch batch = generator.Next(random() % 3 == 0 ? random() % 3 : random() % 400);
        const IncomingBatch in = DecodeAll(encoder.Encode(batch), decoder, other);
        EXPECT_EQ(in.sequence, batch.sequence);
        EXPECT_EQ(in.generation, generation);
        EXPECT_EQ(in.clock.monotonic, batch.clock.monotonic);
        EXPECT_EQ(in.clock.unix, batch.clock.unix);
        EXPECT_EQ(in.accounting, batch.accounting);
        EXPECT_EQ(in.nodes_hash, other.rolling_hash());
        EXPECT_EQ(in.unknown_values, 0u);
        EXPECT_EQ(in.samples, Rounded(batch.samples));
        ExpectEqualDictionaries(*batch.dictionary, other);
      }
    }
  }
}

TEST(BatchCodec, CarriesExtremes) {
  auto dictionary = std::make_shared<Dictionary>();
  const std::string odd("nul\0 newline\n \xff", 15);
  const StringRef name = dictionary->InternString(odd);
  const auto executable =
      dictionary->InternExecutable(*ExecutableId::Make(ExecutableIdKind::kContentHash, "0123456789abcdef"), odd);
  for (uint64_t address : {uint64_t{0}, UINT64_MAX, uint64_t{1}, uint64_t{1} << 63}) {
    const FrameRef frame = dictionary->InternFrame({FrameKind::kNative, true, executable, address});
    dictionary->InternNode(Node{NodeRef{}, frame});
  }
  dictionary->InternFrame({.kind = FrameKind::kGo, .position = UINT32_MAX, .name = name});
  dictionary->InternFrame({.kind = FrameKind::kGo, .address = UINT64_MAX, .position = 1});
  dictionary->InternNode(Node{NodeRef{2}, FrameRef{}});
  const auto process = dictionary->InternProcess(Process{.key = {Pid{-1}, INT64_MIN, UINT32_MAX},
                                                         .parent = Pid{INT32_MAX},
                                                         .comm = name,
                                                         .executable = executable,
                                                         .executable_path = name,
                                                         .container_id = name,
                                                         .cgroup_path = name});
  const auto thread = dictionary->InternThread(Thread{process, Tid{INT32_MIN}, name});
  Batch batch{.sequence = UINT64_MAX, .clock = {MonotonicNs{INT64_MIN}, UnixNs{INT64_MAX}}, .dictionary = dictionary};
  batch.accounting.captured = uint64_t{1} << 48;
  for (SampleCounts& n : batch.accounting.lost) n = uint64_t{1} << 48;
  batch.samples = {
      Sample{.time = MonotonicNs{INT64_MIN},
             .node = NodeRef{},
             .cpu = UINT16_MAX,
             .count = UINT32_MAX,
             .value = UINT64_MAX,
             .attributes = name},
      Sample{.time = MonotonicNs{0}, .thread = thread, .node = NodeRef{5}, .type = SampleType::kOffCpu, .count = 0},
      Sample{.time = MonotonicNs{49'999}, .node = NodeRef{4}}, Sample{.time = MonotonicNs{50'000}, .node = NodeRef{1}},
      Sample{.time = MonotonicNs{INT64_MAX}, .thread = thread, .ending = Ending::kNoMapping}};
  BatchEncoder encoder(9);
  BatchDecoder decoder(9);
  Dictionary other;
  const IncomingBatch in = DecodeAll(encoder.Encode(batch), decoder, other);
  EXPECT_EQ(in.samples, Rounded(batch.samples));
  EXPECT_EQ(in.accounting, batch.accounting);
  EXPECT_EQ(in.sequence, UINT64_MAX);
  ExpectEqualDictionaries(*dictionary, other);
  EXPECT_EQ(in.samples[2].time, MonotonicNs{0});
  EXPECT_EQ(in.samples[3].time, MonotonicNs{100'000});
}

TEST(BatchCodec, SortsSamplesByTime) {
  BatchGenerator generator(3);
  Batch batch = generator.Next(50);
  std::reverse(batch.samples.begin(), batch.samples.end());
  BatchEncoder encoder(1);
  BatchDecoder decoder(1);
  Dictionary other;
  EXPECT_EQ(DecodeAll(encoder.Encode(batch), decoder, other).samples, Rounded(batch.samples));
}

TEST(BatchCodec, SplitsDefinitionsOverFramesThatEachFit) {
  DictionaryLimits limits{.nodes_max = 2'000'000, .frames_max = 2'000'000};
  auto dictionary = std::make_shared<Dictionary>(limits);
  for (int i = 0; i < 2000; ++i) dictionary->InternString(std::to_string(i) + std::string(4000, 's'));
  std::mt19937_64 random(1);
  for (uint32_t i = 0; i < 600'000; ++i) {
    const FrameRef frame = dictionary->InternFrame({FrameKind::kNative, false, ExecutableRef{}, random()});
    dictionary->InternNode(Node{NodeRef{static_cast<uint32_t>(random() % dictionary->node_count())}, frame});
  }
  Batch batch{.sequence = 1, .dictionary = dictionary};
  batch.samples.resize(BatchEncoder::kSamplesPerBatchMax);
  for (Sample& sample : batch.samples) {
    sample.node = NodeRef{static_cast<uint32_t>(random() % dictionary->node_count())};
    sample.value = random();  // the widest possible value column
  }
  BatchEncoder encoder(1);
  const auto frames = encoder.Encode(batch);
  EXPECT_GE(frames.size(), 4u);
  EXPECT_EQ(encoder.sent(), dictionary->counts());
  BatchDecoder decoder(1, limits);
  Dictionary other(limits);
  const IncomingBatch in = DecodeAll(frames, decoder, other);
  EXPECT_EQ(in.samples, batch.samples);
  ExpectEqualDictionaries(*dictionary, other);
}

TEST(BatchCodec, ResendsFromThePeersPosition) {
  BatchGenerator generator(5);
  const Batch first = generator.Next(100);
  BatchEncoder encoder(1);
  BatchDecoder decoder(1);
  Dictionary other;
  DecodeAll(encoder.Encode(first), decoder, other);
  const Batch second = generator.Next(100);
  const DictionaryCounts have = decoder.have();
  encoder.Encode(second);  // lost in transit
  encoder.set_sent(have);
  EXPECT_EQ(DecodeAll(encoder.Encode(second), decoder, other).samples, Rounded(second.samples));
  ExpectEqualDictionaries(*second.dictionary, other);
}

TEST(BatchCodec, ReadsTheGenerationOfAPayload) {
  BatchGenerator generator(5);
  BatchEncoder encoder(77);
  const Frame frame = Unframe(encoder.Encode(generator.Next(10)).back());
  EXPECT_EQ(GenerationOf(frame.type, frame.payload)->generation, 77u);
}

TEST(BatchDecoder, AsksForTheDictionaryOnAnotherGenerationOrAGap) {
  BatchGenerator generator(5);
  BatchEncoder encoder(2);
  const Frame first = Unframe(encoder.Encode(generator.Next(100)).back());
  const Frame second = Unframe(encoder.Encode(generator.Next(100)).back());
  BatchDecoder older(1);
  EXPECT_EQ(older.Decode(first.type, 1, first.payload).status().code(), absl::StatusCode::kFailedPrecondition);
  BatchDecoder decoder(2);
  EXPECT_EQ(decoder.Decode(second.type, 2, second.payload).status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(decoder.have(), DictionaryCounts{});
  EXPECT_TRUE(decoder.Decode(first.type, 1, first.payload).ok());
  EXPECT_TRUE(decoder.Decode(second.type, 2, second.payload).ok());
}

TEST(BatchDecoder, EnforcesTheDictionaryLimits) {
  BatchGenerator generator(5);
  const Batch batch = generator.Next(100);
  const DictionaryCounts counts = batch.dictionary->counts();
  BatchEncoder encoder(1);
  const Frame frame = Unframe(encoder.Encode(batch).back());
  const DictionaryLimits exact{.nodes_max = counts.nodes,
                               .frames_max = counts.frames,
                               .strings_max = counts.strings,
                               .executables_max = counts.executables,
                               .processes_max = counts.processes,
                               .threads_max = counts.threads};
  EXPECT_TRUE(BatchDecoder(1, exact).Decode(frame.type, 1, frame.payload).ok());
  for (uint32_t DictionaryLimits::* limit :
       {&DictionaryLimits::nodes_max, &DictionaryLimits::frames_max, &DictionaryLimits::strings_max,
        &DictionaryLimits::executables_max, &DictionaryLimits::processes_max, &DictionaryLimits::threads_max}) {
    DictionaryLimits less = exact;
    --(less.*limit);
    BatchDecoder decoder(1, less);
    EXPECT_EQ(decoder.Decode(frame.type, 1, frame.payload).status().code(), absl::StatusCode::kOutOfRange);
    EXPECT_EQ(decoder.have(), DictionaryCounts{});
  }
}

// A batch of one process, thread, frame, node and sample, written byte by byte. Each test case spoils one thing.
struct Pieces {
  uint32_t generation = 1, derived_from = 0;
  std::string before, evicted;
  std::string string_lengths = "\x01", string_bytes = "x", executables = std::string("\x01\x01z\x01", 4);
  std::string frame_kinds = std::string(1, '\0'), frame_executables = "\x02", frame_addresses = "\x10";
  std::string chain_attach = "\x01", chain_lengths = "\x01", node_frames = std::string(1, '\0');
  std::string processes = std::string("\x02\x00\x02\x01\x01\x01\x02\x02\x00\x00", 10);
  std::string threads = std::string("\x00\x00\x02", 3), node_frame_ids;
  std::string later_column, repeated_column;
  // 0.5 ms after the clock; the newest thread, the next chain; CPU 1, the value 7 as one run.
  int64_t clock_ns = 0;
  std::string times = "\x0a", sample_threads = "\x41", sample_nodes = std::string(1, '\0'), cpus = "\x01\x01";
  std::string types, endings, values = "\x01\x07", counts;
  uint32_t lost = kLossReasonCount;
  uint64_t nodes_hash = Dictionary::RollHash(0, {NodeRef{0}, FrameRef{1}});

  void NoNodes() {
    chain_attach = chain_lengths = node_frames = "";
    nodes_hash = 0;
  }
  std::string Encode() const {
    capnp::MallocMessageBuilder message;
    auto root = message.initRoot<wire::Batch>();
    auto d = root.initDefinitions();
    d.setGeneration(generation), d.setDerivedFrom(derived_from);
    ColumnWriter definitions, samples;
    definitions.Put(DefinitionColumn::kBefore, before), definitions.Put(DefinitionColumn::kEvicted, evicted);
    definitions.Put(DefinitionColumn::kStringLengths, string_lengths);
    definitions.Put(DefinitionColumn::kStringBytes, string_bytes);
    definitions.Put(DefinitionColumn::kExecutables, executables);
    definitions.Put(DefinitionColumn::kFrameKinds, frame_kinds);
    definitions.Put(DefinitionColumn::kFrameExecutables, frame_executables);
    definitions.Put(DefinitionColumn::kFrameAddresses, frame_addresses);
    definitions.Put(DefinitionColumn::kChainAttach, chain_attach);
    definitions.Put(DefinitionColumn::kChainLengths, chain_lengths);
    definitions.Put(DefinitionColumn::kNodeFrames, node_frames);
    definitions.Put(DefinitionColumn::kProcesses, processes), definitions.Put(DefinitionColumn::kThreads, threads);
    definitions.Put(DefinitionColumn::kNodeFrameIds, node_frame_ids);
    definitions.Put(99, later_column), definitions.Put(99, repeated_column);
    d.setColumns(DataOf(definitions.bytes()));
    WriteClock(root.initClock(), {MonotonicNs{clock_ns}, UnixNs{}});
    auto losses = root.initLost(lost);
    for (unsigned i = 0; i < lost; ++i) losses.set(i, 1);
    root.setNodesHash(nodes_hash);
    samples.Put(SampleColumn::kTimes, times), samples.Put(SampleColumn::kThreads, sample_threads);
    samples.Put(SampleColumn::kNodes, sample_nodes), samples.Put(SampleColumn::kCpus, cpus);
    samples.Put(SampleColumn::kTypes, types), samples.Put(SampleColumn::kEndings, endings);
    samples.Put(SampleColumn::kValues, values), samples.Put(SampleColumn::kCounts, counts);
    root.setColumns(DataOf(samples.bytes()));
    return ToPayload(message);
  }
};

TEST(BatchDecoder, ReadsTheHandWrittenBatch) {
  auto in = BatchDecoder(1).Decode(MessageType::kBatch, 3, Pieces().Encode());
  ASSERT_TRUE(in.ok()) << in.status();
  ASSERT_EQ(in->samples.size(), 1u);
  EXPECT_EQ(in->samples[0], (Sample{.time = MonotonicNs{500'000},
                                    .thread = ThreadRef{1},
                                    .node = NodeRef{1},
                                    .type = SampleType::kCpu,
                                    .ending = Ending::kComplete,
                                    .cpu = 1,
                                    .count = 1,
                                    .value = 7}));
  ASSERT_EQ(in->definitions.frames.size(), 1u);
  EXPECT_EQ(in->definitions.frames[0], (tributary::Frame{FrameKind::kNative, false, ExecutableRef{1}, 8}));
  EXPECT_EQ(in->definitions.nodes[0], (Node{NodeRef{0}, FrameRef{1}}));
}

TEST(BatchDecoder, RefusesInconsistentBatches) {
  const std::string five_bytes = "\xff\xff\xff\xff\x0f";
  struct Case {
    const char* message;
    std::function<void(Pieces&)> spoil;
  };
  const Case cases[] = {
      {"stringBytes", [](Pieces& p) { p.string_lengths = "\x01\x01"; }},
      {"stringBytes", [](Pieces& p) { p.string_lengths = ""; }},
      {"stringLengths", [](Pieces& p) { p.string_lengths = "\x80"; }},
      {"stringBytes", [](Pieces& p) { p.string_bytes = "xy"; }},
      {"a string has 4097 bytes",
       [](Pieces& p) {
         p.string_lengths = "\x81\x20";
         p.string_bytes = std::string(4097, 's');
       }},
      {"executables", [](Pieces& p) { p.executables = "\x01\x01z"; }},
      {"executables", [](Pieces& p) { p.executables = "\x01\x15" + std::string(22, '\x01'); }},
      {"string 2 is not defined", [](Pieces& p) { p.executables = "\x01\x01z\x02"; }},
      {"an executable id is invalid", [](Pieces& p) { p.executables = std::string("\x01\x00\x01", 3); }},
      {"executables", [](Pieces& p) { p.executables += "\x01"; }},
      {"frameExecutables", [](Pieces& p) { p.frame_kinds = std::string(2, '\0'); }},
      {"frameKinds", [](Pieces& p) { p.frame_kinds = "\x80"; }},
      {"executable 2 is not defined", [](Pieces& p) { p.frame_executables = "\x03"; }},
      {"a frame has no executable", [](Pieces& p) { p.frame_executables = std::string(1, '\0'); }},
      {"frames", [](Pieces& p) { p.frame_addresses += "\x01"; }},
      {"frameAddresses", [](Pieces& p) { p.frame_addresses = "\x80"; }},
      {"chainAttach", [](Pieces& p) { p.chain_attach = ""; }},
      {"parent node at distance 0", [](Pieces& p) { p.chain_attach = std::string(1, '\0'); }},
      {"parent node at distance 2", [](Pieces& p) { p.chain_attach = "\x02"; }},
      {"chainLengths", [](Pieces& p) { p.chain_lengths = std::string(1, '\0'); }},
      {"nodeFrames", [](Pieces& p) { p.chain_lengths = "\x02"; }},
      {"chainAttach", [](Pieces& p) { p.chain_lengths += "\x01"; }},
      {"nodes", [](Pieces& p) { p.chain_attach += "\x01"; }},
      {"nodes", [](Pieces& p) { p.node_frames += "\x01"; }},
      {"frame at distance 2", [](Pieces& p) { p.node_frames = "\x09", p.node_frame_ids = "\x02"; }},
      {"nodeFrameIds", [](Pieces& p) { p.node_frames = "\x09"; }},
      {"nodeFrameIds", [](Pieces& p) { p.node_frames = "\x0a", p.node_frame_ids = "\x01"; }},
      {"nodes", [](Pieces& p) { p.node_frame_ids = "\x01"; }},
      {"never followed", [](Pieces& p) { p.node_frames = "\x01"; }},
      {"processes", [](Pieces& p) { p.processes.pop_back(); }},
      {"processes", [](Pieces& p) { p.processes += "\x01"; }},
      {"string 9 is not defined", [](Pieces& p) { p.processes[5] = 9; }},
      {"executable 9 is not defined", [](Pieces& p) { p.processes[6] = 10; }},
      {"processes", [&](Pieces& p) { p.processes.replace(0, 1, "\xff\xff\xff\xff\x7f"); }},
      {"threads", [](Pieces& p) { p.threads[0] = 2; }},
      {"string 5 is not defined", [](Pieces& p) { p.threads[2] = 6; }},
      {"threads", [](Pieces& p) { p.threads += "\x01"; }},
      {"before", [](Pieces& p) { p.before = "\x01\x01\x01\x01\x01"; }},
      {"before", [](Pieces& p) { p.before = "\x01\x01\x01\x01\x01\x01\x01"; }},
      {"definition columns",
       [](Pieces& p) {
         p.later_column = "x";
         p.repeated_column = "x";
       }},
      {"continues no dictionary generation", [](Pieces& p) { p.evicted = "\x01\x01\x01\x01\x01\x01"; }},
      {"loss reasons", [](Pieces& p) { p.lost = 65; }},
      {"100000 samples",
       [](Pieces& p) {
         p.times = std::string(100'001, '\0');
         p.sample_nodes = std::string(100'001, '\1');
         p.sample_threads = std::string(1, '\x41') + std::string(100'000, '\0');
       }},
      {"threads", [](Pieces& p) { p.times += "\x01"; }},
      {"times", [](Pieces& p) { p.times = "\x80"; }},
      {"differ in length", [](Pieces& p) { p.times = ""; }},
      {"differ in length", [](Pieces& p) { p.sample_threads += "\x01"; }},
      {"differ in length", [](Pieces& p) { p.sample_nodes += "\x01"; }},
      {"differ in length", [](Pieces& p) { p.cpus = std::string("\x00\x01\x01", 3); }},
      {"differ in length", [](Pieces& p) { p.types = "\x01\x01\x02\x01\x02"; }},
      {"differ in length", [](Pieces& p) { p.endings = std::string("\x00\x01\x01", 3); }},
      {"differ in length", [](Pieces& p) { p.values = "\x01\x07\x02\x01"; }},
      {"counts", [](Pieces& p) { p.counts = std::string("\x01\x01\x00", 3); }},
      {"types", [](Pieces& p) { p.types = "\x02\x01"; }},
      {"endings", [](Pieces& p) { p.endings = "\x01"; }},
      {"cpus", [](Pieces& p) { p.cpus = "\x01\x80"; }},
      {"threads", [](Pieces& p) { p.sample_threads = ""; }},
      {"recent thread 0", [](Pieces& p) { p.sample_threads = "\x01"; }},
      {"thread at distance 2", [](Pieces& p) { p.sample_threads = "\x43"; }},
      {"node 3 is not defined", [](Pieces& p) { p.sample_nodes = "\x03"; }},
      {"node 0 is not defined", [](Pieces& p) { p.NoNodes(); }},
      {"out of range", [&](Pieces& p) { p.cpus = "\x01" + five_bytes; }},
      {"out of range", [&](Pieces& p) { p.types = "\x01" + five_bytes; }},
      {"out of range", [&](Pieces& p) { p.counts = "\x01\xff\xff\xff\xff\x1f"; }},
      {"the time of a sample is out of range",
       [](Pieces& p) {
         p.clock_ns = INT64_MAX;
         p.times = "\x10";
       }},
      {"the time of a sample is out of range",
       [](Pieces& p) {
         p.clock_ns = INT64_MIN;
         p.times = "\x0f";
       }},
      {"the time of a sample is out of range", [](Pieces& p) { p.times = "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"; }},
      {"the time of a sample is out of range",
       [](Pieces& p) { p.times = "\x01\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"; }},
  };
  for (size_t i = 0; i < std::size(cases); ++i) {
    SCOPED_TRACE(i);
    Pieces pieces;
    cases[i].spoil(pieces);
    BatchDecoder decoder(1);
    auto in = decoder.Decode(MessageType::kBatch, 1, pieces.Encode());
    ASSERT_FALSE(in.ok()) << cases[i].message;
    EXPECT_EQ(in.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(Message(in.status()), HasSubstr(cases[i].message));
    EXPECT_EQ(decoder.have(), DictionaryCounts{}) << "an error changes nothing";
  }
}

TEST(BatchDecoder, ReadsValuesOfALaterReleaseAsUnknown) {
  Pieces pieces;
  pieces.executables[0] = 9;
  pieces.frame_kinds = "\x41";  // kind 32 xor native, a caller
  pieces.endings = "\x01\x63";
  pieces.types = "\x01\x09";
  pieces.later_column = "of a later release";
  pieces.lost = kLossReasonCount + 2;
  auto in = BatchDecoder(1).Decode(MessageType::kBatch, 1, pieces.Encode());
  ASSERT_TRUE(in.ok()) << in.status();
  EXPECT_FALSE(in->definitions.executables[0].id.known());
  EXPECT_EQ(in->definitions.frames[0].kind, FrameKind::kUnknown);
  EXPECT_TRUE(in->definitions.frames[0].is_caller);
  EXPECT_EQ(in->samples[0].ending, Ending::kUnknown);
  EXPECT_EQ(static_cast<int>(in->samples[0].type), 9);
  EXPECT_EQ(in->accounting.TotalLost(), kLossReasonCount + 2u);
  EXPECT_EQ(in->unknown_values, 7u);
}

// A kind is encoded as its difference from a neighbour's kind: a kind unknown here must not change the kinds after it.
TEST(BatchCodec, UnknownFrameKindsDoNotChangeTheirNeighbours) {
  auto dictionary = std::make_shared<Dictionary>();
  const ExecutableRef file =
      dictionary->InternExecutable(*ExecutableId::Make(ExecutableIdKind::kGnuBuildId, "file"), "/file");
  const std::vector<tributary::Frame> stack = {{static_cast<FrameKind>(77), true, file, 0x10},
                                               {FrameKind::kKernel, true, file, 0x20},
                                               {static_cast<FrameKind>(78), true, file, 0x30},
                                               {FrameKind::kGo, false, file, 0x40}};
  Batch batch{.sequence = 1, .dictionary = dictionary};
  batch.samples.push_back({.node = dictionary->InternStack(stack)});
  BatchDecoder decoder(1);
  Dictionary got;
  DecodeAll(BatchEncoder(1).Encode(batch), decoder, got);
  std::vector<FrameKind> kinds;
  for (uint32_t i = 1; i < got.frame_count(); ++i) kinds.push_back(got.frame(FrameRef{i}).kind);
  EXPECT_EQ(kinds,
            (std::vector<FrameKind>{FrameKind::kUnknown, FrameKind::kKernel, FrameKind::kUnknown, FrameKind::kGo}));
}

TEST(BatchDecoder, NeverAcceptsUndefinedReferences) {
  BatchGenerator generator(11);
  BatchEncoder encoder(1);
  const std::string payload = Unframe(encoder.Encode(generator.Next(30)).back()).payload;
  std::mt19937_64 random(4);
  int accepted = 0;
  for (int i = 0; i < 20'000; ++i) {
    std::string changed = payload;
    for (uint64_t n = random() % 3 + 1; n > 0; --n) changed[random() % changed.size()] = static_cast<char>(random());
    BatchDecoder decoder(1);
    auto in = decoder.Decode(MessageType::kBatch, 1, changed);
    if (!in.ok()) continue;
    ++accepted;
    Dictionary dictionary;
    ASSERT_TRUE(dictionary.Append(in->definitions));
    for (const Sample& sample : in->samples) {
      ASSERT_LT(sample.node.value, dictionary.node_count());
      ASSERT_LT(sample.thread.value, dictionary.thread_count());
      ASSERT_LT(static_cast<int>(sample.ending), kEndingCount);
    }
  }
  EXPECT_GT(accepted, 100) << "the changes must reach past the first checks";
}

TEST(BatchCodec, StaysSmallPerSample) {
  BatchGenerator generator(1);
  BatchEncoder encoder(1);
  size_t bytes = 0, samples = 0;
  for (int i = 0; i < 100; ++i) {
    const Batch batch = generator.Next(190);  // 5 s of 2 CPUs at 19 Hz
    samples += batch.samples.size();
    for (const std::string& frame : encoder.Encode(batch)) bytes += frame.size();
  }
  const double per_sample = static_cast<double>(bytes) / static_cast<double>(samples);
  RecordProperty("bytes_per_sample", std::to_string(per_sample));
  printf("wire: %.2f bytes a sample\n", per_sample);
  EXPECT_LT(per_sample, 30);
}

}  // namespace
}  // namespace tributary::intake
