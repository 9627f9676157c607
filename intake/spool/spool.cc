#include "intake/spool/spool.h"

#include <algorithm>
#include <utility>

#include "base/status.h"
#include "intake/spool/spool_appender.h"
#include "intake/spool/spool_delivery.h"
#include "intake/spool/spool_inventory.h"

namespace tributary::intake {

struct Spool::Impl {
  Impl(const SpoolOptions& options, SpoolStorage& storage, const SessionInfo& writer, const Clock& clock,
       Metrics& metrics, Dropped dropped)
      : bytes_max(options.bytes_max),
        session(writer),
        inventory(storage, session, clock, metrics, std::move(dropped)),
        appender(options, inventory, storage, session, clock),
        delivery(inventory, appender, storage) {}

  const uint64_t bytes_max;
  const SessionInfo session;
  SpoolInventory inventory;
  SpoolAppender appender;
  SpoolDelivery delivery;
};

Spool::Spool(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Spool::~Spool() = default;

absl::StatusOr<std::unique_ptr<Spool>> Spool::Open(SpoolOptions options, SpoolStorage& storage,
                                                   const SessionInfo& session, const Clock& clock, Metrics& metrics,
                                                   Dropped dropped) {
  auto impl = std::make_unique<Impl>(options, storage, session, clock, metrics, std::move(dropped));
  RETURN_IF_ERROR(impl->inventory.Load());
  return std::unique_ptr<Spool>(new Spool(std::move(impl)));
}

absl::Status Spool::Append(const Batch& batch, const std::optional<SpoolClaim>& claim) {
  impl_->inventory.ReportFound();
  return impl_->appender.Append(batch, claim);
}

std::optional<SpooledBatch> Spool::Next() {
  impl_->inventory.ReportFound();
  return impl_->delivery.Next();
}

absl::Status Spool::Claim(SegmentId segment, uint32_t index, const SpoolClaim& claim) {
  return impl_->delivery.Claim(segment, index, claim);
}
void Spool::Release(SegmentId segment) { impl_->delivery.Release(segment); }

void Spool::Tick() {
  impl_->inventory.ReportFound();
  impl_->appender.CloseOld();
  impl_->inventory.RemoveAgain();
}

bool Spool::empty() const {
  const std::deque<SpooledSegment>& segments = std::as_const(impl_->inventory).segments();
  return std::none_of(segments.begin(), segments.end(), [](const SpooledSegment& s) { return s.unread(); });
}
uint64_t Spool::samples() const { return impl_->inventory.samples(); }
uint64_t Spool::bytes() const { return impl_->inventory.bytes(); }
uint64_t Spool::bytes_max() const { return impl_->bytes_max; }
size_t Spool::segments() const { return impl_->inventory.segments().size(); }

}  // namespace tributary::intake
