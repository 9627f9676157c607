#pragma once

#include <optional>
#include <string_view>

#include "reducer/access/rights.h"

namespace tributary {

// The path for uploads (PUT) of files with symbols, and for the deletion (DELETE) of symbol tables.
constexpr std::string_view kUploadPath = "/api/v1/symbols";
constexpr std::string_view kWhoAmIPath = "/api/v1/whoami";

// What a caller needs before its request is handled.
struct Needs {
  bool sign_in = false;                       // the caller must be known
  std::optional<Right> right = std::nullopt;  // the caller must also have this right
};

// Returns what a request needs. `path` is decoded. A path that does not exist may need something, too: a caller without
// a sign-in does not learn which paths below /api/ exist.
Needs NeedsOf(std::string_view method, std::string_view path);

}  // namespace tributary
