#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "intake/codec/batch_decoder.h"
#include "intake/wire/messages.h"
#include "profile/metadata.h"
#include "symbols/symbol_digest.h"

namespace tributary::intake {

// The methods of the shard that a session calls. All calls are on the shard's loop.
class SessionOwner {
 public:
  virtual ~SessionOwner() = default;

  // The shard's state of this session: its last durable batch, and its dictionary if the shard still has the dictionary
  // generation of Hello.
  struct Known {
    uint64_t durable_sequence = 0;
    bool dictionary_kept = false;
    DictionaryCounts have;
    std::optional<BatchDecoder> decoder;  // of this generation; has all definitions that `have` counts
  };
  virtual absl::StatusOr<Known> OnHello(const Hello& hello) = 0;

  // Returns true if OnBatch would accept a batch now. Called before a batch is decoded, because decoding is expensive,
  // and before definitions that were sent ahead of their batch are decoded. False has the same effect as
  // ResourceExhausted from OnBatch.
  virtual bool HasRoom(const SessionInfo&) { return true; }

  // Called for each decoded batch, in order and without duplicates. If the sequence is 0, `batch` has only definitions.
  // ResourceExhausted: the queue is full. The session then stops reading, and calls OnBatch again after its `Resume`.
  virtual absl::Status OnBatch(const SessionInfo& session, IncomingBatch batch) = 0;
  // Called with a received symbol table, or with an error. NotFound: the node has no table. ResourceExhausted: the
  // table is over a limit. DataLoss: the part from an earlier upload cannot be used. The owner may then request the
  // table again.
  virtual void OnSymbols(const SessionInfo& session, const ExecutableId& id,
                         absl::StatusOr<std::string> encoded_table) = 0;
  // Called with the digest of a node's symbol table. NotFound: the node has no table.
  virtual void OnSymbolDigest(const SessionInfo&, const ExecutableId&, const absl::StatusOr<SymbolDigest>&) {}
  // Called after a chunk of a symbol table was received.
  virtual void OnSymbolProgress(const SessionInfo&) {}
  // Called for each metadata update, in order. Returns false if there is no space for the update. The session then
  // stops reading, and calls OnMetadata again after its `Resume`.
  virtual bool OnMetadata(const SessionInfo&, MetadataUpdate) { return true; }
  virtual void OnClosed(const SessionInfo& session, const absl::Status& why) = 0;
};

}  // namespace tributary::intake
