#pragma once

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "base/options.h"
#include "reducer/options.h"

namespace tributary {

// Returns OK if `text` is a size of 64KiB to 1TiB. For limits of one node.
absl::Status CheckNodeBytes(std::string_view text);

// Options that say which collectors may connect to the intake, and how much each may send (docs/security.md).
struct SecurityTexts {
  std::string identity, node_rate;  // as given
};
// Adds the options to `table`. When the table is parsed, their values are in `out` and `texts`.
void AddSecurity(Options& table, ReducerOptions& out, SecurityTexts& texts);
// Checks the values, and converts `texts` to fields of `out`. InvalidArgument: an option is missing or not valid.
absl::Status TakeSecurity(const SecurityTexts& texts, ReducerOptions& out);

}  // namespace tributary
