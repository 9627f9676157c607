#include "kernel-collector/uplink/uplink.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "base/log.h"
#include "base/status.h"
#include "intake/spool/spool_directory.h"

namespace tributary {
namespace {

std::optional<intake::EndedCollector> EarlierOf(const PinnedSession& pins) {
  if (!pins.predecessor()) return std::nullopt;
  const Predecessor& from = *pins.predecessor();
  intake::EndedCollector earlier;
  earlier.captured = from.accounting.captured;
  for (const Predecessor::Share& share : from.shares) earlier.sessions.push_back({share.session_id, share.attributed});
  earlier.reason = from.stopped ? LossReason::kShutdown : LossReason::kCollectorKilled;
  LogInfo("an earlier collector ended without delivering all samples captured={} unattributed={} cause={}",
          earlier.captured.total(), from.unattributed().total(), LossReasonName(earlier.reason));
  return earlier;
}

// A collector without a reducer has left these files. ParseRequestName (direct/request_file.h) knows the same names,
// but uplink/ may not include direct/. So change both.
void WarnOfRequests(intake::SpoolStorage& storage) {
  const absl::StatusOr<std::vector<std::string>> names = storage.List();
  if (!names.ok()) return;
  const auto requests = std::count_if(names->begin(), names->end(), [](const std::string& name) {
    return name.starts_with("request-") && name.ends_with(".trq");
  });
  if (requests > 0) {
    LogWarning(
        "the spool has requests for a receiver of OTLP: they stay until kernel-collector sends OTLP again files={}",
        requests);
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<Uplink>> Uplink::Open(Loop& loop, UplinkOptions options, PinnedSession& pins,
                                                     const Clock& clock, Metrics& metrics,
                                                     std::function<void(const ExecutableId&)> need_symbols,
                                                     std::function<void(const ExecutableId&)> need_digest) {
  std::unique_ptr<Uplink> uplink(new Uplink(loop, pins));
  ASSIGN_OR_RETURN(uplink->credentials_,
                   IntakeCredentials::Load(std::move(options.credentials), uplink->tcp_, loop, clock, metrics));
  options.delivery.client.token = [credentials = uplink->credentials_.get()] { return credentials->Token(); };
  if (!options.spool_dir.empty()) {
    RETURN_IF_ERROR(WithContext(uplink->OpenSpool(options, clock, metrics), "--spool-dir"));
  }
  const HostPort& first = options.delivery.reducers.front();
  const size_t more = options.delivery.reducers.size() - 1;
  uplink->receiver_ = fmt::format("{}:{}{}", first.host, first.port, more > 0 ? fmt::format(" and {} more", more) : "");
  options.delivery.earlier = EarlierOf(pins);
  options.delivery.spool = uplink->spool_.get();
  Uplink* borrowed = uplink.get();
  uplink->delivery_ = std::make_unique<intake::Delivery>(
      loop, uplink->credentials_->connector(), std::move(options.delivery), clock, metrics,
      intake::Delivery::Callbacks{
          .need_symbols = std::move(need_symbols),
          .need_digest = std::move(need_digest),
          .lost = [borrowed](LossReason reason,
                             const SampleCounts& samples) { borrowed->lost_.LostFor(reason) += samples; },
          .durable = [&pins](size_t reducer, const intake::EndedCollector::Session& session,
                             bool asked) { pins.Set(reducer, {session.session_id, session.attributed}, asked); },
          .earlier_reported = [&pins](const SampleCounts& taken_over) { pins.ForgetPredecessor(taken_over); }});
  return uplink;
}

BatchSink& Uplink::sink() { return *delivery_; }

Outlet::Totals Uplink::totals() const {
  return {.lost = lost_,
          .sent_samples = {},
          .waiting_samples = delivery_->waiting_samples(),
          .bytes_sent = delivery_->bytes_sent()};
}

std::string Uplink::NotReady() const {
  const std::string refusal = delivery_->refusal();
  return refusal.empty() ? "" : fmt::format("No reducer accepts this node: {}.", refusal);
}

absl::Status Uplink::OpenSpool(const UplinkOptions& options, const Clock& clock, Metrics& metrics) {
  ASSIGN_OR_RETURN(storage_, intake::OpenSpoolDirectory(options.spool_dir));
  WarnOfRequests(*storage_);
  absl::StatusOr<std::unique_ptr<intake::Spool>> opened = intake::Spool::Open(
      {.bytes_max = options.spool_bytes_max}, *storage_, options.delivery.client.session, clock, metrics,
      [this](LossReason reason, const SampleCounts& samples, const Accounting& accounting, bool earlier) {
        delivery_->OnSpoolDropped(reason, samples, accounting, earlier);
      });
  if (!opened.ok()) return WithContext(opened.status(), options.spool_dir);
  spool_ = *std::move(opened);
  if (!spool_->empty()) {
    LogInfo("the spool contains undelivered samples of an earlier collector samples={} bytes={}", spool_->samples(),
            spool_->bytes());
  }
  return absl::OkStatus();
}

void Uplink::Flush(int64_t timeout_ms, std::function<void(uint64_t undelivered_samples)> done) {
  delivery_->Flush(timeout_ms, [this, done = std::move(done)](uint64_t undelivered_samples) {
    pins_.Finish(/*undelivered=*/!delivery_->settled());
    done(undelivered_samples);
  });
}

}  // namespace tributary
