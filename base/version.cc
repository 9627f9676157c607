#include "base/version.h"

#include <fmt/format.h>

#include "base/commit.h"

namespace tributary {

constinit const std::string_view kCommit = TRIBUTARY_COMMIT;

std::string VersionLine(std::string_view binary) { return fmt::format("{} {} (commit {})", binary, kVersion, kCommit); }

}  // namespace tributary
