#pragma once

#include <string>
#include <string_view>

#include "base/docs/document.h"

// Generates man pages in roff, with macros of man(7) that both mandoc and groff support. `date` is "2026-11-23".

namespace tributary::docs {

// Returns the man page of a program: NAME(SECTION). If the program has commands, the page refers to their pages.
std::string ManPage(const Command& program, const Manual& manual, std::string_view date);

// Returns the man page of a command: PROGRAM-NAME(SECTION), for example tributary-symbols-push(1). `name` is the
// command's full name, such as "symbols-push".
std::string CommandManPage(const Command& program, const Command& command, std::string_view name, const Manual& manual,
                           std::string_view date);

}  // namespace tributary::docs
