#include "otlp/otlp_profiles_sender.h"

#include "schemas/otlp/profiles_service.pb.h"

namespace tributary::otlp {

using ::opentelemetry::proto::collector::profiles::v1development::ExportProfilesServiceResponse;

SendResult OtlpProfilesSender::Send(const ProfilesRequest& request, const RequestIdentity& /*identity*/,
                                    int64_t timeout_ns) {
  ExportProfilesServiceResponse response;
  SendResult result{transport_->Call(request, &response, timeout_ns)};
  if (!result.status.ok()) return result;
  result.rejected_items = response.partial_success().rejected_profiles();
  result.message = response.partial_success().error_message().substr(0, kMessageBytesMax);
  return result;
}

}  // namespace tributary::otlp
