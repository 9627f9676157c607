#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>

#include "intake/codec/batch_decoder.h"
#include "intake/metadata/metadata_message.h"
#include "intake/testing/mend_checksums_testing.h"
#include "intake/testing/message_mutator_testing.h"
#include "intake/wire/frame.h"
#include "intake/wire/messages.h"

// Tests what a connection processes: bytes in pieces, frames, messages, batches. Checksums are corrected first, because
// otherwise no changed input would ever pass them. The first byte gives the size of the pieces in which the stream
// arrives. Its high bit leaves the checksums as they are.

namespace {

using namespace tributary;
using namespace tributary::intake;

// A batch that a decoder accepts refers only to defined ids.
void CheckBatch(const IncomingBatch& batch, const DictionaryCounts& after) {
  uint32_t next = batch.before.nodes;
  for (const Node& node : batch.definitions.nodes) {
    if (node.parent.value >= next || node.frame.value >= after.frames) abort();
    ++next;
  }
  if (next != after.nodes) abort();
  for (const Sample& sample : batch.samples) {
    if (sample.node.value >= after.nodes || sample.thread.value >= after.threads) abort();
    if (static_cast<uint8_t>(sample.ending) >= kEndingCount) abort();
  }
}

void DecodeBatch(const tributary::intake::Frame& frame, BatchDecoder& decoder) {
  auto generation = GenerationOf(frame.type, frame.payload);
  if (!generation.ok()) return;
  const bool continues = generation->derived_from != 0 && generation->derived_from == decoder.generation();
  if (generation->generation != decoder.generation() && !continues) decoder = BatchDecoder(generation->generation);
  auto batch = decoder.Decode(frame.type, frame.sequence, frame.payload);
  if (!batch.ok()) return;
  CheckBatch(*batch, decoder.have());
}

// A decoded update must be within the limits, and must be the same after another encoding and decoding.
void CheckMetadata(const tributary::intake::Frame& frame) {
  uint32_t unknown_values = 0;
  auto update = DecodeMetadata(frame.payload, &unknown_values);
  if (!update.ok()) return;
  for (tributary::Entity entity : update->entities) {
    if (!CutToLimits(entity)) abort();
  }
  auto again = DecodeMetadata(EncodeMetadata(*update), &unknown_values);
  if (!again.ok() || *again != *update) abort();
}

void DecodeMessage(const tributary::intake::Frame& frame, BatchDecoder& decoder) {
  switch (frame.type) {
    case MessageType::kHello:
      (void)DecodeHello(frame.payload);
      break;
    case MessageType::kWelcome: {
      auto welcome = DecodeWelcome(frame.payload);
#ifdef TRIBUTARY_PLANT_CRASH
      // Only a whole frame with its checksum and a message that decodes reaches this line.
      if (welcome.ok() && welcome->heartbeat_ms > 1'000'000) abort();
#endif
      break;
    }
    case MessageType::kDefinitions:
    case MessageType::kBatch:
      DecodeBatch(frame, decoder);
      break;
    case MessageType::kAck:
      (void)DecodeAck(frame.payload);
      break;
    case MessageType::kNeedDictionary:
      (void)DecodeNeedDictionary(frame.payload);
      break;
    case MessageType::kNeedSymbols:
      (void)DecodeNeedSymbols(frame.payload);
      break;
    case MessageType::kSymbolChunk:
      (void)DecodeSymbolChunk(frame.payload);
      break;
    case MessageType::kNeedDigests:
      (void)DecodeNeedDigests(frame.payload);
      break;
    case MessageType::kOptOuts:
      (void)DecodeOptOuts(frame.payload);
      break;
    case MessageType::kSymbolDigest:
      (void)DecodeSymbolDigest(frame.payload);
      break;
    case MessageType::kHeartbeat:
      (void)DecodeHeartbeat(frame.payload);
      break;
    case MessageType::kGoodbye:
      (void)DecodeGoodbye(frame.payload);
      break;
    case MessageType::kMetadata:
      CheckMetadata(frame);
      break;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const uint8_t mode = data[0];
  std::string stream(reinterpret_cast<const char*>(data) + 1, size - 1);
  if ((mode & 0x80) == 0) MendChecksums(stream);
  const size_t piece = (mode & 0x7f) == 0 ? stream.size() : (mode & 0x7f);
  FrameDecoder frames;
  BatchDecoder decoder(1);
  for (size_t at = 0; at < stream.size(); at += piece) {
    frames.Append(std::string_view(stream).substr(at, piece));
    while (true) {
      tributary::intake::Frame frame;
      auto got = frames.Next(&frame);
      if (!got.ok()) return 0;
      if (!*got) break;
      DecodeMessage(frame, decoder);
    }
  }
  return 0;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t size_max, unsigned seed) {
  MessageMutator mutator(seed);
  if (size == 0 || mutator.OneIn(16)) return LLVMFuzzerMutate(data, size, size_max);
  const std::string changed = mutator.Frames({reinterpret_cast<const char*>(data) + 1, size - 1}, size_max - 1);
  std::memcpy(data + 1, changed.data(), changed.size());
  return 1 + changed.size();
}
