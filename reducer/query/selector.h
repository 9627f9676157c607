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

// A parsed selector such as `{process_executable_name="x", container_id=~"ab.*"}`. It selects the processes and threads
// for which all matchers hold. Label names are attribute names; `.`, `/` and `-` may be written as `_`. A matcher must
// match the whole value of its label. Regular expressions have RE2 syntax and at most 1 KiB. If a process or thread
// does not have a label, the label's value counts as "".
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

  // InvalidArgument if `text` is not a valid selector, is longer than 8 KiB, or has more than 32 matchers. For a syntax
  // error, the message gives the position and says what was expected there.
  static absl::StatusOr<Selector> Parse(std::string_view text);
  // InvalidArgument if a label is unknown. The message gives its position and the known label with the most similar
  // name.
  absl::Status CheckNames(const AttributeNames& names) const;

  const std::vector<Matcher>& matchers() const { return matchers_; }
  // Returns true if any matcher uses this label. The name must be normalized: with `_` instead of `.`, `/` and `-`.
  bool Uses(std::string_view normalized_label) const;

 private:
  std::vector<Matcher> matchers_;
};

}  // namespace tributary
