#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <utility>
#include <vector>

namespace tributary {

// Items with a fixed number each. A number is half as large as a pointer, and is reused after Remove. The memory of
// removed items stays for new items, and is freed when the slab is empty. A growing slab does not copy its items.
template <typename T>
class Slab {
 public:
  static constexpr uint32_t kNone = UINT32_MAX;  // never the number of an item

  uint32_t Add(T item) {
    if (free_.empty()) {
      items_.push_back(std::move(item));
      return static_cast<uint32_t>(items_.size() - 1);
    }
    const uint32_t number = free_.back();
    free_.pop_back();
    items_[number] = std::move(item);
    return number;
  }
  void Remove(uint32_t number) {
    free_.push_back(number);
    if (size() > 0) {
      items_[number] = T{};
    } else {
      items_ = {};
      free_ = {};
    }
  }
  T& operator[](uint32_t number) { return items_[number]; }
  const T& operator[](uint32_t number) const { return items_[number]; }
  size_t size() const { return items_.size() - free_.size(); }

 private:
  std::deque<T> items_;
  std::vector<uint32_t> free_;
};

}  // namespace tributary
