#pragma once

#include <cstddef>
#include <list>
#include <memory>
#include <utility>

#include "elf/unwind_source.h"

namespace tributary {

// Caches the open executables whose unwind rows were compiled last, because requests for one executable come in bursts.
// Keeps at most kOpenMax executables open. An executable with .debug_frame may need memory for the whole section, so it
// is closed when another executable is added. Not thread-safe.
template <typename Key>
class OpenSources {
 public:
  static constexpr size_t kOpenMax = 8;

  // Returns null if the executable is not open.
  UnwindSource* Find(const Key& key) {
    for (auto it = open_.begin(); it != open_.end(); ++it) {
      if (it->first != key) continue;
      open_.splice(open_.begin(), open_, it);
      return open_.front().second.get();
    }
    return nullptr;
  }

  UnwindSource* Add(const Key& key, std::unique_ptr<UnwindSource> source) {
    Forget(key);
    open_.emplace_front(key, std::move(source));
    if (open_.size() > kOpenMax) open_.pop_back();
    const Open* used = &open_.front();
    open_.remove_if(
        [used](const Open& open) { return &open != used && open.second->kind() == UnwindSource::Kind::kDebugFrame; });
    return open_.front().second.get();
  }

  // Closes the executable. Returns true if it was open.
  bool Forget(const Key& key) {
    return open_.remove_if([&](const Open& open) { return open.first == key; }) > 0;
  }

 private:
  using Open = std::pair<Key, std::unique_ptr<UnwindSource>>;
  std::list<Open> open_;  // the one used last comes first
};

}  // namespace tributary
