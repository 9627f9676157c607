#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace tributary::intake {

// The unit of the intake protocol (docs/intake-protocol.md): a header of 32 bytes, all little-endian, then the payload.
// The payload is one Cap'n Proto message. If kFlagZstd is set, it is compressed as one zstd frame (level 1). The sender
// sets the flag if compression makes the payload smaller.
//
//   offset size
//        0    4  magic "TRBY"
//        4    1  version of the frame format, 1
//        5    1  type, MessageType
//        6    1  flags
//        7    1  channel: 0 control and samples, 1 symbol uploads
//        8    8  sequence: of a batch, from 1; 0 for other messages
//       16    4  raw length: of the Cap'n Proto message, ≤ 4 MiB
//       20    4  stored length: of the bytes after the header, ≤ 4 MiB
//       24    8  XXH3-64 of bytes 0–23 and the stored payload
//
// This header and Hello are the same in all releases. Hello negotiates everything else.
constexpr uint32_t kMagic = 0x59425254;  // "TRBY"
constexpr uint8_t kFrameVersion = 1;
constexpr size_t kHeaderBytes = 32;
constexpr uint32_t kPayloadBytesMax = 4u << 20;
constexpr uint8_t kFlagZstd = 1;

enum class MessageType : uint8_t {
  kHello = 1,        // collector → reducer, first
  kWelcome = 2,      // reducer → collector, its answer
  kDefinitions = 3,  // more definitions than one batch may hold; precedes the batch that needs them
  kBatch = 4,
  kAck = 5,             // all batches up to this sequence are durable
  kNeedDictionary = 6,  // the reducer cannot follow: start a new dictionary generation
  kNeedSymbols = 7,
  kSymbolChunk = 8,  // channel 1; 64 KiB of an encoded symbol table
  kHeartbeat = 9,
  kGoodbye = 10,   // last message: why the sender is about to close, and whether the peer should retry
  kMetadata = 11,  // of hosts, containers, pods
};
constexpr uint8_t kChannelSamples = 0;
constexpr uint8_t kChannelSymbols = 1;

struct Frame {
  MessageType type{};
  uint8_t channel = 0;
  uint64_t sequence = 0;
  std::string payload;  // raw: decompressed
};

// One frame, ready for the wire. `payload` ≤ kPayloadBytesMax (CHECKed: senders split).
std::string EncodeFrame(MessageType type, uint8_t channel, uint64_t sequence, std::string_view payload);

// The reason for which a FrameDecoder stopped; the Status describes it in words.
enum class FrameFault : uint8_t { kNone, kBadMagic, kBadVersion, kBadFlags, kOversized, kBadChecksum, kBadPayload };

// Cuts a byte stream into frames. Checks everything before it allocates memory for it. After an error the decoder
// cannot find the next frame, and the connection must be closed. Not thread-safe.
class FrameDecoder {
 public:
  // The limit may be lower for a peer that has not sent Hello yet.
  explicit FrameDecoder(uint32_t payload_bytes_max = kPayloadBytesMax) : payload_bytes_max_(payload_bytes_max) {}

  void Append(std::string_view bytes) { buffer_.append(bytes); }

  // Returns true and a frame, or false if more bytes are needed. InvalidArgument: not our protocol (the message says if
  // it is HTTP or TLS), a length over its limit, a wrong checksum, or an unknown version. A frame of unknown type is
  // returned as it is: the caller counts and skips it.
  absl::StatusOr<bool> Next(Frame* frame);

  FrameFault fault() const { return fault_; }

  // Returns the bytes that were appended and not yet returned, to pass the stream to another decoder.
  std::string TakeRest();
  size_t buffered_bytes() const { return buffer_.size() - consumed_; }
  // Memory of a frame that is not whole.
  size_t memory_bytes() const { return buffered_bytes() == 0 ? 0 : buffer_.capacity(); }

 private:
  struct Header;
  absl::StatusOr<Header> CheckHeader(std::string_view bytes);
  absl::Status Fail(FrameFault fault, std::string_view message);
  void Consume(size_t bytes);

  uint32_t payload_bytes_max_;
  FrameFault fault_ = FrameFault::kNone;
  std::string buffer_;
  size_t consumed_ = 0;
};

}  // namespace tributary::intake
