#pragma once

#include <string>
#include <string_view>

#include "base/docs/document.h"

// Man pages in roff, with the man(7) macros that both mandoc and groff know. `date` is "2026-11-23".

namespace tributary::docs {

// Returns the page of a program: NAME(SECTION). The page of a program with commands refers to the commands' pages.
std::string ManPage(const Command& program, const Manual& manual, std::string_view date);

// Returns the page of a command: PROGRAM-NAME(SECTION), for example tributary-symbols-push(1). `name` leads to the
// command.
std::string CommandManPage(const Command& program, const Command& command, std::string_view name, const Manual& manual,
                           std::string_view date);

}  // namespace tributary::docs
