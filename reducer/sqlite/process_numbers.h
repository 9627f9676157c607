#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "reducer/sqlite/sqlite.h"
#include "reducer/store/store_times.h"

namespace tributary::store {

enum class NumberKind : uint8_t { kProcess, kThread };
inline constexpr size_t kNumberKinds = 2;

// Gives numbers to the processes and threads of a shard, in order. They have 32 bits. After number 2^32 - 1 comes
// number 1, so a number is given again at some time. Then no stored data may refer to it, and no session may have it in
// memory. Otherwise samples would be shown under another process.
//
// For each day with data, the object knows the oldest number that data of this day may refer to. Only the numbers
// before the oldest one of all days are given again. If retention has removed all data of a day, Release frees its
// numbers. A session must not use a number of a process for long, because the process may run for months, and no number
// after its number would be free. So sessions forget a number that is older than `age_max` numbers.
//
// Use it on the writer's thread.
class ProcessNumbers {
 public:
  // Numbers that a session may keep. Small enough that almost all numbers are left for the days of retention, and large
  // enough that a process seldom gets a new number.
  static constexpr uint32_t kAgeMax = 1u << 28;
  // If only so many numbers are left, they are for the common processes of nodes (DefinitionTables).
  static constexpr uint64_t kReserved = 1u << 20;

  // `database` must outlive the object.
  static absl::StatusOr<ProcessNumbers> Prepare(Database& database, uint32_t age_max);

  // Returns a new number, or 0 if no number is free.
  uint32_t New(NumberKind kind);
  // Returns false if only the reserved numbers are left.
  bool HasFree();
  // Records that data of the day refer to the number. Call it before the data are written, in their transaction.
  void Use(NumberKind kind, Day day, uint32_t no);

  // Returns true if sessions must forget their old numbers now. Call it once per transaction, before the first number.
  // A transaction gives far fewer than `age_max` numbers.
  bool TakeSweep();
  bool IsOld(NumberKind kind, uint32_t no) const { return Age(kind, no) > age_max_; }

  // Frees the numbers of days whose data were removed. Looks for them once per day, and if no number was free. Call it
  // in each transaction before data are written. If it returns a day, sessions must forget what they have stored in
  // earlier slots.
  absl::StatusOr<std::optional<Day>> Release(Day today);

  // Call Write within the transaction, and Rollback if the transaction was rolled back. Numbers that were given in the
  // transaction are not given again before all others.
  absl::Status Write();
  void Rollback();

 private:
  using Numbers = std::array<uint32_t, kNumberKinds>;  // 0: none
  struct DayRow {
    Numbers oldest{};
    bool changed = false;
  };

  static size_t Index(NumberKind kind) { return static_cast<size_t>(kind); }
  // Returns how many numbers before the next one the number was given: 1 to 2^32.
  uint64_t Age(NumberKind kind, uint32_t no) const {
    const uint32_t age = next_[Index(kind)] - no;
    return age != 0 ? age : uint64_t{1} << 32;
  }
  uint64_t Free(NumberKind kind) const;
  void UpdateOldest(NumberKind kind, uint32_t no, uint32_t* oldest) const {
    if (no != 0 && (*oldest == 0 || Age(kind, no) > Age(kind, *oldest))) *oldest = no;
  }
  void FindOldest();
  absl::StatusOr<int64_t> OldestDay();

  uint32_t age_max_ = kAgeMax;
  Statement put_day_, delete_days_, set_watermark_, oldest_day_;
  Numbers next_{1, 1};
  Numbers oldest_{};  // of all days
  Numbers swept_{1, 1};
  std::map<Day, DayRow> days_;
  Day released_on_{INT32_MIN};
  bool has_changed_days_ = false;
  bool is_starved_ = false;  // no number was free
};

// For Database::Migrate. Earlier releases did not record which numbers their data use. Protects all numbers up to the
// last one until all of these data are removed. If numbers have already started again at 1, also protects the numbers
// that are left from before.
absl::Status ProtectEarlierNumbers(Database& database);

}  // namespace tributary::store
