#include "kernel-collector/unwind/unwind_tables.h"

#include <algorithm>
#include <atomic>
#include <span>
#include <utility>
#include <vector>

#include "base/status.h"
#include "base/token_bucket.h"
#include "kernel-collector/unwind/page_rows.h"
#include "kernel-collector/unwind/retire_queue.h"
#include "kernel-collector/unwind/row_pool.h"
#include "kernel-collector/unwind/rule_dictionary.h"
#include "kernel-collector/unwind/table_registry.h"
#include "kernel-collector/unwind/unwind_metrics.h"

namespace tributary {
namespace {

constexpr int64_t kAgeNs = kNsPerSecond;
// How long after the last request the compiler is called to tidy up, four times.
constexpr int64_t kTidyNs = kNsPerMinute;
// The share that is evicted at once. That needs fewer waits for the kernel than unit by unit.
constexpr uint64_t kEvictShare = 16;
constexpr size_t kStartsMax = 1024;

struct UnitRef {
  uint32_t table = 0, unit = 0;
};

// A unit at the worker.
struct Job {
  UnitRef ref;
  UnwindCompiler::Request request;
  UnwindCompiler::Result result;
};

// A compiled unit that waits for space in the pool.
struct Parked {
  UnitRef ref;
  PageRows pages;
};

struct Failed {
  UnitRef ref;
  MonotonicNs retry_at;
};

}  // namespace

class UnwindTables::Impl {
 public:
  Impl(UnwindMaps& maps, Executor& executor, const Clock& clock, Metrics& metrics, Options options,
       std::shared_ptr<UnwindCompiler> compiler);

  UnwindTable* FindOrAdd(const CodeFilePtr& executable);
  UnwindTable* Get(uint32_t number) { return registry_.Get(number); }
  void Touch(UnwindTable& table) { table.last_used = Now(); }
  std::optional<uint64_t> Find(const CodeFile& executable, uint64_t address);
  void Request(const CodeFilePtr& executable, uint64_t address);
  bool IsStart(const CodeFile& executable, uint64_t address) const;
  void Tick();
  uint64_t publications() const { return publications_; }
  bool idle() const { return queue_.empty() && at_worker_ == 0 && parked_.empty() && !growing_ && !retired_.waiting(); }
  uint64_t memory_bytes() const { return pool_.chunks() * TRIB_CHUNK_BYTES; }

 private:
  uint64_t Now() const { return static_cast<uint64_t>(clock_.Monotonic().value); }
  UnwindUnit& UnitOf(UnitRef ref) { return registry_.Get(ref.table)->units[ref.unit]; }
  std::span<uint64_t> EntriesOf(UnitRef ref);
  std::span<uint64_t> TouchesOf(UnitRef ref);

  // Loading.
  void Pump();
  bool SubmitCompile(UnitRef ref);
  void Compiled(Job& job);
  void PlaceParked();
  enum class Room { kFound, kWait, kNever };
  Room Place(Parked& parked);
  void Published(UnitRef ref, UnwindUnit::State state);
  void PublishWithoutRows(UnitRef ref);
  void Withdraw(UnitRef ref);
  void Fail(UnitRef ref);
  void RetryFailed();
  void Tidy();

  // Room.
  Room MakeRoom(uint32_t rows);
  bool Grow();
  bool Evict(uint64_t rows);
  void Age();
  void DropTable(uint32_t number, UnwindTable& table);
  void SetGauges();

  UnwindMaps& maps_;
  Executor& executor_;
  const Clock& clock_;
  const Options options_;
  const std::shared_ptr<UnwindCompiler> compiler_;
  UnwindMetrics metrics_;
  RuleDictionary rules_;
  RowPool pool_;
  RetireQueue retired_;
  TableRegistry registry_;
  TokenBucket budget_;

