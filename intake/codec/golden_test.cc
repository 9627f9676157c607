#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "intake/codec/batch_decoder.h"
#include "intake/codec/batch_encoder.h"
#include "intake/metadata/metadata_message.h"
#include "intake/testing/batch_generator_testing.h"
#include "intake/wire/frame.h"
#include "intake/wire/messages.h"

// One frame of every message type as each released version sent it: readers must understand them for ever.
// UPDATE_GOLDEN=1 writes the missing files, and the fuzz corpus (the same frames, each after a byte for how they
// arrive).

namespace tributary::intake {
namespace {

const std::filesystem::path kSource = TRIBUTARY_SOURCE_DIR;
constexpr uint64_t kBatchValueSum = 631'578'936, kBatchAddressSum = 20'851'784;
constexpr int64_t kBatchFirstTime = 1'000'003'200'000;
constexpr uint64_t kKey = 0x0123'4567'89ab'cdef;

ExecutableId OtherId() { return *ExecutableId::Make(ExecutableIdKind::kGoBuildId, "go"); }
ExecutableId SomeId() { return *ExecutableId::Make(ExecutableIdKind::kGnuBuildId, "0123456789abcdef0123"); }

Batch SomeBatch() {
  BatchGenerator generator(2026);
  generator.accounting().lost[static_cast<size_t>(LossReason::kRingFull)] = 3;
  return generator.Next(12);
}

// A process that starts, begins to run another program and fails, and a sum of forty processes.
Batch SomeEvents() {
  auto dictionary = std::make_shared<Dictionary>();
  Batch batch{.sequence = 3, .clock = {MonotonicNs{5 * kNsPerSecond}, UnixNs{kNsPerSecond}}, .dictionary = dictionary};
  ProcessEvent event{.time = MonotonicNs{4 * kNsPerSecond},
                     .kind = ProcessEventKind::kStart,
                     .pid = Pid{4242},
                     .parent = Pid{17},
                     .start_time_ns = 4 * kNsPerSecond - 1'234,
                     .uid = 1000,
                     .name = dictionary->InternString("sh"),
                     .executable_path = dictionary->InternString("/bin/sh"),
                     .container_id = dictionary->InternString(std::string(64, 'c')),
                     .cgroup_path = dictionary->InternString("/pod")};
  batch.events.push_back(event);
  event.kind = ProcessEventKind::kExec;
  event.name = dictionary->InternString("check");
  event.executable_path = dictionary->InternString("/bin/check");
  batch.events.push_back(event);
  event.kind = ProcessEventKind::kExit;
  event.time = MonotonicNs{4'500'000'000};
  event.end = {
      .exit_code = 3, .oom_killed = true, .run_ns = 500'001'234, .user_ns = 7, .system_ns = 5, .peak_rss_bytes = 8192};
  batch.events.push_back(event);
  ProcessEvent sum = event;
  sum.kind = ProcessEventKind::kSum;
  sum.pid = Pid{};
  sum.start_time_ns = 0;
  sum.events = 120;
  sum.processes = 40;
  sum.end = {.signal = 11, .core_dumped = true, .run_ns = 99};
  batch.events.push_back(sum);
  batch.accounting.captured.AddEvents(130);
  batch.accounting.LostFor(LossReason::kEventOverflow).AddEvents(7);
  return batch;
}

std::vector<std::string> SomeContainers() { return {std::string(64, 'c'), "handle-1"}; }

SymbolDigestAnswer SomeDigest() {
  SymbolDigestAnswer answer{.id = SomeId(), .source = 2};
  for (uint8_t i = 0; i < 32; ++i) answer.sha256[i] = i;
  return answer;
}

std::vector<std::pair<std::string, std::string>> CurrentFrames() {
  Hello hello;
  hello.session.session_id = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};
  hello.session.node_id = "9f8c4d";
  hello.session.boot_id = "b00t";
  hello.session.host_name = "host-1";
  hello.session.kernel_release = "6.1.0-40";
  hello.session.architecture = "amd64";
  hello.session.agent_version = "0.1.0";
  hello.session.cpu_count = 8;
  hello.session.sample_rate_hz = 19;
  hello.dictionary_generation = 2;
  hello.sent = {.strings = 5, .executables = 3, .frames = 11, .nodes = 21, .processes = 4, .threads = 6};
  hello.next_sequence = 42;
  hello.clock = {MonotonicNs{123'456'789}, UnixNs{1'763'700'000'000'000'000}};
  hello.token = "token";
  Hello digests = hello;
  digests.features = kFeatureSymbolDigests;
  Welcome welcome;
  welcome.durable_sequence = 41;
  welcome.dictionary_kept = true;
  welcome.have = hello.sent;
  Welcome features = welcome;
  features.features = kFeatureProcessEvents;
  BatchEncoder encoder(7);
  Batch batch = SomeBatch();
  const std::string batch_frame = encoder.Encode(batch).back();
  // A dictionary that is too large for its batch makes a kDefinitions frame.
  auto large = std::make_shared<Dictionary>();
  for (int i = 0; i < 800; ++i) large->InternString(std::to_string(i) + std::string(4090, 's'));
  BatchEncoder definitions_encoder(8);
  const std::string definitions = definitions_encoder.Encode({.sequence = 1, .dictionary = large}).front();
  // Ten nodes after the eviction of the two that were used first, and one new node.
  auto full = std::make_shared<Dictionary>(DictionaryLimits{.nodes_max = 12});
  for (uint32_t i = 1; i <= 10; ++i) {
    full->SetNow(i);
    full->InternNode({NodeRef{}, full->InternFrame({FrameKind::kNative, false, ExecutableRef{}, 0x100 + i})});
  }
  BatchEncoder full_encoder(9);
  const std::string before_eviction = full_encoder.Encode({.sequence = 1, .dictionary = full}).back();
  const std::shared_ptr<Dictionary> evicted = EvictOldest(full);
  Batch after{.sequence = 2, .dictionary = evicted};
  after.samples.push_back({.node = evicted->InternNode({NodeRef{8}, FrameRef{1}})});
  const std::string eviction = BatchEncoder::Following(10, &full_encoder, *evicted).Encode(after).back();
  MetadataUpdate update{.begins_snapshot = true, .ends_snapshot = true, .entities = {}};
  update.entities.push_back(
      {EntityKind::kPod, "7c0ffee0", UnixNs{1'763'700'000'000'000'000}, false, {{"k8s.pod.name", "web-1"}}});
  update.entities.push_back(
      {EntityKind::kContainer, "c0de", {}, true, {{"container.image.name", "web"}, {"k8s.pod.uid", "7c0ffee0"}}});
  return {
      {"metadata", EncodeFrame(MessageType::kMetadata, 0, 0, EncodeMetadata(update))},
      {"batch_attributes", BatchEncoder(7).Encode(BatchGenerator(2027).Next(12)).back()},
      {"before_eviction", before_eviction},
      {"eviction", eviction},
      {"hello", EncodeFrame(MessageType::kHello, 0, 0, EncodeHello(hello))},
      {"welcome", EncodeFrame(MessageType::kWelcome, 0, 0, EncodeWelcome(welcome))},
      {"welcome_features", EncodeFrame(MessageType::kWelcome, 0, 0, EncodeWelcome(features))},
      {"batch_events", BatchEncoder(7).Encode(SomeEvents()).back()},
      {"definitions", definitions},
      {"batch", batch_frame},
      {"ack", EncodeFrame(MessageType::kAck, 0, 0, EncodeAck(41))},
      {"need_dictionary", EncodeFrame(MessageType::kNeedDictionary, 0, 0, EncodeNeedDictionary(7))},
      {"need_symbols", EncodeFrame(MessageType::kNeedSymbols, 0, 0, EncodeNeedSymbols({{SomeId(), {}}}))},
      {"need_symbols_part",
       EncodeFrame(MessageType::kNeedSymbols, 0, 0,
                   EncodeNeedSymbols({{OtherId(), {}}, {SomeId(), {131'072, 200'000, 900'000, kKey}}}))},
      {"symbol_chunk",
       EncodeFrame(
           MessageType::kSymbolChunk, kChannelSymbols, 0,
           EncodeSymbolChunk(
               {.id = SomeId(), .offset = 65536, .total_bytes = 65540, .raw_bytes = 900'000, .bytes = "tail"}))},
      {"symbol_chunk_key", EncodeFrame(MessageType::kSymbolChunk, kChannelSymbols, 0,
                                       EncodeSymbolChunk({.id = SomeId(),
                                                          .offset = 65536,
                                                          .total_bytes = 65540,
                                                          .raw_bytes = 900'000,
                                                          .bytes = "tail",
                                                          .unavailable = {},
                                                          .key = kKey}))},
      {"hello_features", EncodeFrame(MessageType::kHello, 0, 0, EncodeHello(digests))},
      {"need_digests", EncodeFrame(MessageType::kNeedDigests, 0, 0, EncodeNeedDigests({OtherId(), SomeId()}))},
      {"symbol_digest", EncodeFrame(MessageType::kSymbolDigest, kChannelSymbols, 0, EncodeSymbolDigest(SomeDigest()))},
      {"opt_outs", EncodeFrame(MessageType::kOptOuts, 0, 0, EncodeOptOuts(SomeContainers()))},
      {"heartbeat", EncodeFrame(MessageType::kHeartbeat, 0, 0, EncodeHeartbeat(MonotonicNs{5}))},
      {"goodbye", EncodeFrame(MessageType::kGoodbye, 0, 0,
                              EncodeGoodbye({.reason = "stopping", .retry = true, .rejected_sequence = 9}))},
  };
}

void WriteFile(const std::filesystem::path& path, const std::string& bytes) {
  std::filesystem::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << bytes;
}

void WriteCorpus(const std::vector<std::pair<std::string, std::string>>& frames) {
  const auto folder = kSource / "test/fuzz/corpus/intake_frame_fuzz";
  std::string session;
  for (const auto& [name, frame] : frames) {
    FrameDecoder decoder;
    decoder.Append(frame);
    Frame opened;
    ASSERT_TRUE(*decoder.Next(&opened));
    if (opened.payload.size() > 100'000) continue;
    // Uncompressed as well, because a fuzzer cannot guess compressed bytes. Flags off, stored length = raw length.
    std::string plain = frame.substr(0, kHeaderBytes) + opened.payload;
    plain[6] = 0;
    plain.replace(20, 4, plain.substr(16, 4));
    WriteFile(folder / name, std::string(1, '\0') + plain);
    WriteFile(folder / (name + "_stored"), "\x9d" + frame);
    session += frame;
  }
  WriteFile(folder / "session", "\x07" + session);
  WriteFile(folder / "truncated", std::string(1, '\0') + session.substr(0, session.size() - 3));
  WriteFile(folder / "http", std::string(1, '\0') + "GET / HTTP/1.1\r\n\r\n");
}

class Golden : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    if (getenv("UPDATE_GOLDEN") == nullptr) return;
    const auto frames = CurrentFrames();
    for (const auto& [name, frame] : frames) {
      const auto path = kSource / "schemas/golden/v1" / (name + ".bin");
      if (!std::filesystem::exists(path)) WriteFile(path, frame);
    }
    WriteCorpus(frames);
  }
  static Frame Read(const std::string& name) {
    std::ifstream in(kSource / "schemas/golden/v1" / (name + ".bin"), std::ios::binary);
    const std::string bytes((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
    FrameDecoder decoder;
    decoder.Append(bytes);
    Frame frame;
    auto got = decoder.Next(&frame);
    EXPECT_TRUE(got.ok() && *got) << name << got.status();
    EXPECT_EQ(decoder.buffered_bytes(), 0u);
    return frame;
  }
};

TEST_F(Golden, HelloOfV1) {
  const Frame frame = Read("hello");
  EXPECT_EQ(frame.type, MessageType::kHello);
  auto hello = DecodeHello(frame.payload);
  ASSERT_TRUE(hello.ok()) << hello.status();
  EXPECT_EQ(hello->version_min, 1);
  EXPECT_EQ(hello->version_max, 1);
  EXPECT_EQ(hello->role, Role::kNode);
  EXPECT_EQ(hello->session.session_id[15], 16);
  EXPECT_EQ(hello->session.node_id, "9f8c4d");
  EXPECT_EQ(hello->session.boot_id, "b00t");
  EXPECT_EQ(hello->session.host_name, "host-1");
  EXPECT_EQ(hello->session.kernel_release, "6.1.0-40");
  EXPECT_EQ(hello->session.architecture, "amd64");
  EXPECT_EQ(hello->session.agent_version, "0.1.0");
  EXPECT_EQ(hello->session.cpu_count, 8u);
  EXPECT_EQ(hello->session.sample_rate_hz, 19u);
  EXPECT_EQ(hello->dictionary_generation, 2u);
  EXPECT_EQ(hello->sent, (DictionaryCounts{5, 3, 11, 21, 4, 6}));
  EXPECT_EQ(hello->next_sequence, 42u);
  EXPECT_EQ(hello->clock.monotonic, MonotonicNs{123'456'789});
  EXPECT_EQ(hello->clock.unix, UnixNs{1'763'700'000'000'000'000});
  EXPECT_EQ(hello->token, "token");
}

TEST_F(Golden, WelcomeOfV1) {
  auto welcome = DecodeWelcome(Read("welcome").payload);
  ASSERT_TRUE(welcome.ok()) << welcome.status();
  EXPECT_EQ(welcome->version, 1);
  EXPECT_EQ(welcome->durable_sequence, 41u);
  EXPECT_TRUE(welcome->dictionary_kept);
  EXPECT_EQ(welcome->have, (DictionaryCounts{5, 3, 11, 21, 4, 6}));
  EXPECT_EQ(welcome->credit_bytes, 16u << 20);
  EXPECT_EQ(welcome->dictionary_nodes_max, 131'072u);
  EXPECT_EQ(welcome->heartbeat_ms, 5000u);
}

TEST_F(Golden, MetadataOfV1) {
  uint32_t unknown_values = 0;
  auto update = DecodeMetadata(Read("metadata").payload, &unknown_values);
  ASSERT_TRUE(update.ok()) << update.status();
  EXPECT_TRUE(update->begins_snapshot);
  EXPECT_TRUE(update->ends_snapshot);
  ASSERT_EQ(update->entities.size(), 2u);
  EXPECT_EQ(
      update->entities[0],
      (Entity{EntityKind::kPod, "7c0ffee0", UnixNs{1'763'700'000'000'000'000}, false, {{"k8s.pod.name", "web-1"}}}));
  EXPECT_EQ(
      update->entities[1],
      (Entity{
          EntityKind::kContainer, "c0de", {}, true, {{"container.image.name", "web"}, {"k8s.pod.uid", "7c0ffee0"}}}));
}

TEST_F(Golden, ProcessAttributesOfV1) {
  const Frame frame = Read("batch_attributes");
  BatchDecoder decoder(7);
  auto batch = decoder.Decode(frame.type, frame.sequence, frame.payload);
  ASSERT_TRUE(batch.ok()) << batch.status();
  std::vector<std::string> attributes;
  for (const Process& process : batch->definitions.processes) {
    if (process.attributes.value != 0) attributes.push_back(batch->definitions.strings[process.attributes.value - 1]);
  }
  EXPECT_THAT(attributes, testing::Each(testing::StartsWith("service.name=program")));
  EXPECT_FALSE(attributes.empty());
}

TEST_F(Golden, DefinitionsOfV1) {
  const Frame frame = Read("definitions");
  EXPECT_EQ(frame.type, MessageType::kDefinitions);
  BatchDecoder decoder(8);
  auto batch = decoder.Decode(frame.type, frame.sequence, frame.payload);
  ASSERT_TRUE(batch.ok()) << batch.status();
  ASSERT_GT(batch->definitions.strings.size(), 700u);
  EXPECT_EQ(batch->definitions.strings[5], "5" + std::string(4090, 's'));
}

TEST_F(Golden, BatchOfV1) {
  const Frame frame = Read("batch");
  EXPECT_EQ(frame.type, MessageType::kBatch);
  EXPECT_EQ(frame.sequence, 1u);
  BatchDecoder decoder(7);
  auto batch = decoder.Decode(frame.type, frame.sequence, frame.payload);
  ASSERT_TRUE(batch.ok()) << batch.status();
  Dictionary dictionary;
  ASSERT_TRUE(dictionary.Append(batch->definitions));
  EXPECT_EQ(batch->nodes_hash, dictionary.rolling_hash());
  EXPECT_EQ(batch->accounting.captured, 12u);
  EXPECT_EQ(batch->accounting.lost[0], 3u);
  // Compared with fixed values, not with the current encoder.
  ASSERT_EQ(batch->samples.size(), 12u);
  uint64_t value = 0, address = 0;
  for (const Sample& sample : batch->samples) {
    value += sample.value;
    EXPECT_EQ(dictionary.thread(sample.thread).tid.value / 1000, 1);
    for (NodeRef node = sample.node; node.value != 0; node = dictionary.node(node).parent) {
      address += dictionary.frame(dictionary.node(node).frame).address;
    }
  }
  EXPECT_EQ(value, kBatchValueSum);
  EXPECT_EQ(address, kBatchAddressSum);
  EXPECT_EQ(batch->samples.front().time, MonotonicNs{kBatchFirstTime});
}

TEST_F(Golden, ProcessEventsOfV1) {
  EXPECT_EQ(DecodeWelcome(Read("welcome").payload)->features, 0u);
  EXPECT_EQ(DecodeWelcome(Read("welcome_features").payload)->features, kFeatureProcessEvents);
  const Frame frame = Read("batch_events");
  BatchDecoder decoder(7);
  auto batch = decoder.Decode(frame.type, frame.sequence, frame.payload);
  ASSERT_TRUE(batch.ok()) << batch.status();
  const Batch expected = SomeEvents();
  Dictionary dictionary;
  ASSERT_TRUE(dictionary.Append(batch->definitions));
  EXPECT_EQ(dictionary.string(batch->events.at(2).executable_path), "/bin/check");
  EXPECT_EQ(batch->events, expected.events);
  EXPECT_EQ(batch->accounting, expected.accounting);
}

TEST_F(Golden, EvictionOfV1) {
  BatchDecoder decoder(9);
  const Frame before = Read("before_eviction"), frame = Read("eviction");
  ASSERT_TRUE(decoder.Decode(before.type, before.sequence, before.payload).ok());
  EXPECT_EQ(GenerationOf(frame.type, frame.payload)->derived_from, 9u);
  auto batch = decoder.Decode(frame.type, frame.sequence, frame.payload);
  ASSERT_TRUE(batch.ok()) << batch.status();
  ASSERT_TRUE(batch->derived);
  EXPECT_EQ(batch->generation, 10u);
  EXPECT_EQ(batch->derived->eviction.nodes.runs(), (std::vector<uint32_t>{0, 2, 8}));
  EXPECT_EQ(batch->derived->eviction.frames.runs(), (std::vector<uint32_t>{0, 2, 8}));
  EXPECT_EQ(batch->before, (DictionaryCounts{.frames = 9, .nodes = 9}));
  EXPECT_EQ(batch->definitions.nodes, (std::vector<Node>{{NodeRef{8}, FrameRef{1}}}));
  ASSERT_EQ(batch->samples.size(), 1u);
  EXPECT_EQ(batch->samples[0].node, NodeRef{9});
}

TEST_F(Golden, SmallMessagesOfV1) {
  EXPECT_EQ(*DecodeAck(Read("ack").payload), 41u);
  EXPECT_EQ(*DecodeNeedDictionary(Read("need_dictionary").payload), 7u);
  // From before parts existed: no table has a part.
  EXPECT_EQ(*DecodeNeedSymbols(Read("need_symbols").payload), (std::vector<SymbolRequest>{{SomeId(), {}}}));
  EXPECT_EQ(*DecodeNeedSymbols(Read("need_symbols_part").payload),
            (std::vector<SymbolRequest>{{OtherId(), {}}, {SomeId(), {131'072, 200'000, 900'000, kKey}}}));
  EXPECT_EQ(*DecodeHeartbeat(Read("heartbeat").payload), MonotonicNs{5});
  auto goodbye = DecodeGoodbye(Read("goodbye").payload);
  ASSERT_TRUE(goodbye.ok());
  EXPECT_EQ(goodbye->reason, "stopping");
  EXPECT_TRUE(goodbye->retry);
  EXPECT_EQ(goodbye->rejected_sequence, 9u);
  const Frame frame = Read("symbol_chunk");
  EXPECT_EQ(frame.channel, kChannelSymbols);
  auto chunk = DecodeSymbolChunk(frame.payload);
  ASSERT_TRUE(chunk.ok());
  EXPECT_EQ(chunk->id, SomeId());
  EXPECT_EQ(chunk->offset, 65536u);
  EXPECT_EQ(chunk->total_bytes, 65540u);
  EXPECT_EQ(chunk->raw_bytes, 900'000u);
  EXPECT_EQ(chunk->bytes, "tail");
  EXPECT_EQ(chunk->key, 0u) << "from before there were keys";
  auto with_key = DecodeSymbolChunk(Read("symbol_chunk_key").payload);
  ASSERT_TRUE(with_key.ok());
  EXPECT_EQ(with_key->offset, 65536u);
  EXPECT_EQ(with_key->key, kKey);
  EXPECT_EQ(DecodeHello(Read("hello").payload)->features, 0u);
  EXPECT_EQ(DecodeHello(Read("hello_features").payload)->features, kFeatureSymbolDigests);
  EXPECT_EQ(*DecodeNeedDigests(Read("need_digests").payload), (std::vector<ExecutableId>{OtherId(), SomeId()}));
  EXPECT_EQ(*DecodeSymbolDigest(Read("symbol_digest").payload), SomeDigest());
  EXPECT_EQ(*DecodeOptOuts(Read("opt_outs").payload), SomeContainers());
}

std::vector<std::filesystem::path> AllMessages() {
  std::vector<std::filesystem::path> messages;
  for (const auto& file : std::filesystem::recursive_directory_iterator(kSource / "schemas/golden")) {
    if (file.path().extension() == ".bin") messages.push_back(file.path());
  }
  std::sort(messages.begin(), messages.end());
  return messages;
}

std::string BytesOf(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

absl::Status Decode(const Frame& frame) {
  uint32_t unknown_values = 0;
  switch (frame.type) {
    case MessageType::kHello:
      return DecodeHello(frame.payload).status();
    case MessageType::kWelcome:
      return DecodeWelcome(frame.payload).status();
    case MessageType::kAck:
      return DecodeAck(frame.payload).status();
    case MessageType::kNeedDictionary:
      return DecodeNeedDictionary(frame.payload).status();
    case MessageType::kNeedSymbols:
      return DecodeNeedSymbols(frame.payload).status();
    case MessageType::kSymbolChunk:
      return DecodeSymbolChunk(frame.payload).status();
    case MessageType::kNeedDigests:
      return DecodeNeedDigests(frame.payload).status();
    case MessageType::kSymbolDigest:
      return DecodeSymbolDigest(frame.payload).status();
    case MessageType::kOptOuts:
      return DecodeOptOuts(frame.payload).status();
    case MessageType::kHeartbeat:
      return DecodeHeartbeat(frame.payload).status();
    case MessageType::kGoodbye:
      return DecodeGoodbye(frame.payload).status();
    case MessageType::kMetadata:
      return DecodeMetadata(frame.payload, &unknown_values).status();
    case MessageType::kDefinitions:
    case MessageType::kBatch: {
      auto info = GenerationOf(frame.type, frame.payload);
      if (!info.ok() || info->derived_from != 0) return info.status();  // needs its predecessor: see EvictionOfV1
      return BatchDecoder(info->generation).Decode(frame.type, frame.sequence, frame.payload).status();
    }
  }
  return absl::UnimplementedError("a type that is not known");
}

TEST_F(Golden, EveryMessageDecodes) {
  const auto messages = AllMessages();
  EXPECT_GE(messages.size(), CurrentFrames().size());
  for (const auto& path : messages) {
    FrameDecoder decoder;
    decoder.Append(BytesOf(path));
    Frame frame;
    const absl::StatusOr<bool> got = decoder.Next(&frame);
    ASSERT_TRUE(got.ok() && *got) << path << got.status();
    EXPECT_EQ(decoder.buffered_bytes(), 0u) << path;
    const absl::Status decoded = Decode(frame);
    EXPECT_TRUE(decoded.ok()) << path << decoded;
  }
}

// A flipped bit never goes unnoticed: the frame is refused, or, if the bit makes it longer, the decoder waits for more.
TEST_F(Golden, EveryDamagedMessageIsRefused) {
  for (const auto& path : AllMessages()) {
    const std::string bytes = BytesOf(path);
    for (size_t at = 0; at < bytes.size(); ++at) {
      std::string damaged = bytes;
      damaged[at] ^= 0x10;
      FrameDecoder decoder;
      decoder.Append(damaged);
      Frame frame;
      const absl::StatusOr<bool> got = decoder.Next(&frame);
      ASSERT_FALSE(got.ok() && *got) << path << " byte " << at;
    }
  }
}

}  // namespace
}  // namespace tributary::intake
