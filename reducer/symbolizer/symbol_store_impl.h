#pragma once

#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "reducer/symbolizer/symbol_store.h"
#include "reducer/symbolizer/table_eviction.h"

namespace tributary {

// The state of a SymbolStore, for symbol_store.cc (tables), symbol_store_space.cc (the directory and its limits) and
// symbol_store_digests.cc (the digests of other nodes' tables).
//
// Two locks. If both are taken, `write_mutex` comes first (slow: for changes of the directory), then `mutex` (short:
// for the state in memory).
struct SymbolStore::Impl {
  struct Mapped {
    ExecutableId id;
    uint64_t checksum = 0;
    std::shared_ptr<const SymbolTable> table;
    UnixNs touched;
  };

  Impl(Options o, const Clock& c, Metrics& m, SymbolFiles f)
      : options(std::move(o)),
        clock(c),
        files(std::move(f)),
        demand(options.demand, c, m),
        votes(options.votes, c),
        uploads_stored(Uploads(m, "stored")),
        uploads_kept_better(Uploads(m, "kept_better")),
        uploads_contested(Uploads(m, "contested")),
        uploads_refused(Uploads(m, "refused")),
        uploads_no_room(Uploads(m, "no_room")),
        uploads_unavailable(Uploads(m, "unavailable")),
        digests_asked(Digests(m, "asked")),
        digests_agreed(Digests(m, "agreed")),
        digests_conflict(Digests(m, "conflict")),
        digests_no_verdict(Digests(m, "no_verdict")),
        digests_unavailable(Digests(m, "unavailable")),
        digests_deferred(Digests(m, "deferred")),
        evicted_flat(Evictions(m, "flat")),
        evicted_disk(Evictions(m, "disk")),
        unreadable(m.AddCounter("tributary_symbolizer_unreadable_tables_total",
                                "Stored symbol tables that were damaged and deleted; they are requested again.")),
        tables(m.AddGauge("tributary_symbolizer_tables", "Symbol tables on disk.")),
        stored_bytes(m.AddGauge(
            "tributary_symbolizer_stored_bytes",
            "Bytes of the symbol tables on disk, without the uncompressed copies (mapped forms) that queries read.")),
        flat_bytes(m.AddGauge(
            "tributary_symbolizer_flat_bytes",
            "Bytes of the uncompressed copies of symbol tables (mapped forms) on disk, which queries read.")) {}

  static Counter& Uploads(Metrics& m, std::string_view result) {
    return m.AddCounter(
        "tributary_symbolizer_uploads_total",
        "Symbol tables that the reducer received or made, and answers that a node has no table, by result.",
        {{"result", std::string(result)}});
  }
  static Counter& Digests(Metrics& m, std::string_view result) {
    return m.AddCounter("tributary_symbolizer_digests_total",
                        "Requests to nodes for the digest of their symbol table, and their answers, by result.",
                        {{"result", std::string(result)}});
  }
  static Counter& Evictions(Metrics& m, std::string_view from) {
    return m.AddCounter("tributary_symbolizer_evictions_total",
                        "Files that were removed because of --symbols-max-bytes; from: disk (symbol tables, the least "
                        "trusted first) or flat (their uncompressed copies, the least recently used first).",
                        {{"from", std::string(from)}});
  }

  absl::StatusOr<std::shared_ptr<const SymbolTable>> Load(const SymbolFiles::Row& row);
  void Forget(const SymbolFiles::Row& row, const absl::Status& why);
  void DeleteAbandoned(const std::vector<std::string>& paths);
  void Unmap(const ExecutableId& id);
  bool Contest(const SymbolFiles::Row& before, const SymbolTable& existing, const SymbolTable& table, bool replaces);
  static bool Confirm(SymbolFiles::Row& row, const SymbolSender& by);
  absl::Status Count(SymbolFiles::Row row, const SymbolSender& by, const SymbolDigest& digest);
  absl::Status Dispute(SymbolFiles::Row& row, const SymbolSender& by, const SymbolVotes::Outcome& outcome);
  SymbolOrigin TakeMajority(const SymbolSender& sender, const SymbolDigest& digest, TableFile& header);
  static std::string Outvoting(const std::string& notes, const TableNotes& outvoted);
  absl::StatusOr<SymbolDigest> DigestOfStored(SymbolFiles::Row& row) const;
  absl::Status Annotate(SymbolFiles::Row& row);
  absl::StatusOr<SymbolFiles::Contents> Scan();
  absl::Status Rescan();
  absl::StatusOr<std::shared_ptr<const SymbolTable>> Check(const ExecutableId& id, std::string_view encoded);
  absl::Status KeepStored(const SymbolFiles::Row& before, bool same, const SymbolSender& sender, Kept& kept);
  bool Evict(const std::vector<SymbolFiles::Row>& stored, const NewTable* fresh);
  absl::Status KeepLimits();
  absl::Status MakeRoom(const NewTable& fresh, const SymbolSender& sender);
  absl::Status Write(const TableFile& header, const SymbolTable& table, std::string_view encoded,
                     const SymbolSender& sender, SymbolFiles::Row& row);
  absl::Status AddWritten(const SymbolFiles::Row& row, uint64_t flat);
  void ShowSizes();

  const Options options;
  const Clock& clock;
  const SymbolFiles files;
  SymbolDemand demand;
  SymbolVotes votes;

  std::mutex write_mutex;
  uint64_t tables_on_disk = 0, flats_on_disk = 0;  // as of the last scan, with later additions
  LogLimit undeleted_log{600 * kNsPerSecond};

  std::mutex mutex;
  std::list<Mapped> recent;  // most recently used first
  absl::flat_hash_map<ExecutableId, std::list<Mapped>::iterator> mapped;
  std::vector<SymbolFiles::Row> rows;  // of the last scan of the whole directory
  MonotonicNs scanned{-1};

  Counter &uploads_stored, &uploads_kept_better, &uploads_contested, &uploads_refused, &uploads_no_room,
      &uploads_unavailable;
  Counter &digests_asked, &digests_agreed, &digests_conflict, &digests_no_verdict, &digests_unavailable,
      &digests_deferred;
  Counter &evicted_flat, &evicted_disk, &unreadable;
  Gauge &tables, &stored_bytes, &flat_bytes;
};

}  // namespace tributary
