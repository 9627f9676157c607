#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/secret_file.h"
#include "base/tls_context.h"

namespace tributary::intake {

// Bearer tokens that the reducer accepts, from a file:
//
//   # comments and empty lines
//   3b0c…e1             any node may use this one
//   91aa…07  web-*      only nodes with such ids; a token may have several lines
//
// A token has 16 to 4,096 printable characters without spaces. The file must not be accessible to all users
// (ReadSecretFile). Check reads the file again if it has changed, and looks for changes at most once every 2 s. If the
// changed file cannot be used, the old tokens stay in force and one warning is logged per change. Only digests of
// tokens are kept, and they are compared in constant time. Not thread-safe.
class TokenFile {
 public:
  static constexpr size_t kBytesMax = 4u << 20;
  static constexpr size_t kLinesMax = 10'000;
  static constexpr size_t kTokenBytesMin = 16;

  // InvalidArgument: the message names the file and the line, never a token.
  static absl::StatusOr<std::unique_ptr<TokenFile>> Load(std::string path, const Clock& clock,
                                                         int64_t look_period_ns = FileWatch::kPeriodNs);

  // Unauthenticated if the token is unknown. PermissionDenied if the token is known, but not for this node.
  absl::Status Check(std::string_view token, std::string_view node_id);

 private:
  using Digest = std::array<uint8_t, 32>;
  struct Entry {
    Digest digest;
    std::string pattern;
  };
  TokenFile(std::string path, const Clock& clock, int64_t look_period_ns)
      : path_(std::move(path)), clock_(clock), watch_({path_}, look_period_ns) {}
  static Digest DigestOf(std::string_view token);
  absl::StatusOr<std::vector<Entry>> Read() const;
  absl::StatusOr<Entry> ParseLine(std::string_view line, size_t number) const;

  const std::string path_;
  const Clock& clock_;
  FileWatch watch_;
  std::vector<Entry> entries_;
};

// For the program that sends the token: returns the first word of the file. Errors are those of ReadSecretFile;
// InvalidArgument if the file is empty or its first word is not a token.
absl::StatusOr<std::string> ReadToken(const std::string& path);

// The credentials that a peer must show before its session begins. A credential with a null member is not required.
struct Security {
  std::unique_ptr<TlsContext> tls;
  std::unique_ptr<TokenFile> tokens;
  // Applies if client certificates are required: one of the certificate's names must be the node's id, or a glob that
  // matches the id.
  bool certificate_names_node = true;

  // PermissionDenied if none of these names (TlsStream::peer_identity) matches the node id.
  static absl::Status CheckNames(const std::vector<std::string>& names, std::string_view node_id);
};

}  // namespace tributary::intake
