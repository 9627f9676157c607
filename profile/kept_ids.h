#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace tributary {

// The ids of one table that an eviction keeps, stored as the lengths of runs of ids. The runs start at id 1 and
// alternate: kept, dropped, kept, … Only the first length may be 0. Kept ids are numbered densely again, in their old
// order, so that a definition still refers to smaller ids only. Id 0, "none", is always kept.
class KeptIds {
 public:
  KeptIds() = default;  // for a table that holds id 0 alone
  // `kept` has an element for each id. The first element is ignored.
  static KeptIds FromMarks(const std::vector<bool>& kept);

  // Adds the next run. If the previous run was of kept ids, the new one is of dropped ids, and the reverse. Returns
  // false if the run is empty and not the first, or if the number of ids would exceed a uint32.
  bool AddRun(uint32_t length);

  const std::vector<uint32_t>& runs() const { return runs_; }
  uint32_t before() const { return before_; }  // ids, including id 0
  uint32_t after() const { return after_; }

  // Returns the kept ids of a table that has only the ids below `count` of this one.
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
