#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "base/metrics.h"
#include "intake/wire/frame.h"

namespace tributary::intake {

// The reasons for which a reducer refuses a connection, a session or a message: label values of
// tributary_intake_refusals_total.
enum class Refusal : uint8_t {
  kBadMagic,            // another protocol: HTTP, or arbitrary bytes
  kVersion,             // frame format or protocol version
  kBadFlags,            // a frame flag of a later release
  kOversized,           // a length over its limit
  kBadChecksum,         // damaged in transit
  kBadPayload,          // lengths or compression that contradict each other
  kBadMessage,          // an inconsistent message or batch, or one in the wrong place
  kOutOfOrder,          // a batch that came without the batch before it
  kTimeout,             // no Hello in time, or silent for three heartbeats
  kTooManyConnections,  // connections_max
  kRefusedByOwner,      // the store or the shard refused the session or the batch
  kUnread,              // the peer does not read the answers that it gets
  kUnaskedSymbols,      // symbol chunks that were not requested; the session continues
  kTooManySymbols,      // symbol tables not requested: too many were awaited already; the session continues
  kTlsMismatch,         // TLS on a plain port, plain text on a TLS port
  kTlsFailed,           // a failed handshake, or inconsistent TLS
  kBadCertificate,      // missing, expired, or of an unknown authority
  kBadToken,            // missing or unknown
  kForgedIdentity,      // the credential is good, but belongs to another node
  kOverLimit,           // connections of one node, or memory of all
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

// The metrics of Acceptor and ServerSession. All instances of this struct count in the same series. Thread-safe.
struct ServerMetrics {
  explicit ServerMetrics(Metrics& metrics);
  void Refuse(Refusal refusal) { refusals[static_cast<size_t>(refusal)]->Add(); }

  std::array<Counter*, kRefusalCount> refusals;
  Gauge& sessions;  // the acceptor counts it towards connections_max
  Counter& received_bytes;
  Counter& batches;
  Counter& samples;
  Counter& duplicates;
  Counter& stale_batches;
  Counter& need_dictionary;
  Counter& stalls;
  Counter& throttles;
  Counter& unknown_values;
  Counter& unknown_frames;
};

}  // namespace tributary::intake
