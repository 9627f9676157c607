#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace tributary::intake {

// A frame is the unit of the intake protocol (docs/intake-protocol.md). It consists of a header of 32 bytes and the
// payload. The numbers in the header are little-endian. The payload is one Cap'n Proto message. If kFlagZstd is set,
// the payload is compressed as one zstd frame (level 1). The sender compresses a payload of 64 bytes or more if this
// makes it smaller.
//
//   offset size
//        0    4  magic "TRBY"
//        4    1  version of the frame format, 1
//        5    1  type, MessageType
//        6    1  flags
//        7    1  channel: 0 control and samples, 1 symbol uploads
//        8    8  sequence: the number of a batch, from 1; 0 for other messages
//       16    4  raw length: bytes of the Cap'n Proto message, ≤ 4 MiB
//       20    4  stored length: bytes of the payload as sent, ≤ 4 MiB
//       24    8  XXH3-64 of bytes 0–23 and the payload as sent
//
// All releases use the same header and the same message Hello. The versions in Hello and Welcome negotiate everything
// else.
constexpr uint32_t kMagic = 0x59425254;  // "TRBY"
constexpr uint8_t kFrameVersion = 1;
constexpr size_t kHeaderBytes = 32;
constexpr uint32_t kPayloadBytesMax = 4u << 20;
constexpr uint8_t kFlagZstd = 1;

enum class MessageType : uint8_t {
  kHello = 1,        // collector → reducer, first
  kWelcome = 2,      // reducer → collector, the answer to Hello
  kDefinitions = 3,  // definitions that do not fit into the batch that follows
  kBatch = 4,
  kAck = 5,             // all batches up to this sequence are durable
  kNeedDictionary = 6,  // the reducer cannot use this dictionary generation: start a new one
  kNeedSymbols = 7,
  kSymbolChunk = 8,  // channel 1; at most 64 KiB of a compressed symbol table
  kHeartbeat = 9,
  kGoodbye = 10,       // last message: why the sender is about to close, and whether the peer should retry
  kMetadata = 11,      // of hosts, containers, pods
  kNeedDigests = 12,   // only to collectors with kFeatureSymbolDigests
  kSymbolDigest = 13,  // the answer: the digest of a symbol table, instead of the table
  kOptOuts = 14,       // only to collectors with kFeatureOptOuts: containers that must not be sampled
};
constexpr uint8_t kChannelSamples = 0;
constexpr uint8_t kChannelSymbols = 1;

struct Frame {
  MessageType type{};
  uint8_t channel = 0;
  uint64_t sequence = 0;
  std::string payload;  // decompressed
};

// Returns the bytes of one frame. `payload` must not be longer than kPayloadBytesMax (CHECKed).
std::string EncodeFrame(MessageType type, uint8_t channel, uint64_t sequence, std::string_view payload);

// The kind of error that stopped a FrameDecoder. The Status of FrameDecoder::Next has the details.
enum class FrameFault : uint8_t { kNone, kBadMagic, kBadVersion, kBadFlags, kOversized, kBadChecksum, kBadPayload };

// Divides a byte stream into frames. Checks a header before it allocates memory for the decompressed payload. After an
// error the decoder cannot find the next frame. The caller must then close the connection. Not thread-safe.
class FrameDecoder {
 public:
  // `payload_bytes_max`: the limit for both lengths of a header. The caller may use a lower limit until the peer has
  // sent Hello.
  explicit FrameDecoder(uint32_t payload_bytes_max = kPayloadBytesMax) : payload_bytes_max_(payload_bytes_max) {}

  void Append(std::string_view bytes) { buffer_.append(bytes); }

  // Returns true and sets `frame`, or returns false if more bytes are needed. InvalidArgument if the bytes are not a
  // valid frame of this version: see FrameFault. If the bytes are HTTP, TLS or SSH, the error text names the protocol.
  // A frame of unknown type is returned like any other frame: the caller must count and skip it.
  absl::StatusOr<bool> Next(Frame* frame);

  FrameFault fault() const { return fault_; }

  // Removes the bytes after the last returned frame and returns them. The caller can append them to another decoder.
  std::string TakeRest();
  size_t buffered_bytes() const { return buffer_.size() - consumed_; }
  // Returns the allocated size of the buffer, or 0 if it contains no bytes.
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
