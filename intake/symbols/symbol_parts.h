#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "base/metrics.h"
#include "intake/wire/messages.h"

namespace tributary::intake {

// Holds the beginnings of symbol tables whose upload was interrupted. Any node that has the same bytes can continue the
// upload: the same node on its next connection, or another node. There is one object for a whole reducer; it holds the
// parts in memory only. Above its limits it evicts the part whose last Keep or Offer was longest ago. The table of an
// evicted part is uploaded from its start. Thread-safe: a lock is held for a short time.
class SymbolParts {
 public:
  struct Options {
    size_t bytes_max = 256u << 20;
    size_t parts_max = 1024;
  };
  struct Part {
    uint64_t total_bytes = 0, raw_bytes = 0;
    uint64_t key = 0;
    std::string bytes;  // not empty, and shorter than the whole table

    SymbolPart Summary() const { return {bytes.size(), total_bytes, raw_bytes, key}; }
  };

  SymbolParts(Options options, Metrics& metrics);

  // Keeps a part, in place of an earlier part for this id. Drops the part if no upload can continue it (no key, or no
  // bytes), or if a part of the same table is held that is at least as long.
  void Keep(const ExecutableId& id, Part part);
  // Returns the part that a node need not send when the table is requested from it. The part stays here until Take is
  // called.
  SymbolPart Offer(const ExecutableId& id);
  // Returns the part that was offered, or nullopt if it is not held any more.
  std::optional<Part> Take(const ExecutableId& id, const SymbolPart& offered);
  void Drop(const ExecutableId& id);  // call it when the whole table is here

  size_t bytes() const;

 private:
  struct Held {
    Part part;
    uint64_t used = 0;  // increases with every use
  };
  void Remove(const ExecutableId& id);
  void EvictOldest();

  const Options options_;
  Counter &kept_, &evicted_;
  Gauge& bytes_gauge_;

  mutable std::mutex mutex_;
  absl::flat_hash_map<ExecutableId, Held> held_;  // mutex_ guards it and everything below
  size_t bytes_ = 0;                              // as allocated
  uint64_t uses_ = 0;
};

}  // namespace tributary::intake
