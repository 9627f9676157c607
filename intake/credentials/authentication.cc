#include "intake/credentials/authentication.h"

#include <fmt/format.h>

#include <optional>

#include "base/glob.h"
#include "base/log.h"
#include "base/status.h"
#include "intake/wire/messages.h"

namespace tributary::intake {
namespace {

constexpr size_t kNamesShownMax = 4;

static_assert(TokenTable::kTokenBytesMax == kTokenBytesMax);

absl::Status CheckPattern(std::string_view text) {
  TakeWord(text);
  if (text.empty()) return absl::OkStatus();
  return Error(absl::StatusCode::kInvalidArgument, "a line must be TOKEN or TOKEN NODE-ID-PATTERN");
}

}  // namespace

absl::StatusOr<std::unique_ptr<TokenFile>> TokenFile::Load(std::string path, const Clock& clock,
                                                           int64_t look_period_ns) {
  ASSIGN_OR_RETURN(std::unique_ptr<TokenTable> table,
                   TokenTable::Load(std::move(path), "intake tokens", CheckPattern, clock, look_period_ns));
  return std::unique_ptr<TokenFile>(new TokenFile(std::move(table)));
}

absl::Status TokenFile::Check(std::string_view token, std::string_view node_id, std::string* pattern) {
  table_->ReloadIfChanged();
  if (token.empty())
    return Error(absl::StatusCode::kUnauthenticated, "no token was sent, but the reducer requires one");
  bool known = false;
  std::optional<std::string_view> allowed;
  table_->Find(token, [&](std::string_view text) {
    known = true;
    const std::string_view of_line = text.empty() ? "*" : text;
    if (!allowed && GlobMatches(of_line, node_id)) allowed = of_line;
  });
  if (allowed) {
    if (pattern != nullptr) *pattern = *allowed;
    return absl::OkStatus();
  }
  if (known) return Error(absl::StatusCode::kPermissionDenied, "the token is not valid for this node id");
  return Error(absl::StatusCode::kUnauthenticated, "the token is not known");
}

absl::Status Security::CheckNames(const std::vector<std::string>& names, std::string_view node_id) {
  std::string shown;
  for (size_t i = 0; i < names.size(); ++i) {
    if (GlobMatches(names[i], node_id)) return absl::OkStatus();
    if (i < kNamesShownMax) shown += (i == 0 ? "" : ", ") + names[i];
    if (i == kNamesShownMax) shown += ", …";
  }
  return Error(absl::StatusCode::kPermissionDenied, fmt::format("the certificate is for {}, not for this node id",
                                                                shown.empty() ? "no name" : EscapeForDisplay(shown)));
}

}  // namespace tributary::intake
