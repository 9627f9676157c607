#pragma once

#include <string>

#include "base/docs/document.h"

namespace tributary::docs {

// Returns true if any option of the program can be in a configuration file.
bool HasConfigFile(const Command& program);

// Returns YAML for /etc/tributary/NAME.yaml: every option that may be in the file, with its help and its default,
// commented out. The program can start with the unchanged file. The value of a secret is left empty.
std::string ConfigFile(const Command& program);

}  // namespace tributary::docs
