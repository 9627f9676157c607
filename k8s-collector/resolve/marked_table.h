#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/container/node_hash_map.h"
#include "base/status.h"

namespace tributary {

// A table of items by name. From time to time, a list with all existing items arrives. The caller must call BeginList,
// Put for each item of the list, and EndList. EndList removes the items that were not in the list.
template <typename T>
class MarkedTable {
 public:
  void BeginList() { ++list_; }

  // Returns the item, which is added if it is new. Marks it as an item of the current list.
  T& Put(std::string_view key, bool* is_new = nullptr) {
    auto found = entries_.find(ToAbsl(key));
    if (is_new != nullptr) *is_new = found == entries_.end();
    if (found == entries_.end()) found = entries_.emplace(std::string(key), Entry{}).first;
    found->second.list = list_;
    return found->second.value;
  }
  T* Find(std::string_view key) {
    const auto found = entries_.find(ToAbsl(key));
    return found == entries_.end() ? nullptr : &found->second.value;
  }
  void Erase(std::string_view key) {
    if (const auto found = entries_.find(ToAbsl(key)); found != entries_.end()) entries_.erase(found);
  }
  // Removes the items that were not put since BeginList, and calls `gone(key, value)` for each.
  template <typename Gone>
  void EndList(Gone gone) {
    for (auto it = entries_.begin(); it != entries_.end();) {
      if (it->second.list == list_) {
        ++it;
        continue;
      }
      gone(it->first, it->second.value);
      entries_.erase(it++);
    }
  }
  template <typename Use>
  void ForEach(Use use) {
    for (auto& [key, entry] : entries_) use(key, entry.value);
  }
  size_t size() const { return entries_.size(); }

 private:
  struct Entry {
    T value;
    uint32_t list = 0;
  };
  absl::node_hash_map<std::string, Entry> entries_;  // a node map: entries take 100 to 200 bytes, empty slots do not
  uint32_t list_ = 0;
};

}  // namespace tributary
