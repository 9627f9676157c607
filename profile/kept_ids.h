#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace tributary {

// Which ids of one table outlive an eviction, as lengths of runs from id 1 on: kept, dropped, kept, … (the first may be
// 0, the others are not). What is kept is numbered densely again, in its old order, so that a definition still refers
// to smaller ids only. Id 0, "none", is always kept.
class KeptIds {
 public:
  KeptIds() = default;  // of a table that holds id 0 alone
  // `kept` has an element for each id; the first is ignored.
  static KeptIds FromMarks(const std::vector<bool>& kept);

  // Adds a run, of the other sort than the one before. False when it is empty and not the first, or when the number of
  // ids would not be a uint32.
  bool AddRun(uint32_t length);

  const std::vector<uint32_t>& runs() const { return runs_; }
  uint32_t before() const { return before_; }  // ids, id 0 included
  uint32_t after() const { return after_; }

  // The same for a table that holds only ids below `count`.
  KeptIds Below(uint32_t count) const;
  // New ids by old id; 0 for what was dropped.
  std::vector<uint32_t> NewIds() const;

  // Takes what was dropped out of a table, which may be shorter than before() (then all behind its end is missing).
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
