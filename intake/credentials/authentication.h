#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/secret_file.h"
#include "base/sha256.h"
#include "base/tls_context.h"

namespace tributary::intake {

// Bearer tokens that the reducer accepts, from a file:
//
//   # comments and empty lines
//   3b0c…e1             any node may use this token
//   91aa…07  web-*      only nodes whose id matches web-*
//
// A token has 16 to 4,096 printable characters, and no spaces. The file may contain a token on several lines, one for
// each pattern of node ids. The file must not be accessible to all users (ReadSecretFile). Check reads the file again
// if it has changed, and looks for changes at most once every 2 s. If the changed file cannot be used, the old tokens
// stay valid and one warning is logged per change. Only digests of the tokens are stored. They are compared in constant
// time. Not thread-safe.
class TokenFile {
 public:
  static constexpr size_t kBytesMax = 4u << 20;
  static constexpr size_t kLinesMax = 10'000;
  static constexpr size_t kTokenBytesMin = 16;

  // Returns the errors of ReadSecretFile. InvalidArgument if a line is not valid, or if the file has no token or more
  // than kLinesMax tokens. For an invalid line, the message names the file and the line, but never the token.
  static absl::StatusOr<std::unique_ptr<TokenFile>> Load(std::string path, const Clock& clock,
                                                         int64_t look_period_ns = FileWatch::kPeriodNs);

  // Unauthenticated if the token is unknown. PermissionDenied if the token is known, but not for this node.
  // If the token is valid and `pattern` is not null, sets `pattern` to the node ids for which the token is valid ("*":
  // all): the pattern of the first line that allows this node.
  absl::Status Check(std::string_view token, std::string_view node_id, std::string* pattern = nullptr);

 private:
  struct Entry {
    Sha256Digest digest;
    std::string pattern;
  };
  TokenFile(std::string path, const Clock& clock, int64_t look_period_ns)
      : path_(std::move(path)), clock_(clock), watch_({path_}, look_period_ns) {}
  absl::StatusOr<std::vector<Entry>> Read() const;
  absl::StatusOr<Entry> ParseLine(std::string_view line, size_t number) const;

  const std::string path_;
  const Clock& clock_;
  FileWatch watch_;
  std::vector<Entry> entries_;
};

// Returns the first token of the file, for the program that sends the token. Returns the errors of ReadSecretFile, and
// InvalidArgument if the file contains no token or the first token is not valid.
absl::StatusOr<std::string> ReadToken(const std::string& path);

// The credentials that a peer must present before its session begins. `tls` null: plain TCP. `tokens` null: no token is
// required.
struct Security {
  std::unique_ptr<TlsContext> tls;
  std::unique_ptr<TokenFile> tokens;
  // Used only if client certificates are required. If true, one name in the certificate must be the node's id, or a
  // glob that matches the id.
  bool certificate_names_node = true;

  // PermissionDenied if none of `names` matches the node id. `names`: the result of TlsStream::peer_identity.
  static absl::Status CheckNames(const std::vector<std::string>& names, std::string_view node_id);
};

}  // namespace tributary::intake
