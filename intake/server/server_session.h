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

// One connection of a collector's session, from Hello until the connection is closed. The shard owns this object, and
// uses it only on the shard's loop. The owner may destroy it inside OnClosed, which is called once, as the last method.
// The owner must not destroy this object inside the other methods of SessionOwner. Definitions that arrive in messages
// before a batch are passed to the owner with the batch. An exception: if a generation that keeps earlier definitions
// begins before this batch, the definitions that arrived before the new generation are passed alone. The definitions of
// a batch always continue those of the previous batch, or begin a new generation. A new generation is empty at first,
// or contains the definitions of the previous generation that an eviction kept.
class ServerSession {
 public:
  // A connection with a valid Hello.
  struct Arrival {
    std::unique_ptr<Stream> stream;
    Hello hello;
    std::string rest;     // bytes received after Hello
    std::string peer_id;  // PeerId; "": unknown. Only for the owner
  };

  // All borrowed objects must outlive the session.
  ServerSession(AlarmSource& alarms, Arrival arrival, const ServerOptions& options, const Clock& clock,
                Metrics& metrics, SessionOwner& owner);
  ~ServerSession();

  void Start();                         // sends Welcome, or Goodbye
  void Ack(uint64_t durable_sequence);  // call it after the commit
  // Requests symbol tables. If the reducer has the beginning of a table from an interrupted upload, requests only the
  // rest.
  void NeedSymbols(const std::vector<ExecutableId>& ids);
  // Requests the digests of symbol tables. Only for a node that answers such requests (kFeatureSymbolDigests).
  void NeedDigests(const std::vector<ExecutableId>& ids);
  // Sends the containers that the node must not sample. Only for a node that reads the list (kFeatureOptOuts).
  void SendOptOuts(const std::vector<std::string>& containers);
  void NeedDictionary();  // call it if the store does not have this dictionary generation
  // Call it when the owner may accept a batch again after ResourceExhausted, or metadata after OnMetadata returned
  // false.
  void Resume();
  void Close(const Goodbye& goodbye);

  // Returns the decoder, which has the state of the dictionary, for the session's next connection. Afterwards this
  // object reads no more data.
  std::optional<BatchDecoder> TakeDecoder();

  const Hello& hello() const;
  uint64_t bytes_received() const;
  size_t decoder_bytes() const;  // memory of the dictionary's state
  bool closed() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tributary::intake
