#include "reducer/store/memory_writer.h"

#include <algorithm>
#include <utility>

#include "base/status.h"
#include "profile/attributes.h"
#include "reducer/store/age_rules.h"
#include "reducer/store/opt_out_filter.h"

namespace tributary::store {
namespace {

constexpr uint32_t kUnknownClosedMax = 64;  // limit of unknown sessions that a session may close in its life

UnixNs StartOfMinute(int64_t minute) { return UnixNs{minute * kNsPerMinute}; }

template <typename Rows>
UnixNs OldestOf(const Rows& rows) {
  UnixNs oldest{INT64_MAX};
  for (const auto& row : rows) oldest = std::min(oldest, row.time);
  return oldest;
}

}  // namespace

MemoryWriter::MemoryWriter(MemoryShard& shard, std::mutex& mutex, const StoreOptions& options, const Clock& clock,
                           Metrics& metrics)
    : shard_(shard), mutex_(mutex), options_(options), clock_(clock), counters_(metrics, options.refusals) {
  const std::lock_guard lock(mutex_);
  for (uint32_t i = 1; i < shard_.executables.size(); ++i) executables_.emplace(shard_.executables[i].id, i);
  for (uint32_t i = 1; i < shard_.texts.size(); ++i) strings_.emplace(shard_.texts[i], i);
  for (const auto& [day, trie] : shard_.tries) {
    for (uint32_t i = 1; i < trie.parents.size(); ++i) {
      const FrameRow& row = trie.frame_rows[trie.frames[i]];
      nodes_.emplace(
          NodeKey{day, trie.parents[i], row.kind, row.is_caller, row.executable, row.address, row.position, row.name},
          i);
    }
  }
}

absl::StatusOr<std::vector<ShardWriter::Outcome>> MemoryWriter::Commit(std::span<const RowBatch> group) {
  const std::lock_guard lock(mutex_);
  RETURN_IF_ERROR(shard_.Check());
  RETURN_IF_ERROR(shard_.commit_error.value_or(absl::OkStatus()));
  tally_ = {};
  std::map<Source, SessionTotals> before;
  for (const auto& [source, session] : shard_.sessions) before.emplace(source, session.totals);
  std::vector<Outcome> outcomes;
  for (const RowBatch& batch : group) outcomes.push_back(Apply(batch));
  NoteLosses(before);
  DropLeastUsed();
  counters_.Add(tally_);
  return outcomes;
}

// Unlike a store of files, adds a record for each commit.
void MemoryWriter::NoteLosses(const std::map<Source, SessionTotals>& before) {
  for (const auto& [source, session] : shard_.sessions) {
    const auto old_totals = before.find(source);
    VisitLossChanges(old_totals != before.end() ? old_totals->second : SessionTotals(), session.totals,
                     [&](const SampleTypeInfo& type, LossReason reason, int64_t samples) {
                       shard_.losses.push_back({.node_id = session.node_id,
                                                .host_name = shard_.machines[session.node_id].host_name,
                                                .type = type,
                                                .reason = reason,
                                                .samples = samples,
                                                .first = clock_.Unix(),
                                                .last = clock_.Unix()});
                     });
  }
}

ShardWriter::Outcome MemoryWriter::Apply(const RowBatch& batch) {
  const auto known = shard_.sessions.find(batch.source);
  const uint64_t durable = known != shard_.sessions.end() ? known->second.totals.durable_sequence : 0;
  Live& live = live_[batch.source];
  live.last_use = ++uses_;
  if (batch.sequence > std::max(durable + 1, batch.oldest_held) || !TakeDefinitions(live, batch)) {
    ++tally_.need_dictionary;
    return {durable, true};
  }
  Session& session = shard_.sessions[batch.source];
  // A session that others reported before its own first batch has a machine and no boot.
  if (session.node_id.empty() || (session.boot_id.empty() && !batch.node->boot_id.empty())) {
    session.node_id = batch.node->node_id;
    session.boot_id = batch.node->boot_id;
    shard_.machines[session.node_id] = *batch.node;
  }
  session.last_seen = clock_.Unix();
  session.totals.wire_bytes += batch.wire_bytes;
  if (batch.sequence != 0 && batch.sequence <= durable) {
    ++tally_.duplicates;
  } else {
    Store(session, live, batch);
  }
  if (batch.generation == 0) live.dictionary = nullptr;
  return {session.totals.durable_sequence, false};
}

// Returns false if the definitions do not continue the held ones, or if a sample or event refers to an undefined one.
bool MemoryWriter::TakeDefinitions(Live& live, const RowBatch& batch) {
  if (batch.generation == 0) {
    live.dictionary = std::make_unique<SessionDictionary>(0);
  } else if (live.dictionary == nullptr || live.dictionary->generation() != batch.generation) {
    if (batch.derived) {
      if (live.dictionary == nullptr || live.dictionary->generation() != batch.derived->generation) return false;
      auto derived = live.dictionary->Derive(batch.generation, batch.derived->eviction);
      if (derived == nullptr) return false;
      live.dictionary = std::move(derived);
    } else if (batch.before == DictionaryCounts()) {
      live.dictionary = std::make_unique<SessionDictionary>(batch.generation);
    } else {
      return false;
    }
  }
  const DictionaryCounts before = live.dictionary->counts();
  if (batch.before != before) return false;
  bool ok = live.dictionary->Append(batch.definitions);
  for (const Sample& sample : batch.samples) ok = ok && live.dictionary->Defines(sample);
  for (const ProcessEvent& event : batch.events) ok = ok && live.dictionary->Defines(event);
  if (!ok) live.dictionary->Truncate(before);
  return ok;
}

void MemoryWriter::Store(Session& session, Live& live, const RowBatch& batch) {
  const bool has_boot = batch.sequence != 0 && batch.source.kind == SourceKind::kSession;
  if (session.boot_ns == 0 && has_boot) NoteBoot(session, batch.clock);
  if (batch.sequence != 0 || !batch.samples.empty() || !batch.events.empty()) {
    const uint64_t too_old = tally_.too_old(), clamped = tally_.clamped_times;
    StoreSamples(session, *live.dictionary, batch);
    StoreEvents(session, *live.dictionary, batch);
    tally_.Refuse(batch.node->node_id, "too_old", tally_.too_old() - too_old);
    tally_.Refuse(batch.node->node_id, "clamped_times", tally_.clamped_times - clamped);
    ++tally_.batches;
  }
  session.totals.Account(batch);
  Close(batch, session, live);
}

// Closes the node's sessions from before its boot: a session's first batch shows that these have ended.
void MemoryWriter::NoteBoot(Session& session, const ClockPair& clock) {
  session.boot_ns = SampleTimes(clock, clock_.Unix().value).BootNs();
  if (session.boot_ns == 0) return;
  for (auto& [source, other] : shard_.sessions) {
    if (source.kind != SourceKind::kSession || other.node_id != session.node_id ||
        other.totals.closed_reason != SessionTotals::kOpen || other.boot_id == session.boot_id ||
        other.boot_ns >= session.boot_ns) {
      continue;
    }
    other.totals.closed_reason = static_cast<int64_t>(LossReason::kCollectorKilled);
    other.totals.closed_captured = other.totals.accounting.captured;
  }
}

// The first session accounts for all captured samples that no other of the closed sessions accounts for.
void MemoryWriter::Close(const RowBatch& batch, Session& sender, Live& live) {
  NamedSampleCounts others;
  for (size_t i = batch.closes.size(); i-- > 0;) {
    const ClosedSession& closed = batch.closes[i];
    const Source source{SourceKind::kSession, {closed.session_id.begin(), closed.session_id.end()}};
    Session* session = FindClosed(source, sender, live, /*may_be_new=*/i == 0);
    const NamedSampleCounts captured = Named(batch, closed.captured);
    if (session == nullptr) {
      others += captured;
      continue;
    }
    const NamedSampleCounts share = captured - others;
    session->totals.Close(closed.reason, i == 0 ? &share : nullptr);
    others += session->totals.WithClosing().captured;
    ++tally_.closed_sessions;
  }
}

// Returns the session only if it is another session of the same node, otherwise nullptr.
MemoryWriter::Session* MemoryWriter::FindClosed(const Source& source, Session& sender, Live& live, bool may_be_new) {
  auto found = shard_.sessions.find(source);
  if (found == shard_.sessions.end()) {
    if (!may_be_new) return nullptr;
    if (live.unknown_closed < kUnknownClosedMax) {
      ++live.unknown_closed;
      found = shard_.sessions.try_emplace(source).first;
      found->second.node_id = sender.node_id;
      found->second.last_seen = clock_.Unix();
    }
  }
  if (found != shard_.sessions.end() && &found->second != &sender && found->second.node_id == sender.node_id) {
    return &found->second;
  }
  ++tally_.closings_refused;
  return nullptr;
}

void MemoryWriter::StoreSamples(Session& session, SessionDictionary& dictionary, const RowBatch& batch) {
  // Writes a new description of a process in the slot of the description before it, because no further sample may come.
  for (ProcessRef ref{batch.before.processes}; ref.value < dictionary.process_ids.size(); ++ref.value) {
    const Slot slot = dictionary.process_ids[ref.value].described_slot;
    if (slot != kNoSlot) MapProcess(session, dictionary, ref, slot);
  }
  const SampleTimes times(batch.clock, clock_.Unix().value);
  const AgeRules rules(AgesOf(options_), clock_.Unix(), MinuteOf(shard_.closed_until));
  BoundedTypes names = session.totals.Types();
  OptOutFilter opt_outs(options_.opt_outs, batch, dictionary);
  std::vector<std::pair<const Sample*, MemoryShard::Sample>> rows;
  for (const Sample& sample : batch.samples) {
    MemoryShard::Sample row;
    bool clamped = false;
    row.time = UnixNs{times.ToUnixNs(sample.time, &clamped)};
    if (clamped) ++tally_.clamped_times;
    const SampleTypeInfo type = NameOf(batch, sample.type);
    if (opt_outs.Drops(sample)) {
      session.totals.accounting.LostFor(LossReason::kOptedOutAtReducer).Add(names.Bound(type), sample.count);
      tally_.opted_out_samples += sample.count;
      continue;
    }
    const SamplePlace place = rules.PlaceOf(row.time);
    if (place == SamplePlace::kTooOld) {
      session.totals.accounting.LostFor(LossReason::kTooOld).Add(names.Bound(type), sample.count);
      tally_.too_old_samples += sample.count;
      continue;
    }
    if (place == SamplePlace::kSumsOnly) {
      tally_.sums_only += sample.count;
      shard_.raw_expired_until = std::max(shard_.raw_expired_until, StartOfMinute(MinuteOf(row.time) + 1));
    }
    row.type = FindType(type, batch.node->node_id);
    if (row.type.value == 0) (type == kUndefinedType ? tally_.nameless_types : tally_.refused_types) += sample.count;
    rows.emplace_back(&sample, std::move(row));
  }
  std::stable_sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) {
    return std::pair(a.second.type, a.second.time) < std::pair(b.second.type, b.second.time);
  });
  for (auto& [sample, row] : rows) {
    session.totals.stored.Add(names.Bound(NameOf(batch, sample->type)), sample->count);
    StoreSample(session, dictionary, *sample, std::move(row));
  }
}

