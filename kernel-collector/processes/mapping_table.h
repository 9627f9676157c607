#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/types.h"
#include "kernel-collector/processes/code_file.h"

namespace tributary {

class Runtime;

// A range of a process's addresses that holds code.
struct Mapping {
  uint64_t start = 0, end = 0;
  uint64_t file_offset = 0;
  MonotonicNs learned;                     // when it was made (event) or seen (scan)
  CodeFilePtr executable;                  // null: no file behind it (a JIT's code), or none that can be named
  std::shared_ptr<const Runtime> runtime;  // asked first what an address is; null: there is none
};

// A process's code mappings: sorted by start, never overlapping, at most kMappingsMax (what comes over that is not
// taken). A copy costs nothing until one of the two changes: fork shares. Loop thread only.
class MappingTable {
 public:
  using List = std::vector<Mapping>;
  static constexpr size_t kMappingsMax = 16'384;

  enum class Inserted {
    kAdded,
    kReplaced,  // other code was mapped at some of its addresses until then
    kRefused,   // the table is full
  };
  // Puts a mapping in; those it overlaps are cut or go, as mmap(2) does with MAP_FIXED. One without a runtime takes
  // over that of the same code: a JIT changes its pages' protection, and /proc tells of no runtimes.
  Inserted Insert(Mapping mapping);
  void Clear() { list_ = std::make_shared<List>(); }

  // Takes over a list read from /proc at `read_at`; mappings learned later than that stay on top of it. Returns those
  // of the list where other code was known to be mapped.
  List Replace(const List& scanned, MonotonicNs read_at);

  static const Mapping* Find(const List& list, uint64_t address);
  const Mapping* Find(uint64_t address) const { return Find(*list_, address); }

  // The table as it is now: does not change any more.
  std::shared_ptr<const List> snapshot() const { return list_; }
  size_t size() const { return list_->size(); }

 private:
  std::shared_ptr<List> list_ = std::make_shared<List>();
};

}  // namespace tributary
