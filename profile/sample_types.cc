#include "profile/sample_types.h"

#include "base/utf8.h"

namespace tributary {

bool IsSampleTypeText(std::string_view text) {
  const auto is_refused = [](char c) { return c == ':' || c == '\x7f' || static_cast<unsigned char>(c) < 0x20; };
  return !text.empty() && text.size() <= kSampleTypeBytesMax && std::none_of(text.begin(), text.end(), is_refused) &&
         IsUtf8(text);
}

}  // namespace tributary
