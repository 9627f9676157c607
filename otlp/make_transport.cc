#include "otlp/make_transport.h"

#include "otlp/grpc_transport.h"
#include "otlp/http_transport.h"

namespace tributary::otlp {

absl::StatusOr<std::unique_ptr<Transport>> MakeTransport(const Settings& settings, const Signal& signal,
                                                         const std::optional<std::string>& http_path,
                                                         const Clock& clock) {
  if (!http_path) return GrpcTransport::Make(settings.transport, signal);
  return HttpTransport::Make({.common = settings.transport, .path = *http_path, .encoding = settings.encoding}, clock);
}

}  // namespace tributary::otlp
