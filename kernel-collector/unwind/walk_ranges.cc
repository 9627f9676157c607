#include "kernel-collector/unwind/walk_ranges.h"

#include <algorithm>

#include "absl/container/flat_hash_map.h"
#include "base/status.h"
#include "kernel-collector/unwind/code_pieces.h"

namespace tributary {

struct WalkRanges::State {
  State(UnwindMaps& m, UnwindTables& t, RuntimeSlots& r, Executor& executor, Metrics& metrics)
      : maps(m),
        tables(t),
        runtimes(r),
        entries(TRIB_MAPPINGS_MAX),
        retired(m, executor, /*batch=*/TRIB_MAPPINGS_MAX / 16),
        mappings(metrics.AddGauge("tributary_collector_walk_mappings",
                                  "Mappings that are in the kernel, for its stack walk")),
        mappings_refused(metrics.AddCounter(
            "tributary_collector_walk_mappings_refused_total",
            "Mappings that were not put into the kernel, because their process had too many mappings")) {}

  // Returns writable elements of UnwindMaps::mappings(). The errors are those of Build.
  absl::StatusOr<std::span<trib_mapping>> Allocate(uint32_t count) {
    const std::optional<uint32_t> first = entries.Allocate(count);
    if (!first) return Error(absl::StatusCode::kResourceExhausted, "the kernel's map of mappings is full");
    const std::span<trib_mapping> room = maps.mappings().subspan(*first, count);
    if (maps.Access(std::as_bytes(room))) return room;
    entries.Free(*first, count);
    return Error(absl::StatusCode::kUnavailable, "the system has no memory to write mappings");
  }

  void Release(const WalkRange& range) {
    for (const RuntimeSlots::Number number : range.runtimes) runtimes.Release(number);
  }

  UnwindMaps& maps;
  UnwindTables& tables;
  RuntimeSlots& runtimes;
  RangeAllocator entries;
  uint32_t retiring = 0;
  RetireQueue retired;
  Gauge& mappings;
  Counter& mappings_refused;
};

// One pass over a mapping list.
class WalkRanges::Builder {
 public:
  Builder(UnwindTables& tables, RuntimeSlots& runtimes, MonotonicNs now)
      : tables_(tables), runtimes_(runtimes), now_(now) {}

  void Add(const Mapping& mapping) {
    const CodeFilePtr& file = mapping.executable;
    range->known_at = std::max(range->known_at, mapping.learned);
    if (file == nullptr) return Push(ByFramePointers(mapping.start, mapping.end));
    switch (file->state) {
      case CodeFile::State::kUnread:
      case CodeFile::State::kReading:
        return range->unread.push_back(file);
      case CodeFile::State::kFailed:
        range->failed.push_back(file);
        return Push(ByFramePointers(mapping.start, mapping.end));
      case CodeFile::State::kReady:
        break;
    }
    if (file->runtime != nullptr) AddRuntime(file->runtime);
    const UnwindTables::Reserved* reserved = Reserve(file);
    ForEachPiece(mapping, *file, [&](const CodePiece& piece) {
      Push(ForPiece(piece, reserved));
      return out.size() < TRIB_PROCESS_MAPPINGS_MAX;
    });
  }

  std::vector<trib_mapping> out;
  std::unique_ptr<WalkRange> range = std::make_unique<WalkRange>();

 private:
  static trib_mapping ByFramePointers(uint64_t start, uint64_t end) {
    return {start, end, 0, 0, TRIB_MAPPING_FRAME_POINTERS};
  }

  // Returns null if the executable has no page entries.
  const UnwindTables::Reserved* Reserve(const CodeFilePtr& file) {
    auto [it, is_new] = reserved_.try_emplace(file.get());
    if (is_new) {
      it->second = tables_.Reserve(file);
      if (it->second) {
        range->tables.push_back(it->second->number);
      } else if (TextPagesOf(file->segments)) {
        range->refused_at = now_;
      }
    }
    return it->second ? &*it->second : nullptr;
  }

  // Most runtimes have one mapping with code, but a file may have several.
  void AddRuntime(const RuntimeBinaryPtr& runtime) {
    if (std::find(seen_runtimes_.begin(), seen_runtimes_.end(), runtime.get()) != seen_runtimes_.end()) return;
    if (seen_runtimes_.size() >= TRIB_PROCESS_RUNTIMES_MAX) return;
    seen_runtimes_.push_back(runtime.get());
    const RuntimeSlots::Number number = runtimes_.Use(runtime);
    if (number != 0) {
      range->runtimes.push_back(number);
    } else {
      range->refused_at = now_;
    }
  }

