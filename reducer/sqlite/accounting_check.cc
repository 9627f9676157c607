#include "reducer/sqlite/accounting_check.h"

#include <fmt/format.h>

#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "base/status.h"
#include "reducer/sqlite/node_ledger.h"
#include "reducer/sqlite/shard_check.h"
#include "reducer/store/store_times.h"

namespace tributary::store {
namespace {

constexpr int64_t kDayEnd = 100'000;  // in the year 2243
constexpr std::string_view kAdvice = "nothing: only limits and the order of expiry depend on this number";

class AccountingCheck {
 public:
  AccountingCheck(Database& database, const absl::flat_hash_set<int64_t>& machines,
                  const std::map<Day, uint64_t>& nodes_of, const FindingVisitor& visit)
      : database_(database), machines_(machines), nodes_of_(nodes_of), visit_(visit) {}

  absl::Status Run() {
    RETURN_IF_ERROR(SumUp("sample_chunk", fmt::format("minute / {}", kMinutesPerDay)));
    RETURN_IF_ERROR(SumUp("minute_sum", fmt::format("minute / {}", kMinutesPerDay)));
    RETURN_IF_ERROR(SumUp("event_chunk", fmt::format("slot / {}", kSlotsPerDay)));
    ASSIGN_OR_RETURN(earlier_release_to_,
                     database_.QueryInt("SELECT ifnull(max(day), -1) FROM node_day WHERE machine = 0"));
    RETURN_IF_ERROR(CheckDays());
    RETURN_IF_ERROR(CheckShares());
    for (const auto& [table, found] : found_) {
      if (found <= kFindingsOfTableMax) continue;
      visit_({Finding::Kind::kNote, database_.path(),
              fmt::format("{}: {} more findings are not listed", table, found - kFindingsOfTableMax), ""});
    }
    return absl::OkStatus();
  }

 private:
  using DayOfMachine = std::pair<int64_t, int64_t>;  // day, machine

  void Warn(std::string_view table, int64_t day, int64_t machine, std::string_view what) {
    if (++found_[std::string(table)] > kFindingsOfTableMax) return;
    visit_({.kind = Finding::Kind::kWarning,
            .file = database_.path(),
            .what = fmt::format("{} day {} machine {}: {}", table, day, machine, what),
            .advice = std::string(kAdvice)});
  }

  // Reads the size of each row's columns, but not the columns.
  absl::Status SumUp(std::string_view table, std::string_view day) {
    ASSIGN_OR_RETURN(Statement sums, database_.Prepare(fmt::format(
                                         "SELECT {}, machine, sum(length(columns) + {}) FROM {} GROUP BY 1, 2", day,
                                         NodeLedger::kRowBytes, table)));
    for (;;) {
      ASSIGN_OR_RETURN(const bool row, sums.Step());
      if (!row) return absl::OkStatus();
      data_bytes_[{sums.Int(0), sums.Int(1)}] += sums.Int(2);
    }
  }

  // Returns what is wrong with a row of any of the two tables, or "".
  std::string_view WhatIsWrong(int64_t day, int64_t machine) const {
    if (day < 0 || day >= kDayEnd) return "the day is impossible";
    if (machine != 0 && !machines_.contains(machine)) return "the machine does not exist";
    return "";
  }

  absl::Status CheckDays() {
    ASSIGN_OR_RETURN(Statement rows, database_.Prepare("SELECT day, machine, data_bytes, min(data_bytes, "
                                                       "definition_bytes, charged_bytes, received_bytes) FROM node_day "
                                                       "ORDER BY day, machine"));
    for (;;) {
      ASSIGN_OR_RETURN(const bool row, rows.Step());
      if (!row) return absl::OkStatus();
      const int64_t day = rows.Int(0), machine = rows.Int(1), recorded = rows.Int(2);
      if (const std::string_view wrong = WhatIsWrong(day, machine); !wrong.empty()) {
        Warn("node_day", day, machine, wrong);
        continue;
      }
      if (rows.Int(3) < 0) {
        Warn("node_day", day, machine, "a number is negative");
        continue;
      }
      const auto stored = data_bytes_.find({day, machine});
      const int64_t bytes = stored == data_bytes_.end() ? 0 : stored->second;
      if (recorded == bytes || (recorded < bytes && day <= earlier_release_to_)) continue;
      Warn("node_day", day, machine,
           fmt::format("{} bytes of samples, sums and events are recorded, but {} are stored", recorded, bytes));
    }
  }

  absl::Status CheckShares() {
    ASSIGN_OR_RETURN(Statement rows,
                     database_.Prepare("SELECT day, machine, nodes FROM trie_share ORDER BY day, machine"));
    std::map<int64_t, uint64_t> added;  // by day
    for (;;) {
      ASSIGN_OR_RETURN(const bool row, rows.Step());
      if (!row) break;
      const int64_t day = rows.Int(0), machine = rows.Int(1), nodes = rows.Int(2);
      if (const std::string_view wrong = WhatIsWrong(day, machine); !wrong.empty()) {
        Warn("trie_share", day, machine, wrong);
      } else if (nodes < 0 || nodes > INT64_C(0xffffffff)) {
        Warn("trie_share", day, machine, "the number of nodes is impossible");
      } else {
        added[day] += static_cast<uint64_t>(nodes);
      }
    }
    for (const auto& [day, nodes] : added) {
      const auto trie = nodes_of_.find(Day{static_cast<int32_t>(day)});
      const uint64_t stored = trie == nodes_of_.end() ? 0 : trie->second;
      if (nodes <= stored) continue;
      Warn("trie_share", day, 0,
           fmt::format("the machines have added {} nodes, but the trie has only {}", nodes, stored));
    }
    return absl::OkStatus();
  }

  Database& database_;
  const absl::flat_hash_set<int64_t>& machines_;
  const std::map<Day, uint64_t>& nodes_of_;
  const FindingVisitor& visit_;
  absl::flat_hash_map<DayOfMachine, int64_t> data_bytes_;
  int64_t earlier_release_to_ = -1;   // up to this day, data of an earlier release may be stored
  std::map<std::string, int> found_;  // by table
};

}  // namespace

absl::Status CheckAccounting(Database& database, const absl::flat_hash_set<int64_t>& machines,
                             const std::map<Day, uint64_t>& nodes_of, const FindingVisitor& visit) {
  const absl::Status status = AccountingCheck(database, machines, nodes_of, visit).Run();
  return absl::IsDataLoss(status) ? absl::OkStatus() : status;
}

}  // namespace tributary::store
