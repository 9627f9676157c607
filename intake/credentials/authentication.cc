#include "intake/credentials/authentication.h"

#include <fmt/format.h>
#include <openssl/crypto.h>

#include <algorithm>
#include <utility>

#include "base/glob.h"
#include "base/log.h"
#include "base/status.h"
#include "base/trim.h"
#include "intake/wire/messages.h"

namespace tributary::intake {
namespace {

constexpr std::string_view kBlank = " \t\r";
constexpr size_t kNamesShownMax = 4;

// Cuts off the first word and returns it.
std::string_view TakeWord(std::string_view& text) {
  const size_t end = std::min(text.find_first_of(kBlank), text.size());
  const std::string_view word = text.substr(0, end);
  text = Trim(text.substr(end), kBlank);
  return word;
}

std::string_view TakeLine(std::string_view& text) {
  const size_t end = std::min(text.find('\n'), text.size());
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return Trim(line, kBlank);
}

absl::Status CheckToken(std::string_view token) {
  if (token.size() < TokenFile::kTokenBytesMin || token.size() > kTokenBytesMax) {
    return Error(absl::StatusCode::kInvalidArgument,
                 fmt::format("a token must have {} to {} characters", TokenFile::kTokenBytesMin, kTokenBytesMax));
  }
  const bool printable = std::all_of(token.begin(), token.end(), [](char c) { return c > 0x20 && c < 0x7f; });
  if (printable) return absl::OkStatus();
  return Error(absl::StatusCode::kInvalidArgument, "a token must contain only printable ASCII characters");
}

}  // namespace

absl::StatusOr<std::unique_ptr<TokenFile>> TokenFile::Load(std::string path, const Clock& clock,
                                                           int64_t look_period_ns) {
  std::unique_ptr<TokenFile> file(new TokenFile(std::move(path), clock, look_period_ns));
  ASSIGN_OR_RETURN(file->entries_, file->Read());
  return file;
}

absl::StatusOr<TokenFile::Entry> TokenFile::ParseLine(std::string_view line, size_t number) const {
  const std::string_view token = TakeWord(line);
  const std::string_view pattern = TakeWord(line);
  absl::Status status = CheckToken(token);
  if (status.ok() && !line.empty()) {
    status = Error(absl::StatusCode::kInvalidArgument, "a line must be TOKEN or TOKEN NODE-ID-PATTERN");
  }
  if (!status.ok()) return WithContext(status, fmt::format("{}:{}", path_, number));
  return Entry{Sha256(token), std::string(pattern.empty() ? "*" : pattern)};
}

absl::StatusOr<std::vector<TokenFile::Entry>> TokenFile::Read() const {
  ASSIGN_OR_RETURN(std::string text, ReadSecretFile(path_, kBytesMax));
  std::vector<Entry> entries;
  std::string_view rest = text;
  for (size_t number = 1; !rest.empty(); ++number) {
    const std::string_view line = TakeLine(rest);
    if (line.empty() || line.front() == '#') continue;
    if (entries.size() == kLinesMax) {
      return Error(absl::StatusCode::kInvalidArgument,
                   fmt::format("{}: the file contains more than {} tokens", path_, kLinesMax));
    }
    ASSIGN_OR_RETURN(Entry entry, ParseLine(line, number));
    entries.push_back(std::move(entry));
  }
  OPENSSL_cleanse(text.data(), text.size());
  // Without tokens no node could connect. This is probably a mistake, or a file that is still being written.
  if (entries.empty()) return Error(absl::StatusCode::kInvalidArgument, path_ + ": the file contains no token");
  return entries;
}

absl::Status TokenFile::Check(std::string_view token, std::string_view node_id, std::string* pattern) {
  if (watch_.Changed(clock_.Monotonic())) {
    absl::StatusOr<std::vector<Entry>> fresh = Read();
    if (fresh.ok()) {
      entries_ = *std::move(fresh);
      LogInfo("intake tokens read again file={} tokens={}", path_, entries_.size());
    } else {
      LogWarning("cannot use the changed intake token file, the old tokens stay valid cause=\"{}\"",
                 Message(fresh.status()));
    }
  }
  if (token.empty())
    return Error(absl::StatusCode::kUnauthenticated, "no token was sent, but the reducer requires one");
  const Sha256Digest digest = Sha256(token);
  bool known = false;
  const Entry* allowed = nullptr;
  // Compares all entries, each to its end: the time that this takes says nothing about any token.
  for (const Entry& entry : entries_) {
    const bool same = CRYPTO_memcmp(entry.digest.data(), digest.data(), digest.size()) == 0;
    known |= same;
    if (same && GlobMatches(entry.pattern, node_id) && allowed == nullptr) allowed = &entry;
  }
  if (allowed != nullptr) {
    if (pattern != nullptr) *pattern = allowed->pattern;
    return absl::OkStatus();
  }
  if (known) return Error(absl::StatusCode::kPermissionDenied, "the token is not valid for this node id");
  return Error(absl::StatusCode::kUnauthenticated, "the token is not known");
}

absl::StatusOr<std::string> ReadToken(const std::string& path) {
  ASSIGN_OR_RETURN(const std::string text, ReadSecretFile(path, TokenFile::kBytesMax));
  std::string_view rest = text;
  while (!rest.empty()) {
    std::string_view line = TakeLine(rest);
    if (line.empty() || line.front() == '#') continue;
    const std::string_view token = TakeWord(line);
    absl::Status status = CheckToken(token);
    if (!status.ok()) return WithContext(status, path);
    return std::string(token);
  }
  return Error(absl::StatusCode::kInvalidArgument, path + ": the file contains no token");
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
