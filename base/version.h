#pragma once

#include <string>
#include <string_view>

namespace tributary {

constexpr std::string_view kVersion = TRIBUTARY_VERSION;

// The commit's full hash, with "-modified" behind it if tracked files differed from the commit. "dev" in developers'
// builds, "unknown" if the source had no history. Not constexpr: only version.cc is compiled anew after a commit.
extern const std::string_view kCommit;

// What --version prints: `BINARY VERSION (commit HASH)`, without a newline.
std::string VersionLine(std::string_view binary);

}  // namespace tributary
