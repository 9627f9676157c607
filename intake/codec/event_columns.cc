#include "intake/codec/event_columns.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "base/varint.h"
#include "intake/codec/sample_columns.h"
#include "intake/wire/malformed.h"

namespace tributary::intake {
namespace {

constexpr uint64_t kFlagCoreDumped = 1, kFlagOomKilled = 2;
constexpr uint64_t kNewProcess = 0;  // in the column `processes`

bool IsSum(const ProcessEvent& event) { return event.kind == ProcessEventKind::kSum; }

// The run time of a process that ended at `time_units` (kWireTimeUnitNs) and started at `start_ns`. The actual run time
// differs by the rounding of the time. Wraps around for hostile numbers.
uint64_t ExpectedRunNs(const ProcessEvent& event, int64_t time_units) {
  if (IsSum(event)) return 0;
  return static_cast<uint64_t>(time_units * kWireTimeUnitNs) - static_cast<uint64_t>(event.start_time_ns);
}

// The processes of one message. They are numbered from 0 in the order in which they first appear. Both ends use it to
// find the earlier event that is most like the next event, so that only the differences are sent.
class SeenProcesses {
 public:
  explicit SeenProcesses(const std::vector<ProcessEvent>& events) : events_(events) {}

  uint32_t count() const { return static_cast<uint32_t>(newest_.size()); }
  std::optional<uint32_t> Find(const ProcessEvent& event) const {
    const auto it = by_key_.find({event.pid.value, event.start_time_ns});
    return it != by_key_.end() ? std::optional(it->second) : std::nullopt;
  }
  // The newest event of a process.
  const ProcessEvent& Of(uint32_t process) const { return events_[newest_[process]]; }
  // The pid from which the difference to the next new process's pid is encoded.
  int32_t last_pid() const { return newest_.empty() ? 0 : Of(count() - 1).pid.value; }
  const ProcessEvent& Previous() const { return events_.empty() ? none_ : events_.back(); }
  // The event with which the event of a new process has most fields in common: the newest event of its parent.
  const ProcessEvent& LikeOfNew(Pid parent) const {
    const auto it = by_pid_.find(parent.value);
    return it != by_pid_.end() ? Of(it->second) : Previous();
  }
  const ProcessEvent& LikeOfSum() const { return last_sum_ ? events_[*last_sum_] : Previous(); }

  // `events` now ends with an event of this process, or with a sum (nullopt).
  void Saw(std::optional<uint32_t> process) {
    const auto index = static_cast<uint32_t>(events_.size() - 1);
    const ProcessEvent& event = events_.back();
    if (!process) {
      last_sum_ = index;
      return;
    }
    if (*process == count()) newest_.push_back(index);
    newest_[*process] = index;
    by_key_.try_emplace({event.pid.value, event.start_time_ns}, *process);
    by_pid_[event.pid.value] = *process;
  }

 private:
  const std::vector<ProcessEvent>& events_;
  const ProcessEvent none_;
  std::vector<uint32_t> newest_;  // by process: the index of its newest event
  absl::flat_hash_map<std::pair<int32_t, int64_t>, uint32_t> by_key_;
  absl::flat_hash_map<int32_t, uint32_t> by_pid_;
  std::optional<uint32_t> last_sum_;
};

class EventWriter {
 public:
  explicit EventWriter(MonotonicNs clock) : last_time_(ToWireTime(clock)) {}

  void Add(const ProcessEvent& event) {
    const int64_t time = ToWireTime(event.time);
    if (events_.empty()) {
      AppendSignedVarint(times_, time - last_time_);
    } else {
      AppendVarint(times_, static_cast<uint64_t>(time - last_time_));
    }
    last_time_ = time;
    AppendVarint(kinds_, static_cast<uint64_t>(event.kind));
    std::optional<uint32_t> process;
    const ProcessEvent* like = &seen_.LikeOfSum();
    if (!IsSum(event)) {
      process = seen_.Find(event);
      like = process ? &seen_.Of(*process) : &seen_.LikeOfNew(event.parent);
      AppendVarint(processes_, process ? seen_.count() - *process : kNewProcess);
    }
    if (!IsSum(event) && !process) {
      AppendSignedVarint(pids_, int64_t{event.pid.value} - seen_.last_pid());
      const int64_t start = event.start_time_ns / kWireTimeUnitNs;
      AppendSignedVarint(starts_, time - start);
      AppendSignedVarint(starts_, event.start_time_ns - start * kWireTimeUnitNs);
      process = seen_.count();
      parents_.Add(ParentCode(event.parent, seen_.Previous().parent, event.pid));
    } else {
      parents_.Add(ParentCode(event.parent, like->parent, event.pid));
    }
    AddDifference(event.uid, like->uid, uids_);
    AddDifference(event.name.value, like->name.value, names_);
    AddDifference(event.executable_path.value, like->executable_path.value, paths_);
    AddDifference(event.container_id.value, like->container_id.value, containers_);
    AddDifference(event.cgroup_path.value, like->cgroup_path.value, cgroups_);
    if (event.has_end()) AddEnd(event, time);
    if (IsSum(event)) {
      AppendVarint(sum_events_, event.events);
      AppendVarint(ended_, event.processes);
    }
    events_.push_back(event);
    seen_.Saw(process);
  }

