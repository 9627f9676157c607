#include "reducer/sqlite/sample_writer.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "base/status.h"
#include "profile/attributes.h"
#include "reducer/sqlite/column_packing.h"
#include "reducer/sqlite/minute_sums.h"
#include "reducer/store/opt_out_filter.h"
#include "reducer/store/store_times.h"

namespace tributary::store {

struct SampleWriter::Pass {
  struct Type {
    SampleType number{};
    TypeNo no;
    Day day{INT32_MIN};  // the latest day that the type was looked up for
    uint64_t stored = 0, unnamed = 0, too_old = 0, opted_out = 0;
  };

  Session& session;
  const RowBatch& batch;
  const AgeRules& rules;
  OptOutFilter opt_outs;
  // The samples of one slot are stored together, because the tables of a session have the ids of one slot and of a
  // few days. Almost all batches have samples of one slot only.
  Slot slot = kNoSlot;
  Day day{INT32_MIN};
  int64_t slot_begin_ns = 0, slot_end_ns = 0;
  std::vector<std::pair<int64_t, const Sample*>> later{};  // samples of other slots, with their times
  bool stacks_started = false;                             // for `day`

  std::vector<Typed> rows{};
  std::vector<Type> types{};
  std::array<uint16_t, 256> type_of{};  // by the source's number: 0, or the index of the type plus 1
  std::array<uint64_t, 3> cut{};        // samples, by TrieCut

