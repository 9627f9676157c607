#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "profile/executable_id.h"

namespace tributary::ingest {

// Where a shard asks which symbol tables are wanted, and hands over those that come. An asker is one connection. On the
// shard's loop.
class SymbolDesk {
 public:
  // Which of `candidates` to ask a node for, `ask_max` at most; `reply` is called later, on the shard's loop, with them
  // and with how many candidates that took. False: too many questions wait.
  using Reply = std::function<void(std::vector<ExecutableId> ask, size_t considered)>;
  virtual bool TryChoose(uint64_t asker, std::vector<ExecutableId> candidates, size_t ask_max, Reply reply) = 0;
  // What a node answered. If too much waits, it is dropped and counted: the executable is asked for again later.
  virtual void Take(uint64_t asker, const ExecutableId& id, absl::StatusOr<std::string> encoded_table) = 0;
  virtual void Progress(uint64_t asker) = 0;  // it is sending
  virtual void Release(uint64_t asker) = 0;   // it is gone: what it owes may be asked of others
  // What has been released since the last time, by any shard's askers.
  virtual std::vector<ExecutableId> TakeReleased() = 0;

 protected:
  ~SymbolDesk() = default;
};

}  // namespace tributary::ingest
