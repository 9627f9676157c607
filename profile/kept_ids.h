#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace tributary {

// The ids of one table that an eviction keeps, as lengths of runs that start at id 1: kept, dropped, kept, … (the first
// length may be 0, the others may not). Kept ids are numbered densely again, in their old order, so that a definition
// still refers to smaller ids only. Id 0, "none", is always kept.
class KeptIds {
 public:
  KeptIds() = default;  // for a table that holds id 0 alone
  // `kept` has an element for each id. The first element is ignored.
  static KeptIds FromMarks(const std::vector<bool>& kept);

  // Adds a run of the opposite kind to the one before. Returns false if the run is empty and not the first, or if the
  // number of ids would exceed a uint32.
  bool AddRun(uint32_t length);

  const std::vector<uint32_t>& runs() const { return runs_; }
  uint32_t before() const { return before_; }  // ids, including id 0
  uint32_t after() const { return after_; }

  // Returns the same for a table that holds only ids below `count`.
  KeptIds Below(uint32_t count) const;
  // Returns the new id of each old id, or 0 for a dropped one.
  std::vector<uint32_t> NewIds() const;

  // Removes the dropped elements from a table. The table may be shorter than before(): then all elements after its end
  // are missing.
  template <typename T>
  void ApplyTo(std::vector<T>& table) const {
    size_t from = 1, to = 1;
    bool keep = true;
    for (uint32_t run : runs_) {
      for (uint32_t i = 0; i < run && from < table.size(); ++i, ++from) {
        if (!keep) continue;
        if (to != from) table[to] = std::move(table[from]);
        ++to;
      }
      keep = !keep;
    }
    if (to < table.size()) table.erase(table.begin() + static_cast<ptrdiff_t>(to), table.end());
  }

  friend bool operator==(const KeptIds&, const KeptIds&) = default;

 private:
  std::vector<uint32_t> runs_;
  uint32_t before_ = 1, after_ = 1;
};

}  // namespace tributary
