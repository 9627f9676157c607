#include "base/token_table.h"

#include <fmt/format.h>
#include <openssl/crypto.h>

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "base/status.h"
#include "base/trim.h"

namespace tributary {
namespace {

constexpr std::string_view kBlank = " \t\r";

std::string_view TakeLine(std::string_view& text) {
  const size_t end = std::min(text.find('\n'), text.size());
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return Trim(line, kBlank);
}

absl::Status NoToken(const std::string& path) {
  return Error(absl::StatusCode::kInvalidArgument, path + ": the file contains no token");
}

}  // namespace

absl::Status CheckToken(std::string_view token) {
  if (token.size() < TokenTable::kTokenBytesMin || token.size() > TokenTable::kTokenBytesMax) {
    return Error(
        absl::StatusCode::kInvalidArgument,
        fmt::format("a token must have {} to {} characters", TokenTable::kTokenBytesMin, TokenTable::kTokenBytesMax));
  }
  const bool printable = std::all_of(token.begin(), token.end(), [](char c) { return c > 0x20 && c < 0x7f; });
  if (printable) return absl::OkStatus();
  return Error(absl::StatusCode::kInvalidArgument, "a token must contain only printable ASCII characters");
}

std::string_view TakeWord(std::string_view& text) {
  const size_t end = std::min(text.find_first_of(kBlank), text.size());
  const std::string_view word = text.substr(0, end);
  text = Trim(text.substr(end), kBlank);
  return word;
}

absl::StatusOr<std::unique_ptr<TokenTable>> TokenTable::Load(std::string path, std::string what, CheckText check,
                                                             const Clock& clock, int64_t look_period_ns) {
  std::unique_ptr<TokenTable> table(new TokenTable(std::move(path), std::move(what), check, clock, look_period_ns));
  ASSIGN_OR_RETURN(table->entries_, table->Read());
  return table;
}

absl::StatusOr<TokenTable::Entry> TokenTable::ParseLine(std::string_view line, size_t number) const {
  const std::string_view token = TakeWord(line);
  absl::Status status = CheckToken(token);
  if (status.ok()) status = check_(line);
  if (!status.ok()) return WithContext(status, fmt::format("{}:{}", path_, number));
  return Entry{Sha256(token), std::string(line)};
}

absl::StatusOr<std::vector<TokenTable::Entry>> TokenTable::Read() const {
  ASSIGN_OR_RETURN(std::string text, ReadSecretFile(path_, kFileBytesMax));
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
  // Without tokens nobody could sign in. This is probably a mistake, or a file that is still being written.
  if (entries.empty()) return NoToken(path_);
  return entries;
}

void TokenTable::ReloadIfChanged() {
  if (!watch_.Changed(clock_.Monotonic())) return;
  absl::StatusOr<std::vector<Entry>> fresh = Read();
  if (fresh.ok()) {
    entries_ = *std::move(fresh);
    LogInfo("{} read again file={} tokens={}", what_, path_, entries_.size());
  } else {
    LogWarning("cannot use the changed file of {}, the old tokens stay valid cause=\"{}\"", what_,
               Message(fresh.status()));
  }
}

void TokenTable::Find(std::string_view token, absl::FunctionRef<void(std::string_view text)> found) const {
  const Sha256Digest digest = Sha256(token);
  // Compares all entries, each to its end: the time that this takes says nothing about any token.
  for (const Entry& entry : entries_) {
    if (CRYPTO_memcmp(entry.digest.data(), digest.data(), digest.size()) == 0) found(entry.text);
  }
}

absl::StatusOr<std::string> ReadToken(const std::string& path) {
  ASSIGN_OR_RETURN(const std::string text, ReadSecretFile(path, TokenTable::kFileBytesMax));
  std::string_view rest = text;
  while (!rest.empty()) {
    std::string_view line = TakeLine(rest);
    if (line.empty() || line.front() == '#') continue;
    const std::string_view token = TakeWord(line);
    absl::Status status = CheckToken(token);
    if (!status.ok()) return WithContext(status, path);
    return std::string(token);
  }
  return NoToken(path);
}

}  // namespace tributary