  // Returns true if the sample is of the current slot. If there is no slot yet, starts the slot of the sample.
  bool InSlot(int64_t time_ns) {
    if (slot == kNoSlot) StartSlot(time_ns);
    return time_ns >= slot_begin_ns && time_ns < slot_end_ns;
  }
  void StartSlot(int64_t time_ns) {
    slot = SlotOf(UnixNs{time_ns});
    slot_begin_ns = StartOf(slot).value;
    slot_end_ns = slot_begin_ns + kSlotMinutes * kNsPerMinute;
    if (day == DayOf(slot)) return;
    day = DayOf(slot);
    stacks_started = false;
  }
};

SampleWriter::SampleWriter(const Dependencies& dependencies)
    : database_(dependencies.database),
      definitions_(dependencies.definitions),
      types_(dependencies.types),
      ledger_(dependencies.ledger),
      maintenance_(dependencies.maintenance),
      clock_(dependencies.clock),
      tally_(dependencies.tally),
      opt_outs_(dependencies.opt_outs),
      stacks_(dependencies.definitions, dependencies.tries, dependencies.ledger) {}

absl::StatusOr<std::unique_ptr<SampleWriter>> SampleWriter::Prepare(const Dependencies& dependencies) {
  std::unique_ptr<SampleWriter> writer(new SampleWriter(dependencies));
  Database& database = dependencies.database;
  ASSIGN_OR_RETURN(writer->put_samples_,
                   database.Prepare("INSERT INTO sample_chunk (minute, machine, type, samples, "
                                    "raw_bytes, columns, samples_end) VALUES (?, ?, ?, ?, ?, ?, ?)"));
  ASSIGN_OR_RETURN(writer->put_sums_, database.Prepare(kInsertMinuteSum));
  return writer;
}

absl::Status SampleWriter::Write(Session& session, const RowBatch& batch, const AgeRules& rules) {
  RETURN_IF_ERROR(definitions_.Redescribe(*session.dictionary, ProcessRef{batch.before.processes},
                                          {session.machine, session.boot_id}));
  const SampleTimes times(batch.clock, clock_.Unix().value);
  Pass pass{session, batch, rules, OptOutFilter(opt_outs_, batch, *session.dictionary)};
  pass.rows.reserve(batch.samples.size());
  for (const Sample& sample : batch.samples) {
    bool clamped = false;
    const int64_t time_ns = times.ToUnixNs(sample.time, &clamped);
    if (clamped) ++tally_.clamped_times;
    if (pass.InSlot(time_ns)) {
      RETURN_IF_ERROR(Add(pass, sample, time_ns));
    } else {
      pass.later.emplace_back(time_ns, &sample);
    }
  }
  std::sort(pass.later.begin(), pass.later.end());
  for (const auto& [time_ns, sample] : pass.later) {
    if (!pass.InSlot(time_ns)) pass.StartSlot(time_ns);
    RETURN_IF_ERROR(Add(pass, *sample, time_ns));
  }
  Count(pass);
  // Sorts by type, then by time: each minute of each type is then one run. Most batches have one type and come in
  // order.
  auto before = [](const Typed& a, const Typed& b) {
    return std::pair(a.type, a.sample.time_ns) < std::pair(b.type, b.sample.time_ns);
  };
  std::vector<Typed>& rows = pass.rows;
  if (!std::is_sorted(rows.begin(), rows.end(), before)) std::stable_sort(rows.begin(), rows.end(), before);
  return WriteChunks(session.machine, rows, rules);
}

absl::Status SampleWriter::Add(Pass& pass, const Sample& sample, int64_t time_ns) {
  uint16_t& place = pass.type_of[static_cast<uint8_t>(sample.type)];
  if (place == 0) {
    pass.types.push_back({.number = sample.type});
    place = static_cast<uint16_t>(pass.types.size());
  }
  Pass::Type& type = pass.types[place - 1];
  if (pass.opt_outs.Drops(sample)) {
    type.opted_out += sample.count;
    return absl::OkStatus();
  }
  if (pass.rules.PlaceOf(UnixNs{time_ns}) == SamplePlace::kTooOld) {
    type.too_old += sample.count;
    return absl::OkStatus();
  }
  if (type.day < pass.day) {
    ASSIGN_OR_RETURN(type.no, types_.Find(NameOf(pass.batch, sample.type), pass.session.machine, pass.day));
    type.day = pass.day;
  }
  if (type.no.value == 0) type.unnamed += sample.count;
  type.stored += sample.count;
  return Map(pass, sample, type.no, time_ns);
}

absl::Status SampleWriter::Map(Pass& pass, const Sample& sample, TypeNo type, int64_t time_ns) {
  Session& session = pass.session;
  if (!std::exchange(pass.stacks_started, true)) stacks_.Start(session, pass.day);
  StoredSample row;
  row.time_ns = time_ns;
  ASSIGN_OR_RETURN(
      SessionDictionary::StoreThread thread,
      definitions_.Thread(*session.dictionary, sample.thread, {session.machine, session.boot_id}, pass.slot));
  row.thread = thread.no;
  row.process = thread.process;
  ASSIGN_OR_RETURN(const MappedNode node, stacks_.Map(sample.node));
  row.node = node.node.value;
  row.count = sample.count;
  row.value = sample.value;
  row.cpu = sample.cpu;
  if (!FitsSample(session.dictionary->string(sample.attributes))) {
    ++tally_.refused_attributes;
  } else if (sample.attributes.value != 0) {
    ASSIGN_OR_RETURN(row.attributes, definitions_.String(*session.dictionary, sample.attributes, pass.day));
  }
  // This release cannot name the ending of a newer collector.
  row.ending = static_cast<uint8_t>(sample.ending) < kEndingCount ? sample.ending : Ending::kUnknown;
  if (node.cut != TrieCut::kNone) row.ending = Ending::kCutByQuota;
  const auto ending = static_cast<size_t>(row.ending);
  session.totals.endings[ending] += row.count;
  tally_.endings[ending] += row.count;
  tally_.samples += row.count;
  pass.cut[static_cast<size_t>(node.cut)] += row.count;
  pass.rows.push_back({type, row});
  return absl::OkStatus();
}

void SampleWriter::Count(const Pass& pass) {
  for (const TrieCut cause : {TrieCut::kShare, TrieCut::kFull}) {
    tally_.cut_stacks += pass.cut[static_cast<size_t>(cause)];
    tally_.Refuse(pass.batch.node->node_id, ReasonOf(cause), pass.cut[static_cast<size_t>(cause)]);
  }
  SessionTotals& totals = pass.session.totals;
  std::optional<BoundedTypes> names;
  NamedSampleCounts& too_old = totals.accounting.LostFor(LossReason::kTooOld);
  NamedSampleCounts& opted_out = totals.accounting.LostFor(LossReason::kOptedOutAtReducer);
  for (const Pass::Type& type : pass.types) {
    tally_.too_old_samples += type.too_old;
    tally_.opted_out_samples += type.opted_out;
    if (type.number == SampleType::kCpu) {
      totals.stored += type.stored;
      too_old += type.too_old;
      opted_out += type.opted_out;
      continue;
    }
    const SampleTypeInfo name = NameOf(pass.batch, type.number);
    if (!names) names.emplace(totals.Types());
    totals.stored.Add(names->Bound(name), type.stored);
    too_old.Add(names->Bound(name), type.too_old);
    opted_out.Add(names->Bound(name), type.opted_out);
    if (type.unnamed != 0) CountUnnamed(pass.batch, name, type.unnamed);
  }
}

void SampleWriter::CountUnnamed(const RowBatch& batch, const SampleTypeInfo& type, uint64_t samples) {
  if (type == kUndefinedType) {
    tally_.nameless_types += samples;
    return;
  }
  tally_.refused_types += samples;
  if (uint64_t suppressed; refused_types_.Allow(clock_.Monotonic(), &suppressed)) {
    LogWarning(
        "too many sample types: samples of this type are stored without its name type={} unit={} host={} suppressed={}",
        EscapeForDisplay(type.name), EscapeForDisplay(type.unit), EscapeForDisplay(batch.node->host_name), suppressed);
  }
}

absl::Status SampleWriter::WriteChunks(int64_t machine, std::span<const Typed> samples, const AgeRules& rules) {
  if (!samples_end_) {
    ASSIGN_OR_RETURN(const int64_t stored, database_.QueryInt(kSamplesEnd));
    samples_end_ = static_cast<uint64_t>(stored);
  }
  std::vector<StoredSample> chunk;
  int64_t raw_from = 0;  // earlier minutes have samples that are only in sums
  for (size_t i = 0; i < samples.size();) {
    const TypeNo type = samples[i].type;
    const int64_t minute = MinuteOf(UnixNs{samples[i].sample.time_ns});
    chunk.clear();
    for (; i < samples.size() && samples[i].type == type && MinuteOf(UnixNs{samples[i].sample.time_ns}) == minute;
         ++i) {
      chunk.push_back(samples[i].sample);
      *samples_end_ += samples[i].sample.count;
    }
    if (rules.PlaceOfMinute(minute) == SamplePlace::kSumsOnly) {
      for (const StoredSample& sample : chunk) tally_.sums_only += sample.count;
      raw_from = std::max(raw_from, minute + 1);
    } else {
      const PackedColumns packed = PackColumns(EncodeSamples(chunk));
      put_samples_.Bind(minute, machine, type.value, chunk.size(), packed.raw_bytes, packed.bytes, *samples_end_);
      RETURN_IF_ERROR(put_samples_.Run());
      ledger_.AddData(DayOfMinute(minute), machine, NodeLedger::BytesOf(packed.bytes.size()));
    }
    if (minute < maintenance_.closed_before()) {
      MinuteSums sums(types_.AggregationOf(type));
      for (const StoredSample& sample : chunk) sums.Add(sample);
      const MinuteKey key{minute, machine, static_cast<int>(type.value)};
      ASSIGN_OR_RETURN(const size_t bytes, InsertMinuteSum(put_sums_, key, sums));
      ledger_.AddData(DayOfMinute(minute), machine, NodeLedger::BytesOf(bytes));
    }
  }
  if (raw_from == 0) return absl::OkStatus();
  // Readers must not look for these samples in chunks, and exporters must count them although no chunk does.
  RETURN_IF_ERROR(maintenance_.RaiseWatermark("raw_from", raw_from));
  return maintenance_.RaiseWatermark("samples_end", static_cast<int64_t>(*samples_end_));
}

}  // namespace tributary::store
