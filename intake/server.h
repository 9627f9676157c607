#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/alarm.h"
#include "base/clock.h"
#include "base/loop.h"
#include "base/metrics.h"
#include "base/stream.h"
#include "intake/authentication.h"
#include "intake/batch_codec.h"
#include "intake/limits.h"
#include "intake/messages.h"
#include "intake/symbol_parts.h"
#include "profile/metadata.h"

namespace tributary::intake {

// The reducer's end. The accepting loop reads Hello (within a deadline, within 64 KiB) and hands socket and Hello to
// the loop of the shard that `choose` names, where a ServerSession takes over.

// What a session asks of its shard. Called on the shard's loop.
class SessionOwner {
 public:
  virtual ~SessionOwner() = default;

  // What the shard knows of this session: how far it is durable, and whether its dictionary generation is still held.
  struct Known {
    uint64_t durable_sequence = 0;
    bool dictionary_kept = false;
    DictionaryCounts have;
    std::optional<BatchDecoder> decoder;  // of that generation, with `have` at least; without it nothing is kept
  };
  virtual absl::StatusOr<Known> OnHello(const Hello& hello) = 0;

  // Whether a batch would be taken now: asked before the work of decoding it. False: as ResourceExhausted below.
  virtual bool HasRoom(const SessionInfo&) { return true; }

  // A decoded batch, new and in order (duplicates never get here), with the session's id; or with sequence 0
  // definitions alone, which are no batch. ResourceExhausted: the queue is full; the session stops reading and tries
  // again when `Resume` is called on it.
  virtual absl::Status OnBatch(const SessionInfo& session, IncomingBatch batch) = 0;
  // A table came. NotFound: the node has none; ResourceExhausted: over a limit; DataLoss: what was here already of it
  // was of no use, it can be asked for again.
  virtual void OnSymbols(const SessionInfo& session, const ExecutableId& id,
                         absl::StatusOr<std::string> encoded_table) = 0;
  // A piece of one came.
  virtual void OnSymbolProgress(const SessionInfo&) {}
  virtual void OnMetadata(const SessionInfo&, MetadataUpdate) {}
  virtual void OnClosed(const SessionInfo& session, const absl::Status& why) = 0;
};

class ServerSession;

struct ServerOptions {
  std::string host = "127.0.0.1";
  uint16_t port = 8000;
  int64_t hello_timeout_ms = 10'000;
  int64_t idle_timeout_ms = 15'000;  // three missed heartbeats
  size_t connections_max = 20'000;
  size_t symbol_upload_bytes_max = 128u << 20;  // of one table, compressed
  size_t symbol_raw_bytes_max = 512u << 20;     // of one table, raw
  int64_t linger_ms = 1'000;                    // for the peer to read a Goodbye
  int64_t frame_timeout_ms = 60'000;            // for a frame that has begun to be whole
  std::shared_ptr<Security> security;           // of an acceptor; null: plain TCP, and whoever comes
  Limits* limits = nullptr;                     // of the loop it is for; outlives what is on it; null: none
  SymbolParts* symbol_parts = nullptr;          // of the reducer; outlives all sessions; null: uploads begin anew
};

// Lives on the shard's loop from Hello to close; the shard owns it. It may be destroyed inside OnClosed, which comes
// once and last, not inside the owner's other calls. Definitions that travel ahead of their batch are handed over with
// it; a batch's definitions always continue those of the batch before, or start a new generation, which is empty or
// what an eviction leaves of the one before.
class ServerSession {
 public:
  ServerSession(AlarmSource& alarms, std::unique_ptr<Stream> stream, Hello hello, std::string rest,
                const ServerOptions& options, const Clock& clock, Metrics& metrics, SessionOwner& owner);
  ~ServerSession();

  void Start();                         // answers Welcome, or Goodbye
  void Ack(uint64_t durable_sequence);  // after the commit
  // Of what is here already of a table, only the rest is asked for.
  void NeedSymbols(const std::vector<ExecutableId>& ids);
  void NeedDictionary();  // the store cannot map this generation (any more)
  void Resume();          // there is room again after ResourceExhausted
  void Close(const Goodbye& goodbye);

  // What it knows of the dictionary, for the session's next connection. It reads nothing afterwards.
  std::optional<BatchDecoder> TakeDecoder();

  const Hello& hello() const;
  uint64_t bytes_received() const;
  bool closed() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Accepts on one loop. `hand_over` gets a connection whose Hello is valid, on the accepting loop: it posts it to the
// loop of its shard.
struct PendingSession {
  std::unique_ptr<DetachedStream> stream;
  Hello hello;
  std::string rest;  // bytes that came behind Hello
};
class Acceptor {
 public:
  static absl::StatusOr<std::unique_ptr<Acceptor>> Listen(Loop& loop, const ServerOptions& options, const Clock& clock,
                                                          Metrics& metrics,
                                                          std::function<void(PendingSession)> hand_over);
  ~Acceptor();
  uint16_t port() const;
  // Of the connections to come: those that wait keep what they began with. On the accepting loop.
  void SetSecurity(std::shared_ptr<Security> security);

 private:
  struct Impl;
  explicit Acceptor(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace tributary::intake
