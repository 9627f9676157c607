#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "base/metrics.h"
#include "intake/wire/messages.h"

namespace tributary::intake {

// Stores the beginnings of symbol tables for which an upload was interrupted. Any node that has the same table can
// continue the upload: the same node on its next connection, or another node. A reducer has one SymbolParts object,
// which stores the parts only in memory. Above its limits it evicts the part that Keep and Offer have not used for the
// longest time. After an eviction, the table must be uploaded from its start. Thread-safe. Its lock is held only for a
// short time.
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

  // Stores a part, and replaces an earlier part for this id. Drops the new part if no upload can continue it (no key,
  // no bytes, or all bytes), or if the stored part of the same table is at least as long.
  void Keep(const ExecutableId& id, Part part);
  // Returns a description of the stored part, for the request to a node: the node need not send this part. Returns an
  // empty description if no part is stored. Offer does not remove the part.
  SymbolPart Offer(const ExecutableId& id);
  // Removes and returns the part that Offer described, or returns nullopt if this part is not stored any more.
  std::optional<Part> Take(const ExecutableId& id, const SymbolPart& offered);
  void Drop(const ExecutableId& id);  // call it when the whole table was received

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