void MemoryWriter::StoreSample(Session& session, SessionDictionary& dictionary, const Sample& sample,
                               MemoryShard::Sample row) {
  const SessionDictionary::StoreThread thread = MapThread(session, dictionary, sample.thread, SlotOf(row.time));
  row.thread = ThreadNo{thread.no};
  row.process = ProcessNo{thread.process};
  const MappedNode mapped = MapNode(session, dictionary, sample.node, DayOf(row.time));
  row.node = mapped.node;
  row.value = sample.value;
  row.count = sample.count;
  row.node_id = session.node_id;
  row.cpu = sample.cpu;
  row.ending = static_cast<uint8_t>(sample.ending) < kEndingCount ? sample.ending : Ending::kUnknown;
  if (mapped.cut != TrieCut::kNone) {
    row.ending = Ending::kCutByQuota;
    tally_.cut_stacks += sample.count;
    tally_.Refuse(session.node_id, ReasonOf(mapped.cut), sample.count);
  }
  if (!FitsSample(dictionary.string(sample.attributes))) {
    ++tally_.refused_attributes;
  } else if (sample.attributes.value != 0) {
    row.attributes = MapString(dictionary.string(sample.attributes));
  }
  row.no = ++shard_.last_sample;
  row.end = shard_.samples_end += row.count;
  session.totals.endings[static_cast<size_t>(row.ending)] += row.count;
  tally_.endings[static_cast<size_t>(row.ending)] += row.count;
  tally_.samples += row.count;
  shard_.samples.push_back(std::move(row));
}

