#include "reducer/export/event_export.h"

#include <utility>

#include "base/status.h"

namespace tributary {

EventExport::EventExport(const std::string& exporter, store::Store& store, EventSender& sender, Counter& sent,
                         Counter& refused)
    : cursor_name_(exporter + ".events"), store_(store), sender_(sender), sent_(sent), refused_(refused) {}

absl::Status EventExport::Read(Feed& feed, uint32_t shard) {
  if (!feed.has_cursor) {
    ASSIGN_OR_RETURN(const std::optional<store::Cursor> cursor, store_.cursors().LoadCursor(cursor_name_, shard));
    feed.cursor = feed.next_cursor = cursor.value_or(store::Cursor{}).chunk;
    feed.has_cursor = true;
  }
  ASSIGN_OR_RETURN(const std::unique_ptr<store::StoreReader> reader, store_.OpenReader(shard));
  std::vector<store::EventRecord> events;
  const auto add = [&events](const store::ProcessEventRow& event) {
    events.emplace_back(event);
    return absl::OkStatus();
  };
  ASSIGN_OR_RETURN(const int64_t next, reader->ScanCommittedEvents(feed.cursor, kEventsMax, add));
  if (next < feed.cursor) {
    // The shard's file was replaced, so the scan has started over. The next run must not continue at the old position.
    feed.next_cursor = 0;
    RETURN_IF_ERROR(Save(feed, shard));
  }
  feed.next_cursor = next;
  feed.events = std::move(events);
  return absl::OkStatus();
}

absl::Status EventExport::Save(Feed& feed, uint32_t shard) {
  if (feed.next_cursor == feed.cursor) return absl::OkStatus();
  RETURN_IF_ERROR(
      store_.cursors().SaveCursor(cursor_name_, shard, {.chunk = feed.next_cursor, .samples = std::nullopt}));
  feed.cursor = feed.next_cursor;
  return absl::OkStatus();
}

absl::Status EventExport::SaveAll() {
  for (size_t shard = 0; shard < feeds_.size(); ++shard) {
    if (feeds_[shard].events.empty()) RETURN_IF_ERROR(Save(feeds_[shard], static_cast<uint32_t>(shard)));
  }
  return absl::OkStatus();
}

EventExport::Step EventExport::Advance(uint32_t shard, int64_t timeout_ns) {
  if (feeds_.size() <= shard) feeds_.resize(size_t{shard} + 1);
  Feed& feed = feeds_[shard];
  if (feed.events.empty()) {
    // If the cursor of the last request could not be saved, reading would return the same events again.
    if (absl::Status status = Save(feed, shard); !status.ok()) {
      return {.progress = Progress::kUnsaved, .status = std::move(status)};
    }
    if (absl::Status status = Read(feed, shard); !status.ok()) {
      return {.progress = Progress::kUnreadable, .status = std::move(status)};
    }
    if (feed.events.empty() && feed.next_cursor == feed.cursor) return {};
  }
  Step step{.progress = feed.events.size() >= kEventsMax ? Progress::kMore : Progress::kIdle};
  if (!feed.events.empty()) {
    step.result = sender_.SendEvents(feed.events, timeout_ns);
    interrupted_.reset();
    if (!step.result.status.ok() && step.result.may_retry) {
      interrupted_ = shard;
      step.progress = Progress::kUnsent;
      return step;
    }
    step.sent_request = true;
    (step.result.status.ok() ? sent_ : refused_).Add(feed.events.size());
    feed.events.clear();
  }
  if (absl::Status status = Save(feed, shard); !status.ok()) {
    step.progress = Progress::kUnsaved;
    step.status = std::move(status);
  }
  return step;
}

}  // namespace tributary
