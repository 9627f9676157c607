#include "reducer/export/event_export.h"

#include <utility>

#include "base/status.h"

namespace tributary {

EventExport::EventExport(const std::string& exporter, std::string sender, store::Store& store, EventSender& receiver,
                         const Counters& counters)
    : position_name_(exporter + ".events"),
      sender_(std::move(sender)),
      store_(store),
      receiver_(receiver),
      counters_(counters) {}

absl::Status EventExport::Load(Feed& feed, uint32_t shard) {
  if (feed.has_position) return absl::OkStatus();
  ASSIGN_OR_RETURN(std::optional<store::ExportPosition> saved, store_.positions().LoadPosition(position_name_, shard));
  if (saved) {
    feed.last = saved->request;
    feed.saved = *std::move(saved);
  }
  feed.next = feed.saved.cursor;
  feed.has_position = true;
  return absl::OkStatus();
}

absl::Status EventExport::Read(Feed& feed, uint32_t shard) {
  RETURN_IF_ERROR(Load(feed, shard));
  ASSIGN_OR_RETURN(const std::unique_ptr<store::StoreReader> reader, store_.OpenReader(shard));
  std::vector<store::EventRecord> events;
  const auto add = [&events](const store::ProcessEventRow& event) {
    events.emplace_back(event);
    return absl::OkStatus();
  };
  const int64_t begin = feed.saved.cursor.chunk;
  ASSIGN_OR_RETURN(const int64_t next, reader->ScanCommittedEvents(begin, kEventsMax, add));
  if (next < begin) {
    // The shard's file was replaced, so the scan has started over. The next run must not continue at the old position.
    feed.last.reset();
    feed.next = {.samples = std::nullopt};
    RETURN_IF_ERROR(SaveCursor(feed, shard));
  }
  feed.next = {.chunk = next, .samples = std::nullopt};
  feed.events = std::move(events);
  if (!feed.events.empty()) Identify(feed);
  return absl::OkStatus();
}

// Gives the events that were read a new identity, or that of the last run's request. More events may have been
// committed since the last run, so only the events of its request are kept. If fewer events are left, some have
// expired, and the rest get new numbers.
void EventExport::Identify(Feed& feed) {
  const std::optional<store::ExportRequest> last = std::exchange(feed.last, std::nullopt);
  feed.in_doubt = last.has_value();
  if (last && last->rows > 0 && feed.events.size() >= last->rows && last->end.chunk <= feed.next.chunk) {
    feed.events.erase(feed.events.begin() + static_cast<ptrdiff_t>(last->rows), feed.events.end());
    feed.next = last->end;
    feed.identity = {sender_, last->session, last->first};
    return;
  }
  feed.identity = {sender_, feed.session, feed.next_number};
  feed.next_number += feed.events.size();
}

absl::Status EventExport::Save(Feed& feed, uint32_t shard, const store::ExportPosition& position) {
  if (position == feed.saved) return absl::OkStatus();
  RETURN_IF_ERROR(store_.positions().SavePosition(position_name_, shard, position));
  feed.saved = position;
  return absl::OkStatus();
}

absl::Status EventExport::SaveCursor(Feed& feed, uint32_t shard) {
  return Save(feed, shard, {.cursor = feed.next, .request = std::nullopt});
}

absl::Status EventExport::SaveAll() {
  for (size_t shard = 0; shard < feeds_.size(); ++shard) {
    Feed& feed = feeds_[shard];
    if (feed.has_position && feed.events.empty() && !feed.last) {
      RETURN_IF_ERROR(SaveCursor(feed, static_cast<uint32_t>(shard)));
    }
  }
  return absl::OkStatus();
}

EventExport::Step EventExport::Advance(uint32_t shard, int64_t timeout_ns) {
  if (feeds_.size() <= shard) feeds_.resize(size_t{shard} + 1);
  Feed& feed = feeds_[shard];
  const auto unsaved = [](absl::Status status) {
    return Step{.progress = Progress::kUnsaved, .sent_request = false, .status = std::move(status), .result = {}};
  };
  if (feed.events.empty()) {
    // If the cursor of the last request could not be saved, reading would return the same events again.
    if (feed.has_position && !feed.last) {
      if (absl::Status status = SaveCursor(feed, shard); !status.ok()) return unsaved(std::move(status));
    }
    if (absl::Status status = Read(feed, shard); !status.ok()) {
      return {.progress = Progress::kUnreadable, .sent_request = false, .status = std::move(status), .result = {}};
    }
    if (feed.events.empty() && feed.next == feed.saved.cursor) return {};
  }
  Step step{.progress = feed.events.size() >= kEventsMax ? Progress::kMore : Progress::kIdle};
  if (!feed.events.empty()) {
    const store::ExportRequest request{
        .end = feed.next, .session = feed.identity.session, .first = feed.identity.first, .rows = feed.events.size()};
    if (absl::Status status = Save(feed, shard, {.cursor = feed.saved.cursor, .request = request}); !status.ok()) {
      return unsaved(std::move(status));
    }
    step.result = receiver_.SendEvents(feed.events, feed.identity, timeout_ns);
    if (feed.in_doubt && (step.result.status.ok() || step.result.in_doubt)) counters_.repeated.Add(feed.events.size());
    feed.in_doubt |= step.result.in_doubt;
    interrupted_.reset();
    if (!step.result.status.ok() && step.result.may_retry) {
      interrupted_ = shard;
      step.progress = Progress::kUnsent;
      return step;
    }
    step.sent_request = true;
    (step.result.status.ok() ? counters_.sent : counters_.refused).Add(feed.events.size());
    feed.events.clear();
  }
  if (absl::Status status = SaveCursor(feed, shard); !status.ok()) {
    step.progress = Progress::kUnsaved;
    step.status = std::move(status);
  }
  return step;
}

}  // namespace tributary