void MemoryWriter::StoreEvents(Session& session, const SessionDictionary& dictionary, const RowBatch& batch) {
  const SampleTimes times(batch.clock, clock_.Unix().value);
  const AgeRules rules(AgesOf(options_), clock_.Unix(), MinuteOf(shard_.closed_until));
  auto text = [&](StringRef string) { return std::string(dictionary.string(string)); };
  const auto first = static_cast<ptrdiff_t>(shard_.events.size());
  OptOutFilter opt_outs(options_.opt_outs, batch, dictionary);
  for (const ProcessEvent& event : batch.events) {
    if (opt_outs.Drops(event)) {
      session.totals.accounting.LostFor(LossReason::kOptedOutAtReducer).AddEvents(event.events);
      tally_.opted_out_events += event.events;
      continue;
    }
    bool clamped = false;
    const UnixNs time{times.ToUnixNs(event.time, &clamped)};
    if (clamped) ++tally_.clamped_times;
    if (!rules.TakesEvent(time)) {
      session.totals.accounting.LostFor(LossReason::kTooOld).AddEvents(event.events);
      tally_.too_old_events += event.events;
      continue;
    }
    shard_.events.push_back({.kind = event.kind,
                             .time = time,
                             .node_id = session.node_id,
                             .host_name = shard_.machines[session.node_id].host_name,
                             .pid = event.pid,
                             .parent = event.parent,
                             .start_time_ns = event.start_time_ns,
                             .uid = event.uid,
                             .name = text(event.name),
                             .executable_path = text(event.executable_path),
                             .container_id = text(event.container_id),
                             .cgroup_path = text(event.cgroup_path),
                             .events = event.events,
                             .processes = event.processes,
                             .end = event.has_end() ? event.end : ProcessEnd{}});
    session.totals.stored.AddEvents(event.events);
    tally_.events += event.events;
  }
  std::stable_sort(shard_.events.begin() + first, shard_.events.end(),
                   [](const auto& a, const auto& b) { return a.time < b.time; });
  for (auto at = shard_.events.begin() + first; at != shard_.events.end(); ++at) at->no = ++shard_.last_event;
}

