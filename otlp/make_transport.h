#pragma once

#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "otlp/settings.h"
#include "otlp/transport.h"

namespace tributary::otlp {

// Makes the transport to a receiver. `http_path`: the path of its URL; nullopt: it speaks gRPC. Returns the errors of
// HttpTransport::Make and GrpcTransport::Make. `clock` must outlive the transport.
absl::StatusOr<std::unique_ptr<Transport>> MakeTransport(const Settings& settings, const Signal& signal,
                                                         const std::optional<std::string>& http_path,
                                                         const Clock& clock);

}  // namespace tributary::otlp