  void Write(ColumnWriter& to) && {
    to.Put(EventColumn::kTimes, times_);
    to.Put(EventColumn::kKinds, kinds_);
    to.Put(EventColumn::kProcesses, processes_);
    to.Put(EventColumn::kPids, pids_);
    to.Put(EventColumn::kParents, std::move(parents_).Take());
    to.Put(EventColumn::kStarts, starts_);
    to.Put(EventColumn::kUids, std::move(uids_).Take());
    to.Put(EventColumn::kNames, std::move(names_).Take());
    to.Put(EventColumn::kPaths, std::move(paths_).Take());
    to.Put(EventColumn::kContainers, std::move(containers_).Take());
    to.Put(EventColumn::kCgroups, std::move(cgroups_).Take());
    to.Put(EventColumn::kExitCodes, std::move(exit_codes_).Take());
    to.Put(EventColumn::kSignals, std::move(signals_).Take());
    to.Put(EventColumn::kEndFlags, std::move(end_flags_).Take());
    to.Put(EventColumn::kRunTimes, run_times_);
    to.Put(EventColumn::kUserTimes, user_times_);
    to.Put(EventColumn::kSystemTimes, system_times_);
    to.Put(EventColumn::kPeakBytes, peak_bytes_);
    to.Put(EventColumn::kEvents, sum_events_);
    to.Put(EventColumn::kEnded, ended_);
  }

 private:
  static uint64_t ParentCode(Pid parent, Pid like, Pid pid) {
    return parent == like ? 0 : ZigZag(int64_t{pid.value} - parent.value) + 1;
  }
  static void AddDifference(uint32_t value, uint32_t like, ValueWriter& to) {
    to.Add(value == like ? 0 : uint64_t{value} + 1);
  }
  void AddEnd(const ProcessEvent& event, int64_t time) {
    const ProcessEnd& end = event.end;
    exit_codes_.Add(end.exit_code);
    signals_.Add(end.signal);
    end_flags_.Add((end.core_dumped ? kFlagCoreDumped : 0) | (end.oom_killed ? kFlagOomKilled : 0));
    const uint64_t run_ns = std::min(end.run_ns, kProcessUsageMax);
    AppendSignedVarint(run_times_, static_cast<int64_t>(run_ns - ExpectedRunNs(event, time)));
    AppendVarint(user_times_, std::min(end.user_ns, kProcessUsageMax));
    AppendVarint(system_times_, std::min(end.system_ns, kProcessUsageMax));
    AppendVarint(peak_bytes_, std::min(end.peak_rss_bytes, kProcessUsageMax));
  }

  std::vector<ProcessEvent> events_;
  SeenProcesses seen_{events_};
  int64_t last_time_;
  std::string times_, kinds_, processes_, pids_, starts_, run_times_, user_times_, system_times_, peak_bytes_,
      sum_events_, ended_;
  ValueWriter parents_{0}, uids_{0}, names_{0}, paths_{0}, containers_{0}, cgroups_{0}, exit_codes_{0}, signals_{0},
      end_flags_{0};
};

class EventReader {
 public:
  EventReader(const EventColumnSet& columns, MonotonicNs clock, const DictionaryCounts& after, IncomingBatch* out)
      : out_(*out),
        after_(after),
        last_time_(ToWireTime(clock)),
        times_(columns[EventColumn::kTimes]),
        kinds_(columns[EventColumn::kKinds]),
        processes_(columns[EventColumn::kProcesses]),
        pids_(columns[EventColumn::kPids]),
        starts_(columns[EventColumn::kStarts]),
        run_times_(columns[EventColumn::kRunTimes]),
        user_times_(columns[EventColumn::kUserTimes]),
        system_times_(columns[EventColumn::kSystemTimes]),
        peak_bytes_(columns[EventColumn::kPeakBytes]),
        sum_events_(columns[EventColumn::kEvents]),
        ended_(columns[EventColumn::kEnded]),
        parents_(columns[EventColumn::kParents], 0),
        uids_(columns[EventColumn::kUids], 0),
        names_(columns[EventColumn::kNames], 0),
        paths_(columns[EventColumn::kPaths], 0),
        containers_(columns[EventColumn::kContainers], 0),
        cgroups_(columns[EventColumn::kCgroups], 0),
        exit_codes_(columns[EventColumn::kExitCodes], 0),
        signals_(columns[EventColumn::kSignals], 0),
        end_flags_(columns[EventColumn::kEndFlags], 0) {}

