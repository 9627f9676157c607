#pragma once

#include <shared_mutex>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "profile/attributes.h"

namespace tributary {

// Which attribute names a selector may speak of: those of OpenTelemetry's semantic conventions that samples can have,
// and those that were met in metadata and in processes' own attributes. A name in a selector that is none of them is a
// mistake that somebody wants to be told about. At most kNamesMax are learned. Thread-safe.
class AttributeNames {
 public:
  static constexpr size_t kNamesMax = 8192;

  AttributeNames();

  void Meet(const Attributes& attributes);

  // However it is written: see NormalizeLabel.
  bool Knows(std::string_view name) const;
  std::vector<std::string> List() const;  // as they are written in attributes, sorted
  // The known name that takes the fewest edits to reach; for error messages.
  std::string Nearest(std::string_view name) const;

 private:
  mutable std::shared_mutex mutex_;
  absl::flat_hash_map<std::string, std::string> names_;  // by NormalizeLabel(name)
};

}  // namespace tributary
