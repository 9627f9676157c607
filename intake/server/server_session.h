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

// One session of a collector. It lives on its shard's loop from Hello to close, and the shard owns it. The owner may
// destroy it inside OnClosed, which is called once and last, but not inside the other methods of SessionOwner.
// Definitions that come ahead of their batch are passed to the owner with the batch. The definitions of a batch always
// continue those of the previous batch, or start a new generation. A new generation begins empty, or as the previous
// one after an eviction.
class ServerSession {
 public:
  // A connection with a valid Hello.
  struct Arrival {
    std::unique_ptr<Stream> stream;
    Hello hello;
    std::string rest;  // bytes that came after Hello
  };

  // All borrowed objects must outlive the session.
  ServerSession(AlarmSource& alarms, Arrival arrival, const ServerOptions& options, const Clock& clock,
                Metrics& metrics, SessionOwner& owner);
  ~ServerSession();

  void Start();                         // answers Welcome, or Goodbye
  void Ack(uint64_t durable_sequence);  // call it after the commit
  // Requests symbol tables. If a part of a table is here already, only the rest is requested.
  void NeedSymbols(const std::vector<ExecutableId>& ids);
  void NeedDictionary();  // call it if the store does not know this generation
  void Resume();          // the owner can take batches again after ResourceExhausted
  void Close(const Goodbye& goodbye);

  // Returns the decoder with its state of the dictionary, for the session's next connection. The session reads nothing
  // afterwards.
  std::optional<BatchDecoder> TakeDecoder();

  const Hello& hello() const;
  uint64_t bytes_received() const;
  bool closed() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tributary::intake
