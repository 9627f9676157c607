#pragma once

#include <string>

#include "base/docs/document.h"

namespace tributary::docs {

// Whether any option of the program can stand in a configuration file.
bool HasConfigFile(const Command& program);

// YAML for /etc/tributary/NAME.yaml: every option with its help and its default, commented out. A program starts with
// it as it is. The value of a secret is left empty.
std::string ConfigFile(const Command& program);

}  // namespace tributary::docs