  // Entries outside the executable's own belong to other executables. A piece that needs such entries, which only odd
  // files have, gets no entries.
  static trib_mapping ForPiece(const CodePiece& piece, const UnwindTables::Reserved* reserved) {
    if (piece.in_segment && reserved != nullptr) {
      uint64_t first = (piece.start - piece.bias) >> TRIB_PAGE_SHIFT;
      uint64_t last = (piece.end - 1 - piece.bias) >> TRIB_PAGE_SHIFT;
      const TextPages& text = reserved->text;
      if (first >= text.first && first <= last && last - text.first < text.count) {
        return {piece.start, piece.end, piece.bias, reserved->first_page, 0};
      }
    }
    return ByFramePointers(piece.start, piece.end);
  }

  void Push(const trib_mapping& mapping) {
    if (!out.empty()) {
      trib_mapping& last = out.back();
      if (last.end == mapping.start && last.bias == mapping.bias && last.first_page == mapping.first_page &&
          last.flags == mapping.flags) {
        last.end = mapping.end;
        return;
      }
    }
    out.push_back(mapping);
  }

  UnwindTables& tables_;
  RuntimeSlots& runtimes_;
  const MonotonicNs now_;
  std::vector<const RuntimeBinary*> seen_runtimes_;
  absl::flat_hash_map<const CodeFile*, std::optional<UnwindTables::Reserved>> reserved_;
};

WalkRanges::WalkRanges(UnwindMaps& maps, UnwindTables& tables, RuntimeSlots& runtimes, Executor& executor,
                       Metrics& metrics)
    : state_(std::make_shared<State>(maps, tables, runtimes, executor, metrics)) {}
WalkRanges::~WalkRanges() = default;

absl::StatusOr<std::unique_ptr<WalkRange>> WalkRanges::Build(std::shared_ptr<const MappingTable::List> list,
                                                             MonotonicNs now) {
  Builder builder(state_->tables, state_->runtimes, now);
  for (size_t i = 0; i < list->size(); ++i) {
    if (builder.out.size() >= TRIB_PROCESS_MAPPINGS_MAX) {
      state_->mappings_refused.Add(list->size() - i);
      break;
    }
    builder.Add((*list)[i]);
  }
  std::unique_ptr<WalkRange> range = std::move(builder.range);
  range->list = std::move(list);
  range->count = static_cast<uint32_t>(builder.out.size());
  if (range->count > 0) {
    const absl::StatusOr<std::span<trib_mapping>> room = state_->Allocate(range->count);
    if (!room.ok()) {
      for (uint32_t table : range->tables) state_->tables.Release(table);
      state_->Release(*range);
      return room.status();
    }
    range->first = static_cast<uint32_t>(room->data() - state_->maps.mappings().data());
    std::copy(builder.out.begin(), builder.out.end(), room->begin());
    state_->mappings.Add(range->count);
  }
  if (++last_number_ == 0) ++last_number_;
  range->number = last_number_;
  return range;
}

void WalkRanges::Retire(std::unique_ptr<WalkRange> range) {
  state_->Release(*range);
  if (range->count == 0) return;
  State* state = state_.get();
  state->mappings.Add(-int64_t{range->count});
  state->retiring += range->count;
  state->retired.Retire(range->count,
                        [state, first = range->first, count = range->count, tables = std::move(range->tables)] {
                          state->entries.Free(first, count);
                          state->retiring -= count;
                          for (uint32_t table : tables) state->tables.Release(table);
                        });
}

bool WalkRanges::Current(const WalkRange& range, MonotonicNs now) {
  if (range.refused_at && now.value - range.refused_at->value >= kRefusedRetryNs) return false;
  auto known_by_now = [](const CodeFilePtr& file) {
    return file->state == CodeFile::State::kReady || file->state == CodeFile::State::kFailed;
  };
  auto ready = [](const CodeFilePtr& file) { return file->state == CodeFile::State::kReady; };
  return std::none_of(range.unread.begin(), range.unread.end(), known_by_now) &&
         std::none_of(range.failed.begin(), range.failed.end(), ready);
}

uint32_t WalkRanges::retiring() const { return state_->retiring; }
void WalkRanges::Flush() { state_->retired.Flush(); }

}  // namespace tributary
