#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "base/metrics.h"
#include "reducer/export/event_sender.h"
#include "reducer/store/store.h"

namespace tributary {

// Sends the process events that a store has committed, in the order of their commits. ExportLoop calls it, on its
// thread. It has a cursor of its own for each shard: the exporter's name with the suffix ".events". Like samples, each
// event is sent at least once, unless it expires before.
class EventExport {
 public:
  // One request has about this many events, and at most one stored chunk more.
  static constexpr size_t kEventsMax = 10'000;

  // All borrowed objects must outlive the EventExport.
  EventExport(const std::string& exporter, store::Store& store, EventSender& sender, Counter& sent, Counter& refused);

  enum class Progress {
    kIdle,        // all events that were committed when the step began are sent
    kMore,        // more events are left
    kUnreadable,  // `status` is an error of the store
    kUnsaved,     // `status` is an error of the store: it could not save the position
    kUnsent       // `result` is an error of the receiver that may be retried
  };
  struct Step {
    Progress progress = Progress::kIdle;
    bool sent_request = false;  // the receiver has accepted or refused a request
    absl::Status status;
    otlp::SendResult result;
  };
  // Sends at most one request with events of the shard.
  Step Advance(uint32_t shard, int64_t timeout_ns);
  // Saves the positions that could not be saved before.
  absl::Status SaveAll();
  // If the last request could not be sent, returns its shard. Then the next request to the receiver must be the same
  // one, because the receiver may have got a part of it.
  std::optional<uint32_t> interrupted() const { return interrupted_; }

 private:
  struct Feed {
    bool has_cursor = false;
    int64_t cursor = 0;                      // as saved
    int64_t next_cursor = 0;                 // of the events that were read last
    std::vector<store::EventRecord> events;  // that are being sent
  };
  absl::Status Read(Feed& feed, uint32_t shard);
  absl::Status Save(Feed& feed, uint32_t shard);

  const std::string cursor_name_;
  store::Store& store_;
  EventSender& sender_;
  Counter &sent_, &refused_;
  std::vector<Feed> feeds_;  // index: shard
  std::optional<uint32_t> interrupted_;
};

}  // namespace tributary
