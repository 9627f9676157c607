#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/types.h"
#include "kernel-collector/processes/code_file.h"

namespace tributary {

class Runtime;

// A mapped range of a process's addresses that contains code.
struct Mapping {
  uint64_t start = 0, end = 0;
  uint64_t file_offset = 0;
  MonotonicNs learned;                     // time of the event that made it, or of the scan that saw it
  CodeFilePtr executable;                  // null: no file behind it (a JIT's code), or no identifiable file
  std::shared_ptr<const Runtime> runtime;  // used first to resolve an address; null: no runtime
  // For memory in which the process may have generated code: its name, such as "[anon:v8]" or "[memfd:name]". Owned by
  // the ProcessTable. null: the mapping has a file.
  const std::string* memory = nullptr;
};

// A process's code mappings: sorted by start, never overlapping, at most kMappingsMax. The table refuses mappings above
// the limit. A copy of a table shares its list until one of the two tables changes, so a fork costs almost nothing.
// Loop thread only.
class MappingTable {
 public:
  using List = std::vector<Mapping>;
  static constexpr size_t kMappingsMax = 16'384;

  enum class Inserted {
    kAdded,
    kReplaced,  // other code was mapped at some of these addresses before
    kRefused,   // the table is full
  };
  // Inserts a mapping. Overlapped mappings are cut or removed, as mmap(2) does with MAP_FIXED. A mapping without a
  // runtime inherits the runtime of an overlapped mapping of the same code. The reasons: a JIT changes the protection
  // of its pages, which the kernel reports as a new mapping, and mappings from /proc have no runtime.
  Inserted Insert(Mapping mapping);
  void Clear() { list_ = std::make_shared<List>(); }

  // Replaces the table with a list that was read from /proc at `read_at`. Mappings that were learned after `read_at`
  // stay, and take precedence over the list. Returns the mappings of the list that replaced other code.
  List Replace(const List& scanned, MonotonicNs read_at);

  static const Mapping* Find(const List& list, uint64_t address);
  const Mapping* Find(uint64_t address) const { return Find(*list_, address); }

  // Returns the current list. Later changes of the table do not change this list.
  std::shared_ptr<const List> snapshot() const { return list_; }
  size_t size() const { return list_->size(); }

 private:
  std::shared_ptr<List> list_ = std::make_shared<List>();
};

}  // namespace tributary
