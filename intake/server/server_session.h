#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/alarm.h"
#include "base/clock.h"
#include "base/metrics.h"
#include "base/stream.h"
#include "intake/codec/batch_decoder.h"
#include "intake/server/server_options.h"
#include "intake/server/session_owner.h"
#include "intake/wire/messages.h"

namespace tributary::intake {

// Lives on the shard's loop from Hello to close; the shard owns it. It may be destroyed inside OnClosed, which comes
// once and last, not inside the owner's other calls. Definitions that travel ahead of their batch are handed over with
// it; a batch's definitions always continue those of the batch before, or start a new generation, which is empty or
// what an eviction leaves of the one before.
class ServerSession {
 public:
  // A connection whose Hello is valid.
  struct Arrival {
    std::unique_ptr<Stream> stream;
    Hello hello;
    std::string rest;  // bytes that came behind Hello
  };

  // What is lent outlives the session.
  ServerSession(AlarmSource& alarms, Arrival arrival, const ServerOptions& options, const Clock& clock,
                Metrics& metrics, SessionOwner& owner);
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
