#include "reducer/access/rights.h"

#include <algorithm>
#include <iterator>

#include "base/status.h"
#include "base/trim.h"

namespace tributary {
namespace {

constexpr Right kRights[] = {Right::kRead, Right::kSend, Right::kUpload, Right::kAdmin};

}  // namespace

std::string_view NameOf(Right right) {
  switch (right) {
    case Right::kRead:
      return "read";
    case Right::kSend:
      return "send";
    case Right::kUpload:
      return "upload";
    case Right::kAdmin:
      return "admin";
  }
  return "";
}

std::vector<std::string_view> NamesOf(Rights rights) {
  std::vector<std::string_view> names;
  for (const Right right : kRights) {
    if (rights.Has(right)) names.push_back(NameOf(right));
  }
  return names;
}

absl::StatusOr<Rights> Rights::Parse(std::string_view text) {
  Rights rights = None();
  while (true) {
    const size_t comma = std::min(text.find(','), text.size());
    const std::string_view name = Trim(text.substr(0, comma), kHttpBlanks);
    const auto* const right =
        std::find_if(std::begin(kRights), std::end(kRights), [&](Right r) { return NameOf(r) == name; });
    if (right == std::end(kRights)) {
      // The word may be a secret: a token, if the columns of a file of tokens were exchanged.
      return Error(absl::StatusCode::kInvalidArgument,
                   "a word is not a right: give read, send, upload or admin, with commas between them");
    }
    rights.Add(Of(*right));
    if (comma == text.size()) return rights;
    text.remove_prefix(comma + 1);
  }
}

}  // namespace tributary