void MemoryWriter::DropLeastUsed() {
  auto bytes = [&] {
    size_t sum = 0;
    for (const auto& [source, live] : live_)
      sum += live.dictionary != nullptr ? live.dictionary->table_bytes() + live.dictionary->string_bytes() : 0;
    return sum;
  };
  while (live_.size() > 1 && (live_.size() > options_.sessions_max || bytes() > options_.dictionary_bytes_max)) {
    live_.erase(std::min_element(live_.begin(), live_.end(),
                                 [](const auto& a, const auto& b) { return a.second.last_use < b.second.last_use; }));
  }
}

absl::StatusOr<ShardWriter::SessionState> MemoryWriter::FindSession(std::span<const uint8_t> session_id) {
  const std::lock_guard lock(mutex_);
  RETURN_IF_ERROR(shard_.Check());
  const auto found = shard_.sessions.find({SourceKind::kSession, {session_id.begin(), session_id.end()}});
  if (found == shard_.sessions.end()) return absl::NotFoundError("the session is not in the store");
  return SessionState{found->second.totals.durable_sequence};
}

absl::Status MemoryWriter::Maintain(UnixNs now) {
  const std::lock_guard lock(mutex_);
  RETURN_IF_ERROR(shard_.Check());
  const int64_t closed_before = MinuteOf(UnixNs{now.value - kMinuteOpenNs});
  shard_.closed_until = std::max(shard_.closed_until, StartOfMinute(closed_before));
  const UnixNs raw_before = StartOfMinute(MinuteOf(UnixNs{now.value - options_.raw_age_ns}));
  shard_.raw_expired_until = std::max(shard_.raw_expired_until, std::min(raw_before, shard_.closed_until));
  UnixNs before = StartOfMinute(MinuteOf(UnixNs{now.value - options_.sum_age_ns}));
  UnixNs events_before = StartOf(SlotOf(UnixNs{now.value - options_.event_age_ns}));
  const uint64_t bytes =
      shard_.samples.size() * sizeof(MemoryShard::Sample) + shard_.events.size() * sizeof(MemoryShard::Event);
  if (bytes > options_.bytes_max / std::max(options_.shards, 1u)) {
    const UnixNs step = StartOfMinute(MinuteOf(std::min(OldestOf(shard_.samples), OldestOf(shard_.events))) + 60);
    before = std::max(before, step);
    events_before = std::max(events_before, StartOf(SlotOf(std::min(step, shard_.closed_until))));
  }
  before = std::min(before, shard_.closed_until);
  std::erase_if(shard_.events, [&](const MemoryShard::Event& event) { return event.time < events_before; });
  if (std::erase_if(shard_.samples, [&](const MemoryShard::Sample& sample) { return sample.time < before; }) > 0) {
    ForgetUnused();
  }
  // Sessions stay a day longer than the data: samples may be ten minutes ahead of their session's last batch.
  const UnixNs unseen_since{now.value - std::max(options_.sum_age_ns, options_.event_age_ns) - kNsPerDay};
  std::erase_if(shard_.sessions, [&](const auto& session) {
    if (session.second.last_seen >= unseen_since) return false;
    live_.erase(session.first);
    return true;
  });
  return absl::OkStatus();
}

// Removes everything that no sample refers to any more. Executables and texts stay: their numbers are their indices.
void MemoryWriter::ForgetUnused() {
  absl::flat_hash_set<Day> days;
  absl::flat_hash_set<TypeNo> types;
  ProcessSet processes;
  for (const MemoryShard::Sample& sample : shard_.samples) {
    days.insert(DayOf(sample.time));
    types.insert(sample.type);
    processes.insert(sample.process);
  }
  std::erase_if(shard_.tries, [&](const auto& trie) { return !days.contains(trie.first); });
  std::erase_if(shard_.trie_shares, [&](const auto& share) { return !days.contains(share.first.first); });
  absl::erase_if(nodes_, [&](const auto& node) { return !days.contains(std::get<Day>(node.first)); });
  std::erase_if(shard_.types, [&](const auto& type) { return !types.contains(type.first); });
  std::erase_if(shard_.processes, [&](const ProcessRow& row) { return !processes.contains(row.no); });
  std::erase_if(shard_.threads, [&](const ThreadRow& row) { return !processes.contains(row.process); });
  for (auto& [source, live] : live_) {
    if (live.dictionary != nullptr) live.dictionary->ForgetStoreIds();
  }
}

}  // namespace tributary::store
