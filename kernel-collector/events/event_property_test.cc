#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <map>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "kernel-collector/events/event_tracker.h"

// Random lives of processes, with reused pids, records out of order, missing starts and exits, storms of execs, and
// zombies. The tests compare what the tracker passes on with the lives.
namespace tributary {
namespace {

using Random = std::mt19937_64;

uint64_t Below(Random& random, uint64_t limit) { return random() % limit; }

struct Life {
  ProcessIdentity process;
  int64_t start_ns = 0, exit_ns = 0;
  std::vector<int64_t> execs;
  bool has_start = true, has_exit = true;  // a record arrives
  std::string path, comm;
  uint32_t uid = 0;
  uint8_t exit_code = 0;
  CpuTimes at_exit, final;
  bool is_zombie = false;  // no final record
  uint64_t peak_pages = 0;
};

struct Arrival {
  int64_t at_ns = 0;
  size_t life = 0;
  trib_process_event record{};
};

struct Setup {
  uint32_t events_per_second = 200;
  size_t queue_bytes_max = 2u << 20;
  size_t sums_max = 1024;
  size_t max = 20'000;
  size_t lives = 1000;
  int64_t span_ns = 30 * kNsPerSecond;
  uint64_t programs = 10;
  int64_t jitter_ns = kNsPerMs;  // of the order of records
  bool has_losses = true;
  int flushes_after = 0;  // 10 s apart, after the last record
};

constexpr int64_t kBootOffsetNs = 5 * kNsPerSecond;
constexpr int64_t kEpochNs = 100 * kNsPerSecond;

Life MakeLife(Random& random, const Setup& setup, size_t number) {
  Life life;
  life.start_ns = kEpochNs + static_cast<int64_t>(Below(random, static_cast<uint64_t>(setup.span_ns)));
  const int64_t run_ns = Below(random, 20) == 0
                             ? static_cast<int64_t>(Below(random, static_cast<uint64_t>(setup.span_ns)))
                             : static_cast<int64_t>(Below(random, 20 * kNsPerMs));
  life.exit_ns = life.start_ns + 1000 + run_ns;
  // Few pids, so they are reused while older processes with the pid still run. The identity is unique.
  life.process = {Pid{static_cast<int32_t>(1 + Below(random, 50))},
                  life.start_ns + kBootOffsetNs - static_cast<int64_t>(number)};
  const uint64_t execs = Below(random, 100) == 0 ? Below(random, 400) : Below(random, 3);
  for (uint64_t i = 0; i < execs; ++i) {
    life.execs.push_back(life.start_ns +
                         static_cast<int64_t>(Below(random, static_cast<uint64_t>(life.exit_ns - life.start_ns))));
  }
  if (setup.has_losses) {
    life.has_start = Below(random, 20) != 0;
    life.has_exit = Below(random, 20) != 0;
  }
  life.path = "/bin/" + std::to_string(Below(random, setup.programs));
  life.comm = life.path.substr(5);
  life.uid = static_cast<uint32_t>(Below(random, 2));
  life.exit_code = static_cast<uint8_t>(Below(random, 3));
  life.at_exit = {Below(random, 1'000'000), Below(random, 1'000'000)};
  life.final = {life.at_exit.user_ns + Below(random, 1000), life.at_exit.system_ns + Below(random, 1000)};
  life.is_zombie = Below(random, 10) == 0;
  life.peak_pages = Below(random, 10'000);
  return life;
}

trib_process_event MakeRecord(const Life& life, trib_process_event_kind kind, int64_t time_ns) {
  trib_process_event record{};
  record.kind = kind;
  record.time_ns = static_cast<uint64_t>(time_ns);
  record.start_time_ns = static_cast<uint64_t>(life.process.start_time_ns);
  record.pid = static_cast<uint32_t>(life.process.pid.value);
  record.parent = 1;
  record.uid = life.uid;
  std::memcpy(record.comm, life.comm.data(), life.comm.size());
  const CpuTimes& cpu = kind == TRIB_EVENT_FINAL ? life.final : life.at_exit;
  record.user_ns = cpu.user_ns;
  record.system_ns = cpu.system_ns;
  record.peak_rss_pages = life.peak_pages;
  record.exit_status = uint32_t{life.exit_code} << 8;
  return record;
}

class Play {
 public:
  Play(uint64_t seed, const Setup& setup) : random_(seed), setup_(setup) {
    for (size_t i = 0; i < setup.lives; ++i) AddArrivals(MakeLife(random_, setup, i));
    std::stable_sort(arrivals_.begin(), arrivals_.end(),
                     [](const Arrival& a, const Arrival& b) { return a.at_ns < b.at_ns; });
    tracker_.SetClockOffset(kBootOffsetNs);
  }

  void Run() {
    int64_t next_flush = kEpochNs;
    for (const Arrival& arrival : arrivals_) {
      while (arrival.at_ns >= next_flush) {
        Flush(next_flush);
        next_flush += 1 + static_cast<int64_t>(Below(random_, 6 * kNsPerSecond));
      }
      now_ns_ = std::max(now_ns_, arrival.at_ns);
      const Life& life = lives_[arrival.life];
      tracker_.OnRecord(arrival.record, {.executable_path = life.path}, MonotonicNs{now_ns_});
      ASSERT_LE(tracker_.queue_bytes(), setup_.queue_bytes_max);
      is_ever_over_half_ |= tracker_.queue_bytes() > setup_.queue_bytes_max / 2;
    }
    Flush(std::max(next_flush, now_ns_));
    for (int i = 0; i < setup_.flushes_after; ++i) Flush(now_ns_ + 10 * kNsPerSecond);
    CheckRate();  // a stop sends what waits, whatever the budget
    BeginFlush();
    tracker_.FinishAll(MonotonicNs{now_ns_}, [this](const TrackedEvent& event) { Check(event); });
    EndFlush();
    EXPECT_EQ(tracker_.waiting(), 0u);
    EXPECT_EQ(tracker_.queue_bytes(), 0u);
    CheckTotals();
  }

  const EventTracker& tracker() const { return tracker_; }
  bool is_ever_over_half() const { return is_ever_over_half_; }

 private:
  struct Totals {
    uint64_t processes = 0, events = 0, run_ns = 0, user_ns = 0, system_ns = 0, peak = 0;
    bool operator==(const Totals&) const = default;
  };
  using Key = std::tuple<std::string, std::string, uint32_t, uint8_t>;  // path, name, uid, exit code

  void Arrive(trib_process_event_kind kind, int64_t time_ns, int64_t delay_ns = 0) {
    const int64_t jitter = static_cast<int64_t>(Below(random_, static_cast<uint64_t>(setup_.jitter_ns) + 1));
    arrivals_.push_back({time_ns + delay_ns + jitter, lives_.size() - 1, MakeRecord(lives_.back(), kind, time_ns)});
    if (kind != TRIB_EVENT_FINAL) ++captured_;
  }

  void AddArrivals(Life life) {
    ids_[life.process] = lives_.size();
    lives_.push_back(life);
    if (life.has_start) Arrive(TRIB_EVENT_START, life.start_ns);
    for (const int64_t exec : life.execs) Arrive(TRIB_EVENT_EXEC, exec);
    if (!life.has_exit) return;
    Arrive(TRIB_EVENT_EXIT, life.exit_ns);
    // Above the jitter: a final record before its exit would be ignored.
    if (!life.is_zombie) {
      Arrive(TRIB_EVENT_FINAL, life.exit_ns, 2 * setup_.jitter_ns + static_cast<int64_t>(Below(random_, kNsPerSecond)));
    }
  }

  void BeginFlush() {
    last_time_ = MonotonicNs{};
    records_ = 0;
  }
  void EndFlush() {
    flushes_.emplace_back(now_ns_, records_);
    const EventCounts counts = tracker_.counts().events;
    EXPECT_EQ(counts.seen, counts.sent + counts.summed + counts.lost + tracker_.waiting());
    EXPECT_EQ(counts.sent, sent_);
    EXPECT_EQ(counts.summed, summed_);
  }
  void Flush(int64_t at_ns) {
    now_ns_ = std::max(now_ns_, at_ns);
    BeginFlush();
    tracker_.TakeForBatch(MonotonicNs{now_ns_}, setup_.max, [this](const TrackedEvent& event) { Check(event); });
    EXPECT_LE(records_, setup_.max);
    EndFlush();
  }

  void Check(const TrackedEvent& event) {
    ++records_;
    EXPECT_GE(event.time, last_time_);
    last_time_ = event.time;
    if (event.kind == ProcessEventKind::kSum) {
      CheckSum(event);
      return;
    }
    ++sent_;
    const auto found = ids_.find(event.process);
    ASSERT_NE(found, ids_.end());
    const Life& life = lives_[found->second];
    EXPECT_EQ(event.names.executable_path, life.path);
    EXPECT_EQ(event.name, life.comm);
    EXPECT_EQ(event.uid, life.uid);
    EXPECT_EQ(event.events, 1u);
    EXPECT_TRUE(passed_.emplace(event.process, event.kind, event.time.value).second ||
                event.kind == ProcessEventKind::kExec)
        << "twice";
    const auto has_passed = [&](ProcessEventKind kind, int64_t time_ns) {
      return passed_.contains({event.process, kind, time_ns});
    };
    switch (event.kind) {
      case ProcessEventKind::kStart:
        EXPECT_EQ(event.time.value, life.start_ns);
        EXPECT_FALSE(has_passed(ProcessEventKind::kExit, life.exit_ns)) << "the exit was before the start";
        break;
      case ProcessEventKind::kExec:
        EXPECT_TRUE(std::count(life.execs.begin(), life.execs.end(), event.time.value));
        break;
      case ProcessEventKind::kExit:
        ended_.insert(event.process);
        EXPECT_EQ(event.time.value, life.exit_ns);
        EXPECT_EQ(event.end.exit_code, life.exit_code);
        EXPECT_EQ(event.end.peak_rss_bytes, life.peak_pages * 4096);
        CheckCpu(event.end, life);
        CheckRunTime(event.end, life);
        break;
      default:
        ADD_FAILURE();
    }
  }

  void CheckCpu(const ProcessEnd& end, const Life& life) const {
    const CpuTimes cpu{end.user_ns, end.system_ns};
    EXPECT_TRUE(cpu == life.at_exit || (!life.is_zombie && cpu == life.final));
    if (!is_ever_over_half_ && !life.is_zombie) {
      EXPECT_EQ(cpu, life.final);
    }
  }
  // The start time in the identity is less than 1 ms before the start event.
  static void CheckRunTime(const ProcessEnd& end, const Life& life) {
    const auto run_ns = static_cast<uint64_t>(life.exit_ns - life.start_ns);
    EXPECT_GE(end.run_ns, run_ns);
    EXPECT_LE(end.run_ns, run_ns + kNsPerMs);
  }

  void CheckSum(const TrackedEvent& event) {
    summed_ += event.events;
    EXPECT_EQ(event.process, ProcessIdentity{});
    Totals& sum =
        sums_[{std::string(event.names.executable_path), std::string(event.name), event.uid, event.end.exit_code}];
    sum.processes += event.processes;
    sum.events += event.events;
    sum.run_ns += event.end.run_ns;
    sum.user_ns += event.end.user_ns;
    sum.system_ns += event.end.system_ns;
    sum.peak = std::max(sum.peak, event.end.peak_rss_bytes);
  }

  // If nothing was lost, the sums contain exactly the processes whose exit was not passed on by itself.
  void CheckTotals() {
    EXPECT_EQ(tracker_.counts().events.seen, captured_);
    if (tracker_.counts().events.lost > 0 || is_ever_over_half_) return;
    std::map<Key, Totals> expected;
    for (const Life& life : lives_) {
      if (!life.has_exit || ended_.contains(life.process)) continue;
      ASSERT_TRUE(life.has_start);
      const CpuTimes& cpu = life.is_zombie ? life.at_exit : life.final;
      Totals& sum = expected[{life.path, life.comm, life.uid, life.exit_code}];
      ++sum.processes;
      sum.events += 2 + life.execs.size();
      sum.run_ns += static_cast<uint64_t>(life.exit_ns - life.start_ns);
      sum.user_ns += cpu.user_ns;
      sum.system_ns += cpu.system_ns;
      sum.peak = std::max(sum.peak, life.peak_pages * 4096);
    }
    EXPECT_TRUE(sums_ == expected);
  }

  // In any window of 10 s: the bucket, and what 10 s add.
  void CheckRate() const {
    const uint64_t limit = 20 * uint64_t{setup_.events_per_second};
    for (size_t first = 0; first < flushes_.size(); ++first) {
      uint64_t records = 0;
      for (size_t i = first; i < flushes_.size() && flushes_[i].first <= flushes_[first].first + 10 * kNsPerSecond;
           ++i) {
        records += flushes_[i].second;
      }
      EXPECT_LE(records, limit);
    }
  }

  Random random_;
  const Setup setup_;
  std::vector<Life> lives_;
  std::map<ProcessIdentity, size_t> ids_;
  std::vector<Arrival> arrivals_;
  uint64_t captured_ = 0;
  int64_t now_ns_ = kEpochNs;
  EventTracker tracker_{{.events_per_second = setup_.events_per_second,
                         .queue_bytes_max = setup_.queue_bytes_max,
                         .sums_max = setup_.sums_max},
                        MonotonicNs{kEpochNs}};
  bool is_ever_over_half_ = false;
  MonotonicNs last_time_;
  uint64_t records_ = 0, sent_ = 0, summed_ = 0;
  std::set<std::tuple<ProcessIdentity, ProcessEventKind, int64_t>> passed_;
  std::set<ProcessIdentity> ended_;
  std::map<Key, Totals> sums_;
  std::vector<std::pair<int64_t, uint64_t>> flushes_;  // time, records
};

TEST(EventProperties, NothingIsLostInALargeQueue) {
  uint64_t summed = 0, sent = 0;
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    SCOPED_TRACE(seed);
    Play play(seed, {.events_per_second = seed % 3 == 0 ? 200u : 40u,
                     .queue_bytes_max = 16u << 20,
                     .lives = 1500,
                     .programs = 1 + seed % 10,
                     .has_losses = false,
                     .flushes_after = 30});
    play.Run();
    EXPECT_EQ(play.tracker().counts().events.lost, 0u);
    EXPECT_FALSE(play.is_ever_over_half());
    summed += play.tracker().counts().events.summed;
    sent += play.tracker().counts().events.sent;
  }
  EXPECT_GT(summed, 10'000u);
  EXPECT_GT(sent, 10'000u);
}

TEST(EventProperties, HoldUnderEveryLimit) {
  uint64_t lost = 0;
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const uint32_t rates[] = {0, 1, 20, 200, 10'000};
    const size_t queues[] = {8u << 10, 64u << 10, 2u << 20};
    const size_t batches[] = {7, 500, 20'000};
    const size_t sums[] = {1, 8, 1024};
    Play play(seed, {.events_per_second = rates[Below(random, 5)],
                     .queue_bytes_max = queues[Below(random, 3)],
                     .sums_max = sums[Below(random, 3)],
                     .max = batches[Below(random, 3)],
                     .lives = 200 + Below(random, 1500),
                     .span_ns = static_cast<int64_t>(1 + Below(random, 60)) * kNsPerSecond,
                     .programs = 1 + Below(random, 100),
                     .jitter_ns = static_cast<int64_t>(Below(random, 50)) * kNsPerMs});
    play.Run();
    lost += play.tracker().counts().events.lost;
  }
  EXPECT_GT(lost, 0u);
}

// Any numbers: the law, the limits and the order still hold.
TEST(EventProperties, HoldForImpossibleRecords) {
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const auto number = [&]() -> uint64_t {
      switch (Below(random, 5)) {
        case 0:
          return 0;
        case 1:
          return UINT64_MAX - Below(random, 3);
        case 2:
          return (uint64_t{1} << 63) - Below(random, 2);
        default:
          return 1 + Below(random, 8);
      }
    };
    const size_t bytes_max = seed % 2 == 0 ? 16u << 10 : 2u << 20;
    EventTracker tracker({.events_per_second = 50, .live_max = 20, .queue_bytes_max = bytes_max, .sums_max = 3},
                         MonotonicNs{0});
    if (seed % 3 == 0) tracker.SetClockOffset(INT64_MIN);
    std::set<ProcessIdentity> ended;
    const TrackedEventVisitor check = [&](const TrackedEvent& event) {
      if (event.kind == ProcessEventKind::kExit) ended.insert(event.process);
      if (event.kind == ProcessEventKind::kStart) {
        EXPECT_FALSE(ended.contains(event.process));
      }
      if (event.kind != ProcessEventKind::kSum) {
        EXPECT_LE(event.end.run_ns, uint64_t{INT64_MAX});
      }
    };
    uint64_t records = 0;
    for (int i = 0; i < 5000; ++i) {
      trib_process_event record{};
      record.kind = static_cast<uint32_t>(Below(random, 6));
      record.pid = static_cast<uint32_t>(Below(random, 10) == 0 ? number() : 1 + Below(random, 20));
      record.start_time_ns = number();
      for (auto* field :
           {&record.time_ns, &record.user_ns, &record.system_ns, &record.runtime_ns, &record.peak_rss_pages}) {
        *field = number();
      }
      record.parent = record.uid = record.exit_status = record.flags = static_cast<uint32_t>(number());
      std::memset(record.comm, static_cast<int>(Below(random, 256)), Below(random, 17));
      records += record.kind != TRIB_EVENT_FINAL;
      const MonotonicNs now{i * kNsPerMs};
      tracker.OnRecord(record, {.executable_path = std::string(Below(random, 5000), 'x')}, now);
      ASSERT_LE(tracker.queue_bytes(), bytes_max);
      if (Below(random, 200) == 0) tracker.TakeForBatch(now, Below(random, 500), check);
      const EventCounts counts = tracker.counts().events;
      ASSERT_EQ(counts.seen, records);
      ASSERT_EQ(counts.seen, counts.sent + counts.summed + counts.lost + tracker.waiting());
    }
    tracker.FinishAll(MonotonicNs{5000 * kNsPerMs}, check);
    EXPECT_EQ(tracker.waiting(), 0u);
  }
}

}  // namespace
}  // namespace tributary
