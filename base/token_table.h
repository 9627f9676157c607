#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/secret_file.h"
#include "base/sha256.h"

namespace tributary {

// Secret tokens from a file. Each line has a token and, after blanks, a text that says what the token is for:
//
//   # comments and empty lines
//   3b0c…e1
//   91aa…07  web-*
//
// A token has 16 to 4,096 printable ASCII characters, and no spaces. A token may be on several lines. The file must not
// be accessible to all users (ReadSecretFile). Only digests of the tokens are kept. They are compared in constant time.
// Not thread-safe.
class TokenTable {
 public:
  static constexpr size_t kFileBytesMax = 4u << 20;
  static constexpr size_t kLinesMax = 10'000;
  static constexpr size_t kTokenBytesMin = 16, kTokenBytesMax = 4096;

  // Returns an error if the text after a token is not valid.
  using CheckText = absl::Status (*)(std::string_view text);

  // `what` is the name of the tokens in log messages, for example "intake tokens". Returns the errors of
  // ReadSecretFile. InvalidArgument if a line is not valid, or if the file has no token or more than kLinesMax tokens.
  // For an invalid line, the message names the file and the line, but never the token.
  static absl::StatusOr<std::unique_ptr<TokenTable>> Load(std::string path, std::string what, CheckText check,
                                                          const Clock& clock,
                                                          int64_t look_period_ns = FileWatch::kPeriodNs);

  // Reads the file again if it has changed. Looks for changes at most once per `look_period_ns`. If the changed file
  // cannot be used, the old tokens stay valid and one warning is logged per change.
  void ReloadIfChanged();

  // Passes the text of each line with this token to `found`. Does nothing if no line has the token.
  void Find(std::string_view token, absl::FunctionRef<void(std::string_view text)> found) const;

 private:
  struct Entry {
    Sha256Digest digest;
    std::string text;
  };
  TokenTable(std::string path, std::string what, CheckText check, const Clock& clock, int64_t look_period_ns)
      : path_(std::move(path)), what_(std::move(what)), check_(check), clock_(clock), watch_({path_}, look_period_ns) {}
  absl::StatusOr<std::vector<Entry>> Read() const;
  absl::StatusOr<Entry> ParseLine(std::string_view line, size_t number) const;

  const std::string path_, what_;
  const CheckText check_;
  const Clock& clock_;
  FileWatch watch_;
  std::vector<Entry> entries_;
};

// Returns the first token of the file, for the program that sends the token. Returns the errors of ReadSecretFile, and
// InvalidArgument if the file contains no token or the first token is not valid.
absl::StatusOr<std::string> ReadToken(const std::string& path);

// Returns InvalidArgument unless `token` has the length and the characters of a token. The message never contains it.
absl::Status CheckToken(std::string_view token);

// Cuts off the first word of `text`, and the blanks after it. Returns the word.
std::string_view TakeWord(std::string_view& text);

}  // namespace tributary
