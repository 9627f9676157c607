#pragma once

#include <cstddef>
#include <mutex>
#include <string>
#include <string_view>

#include "absl/container/flat_hash_map.h"

namespace tributary {

// Caches demangled names across queries, because demangling a C++ name takes microseconds and the web page requests the
// same names every few seconds. Thread-safe. If the cache has kEntriesMax names, the next new name replaces all of
// them.
class DemangleCache {
 public:
  static constexpr size_t kEntriesMax = 65'536;
  static constexpr size_t kNameBytesMax = 1024;  // longer names are not cached
  std::string Demangle(std::string_view linkage_name);
  size_t size() const;

 private:
  mutable std::mutex mutex_;
  absl::flat_hash_map<std::string, std::string> names_;
};

}  // namespace tributary
