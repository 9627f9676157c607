#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "profile/dictionary.h"
#include "profile/kept_ids.h"
#include "profile/tables.h"

namespace tributary {

// The ids of every table that an eviction keeps.
struct Eviction {
  KeptIds strings, executables, frames, nodes, processes, threads;

  DictionaryCounts before() const;  // counts of the dictionary that it was made from
  DictionaryCounts after() const;   // counts of the definitions that it kept
  uint64_t ids_before() const;
  uint64_t ids_after() const;
  friend bool operator==(const Eviction&, const Eviction&) = default;
};

// Maps each old id to the new one. A dropped id and id 0 map to 0.
struct NewIds : Tables<std::vector<uint32_t>> {
  explicit NewIds(const Eviction& eviction);

  uint32_t Of(auto ref) const { return TableOf(*this, ref)[ref.value]; }
  bool Keep(auto ref) const { return ref.value == 0 || Of(ref) != 0; }
};

// The origin of a dictionary that did not start empty.
struct Derivation {
  std::weak_ptr<const Dictionary> from;  // to compare with; it may have been destroyed
  Eviction eviction;                     // covers everything in `from`, which no longer grows
};

// Applies an eviction that another process decided on. Returns a new dictionary with the kept definitions. Returns
// nullptr if the eviction is for tables of other sizes, or if it drops a definition that a kept one refers to.
std::shared_ptr<Dictionary> EvictedFrom(const std::shared_ptr<const Dictionary>& from, const Eviction& eviction);

// Returns a new dictionary with the definitions of `full` that are in use. `full` must not grow any more. If a table
// that nodes fill is more than half full, evicts the quarter of the nodes that was unused for longest. If a table that
// threads fill is more than half full, evicts a quarter of the threads in the same way. Then evicts all other
// definitions that no kept definition refers to. A node was last used when any node of its subtree was, so children are
// evicted before parents. A process keeps its newest definition as long as any of its definitions is in use.
//
// Cost: about 20 ms for 131,072 nodes. Measured on real samples (97 Hz, 10 minutes): 2.55 definitions are sent per
// sample, compared with 2.99 if each new dictionary starts empty.
std::shared_ptr<Dictionary> EvictOldest(const std::shared_ptr<const Dictionary>& full);

}  // namespace tributary
