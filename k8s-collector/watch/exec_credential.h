#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "base/types.h"
#include "k8s-collector/watch/api_access.h"

namespace tributary {

// The texts that k8s-collector and an exec plug-in exchange: objects of the kind ExecCredential (Kubernetes API
// reference, client.authentication.k8s.io).
inline constexpr char kExecV1[] = "client.authentication.k8s.io/v1";
inline constexpr char kExecV1Beta1[] = "client.authentication.k8s.io/v1beta1";

// Returns the value of the environment variable KUBERNETES_EXEC_INFO for the plug-in `access.exec`. It contains the
// cluster's address if the plug-in wants it, with the content of the file of the certificate authority. Returns an
// error of ErrnoStatus (status.h) if this file cannot be read.
absl::StatusOr<std::string> EncodeExecInfo(const ApiAccess& access);

// The credentials of a plug-in: a token, or a certificate with its key, or both.
struct ExecCredential {
  std::string token, cert_pem, key_pem;
  std::optional<UnixNs> expires;  // of the answer or of the certificate, the earlier one. nullopt: not known
};

// Decodes the answer of a plug-in, in JSON or YAML. Returns InvalidArgument if it is not an ExecCredential of
// `api_version` with credentials that can be used. Messages contain no part of the credentials.
absl::StatusOr<ExecCredential> DecodeExecCredential(std::string_view text, std::string_view api_version);

}  // namespace tributary
