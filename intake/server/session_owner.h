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

}  // namespace tributary::intake
