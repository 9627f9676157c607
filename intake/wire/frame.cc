#include "intake/wire/frame.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <cstring>
#include <memory>
#include <optional>

#include "base/little_endian.h"
#include "base/status.h"
#include "base/zstd.h"

namespace tributary::intake {
namespace {

constexpr size_t kChecksumOffset = 24;
// Below this size zstd's own header takes what compression saves.
constexpr size_t kCompressBytesMin = 64;
// The most memory that an idle decoder keeps: a reducer has thousands of decoders.
constexpr size_t kIdleBytesMax = 4u << 10;
// Returned bytes are cut off the buffer above this size.
constexpr size_t kConsumedBytesMax = 64u << 10;

uint64_t Checksum(std::string_view header, std::string_view payload) {
  std::unique_ptr<XXH3_state_t, decltype(&XXH3_freeState)> state(XXH3_createState(), &XXH3_freeState);
  TRIBUTARY_CHECK(state != nullptr);
  XXH3_64bits_reset(state.get());
  XXH3_64bits_update(state.get(), header.data(), kChecksumOffset);
  XXH3_64bits_update(state.get(), payload.data(), payload.size());
  return XXH3_64bits_digest(state.get());
}

// Names the most likely protocol of a stream that is not the intake protocol.
std::string NameProtocol(std::string_view start) {
  for (std::string_view verb : {"GET ", "POST", "HEAD", "PUT ", "OPTI", "DELE", "PATC", "CONN", "PRI "}) {
    if (start.starts_with(verb)) {
      return "an HTTP request: collectors connect to this intake port; the web page and the API are on the HTTP port";
    }
  }
  if (start.starts_with("HTTP")) return "an HTTP answer: this address is a web server, not a reducer's intake port";
  if (start.starts_with("\x16\x03"))
    return "a TLS handshake: this intake port uses plain TCP, because the reducer has no --tls-cert";
  if (start.starts_with("SSH-")) return "an SSH greeting";
  return fmt::format("bytes {:02x} {:02x} {:02x} {:02x}", static_cast<uint8_t>(start[0]),
                     static_cast<uint8_t>(start[1]), static_cast<uint8_t>(start[2]), static_cast<uint8_t>(start[3]));
}

}  // namespace

struct FrameDecoder::Header {
  uint8_t type, flags, channel;
  uint64_t sequence;
  uint32_t raw_bytes, stored_bytes;
  uint64_t checksum;
};

std::string EncodeFrame(MessageType type, uint8_t channel, uint64_t sequence, std::string_view payload) {
  TRIBUTARY_CHECK(payload.size() <= kPayloadBytesMax);
  uint8_t flags = 0;
  std::string compressed;
  std::string_view stored = payload;
  if (payload.size() >= kCompressBytesMin) {
    compressed = ZstdCompress(payload);
    if (compressed.size() < payload.size()) {
      stored = compressed;
      flags |= kFlagZstd;
    }
  }
  std::string frame(kHeaderBytes, '\0');
  StoreLittleEndian<uint32_t>(&frame[0], kMagic);
  StoreLittleEndian<uint8_t>(&frame[4], kFrameVersion);
  StoreLittleEndian<uint8_t>(&frame[5], static_cast<uint8_t>(type));
  StoreLittleEndian<uint8_t>(&frame[6], flags);
  StoreLittleEndian<uint8_t>(&frame[7], channel);
  StoreLittleEndian<uint64_t>(&frame[8], sequence);
  StoreLittleEndian<uint32_t>(&frame[16], static_cast<uint32_t>(payload.size()));
  StoreLittleEndian<uint32_t>(&frame[20], static_cast<uint32_t>(stored.size()));
  StoreLittleEndian<uint64_t>(&frame[kChecksumOffset], Checksum(frame, stored));
  frame.append(stored);
  return frame;
}

absl::Status FrameDecoder::Fail(FrameFault fault, std::string_view message) {
  fault_ = fault;
  return Error(absl::StatusCode::kInvalidArgument, message);
}

absl::StatusOr<FrameDecoder::Header> FrameDecoder::CheckHeader(std::string_view bytes) {
  Header header{};
  header.type = LoadLittleEndian<uint8_t>(&bytes[5]);
  header.flags = LoadLittleEndian<uint8_t>(&bytes[6]);
  header.channel = LoadLittleEndian<uint8_t>(&bytes[7]);
  header.sequence = LoadLittleEndian<uint64_t>(&bytes[8]);
  header.raw_bytes = LoadLittleEndian<uint32_t>(&bytes[16]);
  header.stored_bytes = LoadLittleEndian<uint32_t>(&bytes[20]);
  header.checksum = LoadLittleEndian<uint64_t>(&bytes[kChecksumOffset]);
  if (uint8_t version = LoadLittleEndian<uint8_t>(&bytes[4]); version != kFrameVersion) {
    return Fail(
        FrameFault::kBadVersion,
        fmt::format("a message has frame version {}, but this program supports version {}: upgrade the older program",
                    version, kFrameVersion));
  }
  if ((header.flags & ~kFlagZstd) != 0) {
    return Fail(FrameFault::kBadFlags, fmt::format("a message has unknown frame flags {:#04x}", header.flags));
  }
  if (header.raw_bytes > payload_bytes_max_ || header.stored_bytes > payload_bytes_max_) {
    return Fail(FrameFault::kOversized,
                fmt::format("a message has {} bytes ({} in compressed form), but at most {} bytes are allowed",
                            header.raw_bytes, header.stored_bytes, payload_bytes_max_));
  }
  const bool compressed = (header.flags & kFlagZstd) != 0;
  if (compressed ? header.stored_bytes >= header.raw_bytes : header.stored_bytes != header.raw_bytes) {
    return Fail(FrameFault::kBadPayload,
                fmt::format("the two lengths of a message contradict its flags: {} bytes uncompressed, {} bytes stored",
                            header.raw_bytes, header.stored_bytes));
  }
  return header;
}

absl::StatusOr<bool> FrameDecoder::Next(Frame* frame) {
  const std::string_view bytes = std::string_view(buffer_).substr(consumed_);
  if (bytes.size() < sizeof(kMagic)) return false;
  if (LoadLittleEndian<uint32_t>(bytes.data()) != kMagic) {
    return Fail(FrameFault::kBadMagic, fmt::format("not the intake protocol but {}", NameProtocol(bytes)));
  }
  if (bytes.size() < kHeaderBytes) return false;
  ASSIGN_OR_RETURN(const Header header, CheckHeader(bytes));
  if (bytes.size() - kHeaderBytes < header.stored_bytes) return false;
  const std::string_view stored = bytes.substr(kHeaderBytes, header.stored_bytes);
  if (Checksum(bytes, stored) != header.checksum) {
    return Fail(FrameFault::kBadChecksum, fmt::format("a message of type {} has a wrong checksum", header.type));
  }
  if ((header.flags & kFlagZstd) != 0) {
    absl::StatusOr<std::string> raw = ZstdDecompress(stored, header.raw_bytes);
    if (!raw.ok()) return Fail(FrameFault::kBadPayload, Message(WithContext(raw.status(), "payload of a message")));
    frame->payload = *std::move(raw);
  } else {
    frame->payload.assign(stored);
  }
  frame->type = static_cast<MessageType>(header.type);
  frame->channel = header.channel;
  frame->sequence = header.sequence;
  Consume(kHeaderBytes + header.stored_bytes);
  return true;
}

void FrameDecoder::Consume(size_t bytes) {
  consumed_ += bytes;
  if (consumed_ == buffer_.size()) {
    consumed_ = 0;
    if (buffer_.capacity() > kIdleBytesMax) {
      buffer_ = std::string();
    } else {
      buffer_.clear();
    }
  } else if (consumed_ > kConsumedBytesMax) {
    buffer_.erase(0, consumed_);
    consumed_ = 0;
  }
}

std::string FrameDecoder::TakeRest() {
  std::string rest = buffer_.substr(consumed_);
  buffer_ = std::string();
  consumed_ = 0;
  return rest;
}

}  // namespace tributary::intake
