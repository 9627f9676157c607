#pragma once

#include <string>
#include <string_view>

namespace tributary {

constexpr std::string_view kVersion = TRIBUTARY_VERSION;

// The full hash of the commit that was built, followed by "-modified" if tracked files differed from the commit. In
// developers' builds it is "dev". If the source was not in a git repository, it is "unknown". It is not constexpr, so
// that only version.cc is recompiled after a commit.
extern const std::string_view kCommit;

// Returns the output of --version: `BINARY VERSION (commit HASH)`, without a newline.
std::string VersionLine(std::string_view binary);

}  // namespace tributary
