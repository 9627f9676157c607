#pragma once

#include "absl/status/status.h"
#include "reducer/metadata/attribute_names.h"

namespace tributary {

struct QueryContext;

// Adds to `names` the names of the attributes that processes in the request's range have set themselves
// (OTEL_RESOURCE_ATTRIBUTES).
absl::Status LearnLabelNames(const QueryContext& context, AttributeNames& names);

// InvalidArgument if the selector has a label that is neither in `names` nor an attribute of a process in the range.
// Reads processes only if a label is not in `names`.
absl::Status CheckLabelNames(const QueryContext& context, AttributeNames& names);

}  // namespace tributary
