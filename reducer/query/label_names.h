#pragma once

#include "absl/status/status.h"
#include "reducer/metadata/attribute_names.h"

namespace tributary {

struct QueryContext;

// Adds the names of the own attributes of all processes in the request's range.
absl::Status LearnLabelNames(const QueryContext& context, AttributeNames& names);

// InvalidArgument if the selector has a label that nothing has. Reads processes only if `names` does not know a label.
absl::Status CheckLabelNames(const QueryContext& context, AttributeNames& names);

}  // namespace tributary
