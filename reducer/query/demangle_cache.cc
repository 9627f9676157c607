#include "reducer/query/demangle_cache.h"

#include "base/status.h"
#include "symbols/demangle.h"

namespace tributary {

std::string DemangleCache::Demangle(std::string_view linkage_name) {
  // Mangled names start with an underscore. C names, and so most kernel names, need no cache.
  if (!linkage_name.starts_with('_')) return std::string(linkage_name);
  if (linkage_name.size() > kNameBytesMax) return ::tributary::Demangle(linkage_name);
  {
    std::lock_guard lock(mutex_);
    if (auto it = names_.find(ToAbsl(linkage_name)); it != names_.end()) return it->second;
  }
  std::string name = ::tributary::Demangle(linkage_name);
  if (name.size() > kNameBytesMax) return name;
  std::lock_guard lock(mutex_);
  if (names_.size() >= kEntriesMax) names_.clear();
  names_.try_emplace(std::string(linkage_name), name);
  return name;
}

size_t DemangleCache::size() const {
  std::lock_guard lock(mutex_);
  return names_.size();
}

}  // namespace tributary