  std::vector<UnitRef> queue_;  // wanted units, in order of arrival
  std::vector<Parked> parked_;
  std::vector<Failed> failed_;  // in order of time
  uint32_t at_worker_ = 0;
  bool growing_ = false;
  MonotonicNs grow_at_;  // do not grow before this time
  MonotonicNs aged_at_;
  MonotonicNs compiled_at_, tidied_at_;  // the time of the last one
  uint64_t publications_ = 0;
  // Jobs may outlive this object: they check this pointer first.
  std::shared_ptr<Impl*> self_ = std::make_shared<Impl*>(this);
};

UnwindTables::Impl::Impl(UnwindMaps& maps, Executor& executor, const Clock& clock, Metrics& metrics, Options options,
                         std::shared_ptr<UnwindCompiler> compiler)
    : maps_(maps),
      executor_(executor),
      clock_(clock),
      options_(std::move(options)),
      compiler_(std::move(compiler)),
      metrics_(metrics),
      rules_(maps, metrics),
      pool_(maps),
      retired_(maps, executor, /*batch=*/TRIB_CHUNK_ROWS),
      registry_([this](uint32_t number, UnwindTable& table) { DropTable(number, table); }),
      budget_(options_.compile_ns_per_second, options_.compile_burst_ns, clock.Monotonic()),
      aged_at_(clock.Monotonic()) {
  retired_.OnFreed([this] { Pump(); });
  if (auto chunk = maps_.AddChunk(); chunk.ok()) pool_.AddChunk(*chunk);
  SetGauges();
}

// Returns the page entries of a unit, or nothing if the system has no memory to write them. They were then never
// written, and stay "not loaded".
std::span<uint64_t> UnwindTables::Impl::EntriesOf(UnitRef ref) {
  const UnwindTable& table = *registry_.Get(ref.table);
  const std::span<uint64_t> entries =
      maps_.pages().subspan(table.first_entry + table.unit_first_page(ref.unit), table.unit_page_count(ref.unit));
  return maps_.Access(std::as_bytes(entries)) ? entries : std::span<uint64_t>();
}

std::span<uint64_t> UnwindTables::Impl::TouchesOf(UnitRef ref) {
  const UnwindTable& table = *registry_.Get(ref.table);
  uint32_t words = (table.unit_page_count(ref.unit) + UnwindTable::kTouchPages - 1) / UnwindTable::kTouchPages;
  return maps_.touches().subspan((table.first_entry + table.unit_first_page(ref.unit)) >> TRIB_TOUCH_SHIFT, words);
}

UnwindTable* UnwindTables::Impl::FindOrAdd(const CodeFilePtr& executable) {
  bool refused = false;
  UnwindTable* table = registry_.FindOrAdd(executable, &refused);
  if (refused) metrics_.executables_refused.Add();
  if (table != nullptr) Touch(*table);
  return table;
}

std::optional<uint64_t> UnwindTables::Impl::Find(const CodeFile& executable, uint64_t address) {
  UnwindTable* table = registry_.Find(executable);
  if (table == nullptr) return std::nullopt;
  std::optional<uint32_t> page = table->PageOf(address);
  if (!page) return TRIB_RULE_NONE;
  Touch(*table);
  // The system may have had no memory to write this to the unit's entries.
  if (table->units[*page / UnwindTable::kUnitPages].state == UnwindUnit::State::kFailed) return TRIB_RULE_NONE;
  uint32_t index = table->first_entry + *page;
  std::atomic_ref(maps_.touches()[index >> TRIB_TOUCH_SHIFT]).store(1, std::memory_order_relaxed);
  return FindRule(maps_.pages()[index], address % TRIB_PAGE_BYTES, pool_, rules_);
}

bool UnwindTables::Impl::IsStart(const CodeFile& executable, uint64_t address) const {
  const UnwindTable* table = registry_.Find(executable);
  if (table == nullptr) return false;
  auto it = std::upper_bound(table->starts.begin(), table->starts.end(), address,
                             [](uint64_t a, const AddressRange& range) { return a < range.begin; });
  return it != table->starts.begin() && address < std::prev(it)->end;
}

// ---- Loading

void UnwindTables::Impl::Request(const CodeFilePtr& executable, uint64_t address) {
  UnwindTable* table = FindOrAdd(executable);
  if (table == nullptr) return;
  std::optional<uint32_t> page = table->PageOf(address);
  if (!page) return;
  UnitRef ref{executable->unwind_table, *page / UnwindTable::kUnitPages};
  UnwindUnit& unit = table->units[ref.unit];
  if (unit.state == UnwindUnit::State::kQueued) {
    ++unit.demand;
  } else if (unit.state == UnwindUnit::State::kAbsent) {
    if (queue_.size() >= kQueueMax) return metrics_.requests_refused.Add();
    queue_.push_back(ref);
    unit.state = UnwindUnit::State::kQueued;
    unit.demand = 1;
    ++table->busy_units;
  } else {
    return;
  }
  table->file = executable;
}

void UnwindTables::Impl::Tick() {
  MonotonicNs now = clock_.Monotonic();
  budget_.Refill(now);
  if (now.value - aged_at_.value >= kAgeNs) Age();
  RetryFailed();
  Tidy();
  retired_.Retry();
  Pump();
}

void UnwindTables::Impl::Pump() {
  PlaceParked();
  budget_.Refill(clock_.Monotonic());
  while (!queue_.empty() && at_worker_ + parked_.size() < kCompilingMax && budget_.has_tokens()) {
    auto hottest = std::max_element(queue_.begin(), queue_.end(),
                                    [&](UnitRef a, UnitRef b) { return UnitOf(a).demand < UnitOf(b).demand; });
    UnitRef ref = *hottest;
    if (!SubmitCompile(ref)) return;
    queue_.erase(hottest);
  }
  SetGauges();
}

// Returns false if the worker accepts no more jobs for now.
bool UnwindTables::Impl::SubmitCompile(UnitRef ref) {
  UnwindTable& table = *registry_.Get(ref.table);
  UnwindUnit& unit = table.units[ref.unit];
  CodeFilePtr file = table.file.lock();
  if (file == nullptr) {  // no process has the file any more, so no sample waits
    unit.state = UnwindUnit::State::kAbsent;
    --table.busy_units;
    return true;
  }
  uint64_t first = table.text.first + table.unit_first_page(ref.unit);
  auto job = std::make_shared<Job>();
  job->ref = ref;
  job->request = {table.id,
                  file->key,
                  file->locations,
                  file->memory,
                  {first << TRIB_PAGE_SHIFT, (first + table.unit_page_count(ref.unit)) << TRIB_PAGE_SHIFT}};
  std::weak_ptr<Impl*> weak = self_;
  bool taken = executor_.Submit([compiler = compiler_, job] { job->result = compiler->Compile(job->request); },
                                [weak, job] {
                                  if (auto self = weak.lock()) (*self)->Compiled(*job);
                                });
  if (!taken) return false;
  unit.state = UnwindUnit::State::kCompiling;
  ++at_worker_;
  return true;
}

void UnwindTables::Impl::Compiled(Job& job) {
  --at_worker_;
  compiled_at_ = clock_.Monotonic();
  UnwindCompiler::Result& result = job.result;
  budget_.Refill(clock_.Monotonic());
  budget_.Spend(result.cpu_ns);
  metrics_.compile_ns.Add(static_cast<uint64_t>(std::max<int64_t>(result.cpu_ns, 0)));
  metrics_.bad_rows.Add(result.unsupported_rows);
  UnwindTable& table = *registry_.Get(job.ref.table);
  if (result.status.ok() && !table.starts_known) {
    table.starts_known = true;
    table.starts = std::move(result.starts);
    if (table.starts.size() > kStartsMax) table.starts.resize(kStartsMax);
  }
  if (!result.status.ok()) {
    Fail(job.ref);
  } else if (result.kind == UnwindSource::Kind::kNone) {
    PublishWithoutRows(job.ref);
  } else {
    std::optional<PageRows> pages = CutToPages(result.rows, table.unit_page_count(job.ref.unit), rules_);
    if (!pages || pages->rows.size() > kUnitRowsMax) {
      Fail(job.ref);
    } else {
      parked_.push_back({job.ref, *std::move(pages)});
    }
  }
  Pump();
}

void UnwindTables::Impl::PlaceParked() {
  while (!parked_.empty()) {
    Room room = Place(parked_.front());
    if (room == Room::kWait) return;
    if (room == Room::kNever) Fail(parked_.front().ref);
    parked_.erase(parked_.begin());
  }
}

UnwindTables::Impl::Room UnwindTables::Impl::Place(Parked& parked) {
  UnwindUnit& unit = UnitOf(parked.ref);
  uint32_t rows = static_cast<uint32_t>(parked.pages.rows.size());
  const std::span<uint64_t> entries = EntriesOf(parked.ref);
  if (entries.empty()) return Room::kNever;
  if (rows > 0) {
    std::optional<uint32_t> first_row = pool_.Allocate(rows);
    if (!first_row) return MakeRoom(rows);
    unit.first_row = *first_row;
  }
  if (!PublishPages(parked.pages, unit.first_row, pool_, entries)) {
    pool_.Free(unit.first_row, rows);
    return Room::kNever;
  }
  unit.rows = rows;
  Published(parked.ref, UnwindUnit::State::kLoaded);
  metrics_.units_loaded.Add();
  return Room::kFound;
}

void UnwindTables::Impl::Published(UnitRef ref, UnwindUnit::State state) {
  UnwindTable& table = *registry_.Get(ref.table);
  UnwindUnit& unit = table.units[ref.unit];
  if (unit.state == UnwindUnit::State::kCompiling) --table.busy_units;
  unit.state = state;
  unit.touched = Now();
  ++publications_;
}

// Publishes the whole executable at once: no unit of it has rows. Units whose entries cannot be written stay absent,
// but the unit that was requested fails.
void UnwindTables::Impl::PublishWithoutRows(UnitRef ref) {
  UnwindTable& table = *registry_.Get(ref.table);
  for (uint32_t i = 0; i < table.units.size(); ++i) {
    UnwindUnit::State state = table.units[i].state;
    if (i != ref.unit && state != UnwindUnit::State::kAbsent) continue;
    const std::span<uint64_t> entries = EntriesOf({ref.table, i});
    if (entries.empty()) continue;
    PublishRule(0, entries);
    Published({ref.table, i}, UnwindUnit::State::kLoaded);
  }
  if (table.units[ref.unit].state != UnwindUnit::State::kLoaded) return Fail(ref);
  metrics_.units_loaded.Add();
}

void UnwindTables::Impl::Withdraw(UnitRef ref) {
  WithdrawPages(EntriesOf(ref));
  maps_.CountWithdrawal();
}

// Lets the unit be walked by frame pointers for a while. If the system has no memory to write its entries, the walk in
// the kernel stops there, and the collector continues by frame pointers.
void UnwindTables::Impl::Fail(UnitRef ref) {
  PublishRule(0, EntriesOf(ref));
  Published(ref, UnwindUnit::State::kFailed);
  failed_.push_back({ref, MonotonicNs{clock_.Monotonic().value + options_.retry_ns}});
  metrics_.units_failed.Add();
}

void UnwindTables::Impl::Tidy() {
  MonotonicNs now = clock_.Monotonic();
  if (now.value - compiled_at_.value > kTidyNs || now.value - tidied_at_.value < kTidyNs / 4) return;
  tidied_at_ = now;
  executor_.Submit([compiler = compiler_] { compiler->Tidy(); }, [] {});
}

// Marks failed units as not loaded when their time has come: the next walk through a unit requests it again.
void UnwindTables::Impl::RetryFailed() {
  MonotonicNs now = clock_.Monotonic();
  auto due = std::find_if(failed_.begin(), failed_.end(), [&](const Failed& f) { return f.retry_at > now; });
  for (auto it = failed_.begin(); it != due; ++it) {
    Withdraw(it->ref);
    UnitOf(it->ref).state = UnwindUnit::State::kAbsent;
  }
  failed_.erase(failed_.begin(), due);
}

// ---- Room

UnwindTables::Impl::Room UnwindTables::Impl::MakeRoom(uint32_t rows) {
  if (growing_ || retired_.waiting()) return Room::kWait;
  if (memory_bytes() + TRIB_CHUNK_BYTES <= options_.memory_bytes_max && pool_.chunks() < TRIB_CHUNKS_MAX &&
      clock_.Monotonic() >= grow_at_) {
    Grow();
    return Room::kWait;
  }
  if (!Evict(rows) && retired_.empty()) return Room::kNever;
  retired_.Flush();
  return Room::kWait;
}

bool UnwindTables::Impl::Grow() {
  auto chunk = std::make_shared<absl::StatusOr<std::span<uint64_t>>>(absl::UnknownError(""));
  std::weak_ptr<Impl*> weak = self_;
  auto done = [weak, chunk] {
    auto self = weak.lock();
    if (self == nullptr) return;
    Impl& impl = **self;
    impl.growing_ = false;
    if (chunk->ok()) {
      impl.pool_.AddChunk(**chunk);
    } else {
      impl.metrics_.chunks_refused.Add();
      impl.grow_at_ = MonotonicNs{impl.clock_.Monotonic().value + impl.options_.retry_ns};
    }
    impl.Pump();
  };
  growing_ = executor_.Submit([maps = &maps_, chunk] { *chunk = maps->AddChunk(); }, std::move(done));
  return growing_;
}

// Takes back the units that no walk has used for longest, at least `rows` in total. Returns false if there are none.
bool UnwindTables::Impl::Evict(uint64_t rows) {
  Age();
  std::vector<UnitRef> loaded;
  registry_.ForEach([&](uint32_t number, UnwindTable& table) {
    for (uint32_t i = 0; i < table.units.size(); ++i) {
      if (table.units[i].rows > 0) loaded.push_back({number, i});
    }
  });
  std::stable_sort(loaded.begin(), loaded.end(),
                   [&](UnitRef a, UnitRef b) { return UnitOf(a).touched < UnitOf(b).touched; });
  rows = std::max<uint64_t>(rows, pool_.chunks() * TRIB_CHUNK_ROWS / kEvictShare);
  uint64_t evicted = 0;
  for (UnitRef ref : loaded) {
    if (evicted >= rows) break;
    UnwindUnit& unit = UnitOf(ref);
    evicted += unit.rows;
    Withdraw(ref);
    retired_.Retire(unit.rows, [this, first = unit.first_row, count = unit.rows] { pool_.Free(first, count); });
    unit = UnwindUnit();
    metrics_.units_evicted.Add();
  }
  return evicted > 0;
}

// Finds the units that walks have used since the last call.
void UnwindTables::Impl::Age() {
  aged_at_ = clock_.Monotonic();
  registry_.ForEach([&](uint32_t number, UnwindTable& table) {
    for (uint32_t i = 0; i < table.units.size(); ++i) {
      if (table.units[i].rows == 0) continue;
      bool used = false;
      for (uint64_t& touch : TouchesOf({number, i})) {
        if (std::atomic_ref(touch).load(std::memory_order_relaxed) == 0) continue;
        std::atomic_ref(touch).store(0, std::memory_order_relaxed);
        used = true;
      }
      if (used) table.units[i].touched = table.last_used = static_cast<uint64_t>(aged_at_.value);
    }
  });
}

void UnwindTables::Impl::DropTable(uint32_t number, UnwindTable& table) {
  for (uint32_t i = 0; i < table.units.size(); ++i) {
    if (table.units[i].state == UnwindUnit::State::kAbsent) continue;
    Withdraw({number, i});
    if (table.units[i].rows == 0) continue;
    pool_.Free(table.units[i].first_row, table.units[i].rows);
    metrics_.units_evicted.Add();
  }
  std::erase_if(failed_, [&](const Failed& failed) { return failed.ref.table == number; });
}

void UnwindTables::Impl::SetGauges() {
  metrics_.rows.Set(static_cast<int64_t>(pool_.rows_in_use()));
  metrics_.rules.Set(rules_.size());
  metrics_.chunk_bytes.Set(static_cast<int64_t>(memory_bytes()));
}

// ---- UnwindTables

UnwindTables::UnwindTables(UnwindMaps& maps, Executor& executor, const Clock& clock, Metrics& metrics, Options options,
                           std::shared_ptr<UnwindCompiler> compiler) {
  if (compiler == nullptr) compiler = UnwindCompiler::InProcess(options.proc_root);
  impl_ = std::make_unique<Impl>(maps, executor, clock, metrics, std::move(options), std::move(compiler));
}
UnwindTables::~UnwindTables() = default;

std::optional<uint32_t> UnwindTables::FirstPage(const CodeFilePtr& executable) {
  const UnwindTable* table = impl_->FindOrAdd(executable);
  return table != nullptr ? std::optional(table->first_page()) : std::nullopt;
}

std::optional<UnwindTables::Reserved> UnwindTables::Reserve(const CodeFilePtr& executable) {
  UnwindTable* table = impl_->FindOrAdd(executable);
  if (table == nullptr) return std::nullopt;
  ++table->references;
  return Reserved{executable->unwind_table, table->first_page(), table->text};
}

void UnwindTables::Release(uint32_t number) {
  UnwindTable* table = impl_->Get(number);
  TRIBUTARY_CHECK(table != nullptr && table->references > 0);
  --table->references;
  impl_->Touch(*table);
}

std::optional<uint64_t> UnwindTables::Find(const CodeFile& executable, uint64_t address) {
  return impl_->Find(executable, address);
}
void UnwindTables::Request(const CodeFilePtr& executable, uint64_t address) { impl_->Request(executable, address); }
bool UnwindTables::IsStart(const CodeFile& executable, uint64_t address) const {
  return impl_->IsStart(executable, address);
}
void UnwindTables::Tick() { impl_->Tick(); }
uint64_t UnwindTables::publications() const { return impl_->publications(); }
bool UnwindTables::idle() const { return impl_->idle(); }
uint64_t UnwindTables::memory_bytes() const { return impl_->memory_bytes(); }

}  // namespace tributary
