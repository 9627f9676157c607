#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "base/metrics.h"
#include "otlp/request_identity.h"
#include "reducer/export/event_sender.h"
#include "reducer/export/export_session.h"
#include "reducer/store/store.h"

namespace tributary {

// Sends the process events that a store has committed, in the order of their commits. ExportLoop calls it, on its
// thread. It has a position of its own for each shard: the exporter's name with the suffix ".events". Like samples,
// each event is sent at least once, unless it expires before. A request that the last run began, and whose answer is
// not known, is sent again with the same events and numbers.
class EventExport {
 public:
  // One batch has about this many events, and at most one stored chunk more. A sender may divide it into requests.
  static constexpr size_t kEventsMax = 10'000;

  struct Counters {
    Counter &sent, &refused, &repeated;
  };
  // `sender` is that of RequestIdentity. All borrowed objects must outlive the EventExport.
  EventExport(const std::string& exporter, std::string sender, store::Store& store, EventSender& receiver,
              const Counters& counters);

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
    uint64_t events = 0;        // of this request
    uint64_t refused = 0;       // events of this request that the receiver refused for good
    absl::Status status;
    EventResult result;
  };
  // Loads the position in the shard, if it is not loaded yet.
  absl::Status Load(uint32_t shard);
  // Sends at most one batch of events of the shard.
  Step Advance(uint32_t shard, int64_t timeout_ns);
  // Saves the positions that could not be saved before.
  absl::Status SaveAll();
  // If a request of this run or the last one has no answer, returns its shard. Then the next request to the receiver
  // must be the same one, because the receiver may have got a part of it.
  std::optional<uint32_t> interrupted() const;

 private:
  struct Feed {
    bool has_position = false;
    store::ExportPosition saved{.cursor = {.samples = std::nullopt}, .request = std::nullopt};
    store::Cursor next;                      // behind the events that were read last
    std::vector<store::EventRecord> events;  // that are being sent
    otlp::RequestIdentity identity;          // of `events`
    bool in_doubt = false;                   // the receiver may have `events` already
    bool is_cut = false;                     // more events were read than belong to the last run's request
    store::ExportSession session = NewExportSession();
    uint64_t next_number = 0;                  // of the next event in `session`
    std::optional<store::ExportRequest> last;  // the last run's request whose answer is not known
  };
  absl::Status Read(Feed& feed, uint32_t shard);
  void Identify(Feed& feed);
  absl::Status SaveCursor(Feed& feed, uint32_t shard);
  absl::Status Save(Feed& feed, uint32_t shard, const store::ExportPosition& position);

  const std::string position_name_;
  const std::string sender_;
  store::Store& store_;
  EventSender& receiver_;
  const Counters counters_;
  std::vector<Feed> feeds_;  // index: shard
  std::optional<uint32_t> interrupted_;
};

}  // namespace tributary