  bool AtEnd() const { return times_.AtEnd(); }

  absl::Status ReadNext() {
    ProcessEvent event;
    int64_t time = 0;
    RETURN_IF_ERROR(ReadTime(&time));
    event.time = MonotonicNs{time * kWireTimeUnitNs};
    uint64_t kind = 0;
    if (!kinds_.Read(&kind)) return Truncated("kinds");
    if (kind == 0 || kind > kProcessEventKindMax) return Malformed("a process event has an unknown kind");
    event.kind = static_cast<ProcessEventKind>(kind);
    std::optional<uint32_t> process;
    const ProcessEvent* like = &seen_.LikeOfSum();
    if (IsSum(event)) {
      RETURN_IF_ERROR(ReadParent(like->parent, &event));
    } else {
      RETURN_IF_ERROR(ReadProcess(time, &event, &process));
      like = *process < seen_.count() ? &seen_.Of(*process) : &seen_.LikeOfNew(event.parent);
    }
    RETURN_IF_ERROR(ReadFields(*like, &event));
    if (event.has_end()) RETURN_IF_ERROR(ReadEnd(time, &event));
    if (IsSum(event)) RETURN_IF_ERROR(ReadCounts(&event));
    out_.events.push_back(event);
    seen_.Saw(process);
    return absl::OkStatus();
  }

  absl::Status Finish() const {
    bool ended = true;
    for (const VarintReader* column : {&kinds_, &processes_, &pids_, &starts_, &run_times_, &user_times_,
                                       &system_times_, &peak_bytes_, &sum_events_, &ended_}) {
      ended = ended && column->AtEnd();
    }
    for (const ValueReader* column :
         {&parents_, &uids_, &names_, &paths_, &containers_, &cgroups_, &exit_codes_, &signals_, &end_flags_}) {
      ended = ended && column->AtEnd();
    }
    return ended ? absl::OkStatus() : Malformed("the columns of the process events differ in length");
  }

 private:
  absl::Status ReadTime(int64_t* out) {
    int64_t difference = 0;
    uint64_t later = 0;
    const bool first = out_.events.empty();
    if (first ? !times_.ReadSigned(&difference) : !times_.Read(&later)) return Truncated("times");
    const __int128 time = __int128{last_time_} + (first ? __int128{difference} : __int128{later});
    if (time < -kWireTimeMax || time > kWireTimeMax) return Malformed("the time of a process event is out of range");
    *out = last_time_ = static_cast<int64_t>(time);
    return absl::OkStatus();
  }

  // Reads pid, start time and parent. `process` becomes the process's number, which is seen_.count() if it is new.
  absl::Status ReadProcess(int64_t time, ProcessEvent* event, std::optional<uint32_t>* process) {
    uint64_t code = 0;
    if (!processes_.Read(&code)) return Truncated("processes");
    if (code > seen_.count()) return BadReference("process", code);
    *process = seen_.count() - static_cast<uint32_t>(code);
    if (code != kNewProcess) {
      const ProcessEvent& like = seen_.Of(**process);
      event->pid = like.pid;
      event->start_time_ns = like.start_time_ns;
      return ReadParent(like.parent, event);
    }
    int64_t pid = 0, units = 0, rest = 0;
    if (!pids_.ReadSigned(&pid)) return Truncated("pids");
    if (!starts_.ReadSigned(&units) || !starts_.ReadSigned(&rest)) return Truncated("starts");
    const __int128 pid_now = __int128{seen_.last_pid()} + pid;
    const __int128 start = (__int128{time} - units) * kWireTimeUnitNs + rest;
    if (pid_now < INT32_MIN || pid_now > INT32_MAX || start < INT64_MIN || start > INT64_MAX)
      return Malformed("a field of a process event is out of range");
    event->pid = Pid{static_cast<int32_t>(pid_now)};
    event->start_time_ns = static_cast<int64_t>(start);
    return ReadParent(seen_.Previous().parent, event);
  }

  absl::Status ReadParent(Pid like, ProcessEvent* event) {
    uint64_t code = 0;
    if (!parents_.Read(&code)) return Truncated("parents");
    const __int128 parent = code == 0 ? __int128{like.value} : __int128{event->pid.value} - UnZigZag(code - 1);
    if (parent < INT32_MIN || parent > INT32_MAX) return Malformed("a field of a process event is out of range");
    event->parent = Pid{static_cast<int32_t>(parent)};
    return absl::OkStatus();
  }

