#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "base/options.h"
#include "base/yaml_document.h"

namespace tributary {

// Expands the environment variables in all values of a Collector's configuration, in place, as the Collector does:
//   ${env:NAME}, ${NAME}       the variable. If it is not set: an empty value, and a warning
//   ${env:NAME:-DEFAULT}       DEFAULT, if the variable is not set
//   $$                         a dollar sign
// They may stand inside a text, inside each other, and in the value of a variable. If a variable is the whole value,
// the variable's text is read as YAML. So it may be a list or a map. The field `text` of such a node has the text.
// Keys are not expanded.
//
// Returns InvalidArgument, with line and column: another source of values, such as ${file:PATH}; an invalid name; a
// variable that contains itself; more values or bytes than YamlLimits allows. Neither errors nor warnings contain the
// value of a variable, which may be secret.
absl::Status ExpandVariables(const Options::Environment& environment, YamlNode* root,
                             std::vector<std::string>* warnings);

}  // namespace tributary
