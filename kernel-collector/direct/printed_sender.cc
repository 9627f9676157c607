#include "kernel-collector/direct/printed_sender.h"

#include <algorithm>

#include "schemas/otlp/profiles_service.pb.h"

namespace tributary {
namespace {

uint64_t CountSamplesOf(const otlp::ProfilesRequest& request) {
  uint64_t count = 0;
  for (const auto& resource : request.resource_profiles()) {
    for (const auto& scope : resource.scope_profiles()) {
      for (const auto& profile : scope.profiles()) {
        for (const auto& sample : profile.samples()) count += otlp::SampleCount(sample, otlp::IsCount(profile));
      }
    }
  }
  return count;
}

}  // namespace

PrintedSender::PrintedSender(std::unique_ptr<otlp::ProfilesSender> printer,
                             std::unique_ptr<otlp::ProfilesSender> sender, const Clock& clock, Metrics& metrics)
    : printer_(std::move(printer)),
      sender_(std::move(sender)),
      clock_(clock),
      unprinted_(metrics.AddCounter("tributary_direct_unprinted_samples_total",
                                    "Samples that were not printed: standard output was closed, its disk full or its "
                                    "reader too slow, or the text too large. They are sent all the same")) {}

otlp::SendResult PrintedSender::Send(const otlp::ProfilesRequest& request, const otlp::RequestIdentity& identity,
                                     int64_t timeout_ns) {
  if (printed_ != identity) {
    printed_ = identity;
    const int64_t begin_ns = clock_.Monotonic().value;
    Print(request, identity, std::min(kPrintNsMax, timeout_ns / 4));
    timeout_ns -= clock_.Monotonic().value - begin_ns;
  }
  return sender_->Send(request, identity, std::max<int64_t>(timeout_ns, 1));
}

void PrintedSender::Print(const otlp::ProfilesRequest& request, const otlp::RequestIdentity& identity,
                          int64_t timeout_ns) {
  const otlp::SendResult result = printer_->Send(request, identity, timeout_ns);
  if (result.status.ok() && result.left_out_samples == 0) return;
  unprinted_.Add(result.status.ok() ? result.left_out_samples : CountSamplesOf(request));
  if (uint64_t held = 0; log_.Allow(clock_.Monotonic(), &held)) {
    LogWarning("samples are sent, but not printed cause=\"{}\" suppressed={}",
               result.status.ok() ? result.message : result.status.ToString(), held);
  }
}

void PrintedSender::Cancel() {
  printer_->Cancel();
  sender_->Cancel();
}

}  // namespace tributary
