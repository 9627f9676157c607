#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "otlp/generation.h"
#include "otlp/transport.h"
#include "otlp/variables.h"

namespace tributary::otlp {

// A receiver, and the settings that the user gave for this receiver alone.
struct Receiver {
  std::string target;  // "host:port"
  bool tls = false;
  bool is_http = false;  // false: gRPC
  Signal signal = kProfilesSignal;
  // encoding, generation, compression, timeout, headers_file, tls_ca, tls_cert, tls_key: see docs/export.md. The caller
  // has checked their values, but not whether their files exist.
  std::map<std::string, std::string, std::less<>> parameters;
  std::optional<Headers> headers;  // if set: instead of those of headers_file and of the variables
};

struct Settings {
  TransportOptions transport;
  Encoding encoding = Encoding::kProtobuf;      // for HTTP
  Generation generation = Generation::kNewest;  // of profiles
  int64_t timeout_ns = 0;                       // of one request
};

// Takes each setting from the receiver's parameters, or else from the variables, or else the default, and reads the
// file of headers. The variables are HEADERS, COMPRESSION, TIMEOUT, CERTIFICATE, CLIENT_CERTIFICATE, CLIENT_KEY, and
// PROTOCOL=http/json for the encoding. InvalidArgument: a header is invalid, or other users may read the file of
// headers. Returns the errors of ReadSecretFile.
absl::StatusOr<Settings> ResolveSettings(const Receiver& receiver, const Variables& variables);

}  // namespace tributary::otlp
