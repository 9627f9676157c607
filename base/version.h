#pragma once

#include <string>
#include <string_view>

namespace tributary {

constexpr std::string_view kVersion = TRIBUTARY_VERSION;

// The commit's full hash, followed by "-modified" if tracked files differed from the commit. "dev" in developers'
// builds, "unknown" if the source had no history. Not constexpr, so that only version.cc is recompiled after a commit.
extern const std::string_view kCommit;

// Returns the output of --version: `BINARY VERSION (commit HASH)`, without a newline.
std::string VersionLine(std::string_view binary);

}  // namespace tributary
