#include "otlp/otlp_profiles_sender.h"

#include "otlp/transcoder.h"
#include "schemas/otlp/profiles_service.pb.h"

namespace tributary::otlp {

using ::opentelemetry::proto::collector::profiles::v1development::ExportProfilesServiceResponse;

SendResult OtlpProfilesSender::Send(const ProfilesRequest& request, const RequestIdentity& /*identity*/,
                                    int64_t timeout_ns) {
  // The response is the same in all generations.
  ExportProfilesServiceResponse response;
  SendResult result{generation_ == Generation::kNewest
                        ? transport_->Call(request, &response, timeout_ns)
                        : transport_->Call(*Transcode(request, generation_), &response, timeout_ns)};
  if (!result.status.ok()) return result;
  result.rejected_items = response.partial_success().rejected_profiles();
  result.message = response.partial_success().error_message().substr(0, kMessageBytesMax);
  return result;
}

}  // namespace tributary::otlp
