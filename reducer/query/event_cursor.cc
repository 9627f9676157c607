#include "reducer/query/event_cursor.h"

#include <fmt/format.h>

#include <optional>

#include "base/number.h"
#include "base/status.h"

namespace tributary {
namespace {

constexpr uint64_t kSameMax = 1u << 31;

// FNV-1a. absl::Hash has another seed in each process, but cursors must stay valid after a restart.
class Digest {
 public:
  void Add(std::string_view text) {
    AddNumber(text.size());
    for (const char c : text) AddByte(static_cast<uint8_t>(c));
  }
  void AddNumber(uint64_t number) {
    for (int i = 0; i < 8; ++i) AddByte(static_cast<uint8_t>(number >> (8 * i)));
  }
  uint64_t value() const { return value_; }

 private:
  void AddByte(uint8_t byte) { value_ = (value_ ^ byte) * 0x100000001b3; }

  uint64_t value_ = 0xcbf29ce484222325;
};

char LetterOf(EventOrder order) { return order == EventOrder::kNewestFirst ? 'n' : 'o'; }

bool Take(std::string_view* text, char c) {
  if (!text->starts_with(c)) return false;
  text->remove_prefix(1);
  return true;
}

std::optional<EventCursor> ParseFields(std::string_view text, EventOrder order) {
  if (!Take(&text, LetterOf(order))) return std::nullopt;
  const std::optional<int64_t> time = TakeNumber<int64_t>(text);
  if (!time || *time < 0 || !Take(&text, '.')) return std::nullopt;
  const std::optional<uint64_t> digest = TakeNumber<uint64_t>(text, 16);
  if (!digest || !Take(&text, '.')) return std::nullopt;
  const std::optional<uint64_t> same = ParseNumber<uint64_t>(text);
  if (!same || *same == 0 || *same > kSameMax) return std::nullopt;
  return EventCursor{.order = order, .key = {UnixNs{*time}, *digest}, .same = *same};
}

}  // namespace

EventKey EventKey::Of(const store::ProcessEventRow& event) {
  Digest digest;
  for (const std::string_view text :
       {event.node_id, event.name, event.executable_path, event.container_id, event.cgroup_path}) {
    digest.Add(text);
  }
  const ProcessEnd& end = event.end;
  for (const uint64_t number : {uint64_t{static_cast<uint8_t>(event.kind)}, static_cast<uint64_t>(event.pid.value),
                                static_cast<uint64_t>(event.parent.value), static_cast<uint64_t>(event.start_time_ns),
                                uint64_t{event.uid}, uint64_t{event.events}, uint64_t{event.processes},
                                uint64_t{end.exit_code}, uint64_t{end.signal}, uint64_t{end.core_dumped},
                                uint64_t{end.oom_killed}, end.run_ns, end.user_ns, end.system_ns, end.peak_rss_bytes}) {
    digest.AddNumber(number);
  }
  return {event.time, digest.value()};
}

std::string EventCursor::ToString() const {
  return fmt::format("{}{}.{:x}.{}", LetterOf(order), key.time.value, key.digest, same);
}

absl::StatusOr<EventCursor> EventCursor::Parse(std::string_view text, EventOrder order) {
  if (const std::optional<EventCursor> cursor = ParseFields(text, order)) return *cursor;
  return Error(absl::StatusCode::kInvalidArgument,
               "cursor must be the field 'next' of an earlier answer with the same order");
}

}  // namespace tributary
