#include "otlp/otlp_logs_sender.h"

#include "schemas/otlp/logs_service.pb.h"
#include "schemas/otlp/profiles_service.pb.h"

namespace tributary::otlp {

using ::opentelemetry::proto::collector::logs::v1::ExportLogsServiceResponse;

SendResult OtlpLogsSender::Send(const ProfilesRequest& request, const RequestIdentity& identity, int64_t timeout_ns) {
  const LogsText logs = MakeLogs(request, identity, records_);
  SendResult result = SendLogs(*logs.request, timeout_ns);
  result.dropped_strings = logs.dropped_strings;
  return result;
}

SendResult OtlpLogsSender::SendLogs(const LogsRequest& request, int64_t timeout_ns) {
  ExportLogsServiceResponse response;
  SendResult result{transport_->Call(request, &response, timeout_ns)};
  if (!result.status.ok()) return result;
  result.rejected_items = response.partial_success().rejected_log_records();
  result.message = response.partial_success().error_message().substr(0, kMessageBytesMax);
  return result;
}

}  // namespace tributary::otlp
