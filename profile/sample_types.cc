#include "profile/sample_types.h"

#include "base/log.h"

namespace tributary {

bool IsSampleTypeText(std::string_view text) {
  return !text.empty() && text.size() <= kSampleTypeBytesMax && text.find(':') == text.npos &&
         EscapeForDisplay(text) == text;
}

}  // namespace tributary
