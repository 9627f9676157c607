#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace tributary {

// The ids of one table that an eviction keeps, stored as the lengths of runs of ids. The runs start at id 1 and
// alternate: kept, dropped, kept, … Only the first length may be 0. Kept ids get new numbers from 1 on, without gaps
// and in their old order. So a definition still refers only to smaller ids. Id 0, "none", is always kept.
class KeptIds {
 public:
  KeptIds() = default;  // for a table that contains only id 0
  // `kept` has one element for each id: true if the id is kept. The element of id 0 is ignored.
  static KeptIds FromMarks(const std::vector<bool>& kept);

  // Adds the next run. After a run of kept ids it is a run of dropped ids, and after a run of dropped ids a run of kept
  // ids. Returns false if the run is empty and not the first, or if the number of ids would exceed a uint32.
  bool AddRun(uint32_t length);

  const std::vector<uint32_t>& runs() const { return runs_; }
  uint32_t before() const { return before_; }  // number of ids, including id 0
  uint32_t after() const { return after_; }

  // Returns the kept ids for a table that has only the ids below `count`.
  KeptIds Below(uint32_t count) const;
  // Returns the new id of each old id, or 0 for a dropped id.
  std::vector<uint32_t> NewIds() const;

  // Removes the dropped elements from a table. If the table has fewer than before() elements, ids after its end are
  // ignored.
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
