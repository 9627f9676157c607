#include "test/simulator/sim_writer.h"

#include <algorithm>

#include "intake/codec/batch_encoder.h"
#include "intake/codec/event_columns.h"
#include "test/simulator/place.h"

namespace tributary::sim {
namespace {

constexpr int64_t kRetryNs = 500 * kNsPerMs;
constexpr int64_t kHopNs = 100'000;  // from the writer's thread to the loop

// A store's dictionary with the interface that PlaceOf needs. process() returns the newest definition of a process.
class ById {
 public:
  explicit ById(store::SessionDictionary& dictionary) : dictionary_(dictionary) {}
  std::string_view string(StringRef ref) const { return dictionary_.string(ref); }
  const Executable& executable(ExecutableRef ref) const { return dictionary_.executable(ref); }
  const Frame& frame(FrameRef ref) const { return dictionary_.frame(ref); }
  Node node(NodeRef ref) const { return dictionary_.node(ref); }
  const tributary::Process& process(ProcessRef ref) const {
    return dictionary_.process(dictionary_.NewestProcess(ref));
  }
  const Thread& thread(ThreadRef ref) const { return dictionary_.thread(ref); }

 private:
  store::SessionDictionary& dictionary_;
};

}  // namespace

bool SimWriter::TrySubmit(RowBatch batch) {
  if (!HasRoom()) return false;
  queue_.push_back(AsTaken(std::move(batch)));
  Work();
  return true;
}

// Returns the part of the batch that the reducer's release knows.
RowBatch SimWriter::AsTaken(RowBatch batch) {
  if (store_.takes_events) return batch;
  Batch counts;
  counts.accounting = batch.accounting;
  counts.closes = batch.closes;
  counts = intake::WithoutEvents(std::move(counts));
  const bool changed = !batch.events.empty() || counts.accounting != batch.accounting || counts.closes != batch.closes;
  if (changed && options_.broken != Break::kEventsToEarlier) {
    process_.world().Violate("a reducer of an earlier release gets process events, or their numbers");
  }
  batch.events.clear();
  batch.accounting = std::move(counts.accounting);
  batch.closes = std::move(counts.closes);
  return batch;
}

bool SimWriter::TryFind(const SessionId& id) {
  if (options_.broken == Break::kDuplicateCounted || options_.broken == Break::kEventsTwice) {
    ReportMark(id);
    return true;
  }
  queue_.push_back(id);
  Work();
  return true;
}

void SimWriter::ReportMark(const SessionId& id) {
  auto it = store_.sessions.find(id);
  const uint64_t durable = it == store_.sessions.end() ? 0 : it->second.durable_sequence;
  process_.After(kHopNs, [this, id, durable] { callbacks_.found(id, durable); });
}

void SimWriter::Work() {
  if (working_ || queue_.empty()) return;
  working_ = true;
  process_.After(process_.world().Between(1, options_.commit_ns_max) + extra_ns_, [this] { Commit(); });
}

// One turn of the writer's thread.
void SimWriter::Commit() {
  working_ = false;
  if (group_.empty() && std::holds_alternative<SessionId>(queue_.front())) {
    const SessionId id = std::get<SessionId>(queue_.front());
    queue_.pop_front();
    ReportMark(id);
    return Work();
  }
  while (group_.empty() || (group_.size() < options_.group_batches_max && !queue_.empty())) {
    if (queue_.empty() || !std::holds_alternative<RowBatch>(queue_.front())) break;
    group_.push_back(std::get<RowBatch>(std::move(queue_.front())));
    queue_.pop_front();
  }
  if (options_.broken == Break::kAckBeforeCommit) {
    std::vector<ingest::CommittedBatch> done;
    for (const RowBatch& batch : group_) done.push_back(ingest::Committed(batch, {batch.sequence, false}));
    Report(std::move(done));
  }
  if (options_.broken == Break::kMarkBeforeSamples) Apply(group_, /*marks_only=*/true);
  working_ = true;
  process_.After(process_.world().Between(1, options_.commit_ns_max) + extra_ns_, [this] {
    working_ = false;
    if (disk_full_) {
      process_.world().Log("commit failed: disk full");
      working_ = true;
      process_.After(kRetryNs, [this] { Commit(); });
      return;
    }
    Report(Apply(std::exchange(group_, {}), /*marks_only=*/false));
    Work();
  });
}

void SimWriter::Report(std::vector<ingest::CommittedBatch> done) {
  process_.After(kHopNs, [this, done = std::move(done)] { callbacks_.committed(done); });
}

std::vector<ingest::CommittedBatch> SimWriter::Apply(const std::vector<RowBatch>& group, bool marks_only) {
  std::vector<ingest::CommittedBatch> done;
  for (const RowBatch& batch : group) done.push_back(ingest::Committed(batch, ApplyOne(batch, marks_only)));
  return done;
}

store::ShardWriter::Outcome SimWriter::ApplyOne(const RowBatch& batch, bool marks_only) {
  const SessionId id = ingest::Committed(batch, {}).session;
  DurableStore::Session& session = store_.sessions[id];
  session.node_id = batch.node->node_id;
  if (marks_only) {
    session.durable_sequence = std::max(session.durable_sequence, batch.sequence);
    return {};
  }
  const bool broken_marks = options_.broken == Break::kMarkBeforeSamples;
  const uint64_t expected_max = std::max(session.durable_sequence + 1, batch.oldest_held);
  Held& held = held_[id];
  held.used = ++uses_;
  const bool follows = batch.sequence <= expected_max && TakeDefinitions(held, batch);
  if (held_.size() > options_.dictionaries_max) {
    held_.erase(std::min_element(held_.begin(), held_.end(),
                                 [](const auto& a, const auto& b) { return a.second.used < b.second.used; }));
  }
  if (!follows) return {session.durable_sequence, true};
  if (batch.sequence == 0) return {session.durable_sequence, false};
  const bool seen = batch.sequence <= session.durable_sequence;
  if (seen && options_.broken == Break::kEventsTwice) StoreEvents(session, *held_.at(id).dictionary, batch);
  if (seen && !broken_marks && options_.broken != Break::kDuplicateCounted) return {session.durable_sequence, false};
  Store(session, *held_.at(id).dictionary, batch);
  session.durable_sequence = std::max(session.durable_sequence, batch.sequence);
  session.accounting = batch.accounting;
  store_.Close(session.node_id, batch.closes);
  return {session.durable_sequence, false};
}

bool SimWriter::TakeDefinitions(Held& held, const RowBatch& batch) {
  const bool starts = batch.before == DictionaryCounts();
  if (held.dictionary == nullptr || held.dictionary->generation() != batch.generation) {
    if (batch.derived) {
      if (held.dictionary == nullptr || held.dictionary->generation() != batch.derived->generation) return false;
      std::unique_ptr<store::SessionDictionary> kept =
          held.dictionary->Derive(batch.generation, batch.derived->eviction);
      if (kept == nullptr || batch.before != kept->counts()) return false;
      held.dictionary = std::move(kept);
    } else if (!starts) {
      return false;
    } else if (options_.broken != Break::kIdsReused || held.dictionary == nullptr) {
      held.dictionary = std::make_unique<store::SessionDictionary>(batch.generation);
    }
  } else if (batch.before != held.dictionary->counts()) {
    return false;
  }
  const DictionaryCounts before = held.dictionary->counts();
  bool ok = held.dictionary->Append(batch.definitions);
  for (const Sample& sample : batch.samples) ok = ok && held.dictionary->Defines(sample);
  for (const ProcessEvent& event : batch.events) {
    intake::ForEachString(event, [&](StringRef ref) { ok = ok && ref.value < held.dictionary->counts().strings; });
  }
  if (!ok) held.dictionary->Truncate(before);
  return ok;
}

void SimWriter::Store(DurableStore::Session& session, store::SessionDictionary& dictionary, const RowBatch& batch) {
  const ById by_id(dictionary);
  for (const Sample& sample : batch.samples) {
    WholeSample whole{sample.time.value, PlaceOf(by_id, sample), sample.type, sample.ending, sample.cpu, sample.count};
    if (store_.samples.emplace(sample.value, std::move(whole)).second) {
      store_.on_stored(sample.value);
    } else {
      store_.twice.push_back(sample.value);
    }
    session.stored.Add(sample.type, sample.count);
  }
  StoreEvents(session, dictionary, batch);
}

void SimWriter::StoreEvents(DurableStore::Session& session, store::SessionDictionary& dictionary,
                            const RowBatch& batch) {
  for (const ProcessEvent& event : batch.events) {
    const uint64_t id = EventId(event);
    const bool added = store_.events.emplace(id, WholeEvent{TextOf(dictionary, event), event.events}).second;
    if (!added) store_.events_twice.push_back(id);
    session.stored.AddEvents(options_.broken == Break::kSumCountsOnce ? 1 : event.events);
  }
}

}  // namespace tributary::sim
