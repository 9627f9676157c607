#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace re2 {
class RE2;
}

namespace tributary {

class AttributeNames;

// `{process_executable_name="x", container_id=~"ab.*"}`: every matcher must hold. Label names are OpenTelemetry
// attribute names; `.`, `/` and `-` may be written as `_`. A matcher matches the whole value. Regular expressions are
// RE2's, ≤ 1 KiB. A label that a series does not have counts as "".
class Selector {
 public:
  enum class Op { kEqual, kNotEqual, kMatches, kNotMatches };
  struct Matcher {
    std::string label;    // normalized: with `_`
    size_t position = 0;  // of the label in the text
    Op op = Op::kEqual;
    std::string value;
    std::shared_ptr<const re2::RE2> regex;
    bool Holds(std::string_view value) const;
  };

  // InvalidArgument: the message contains the position and the text expected there. At most 32 matchers.
  static absl::StatusOr<Selector> Parse(std::string_view text);
  // InvalidArgument if a label is unknown; the message contains its position and the nearest known label.
  absl::Status CheckNames(const AttributeNames& names) const;

  const std::vector<Matcher>& matchers() const { return matchers_; }
  // Returns true if any matcher uses this label (a normalized name).
  bool Uses(std::string_view normalized_label) const;

 private:
  std::vector<Matcher> matchers_;
};

}  // namespace tributary
