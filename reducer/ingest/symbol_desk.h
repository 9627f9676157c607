#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "profile/executable_id.h"

namespace tributary::ingest {

// A shard asks the desk which symbol tables are wanted, and passes on the tables that arrive. An asker is one
// connection. Use the desk on the shard's loop.
class SymbolDesk {
 public:
  // Chooses which of `candidates` to ask a node for, at most `ask_max`. Calls `reply` later, on the shard's loop, with
  // the choice and with the number of candidates that were considered. Returns false if too many questions wait.
  using Reply = std::function<void(std::vector<ExecutableId> ask, size_t considered)>;
  virtual bool TryChoose(uint64_t asker, std::vector<ExecutableId> candidates, size_t ask_max, Reply reply) = 0;
  // Takes a node's answer. If too much waits, the answer is dropped and counted: the executable is asked for again
  // later.
  virtual void Take(uint64_t asker, const ExecutableId& id, absl::StatusOr<std::string> encoded_table) = 0;
  virtual void Progress(uint64_t asker) = 0;  // the asker is sending
  virtual void Release(uint64_t asker) = 0;   // the asker is gone: others may be asked for the tables that it owes
  // Returns the executables that askers of any shard released since the last call.
  virtual std::vector<ExecutableId> TakeReleased() = 0;

 protected:
  ~SymbolDesk() = default;
};

}  // namespace tributary::ingest
