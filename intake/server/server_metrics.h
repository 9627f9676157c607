#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "base/metrics.h"
#include "intake/server/node_rate.h"
#include "intake/wire/frame.h"

namespace tributary::intake {

// Why a reducer refuses a connection, a session or a message. RefusalName is the label of
// tributary_intake_refusals_total.
enum class Refusal : uint8_t {
  kBadMagic,            // another protocol: HTTP, or arbitrary bytes
  kVersion,             // an unknown version of the frame format, or no common protocol version
  kBadFlags,            // a frame flag of a later release
  kOversized,           // a frame, or the definitions before a batch, over the limit; or a symbol table over its limit:
                        // then the session continues
  kBadChecksum,         // a frame with a wrong checksum: it was damaged on the way
  kBadPayload,          // a payload with contradictory lengths, or that cannot be decompressed
  kBadMessage,          // a malformed message or batch, or a message at a wrong time
  kOutOfOrder,          // a batch was received, but the batch before it was not
  kTimeout,             // no Hello in time, a frame incomplete for too long, or no data for idle_timeout_ms
  kTooManyConnections,  // more connections than connections_max
  kRefusedByOwner,      // the store or the shard refused the session or the batch
  kUnread,              // the peer does not read the answers that it gets
  kUnaskedSymbols,      // a chunk of a table that was not requested; the session continues
  kTooManySymbols,      // a symbol table is not requested, because too many requests are open; the session continues
  kTlsMismatch,         // TLS data without --tls-cert, or plain text with it
  kTlsFailed,           // the handshake failed, or later TLS data was not valid
  kBadCertificate,      // the client certificate is missing, expired, or of an unknown authority
  kBadToken,            // the token is missing or unknown
  kForgedIdentity,      // the certificate or token is valid, but belongs to another node
  kOverLimit,           // too many connections of this node, or too much memory for incomplete data
};
constexpr size_t kRefusalCount = 20;

inline std::string_view RefusalName(Refusal refusal) {
  constexpr std::string_view kNames[kRefusalCount] = {
      "bad_magic",        "version",         "bad_flags",       "oversized",        "bad_checksum",
      "bad_payload",      "bad_message",     "out_of_order",    "timeout",          "too_many_connections",
      "refused_by_owner", "unread",          "unasked_symbols", "too_many_symbols", "tls_mismatch",
      "tls_failed",       "bad_certificate", "bad_token",       "forged_identity",  "over_limit"};
  return kNames[static_cast<size_t>(refusal)];
}

inline Refusal RefusalOf(FrameFault fault) {
  switch (fault) {
    case FrameFault::kBadMagic:
      return Refusal::kBadMagic;
    case FrameFault::kBadVersion:
      return Refusal::kVersion;
    case FrameFault::kBadFlags:
      return Refusal::kBadFlags;
    case FrameFault::kOversized:
      return Refusal::kOversized;
    case FrameFault::kBadChecksum:
      return Refusal::kBadChecksum;
    case FrameFault::kNone:
    case FrameFault::kBadPayload:
      break;
  }
  return Refusal::kBadPayload;
}

// The metrics of Acceptor and ServerSession. All instances of this struct share the same counters. Thread-safe.
struct ServerMetrics {
  explicit ServerMetrics(Metrics& metrics);
  void Refuse(Refusal refusal) { refusals[static_cast<size_t>(refusal)]->Add(); }

  std::array<Counter*, kRefusalCount> refusals;
  Gauge& sessions;  // open connections after Hello; connections_max also limits those that wait for Hello
  Counter& received_bytes;
  Counter& batches;
  Counter& samples;
  Counter& events;
  Counter& duplicates;
  Counter& stale_batches;
  Counter& need_dictionary;
  Counter& stalls;
  std::array<Counter*, kNodeRateCount> throttles;
  Counter& work;
  Counter& yields;
  Counter& unknown_values;
  Counter& unknown_frames;
};

}  // namespace tributary::intake
