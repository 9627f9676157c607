#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "base/metrics.h"
#include "intake/wire/messages.h"

namespace tributary::intake {

// The beginnings of symbol tables whose upload was cut off, for whoever goes on: the same node on its next connection,
// or any other that has the same bytes. One for a whole reducer; in memory only. Beyond its caps the part that was not
// kept or offered for longest goes, and is uploaded from its start. Any thread; a lock held for moments.
class SymbolParts {
 public:
  struct Options {
    size_t bytes_max = 256u << 20;
    size_t parts_max = 1024;
  };
  struct Part {
    uint64_t total_bytes = 0, raw_bytes = 0;
    uint64_t key = 0;
    std::string bytes;  // not empty, and less than all

    SymbolPart Said() const { return {bytes.size(), total_bytes, raw_bytes, key}; }
  };

  SymbolParts(Options options, Metrics& metrics);

  // What cannot be gone on with (no key, no bytes) is dropped; so is a part of the same table that is no longer than
  // the one held.
  void Keep(const ExecutableId& id, Part part);
  // What a node that is asked for the table need not send; it stays here until one takes it.
  SymbolPart Offer(const ExecutableId& id);
  // The part that was offered; nothing if it is not held any more.
  std::optional<Part> Take(const ExecutableId& id, const SymbolPart& offered);
  void Drop(const ExecutableId& id);  // the table is here

  size_t bytes() const;

 private:
  struct Held {
    Part part;
    uint64_t used = 0;  // ascends with every use
  };
  void Remove(const ExecutableId& id);
  void EvictOldest();

  const Options options_;
  Counter &kept_, &evicted_;
  Gauge& bytes_gauge_;

  mutable std::mutex mutex_;
  absl::flat_hash_map<ExecutableId, Held> held_;  // guarded by mutex_, as all below
  size_t bytes_ = 0;                              // as allocated
  uint64_t uses_ = 0;
};

}  // namespace tributary::intake
