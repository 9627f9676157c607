#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "base/golden_file_testing.h"
#include "intake/codec/batch_encoder.h"
#include "intake/spool/spool_segment.h"
#include "intake/testing/batch_generator_testing.h"
#include "intake/wire/frame.h"
#include "intake/wire/wire.h"
#include "profile/eviction.h"

// The corpora of batch_decoder_fuzz and spool_reader_fuzz must have the current version of the messages.
// UPDATE_GOLDEN=1 writes them.

namespace tributary::intake {
namespace {

const std::filesystem::path kCorpus = std::filesystem::path(TRIBUTARY_SOURCE_DIR) / "test/fuzz/corpus";

std::string PayloadOf(const std::string& frame) {
  FrameDecoder decoder;
  decoder.Append(frame);
  Frame opened;
  EXPECT_TRUE(*decoder.Next(&opened));
  return opened.payload;
}

// Uncompressed, because a fuzzer cannot guess compressed bytes.
std::string PlainFrame(const std::string& frame) {
  std::string plain = frame.substr(0, kHeaderBytes) + PayloadOf(frame);
  plain[6] = 0;
  plain.replace(20, 4, plain.substr(16, 4));
  return plain;
}

// Returns a batch's definitions as a separate message.
std::string DefinitionsOf(const std::string& payload) {
  kj::Array<capnp::word> words = kj::heapArray<capnp::word>(payload.size() / sizeof(capnp::word));
  std::copy(payload.begin(), payload.end(), words.asBytes().begin());
  capnp::FlatArrayMessageReader reader(words);
  capnp::MallocMessageBuilder definitions;
  definitions.setRoot(reader.getRoot<wire::Batch>().getDefinitions());
  return ToPayload(definitions);
}

// The numbers of the steps in batch_decoder_fuzz.cc.
enum Step : char { kBatch, kDefinitions, kUndo, kTruncate, kUnpack };
std::string StepOf(Step step, const std::string& bytes = "") {
  return std::string({step, static_cast<char>(bytes.size()), static_cast<char>(bytes.size() >> 8)}) + bytes;
}

// A few stacks, an eviction of the stacks that were used first, and more stacks.
std::pair<std::string, std::string> Eviction() {
  auto full = std::make_shared<Dictionary>(DictionaryLimits{.nodes_max = 12});
  Batch before{.sequence = 1, .dictionary = full};
  const StringRef name = full->InternString("comm");
  const ThreadRef thread = full->InternThread(
      Thread{full->InternProcess(Process{.key = {Pid{10}, 5, 1}, .parent = Pid{1}, .comm = name}), Tid{11}, name});
  const ExecutableRef file =
      full->InternExecutable(*ExecutableId::Make(ExecutableIdKind::kGnuBuildId, std::string(20, 'b')), "/bin/b");
  for (uint32_t i = 1; i <= 10; ++i) {
    full->SetNow(i);
    const NodeRef node =
        full->InternNode({NodeRef{i > 4 ? i - 3 : 0}, full->InternFrame({FrameKind::kNative, false, file, 0x100 + i})});
    before.samples.push_back({.time = MonotonicNs{i * kNsPerMs}, .thread = thread, .node = node, .value = 100});
  }
  BatchEncoder encoder(9);
  const std::string first = PayloadOf(encoder.Encode(before).back());
  const std::shared_ptr<Dictionary> evicted = EvictOldest(full);
  Batch after{.sequence = 2, .dictionary = evicted};
  for (const uint16_t cpu : {0, 1, 0, 3}) {
    after.samples.push_back({.node = evicted->InternNode({NodeRef{1}, FrameRef{1}}), .cpu = cpu});
  }
  return {first, PayloadOf(BatchEncoder::Following(10, &encoder, *evicted).Encode(after).back())};
}

TEST(FuzzCorpus, BatchDecoderIsUpToDate) {
  const auto folder = kCorpus / "batch_decoder_fuzz";
  BatchGenerator generator(11);
  BatchEncoder encoder(1);
  std::vector<std::string> batches;
  for (int i = 0; i < 3; ++i) batches.push_back(PayloadOf(encoder.Encode(generator.Next(3)).back()));
  const std::string first = StepOf(kBatch, batches[0]), second = StepOf(kBatch, batches[1]);
  ExpectFile(folder / "session", first + second + StepOf(kBatch, batches[2]));
  ExpectFile(folder / "undone", first + second + StepOf(kUndo) + second);
  ExpectFile(folder / "truncated", first + second + StepOf(kTruncate, std::string(1, '\1')) + second);
  ExpectFile(folder / "definitions_ahead", first + StepOf(kDefinitions, DefinitionsOf(batches[1])));
  const auto [before, after] = Eviction();
  const std::string eviction = StepOf(kBatch, before) + StepOf(kBatch, after);
  ExpectFile(folder / "eviction", eviction);
  ExpectFile(folder / "eviction_undone", eviction + StepOf(kUndo) + StepOf(kBatch, after));
  generator.NewDictionary();
  BatchEncoder events(2);
  const std::string with_events = StepOf(kBatch, PayloadOf(events.Encode(generator.Next(2, 8)).back())),
                    events_alone = StepOf(kBatch, PayloadOf(events.Encode(generator.Next(0, 12)).back()));
  ExpectFile(folder / "process_events", with_events + events_alone);
  ExpectFile(folder / "packed", StepOf(kUnpack, std::string("\x30\x01\x44\x08\x19", 5)));
}

TEST(FuzzCorpus, SpoolReaderIsUpToDate) {
  constexpr SegmentId kSegment = 1;
  const auto folder = kCorpus / "spool_reader_fuzz";
  SessionInfo session;
  session.session_id.fill(7);
  session.node_id = "machine";
  session.boot_id = "0b1c";
  SegmentClaim claim;
  claim.claim = {.host = "r", .port = 7134, .first_sequence = 3};
  claim.claim.session_id.fill(8);
  SegmentClaim later = claim;
  later.index = 2;
  BatchGenerator generator(5);
  BatchEncoder encoder(1);
  std::string plain, stored;
  for (uint32_t i = 1; i <= 3; ++i) {
    const Batch batch = generator.Next(3);
    const std::vector<std::string> frames = encoder.Encode(batch);
    plain += EncodeRecord(kSegment, i, batch, {PlainFrame(frames.back())});
    stored += EncodeRecord(kSegment, i, batch, frames);
  }
  // The parts of a file without their trailing zeros, as spool_reader_fuzz.cc puts them together.
  const auto input = [&](const std::vector<SegmentClaim>& claims, const std::string& records,
                         uint32_t version = kSegmentVersionSamples) {
    const std::string file =
        EncodeSegmentHeader({.id = kSegment, .session = session, .created = {}, .version = version}, claims);
    const size_t offsets[] = {0, ClaimSlotOffset(0), ClaimSlotOffset(1), kSegmentHeaderBytes};
    std::string lengths, parts;
    for (size_t i = 0; i < 3; ++i) {
      const std::string whole = file.substr(offsets[i], offsets[i + 1] - offsets[i]);
      const std::string part = whole.substr(0, whole.find_last_not_of('\0') + 1);
      lengths += {static_cast<char>(part.size()), static_cast<char>(part.size() >> 8)};
      parts += part;
    }
    return lengths + parts + records;
  };
  const std::string mended(1, '\0'), as_it_is(1, '\x80');
  const std::string claimed = input({claim, later}, plain);
  ExpectFile(folder / "header_only", mended + input({claim}, ""));
  ExpectFile(folder / "three_batches", mended + input({}, plain));
  ExpectFile(folder / "three_batches_stored", as_it_is + input({}, stored));
  ExpectFile(folder / "claimed", mended + claimed);
  ExpectFile(folder / "torn", mended + claimed.substr(0, claimed.size() - 10));
  std::string damaged = as_it_is + input({claim}, stored);
  damaged[damaged.size() - 100] ^= 1;
  ExpectFile(folder / "damaged", damaged);
  generator.NewDictionary();
  const Batch with_events = generator.Next(2, 8);
  const std::string record =
      EncodeRecord(kSegment, 1, with_events, {PlainFrame(BatchEncoder(1).Encode(with_events).back())});
  claim.claim.base.captured.AddEvents(100);
  ExpectFile(folder / "process_events", mended + input({claim}, record, kSegmentVersionEvents));
}

}  // namespace
}  // namespace tributary::intake
