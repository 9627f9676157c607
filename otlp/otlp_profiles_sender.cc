#include "otlp/otlp_profiles_sender.h"

#include <utility>

#include "otlp/transcoder.h"
#include "schemas/otlp/profiles_service.pb.h"

namespace tributary::otlp {

using ::opentelemetry::proto::collector::profiles::v1development::ExportProfilesServiceResponse;

namespace {

SendResult ResultOf(CallResult call, const ExportProfilesServiceResponse& response) {
  SendResult result{std::move(call)};
  if (!result.status.ok()) return result;
  result.rejected_items = response.partial_success().rejected_profiles();
  result.message = response.partial_success().error_message().substr(0, kMessageBytesMax);
  return result;
}

}  // namespace

// The response is the same in all generations.
SendResult OtlpProfilesSender::Send(const ProfilesRequest& request, const RequestIdentity& /*identity*/,
                                    int64_t timeout_ns) {
  ExportProfilesServiceResponse response;
  CallResult call = generation_ == Generation::kNewest
                        ? transport_->Call(request, &response, timeout_ns)
                        : transport_->Call(*Transcode(request, generation_), &response, timeout_ns);
  return ResultOf(std::move(call), response);
}

SendResult OtlpProfilesSender::SendBuilt(BuiltRequest& request, const RequestIdentity& identity, int64_t timeout_ns) {
  if (generation_ != Generation::kNewest) return Send(request.AsRequest(), identity, timeout_ns);
  ExportProfilesServiceResponse response;
  return ResultOf(transport_->CallEncoded(request, &response, timeout_ns), response);
}

}  // namespace tributary::otlp