  absl::Status ReadFields(const ProcessEvent& like, ProcessEvent* event) {
    RETURN_IF_ERROR(ReadDifference(uids_, like.uid, "uids", &event->uid));
    RETURN_IF_ERROR(ReadDifference(names_, like.name.value, "names", &event->name.value));
    RETURN_IF_ERROR(ReadDifference(paths_, like.executable_path.value, "paths", &event->executable_path.value));
    RETURN_IF_ERROR(ReadDifference(containers_, like.container_id.value, "containers", &event->container_id.value));
    RETURN_IF_ERROR(ReadDifference(cgroups_, like.cgroup_path.value, "cgroups", &event->cgroup_path.value));
    absl::Status status;
    ForEachString(*event, [&](StringRef ref) {
      if (ref.value >= after_.strings) status = BadReference("string", ref.value);
    });
    return status;
  }
  static absl::Status ReadDifference(ValueReader& from, uint32_t like, std::string_view column, uint32_t* out) {
    uint64_t code = 0;
    if (!from.Read(&code) || code > uint64_t{UINT32_MAX} + 1) return Truncated(column);
    *out = code == 0 ? like : static_cast<uint32_t>(code - 1);
    return absl::OkStatus();
  }

  absl::Status ReadEnd(int64_t time, ProcessEvent* event) {
    ProcessEnd& end = event->end;
    uint64_t exit_code = 0, signal = 0, flags = 0;
    int64_t run = 0;
    if (!exit_codes_.Read(&exit_code) || exit_code > UINT8_MAX) return Truncated("exitCodes");
    if (!signals_.Read(&signal) || signal > UINT8_MAX) return Truncated("signals");
    if (!end_flags_.Read(&flags)) return Truncated("endFlags");
    if (!run_times_.ReadSigned(&run)) return Truncated("runTimes");
    if (!user_times_.Read(&end.user_ns)) return Truncated("userTimes");
    if (!system_times_.Read(&end.system_ns)) return Truncated("systemTimes");
    if (!peak_bytes_.Read(&end.peak_rss_bytes)) return Truncated("peakBytes");
    end.exit_code = static_cast<uint8_t>(exit_code);
    end.signal = static_cast<uint8_t>(signal);
    end.core_dumped = (flags & kFlagCoreDumped) != 0;
    end.oom_killed = (flags & kFlagOomKilled) != 0;
    if ((flags & ~(kFlagCoreDumped | kFlagOomKilled)) != 0) ++out_.unknown_values;
    end.run_ns = static_cast<uint64_t>(run) + ExpectedRunNs(*event, time);
    if (std::max({end.run_ns, end.user_ns, end.system_ns, end.peak_rss_bytes}) > kProcessUsageMax)
      return Malformed("a process used more than is possible");
    return absl::OkStatus();
  }

  absl::Status ReadCounts(ProcessEvent* event) {
    uint64_t events = 0, processes = 0;
    if (!sum_events_.Read(&events)) return Truncated("events");
    if (!ended_.Read(&processes)) return Truncated("ended");
    if (events == 0 || events > UINT32_MAX || processes == 0 || processes > UINT32_MAX)
      return Malformed("a sum of process events has a wrong number of events or processes");
    event->events = static_cast<uint32_t>(events);
    event->processes = static_cast<uint32_t>(processes);
    return absl::OkStatus();
  }

  IncomingBatch& out_;
  const DictionaryCounts after_;
  SeenProcesses seen_{out_.events};
  int64_t last_time_;
  VarintReader times_, kinds_, processes_, pids_, starts_, run_times_, user_times_, system_times_, peak_bytes_,
      sum_events_, ended_;
  ValueReader parents_, uids_, names_, paths_, containers_, cgroups_, exit_codes_, signals_, end_flags_;
};

}  // namespace

void WriteEvents(std::span<const ProcessEvent> events, MonotonicNs clock, ColumnWriter& to) {
  EventWriter writer(clock);
  for (const ProcessEvent& event : events) writer.Add(event);
  std::move(writer).Write(to);
}

absl::Status ReadEvents(const EventColumnSet& columns, MonotonicNs clock, const DictionaryCounts& after,
                        IncomingBatch* out) {
  EventReader reader(columns, clock, after, out);
  while (!reader.AtEnd()) {
    if (out->events.size() == kProcessEventsPerBatchMax)
      return Malformed(fmt::format("the batch has more than {} process events", kProcessEventsPerBatchMax));
    RETURN_IF_ERROR(reader.ReadNext());
  }
  return reader.Finish();
}

}  // namespace tributary::intake
