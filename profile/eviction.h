#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "profile/dictionary.h"
#include "profile/kept_ids.h"
#include "profile/tables.h"

namespace tributary {

// The ids that an eviction keeps, for each table.
struct Eviction {
  KeptIds strings, executables, frames, nodes, processes, threads;

  DictionaryCounts before() const;  // counts of the dictionary before the eviction
  DictionaryCounts after() const;   // counts of the definitions that the eviction keeps
  uint64_t ids_before() const;
  uint64_t ids_after() const;
  friend bool operator==(const Eviction&, const Eviction&) = default;
};

// Maps each old id to its new id. Dropped ids and id 0 map to 0.
struct NewIds : Tables<std::vector<uint32_t>> {
  explicit NewIds(const Eviction& eviction);

  uint32_t Of(auto ref) const { return TableOf(*this, ref)[ref.value]; }
  bool Keep(auto ref) const { return ref.value == 0 || Of(ref) != 0; }
};

// The origin of a dictionary that did not start empty.
struct Derivation {
  std::weak_ptr<const Dictionary> from;  // only to compare; the object may have been destroyed
  Eviction eviction;                     // for all definitions in `from`, which does not grow any more
};

// Applies an eviction that another process sent. Returns a new dictionary with the kept definitions. Returns nullptr if
// the eviction is for tables of other sizes, or if it drops a definition to which a kept definition refers.
std::shared_ptr<Dictionary> EvictedFrom(const std::shared_ptr<const Dictionary>& from, const Eviction& eviction);

// Returns a new dictionary without the least recently used definitions of `full`. `full` must not grow any more. If the
// table of nodes, frames, strings or executables is more than half full, evicts the quarter of the nodes that was not
// used for the longest time. If the table of threads, processes, strings or executables is more than half full, evicts
// a quarter of the threads in the same way. Then evicts all other definitions to which no kept definition refers. The
// use of a node also counts for its parents, so children are evicted before parents. If a kept thread refers to any
// definition of a process, the newest definition of this process is kept, too.
//
// Takes about 20 ms for 131,072 nodes. Effect on real samples (97 Hz, 10 minutes): 2.55 definitions are sent per
// sample, instead of 2.99 if each new dictionary starts empty.
std::shared_ptr<Dictionary> EvictOldest(const std::shared_ptr<const Dictionary>& full);

}  // namespace tributary
