#pragma once

#include <string>
#include <string_view>

namespace tributary {

// Returns the text with each word that may be a token replaced by its length. A word may be a token if it has 40 or
// more letters, digits and characters of "-_.~+", as tokens in base64url and JWTs have. So long host names are
// replaced, too.
std::string HideTokens(std::string_view text);

}  // namespace tributary
