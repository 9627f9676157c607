#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/secret_file.h"
#include "base/tls_context.h"
#include "base/token_table.h"

namespace tributary::intake {

// Tokens of collectors that the reducer accepts, from a file (TokenTable):
//
//   3b0c…e1             any node may use this token
//   91aa…07  web-*      only nodes whose id matches web-*
//
// The file may contain a token on several lines, one for each pattern of node ids. Not thread-safe.
class TokenFile {
 public:
  // Returns the errors of TokenTable::Load.
  static absl::StatusOr<std::unique_ptr<TokenFile>> Load(std::string path, const Clock& clock,
                                                         int64_t look_period_ns = FileWatch::kPeriodNs);

  // Unauthenticated if the token is unknown. PermissionDenied if the token is known, but not for this node.
  // If the token is valid and `pattern` is not null, sets `pattern` to the node ids for which the token is valid ("*":
  // all): the pattern of the first line that allows this node.
  absl::Status Check(std::string_view token, std::string_view node_id, std::string* pattern = nullptr);

 private:
  explicit TokenFile(std::unique_ptr<TokenTable> table) : table_(std::move(table)) {}

  const std::unique_ptr<TokenTable> table_;
};

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
