#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/alarm.h"
#include "base/clock.h"
#include "base/metrics.h"
#include "base/stream.h"
#include "intake/codec/batch_decoder.h"
#include "intake/server/server_options.h"
#include "intake/wire/messages.h"
#include "profile/metadata.h"

namespace tributary::intake {

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

}  // namespace tributary::intake
