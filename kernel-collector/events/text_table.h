#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "absl/container/flat_hash_map.h"
#include "base/strong.h"
#include "kernel-collector/events/slab.h"
#include "kernel-collector/events/tracked_event.h"

namespace tributary {

// The number of a text in a TextTable. 0 is the empty text.
using TextId = Strong<struct TextIdTag, uint32_t>;

// The texts of one event. Each of them has one reference.
struct Texts {
  TextId name, executable_path, container_id, cgroup_path;

  friend bool operator==(const Texts&, const Texts&) = default;
  template <typename H>
  friend H AbslHashValue(H h, const Texts& t) {
    return H::combine(std::move(h), t.name, t.executable_path, t.container_id, t.cgroup_path);
  }
};

// Texts that many events share, each stored once with a count of its references. Equal texts have equal numbers. A text
// is removed with its last reference, and its number may be reused. Not thread-safe.
class TextTable {
 public:
  // Longer texts are cut. The longest are paths (PATH_MAX).
  static constexpr size_t kTextBytesMax = 4096;

  explicit TextTable(size_t bytes_max = SIZE_MAX) : bytes_max_(bytes_max) {}

  // Returns the number of the text with one more reference. If the table is full, returns 0, and counts the refusal.
  TextId Take(std::string_view text);
  void Share(TextId id);    // one more reference
  void Release(TextId id);  // one reference less
  std::string_view Text(TextId id) const;

  Texts Take(std::string_view name, const EventNames& names);
  void Share(const Texts& texts);
  void Release(const Texts& texts);
  EventNames Names(const Texts& texts) const;

  size_t bytes() const { return bytes_; }    // memory of all texts
  size_t BytesOf(const Texts& texts) const;  // memory of these texts
  size_t size() const { return entries_.size(); }
  uint64_t refused() const { return refused_; }

 private:
  struct Entry {
    std::string text;
    uint32_t references = 0;
  };
  // The entry, its slot in the hash table at the lowest load, and the heap's own data.
  static constexpr size_t kEntryBytes = sizeof(Entry) + 2 * (sizeof(std::string_view) + sizeof(uint32_t) + 1) + 16;

  const size_t bytes_max_;
  size_t bytes_ = 0;
  uint64_t refused_ = 0;
  Slab<Entry> entries_;                                  // text 1 is entry 0
  absl::flat_hash_map<std::string_view, uint32_t> ids_;  // the keys are the texts of the entries
};

}  // namespace tributary
