#pragma once

#include <shared_mutex>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "profile/attributes.h"

namespace tributary {

// Knows the attribute names that a selector may use: the names of OpenTelemetry's semantic conventions that samples can
// have, and the names seen in metadata and in processes' own attributes. A selector with any other name is a mistake,
// and the user gets an error. Holds at most kNamesMax names, including the built-in names. Thread-safe.
class AttributeNames {
 public:
  static constexpr size_t kNamesMax = 8192;

  AttributeNames();

  void Learn(const Attributes& attributes);

  // Accepts every spelling of `name` that NormalizeLabel makes equal.
  bool Knows(std::string_view name) const;
  std::vector<std::string> List() const;  // as written in attributes, sorted
  // Returns the known name with the smallest edit distance to `name`; for error messages.
  std::string Nearest(std::string_view name) const;

 private:
  mutable std::shared_mutex mutex_;
  absl::flat_hash_map<std::string, std::string> names_;  // by NormalizeLabel(name)
};

}  // namespace tributary
