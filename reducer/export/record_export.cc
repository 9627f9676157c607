#include "reducer/export/event_export.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <span>
#include <utility>

#include "base/status.h"

namespace tributary {
namespace {

// Returns a digest of what identifies the events.
uint64_t ContentOf(std::span<const store::EventRecord> events) {
  std::string text;
  for (const store::EventRecord& event : events) {
    text += fmt::format("{},{},{},{},{};", event.node_id, event.pid.value, event.start_time_ns, event.time.value,
                        static_cast<int>(event.kind));
  }
  return otlp::ContentDigest(text);
}

}  // namespace

EventExport::EventExport(const std::string& exporter, std::string sender, store::Store& store, EventSender& receiver,
                         const Counters& counters)
    : position_name_(exporter + ".events"),
      sender_(std::move(sender)),
      store_(store),
      receiver_(receiver),
      counters_(counters) {}

absl::Status EventExport::Load(uint32_t shard) {
  if (feeds_.size() <= shard) feeds_.resize(size_t{shard} + 1);
  Feed& feed = feeds_[shard];
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

std::optional<uint32_t> EventExport::interrupted() const {
  if (interrupted_) return interrupted_;
  const auto feed = std::find_if(feeds_.begin(), feeds_.end(), [](const Feed& f) { return f.last.has_value(); });
  if (feed == feeds_.end()) return std::nullopt;
  return static_cast<uint32_t>(feed - feeds_.begin());
}

absl::Status EventExport::Read(Feed& feed, uint32_t shard) {
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
  Identify(feed);
  return absl::OkStatus();
}

// Gives the events that were read an identity. If the last run may have sent the first of them in a request, they are
// sent in the same request again. If the first events are others, because some have expired or their chunks were
// joined, all of them get new numbers.
void EventExport::Identify(Feed& feed) {
  const std::optional<store::ExportRequest> last = std::exchange(feed.last, std::nullopt);
  feed.in_doubt = last.has_value() && !feed.events.empty();
  if (last && last->count > 0 && feed.events.size() >= last->count &&
      ContentOf(std::span(feed.events).first(last->count)) == last->content) {
    feed.is_cut = feed.events.size() > last->count;
    feed.events.erase(feed.events.begin() + static_cast<ptrdiff_t>(last->count), feed.events.end());
    if (feed.is_cut) feed.next = last->end;
    feed.identity = {last->sender, last->session, last->first};
    return;
  }
  feed.is_cut = false;
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
  if (absl::Status status = Load(shard); !status.ok()) {
    return {.progress = Progress::kUnreadable,
            .sent_request = false,
            .events = 0,
            .refused = 0,
            .status = std::move(status),
            .result = {}};
  }
  Feed& feed = feeds_[shard];
  const auto unsaved = [](absl::Status status) {
    return Step{.progress = Progress::kUnsaved,
                .sent_request = false,
                .events = 0,
                .refused = 0,
                .status = std::move(status),
                .result = {}};
  };
  if (feed.events.empty()) {
    // If the cursor of the last request could not be saved, reading would return the same events again.
    if (feed.has_position && !feed.last) {
      if (absl::Status status = SaveCursor(feed, shard); !status.ok()) return unsaved(std::move(status));
    }
    if (absl::Status status = Read(feed, shard); !status.ok()) {
      return {.progress = Progress::kUnreadable,
              .sent_request = false,
              .events = 0,
              .refused = 0,
              .status = std::move(status),
              .result = {}};
    }
    if (feed.events.empty() && feed.next == feed.saved.cursor) return {};
  }
  Step step{.progress = feed.events.size() >= kEventsMax || feed.is_cut ? Progress::kMore : Progress::kIdle};
  if (!feed.events.empty()) {
    const store::ExportRequest request{.end = feed.next,
                                       .sender = feed.identity.sender,
                                       .session = feed.identity.session,
                                       .first = feed.identity.first,
                                       .count = feed.events.size(),
                                       .content = ContentOf(feed.events)};
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
    step.events = feed.events.size();
    step.refused = step.result.status.ok() ? step.result.refused_events : feed.events.size();
    counters_.sent.Add(feed.events.size() - std::min<uint64_t>(step.refused, feed.events.size()));
    counters_.refused.Add(step.refused);
    feed.events.clear();
  }
  if (absl::Status status = SaveCursor(feed, shard); !status.ok()) {
    step.progress = Progress::kUnsaved;
    step.status = std::move(status);
  }
  return step;
}

}  // namespace tributary
