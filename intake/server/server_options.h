#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "base/refusals.h"
#include "intake/credentials/authentication.h"
#include "intake/server/limits.h"
#include "intake/symbols/symbol_parts.h"
#include "intake/wire/messages.h"

namespace tributary::intake {

// The options of the Acceptor and of each ServerSession.
struct ServerOptions {
  std::string host = "127.0.0.1";
  uint16_t port = 8000;
  uint64_t features = kFeatureProcessEvents | kFeatureInterpreters;  // bits of Welcome: what the owner stores
  int64_t hello_timeout_ms = 10'000;
  int64_t idle_timeout_ms = 15'000;  // without any data from the peer; three heartbeat periods
  size_t connections_max = 20'000;
  size_t symbol_upload_bytes_max = 128u << 20;  // of one table, compressed
  size_t symbol_raw_bytes_max = 512u << 20;     // of one table, after decompression
  int64_t linger_ms = 1'000;                    // after a Goodbye, until the connection is closed
  int64_t frame_timeout_ms = 60'000;            // from the first byte of a frame to its last byte
  uint64_t turn_work = 32'768;          // decode_work.h: 5 ms; other connections of the loop then get their turn
  std::shared_ptr<Security> security;   // only for an Acceptor; null: plain TCP, and any peer is accepted
  Limits* limits = nullptr;             // for one loop; must outlive the objects on this loop; null: no limits
  Refusals* refusals = nullptr;         // must outlive all sessions; null: refusals are not counted by node
  SymbolParts* symbol_parts = nullptr;  // must outlive all sessions; null: interrupted uploads start again
};

}  // namespace tributary::intake
