#pragma once

#include <shared_mutex>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "profile/attributes.h"

namespace tributary {

// The set of attribute names that a selector may use. Contains node.id, the names in OpenTelemetry's semantic
// conventions that samples can have, and all names seen in metadata and in processes' own attributes. A query with any
// other name is answered with an error, because the name is probably misspelt. Holds at most kNamesMax names, including
// the built-in names. Thread-safe.
class AttributeNames {
 public:
  static constexpr size_t kNamesMax = 8192;

  AttributeNames();

  void Learn(const Attributes& attributes);

  // Returns true if the set contains `name`. Ignores differences that NormalizeLabel removes.
  bool Knows(std::string_view name) const;
  std::vector<std::string> List() const;  // as written in attributes, sorted
  // Returns the name in the set that has the smallest edit distance to `name`. For error messages.
  std::string Nearest(std::string_view name) const;

 private:
  mutable std::shared_mutex mutex_;
  absl::flat_hash_map<std::string, std::string> names_;  // by NormalizeLabel(name)
};

}  // namespace tributary
