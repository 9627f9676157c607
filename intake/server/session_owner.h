#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "intake/codec/batch_decoder.h"
#include "intake/wire/messages.h"
#include "profile/metadata.h"

namespace tributary::intake {

// The services that a session needs from its shard. Called on the shard's loop.
class SessionOwner {
 public:
  virtual ~SessionOwner() = default;

  // What the shard knows about this session: the last durable batch, and whether the shard still holds the session's
  // dictionary generation.
  struct Known {
    uint64_t durable_sequence = 0;
    bool dictionary_kept = false;
    DictionaryCounts have;
    std::optional<BatchDecoder> decoder;  // of that generation, with at least `have`; if empty, nothing is kept
  };
  virtual absl::StatusOr<Known> OnHello(const Hello& hello) = 0;

  // Returns whether OnBatch would accept a batch now. Called before the work of decoding the batch. False has the same
  // effect as ResourceExhausted below.
  virtual bool HasRoom(const SessionInfo&) { return true; }

  // Takes a decoded batch, new and in order (duplicates never get here), with the session's id. With sequence 0, takes
  // definitions alone, without a batch. ResourceExhausted: the queue is full; the session stops reading, and tries
  // again when its `Resume` is called.
  virtual absl::Status OnBatch(const SessionInfo& session, IncomingBatch batch) = 0;
  // Called with a received table, or with an error. NotFound: the node has no table. ResourceExhausted: the table is
  // over a limit. DataLoss: the part from an earlier upload cannot be used; the table can be requested again.
  virtual void OnSymbols(const SessionInfo& session, const ExecutableId& id,
                         absl::StatusOr<std::string> encoded_table) = 0;
  // Called when a part of a table has come.
  virtual void OnSymbolProgress(const SessionInfo&) {}
  virtual void OnMetadata(const SessionInfo&, MetadataUpdate) {}
  virtual void OnClosed(const SessionInfo& session, const absl::Status& why) = 0;
};

}  // namespace tributary::intake
