#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "intake/credentials/authentication.h"
#include "intake/server/limits.h"
#include "intake/symbols/symbol_parts.h"

namespace tributary::intake {

// The options of the Acceptor and of each ServerSession.
struct ServerOptions {
  std::string host = "127.0.0.1";
  uint16_t port = 8000;
  int64_t hello_timeout_ms = 10'000;
  int64_t idle_timeout_ms = 15'000;  // three missed heartbeats
  size_t connections_max = 20'000;
  size_t symbol_upload_bytes_max = 128u << 20;  // of one table, compressed
  size_t symbol_raw_bytes_max = 512u << 20;     // of one table, raw
  int64_t linger_ms = 1'000;                    // time for the peer to read a Goodbye before the close
  int64_t frame_timeout_ms = 60'000;            // from the first byte of a frame to its last
  std::shared_ptr<Security> security;           // of an acceptor; null: plain TCP, any peer is accepted
  Limits* limits = nullptr;                     // of one loop; must outlive the objects on that loop; null: none
  SymbolParts* symbol_parts = nullptr;          // of the reducer; must outlive all sessions; null: uploads begin anew
};

}  // namespace tributary::intake
