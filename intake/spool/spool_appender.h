#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "base/clock.h"
#include "intake/spool/spool.h"
#include "intake/spool/spool_inventory.h"
#include "intake/spool/spool_storage.h"
#include "intake/spool/spool_writer.h"

namespace tributary::intake {

// Appends batches to the segment being written, begins and closes segments, and drops the oldest segments if the spool
// is full.
class SpoolAppender {
 public:
  // `session`: of this process. All borrowed objects must outlive the appender.
  SpoolAppender(const SpoolOptions& options, SpoolInventory& inventory, SpoolStorage& storage,
                const SessionInfo& session, const Clock& clock);
  ~SpoolAppender();  // closes the open segment

  // See Spool::Append.
  absl::Status Append(const Batch& batch, const std::optional<SpoolClaim>& claim);
  // Closes the segment `id` if it is open. It is then durable and does not grow any more.
  void Close(SegmentId id);
  // If the segment `id` is open, stops writing to it. The caller removes its file.
  void Forget(SegmentId id);
  void CloseOld();  // by age

 private:
  // The segment being written. It is the inventory's last one once its first batch is on disk.
  struct Open {
    SegmentId id = 0;
    std::optional<SpoolClaim> claim;
    SegmentWriter writer;
    MonotonicNs since;
    uint32_t batches = 0;
    Accounting totals;  // the claim's base plus the amounts that the batches added

    // Returns whether a batch with this claim may be the next one.
    bool Continues(const std::optional<SpoolClaim>& next) const;
  };

  std::string Encode(const Batch& batch, const std::optional<SpoolClaim>& claim);
  absl::Status Write(const std::string& record, const Batch& batch);
  absl::Status MakeRoom(uint64_t bytes_needed);
  uint64_t DroppableBytes() const;
  bool CanHold(uint64_t more) const;
  bool IsOpen(SegmentId id) const { return open_ && open_->id == id; }
  bool IsOld() const { return clock_.Monotonic().value - open_->since.value >= options_.segment_age_ns; }
  void Close();
  void Abandon();

  SpoolOptions options_;
  SpoolInventory& inventory_;
  SpoolStorage& storage_;
  const SessionInfo& session_;
  const Clock& clock_;
  std::optional<Open> open_;
};

}  // namespace tributary::intake
