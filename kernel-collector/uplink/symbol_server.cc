#include "kernel-collector/uplink/symbol_server.h"

#include <algorithm>
#include <vector>

#include "base/heap.h"
#include "base/status.h"
#include "kernel-collector/processes/code_file_reader.h"
#include "kernel-collector/processes/proc_files.h"
#include "symbols/elf_symbols.h"
#include "symbols/symbol_codec.h"

namespace tributary {
namespace {

constexpr size_t kKallsymsBytesMax = 256u << 20;

absl::StatusOr<std::shared_ptr<const SymbolTable>> ReadKernel(const std::string& proc_root, const KernelLayout& kernel,
                                                              const ExecutableId& id) {
  ASSIGN_OR_RETURN(std::string text, ReadSmallFile(proc_root + "/kallsyms", kKallsymsBytesMax));
  if (id == kernel.id) {
    ASSIGN_OR_RETURN(ParsedKallsyms parsed, ParseKallsyms(text, id));
    return parsed.table;
  }
  for (const KernelModule& module : kernel.modules) {
    if (module.id == id) return ParseModuleSymbols(text, module.name, module.base, module.size, id);
  }
  return Error(absl::StatusCode::kNotFound, "the module is gone");
}

bool IsKernel(const KernelLayout& kernel, const ExecutableId& id) {
  return id == kernel.id || std::any_of(kernel.modules.begin(), kernel.modules.end(),
                                        [&](const KernelModule& module) { return module.id == id; });
}

}  // namespace

struct SymbolServer::Reading {
  ExecutableId id;
  std::string proc_root;
  std::shared_ptr<const KernelLayout> kernel;
  std::string_view vdso_bytes;  // not "": it is the vdso that is asked for
  std::vector<FileLocation> locations;

  absl::StatusOr<PackedTable> packed = PackedTable();
};

SymbolServer::SymbolServer(std::string proc_root, const CodeFileTable& executables, Executor& executor,
                           const Clock& clock, Metrics& metrics, Callbacks callbacks)
    : proc_root_(std::move(proc_root)),
      executables_(executables),
      executor_(executor),
      clock_(clock),
      callbacks_(std::move(callbacks)),
      refused_(metrics.AddCounter("tributary_collector_symbol_requests_refused_total",
                                  "requests for symbols over a limit: too many waiting, or the same again")),
      sent_(metrics.AddCounter("tributary_collector_symbol_tables_sent_total", "symbol tables handed to the uplink")),
      sent_bytes_(metrics.AddCounter("tributary_collector_symbol_table_bytes_total",
                                     "size of the symbol tables handed to the uplink")),
      unavailable_(metrics.AddCounter("tributary_collector_symbol_tables_unavailable_total",
                                      "requests answered with a reason why there is no table")) {}

void SymbolServer::SetVdso(const ExecutableId& id, std::string_view bytes) {
  vdso_id_ = id;
  vdso_bytes_ = bytes;
}

void SymbolServer::Request(const ExecutableId& id) {
  if (!id.known() || std::find(pending_.begin(), pending_.end(), id) != pending_.end()) return;
  auto it = answered_.find(id);
  bool too_soon = it != answered_.end() &&
                  (it->second.times >= kAnswersMax || clock_.Monotonic().value - it->second.at.value < kAgainNs);
  if (too_soon || pending_.size() >= kPendingMax || (it == answered_.end() && answered_.size() >= kAnsweredMax)) {
    refused_.Add();
    return;
  }
  pending_.push_back(id);
  Tick();
}

void SymbolServer::Tick() {
  if (reading_ || pending_.empty() || clock_.Monotonic() < not_before_) return;
  auto reading = std::make_shared<Reading>();
  reading->id = pending_.front();
  reading->proc_root = proc_root_;
  reading->kernel = kernel_;
  if (vdso_id_.known() && reading->id == vdso_id_) reading->vdso_bytes = vdso_bytes_;
  reading->locations = executables_.LocationsOf(reading->id);
  std::weak_ptr<bool> alive = alive_;
  reading_ = executor_.Submit([reading] { Read(*reading); },
                              [this, reading, alive] {
                                if (!alive.expired()) Finish(*reading);
                              });
  if (reading_) pending_.pop_front();
}

void SymbolServer::Read(Reading& reading) {
  ReadTable(reading);
  // A table of the kernel or of a browser takes tens of MB while it is made.
  TrimHeap();
}

void SymbolServer::ReadTable(Reading& reading) {
  absl::StatusOr<std::shared_ptr<const SymbolTable>> table = nullptr;
  if (IsKernel(*reading.kernel, reading.id)) {
    table = ReadKernel(reading.proc_root, *reading.kernel, reading.id);
  } else if (!reading.vdso_bytes.empty()) {
    auto file = ElfFile::FromMemory(reading.vdso_bytes);
    table = file.ok() ? ReadElfSymbols(**file, reading.id)
                      : absl::StatusOr<std::shared_ptr<const SymbolTable>>(file.status());
  } else {
    auto opened = OpenIdentified(reading.proc_root, reading.id, reading.locations);
    table = opened.ok() ? ReadElfSymbols(**opened, reading.id)
                        : absl::StatusOr<std::shared_ptr<const SymbolTable>>(opened.status());
  }
  if (!table.ok()) {
    reading.packed = table.status();
  } else {
    reading.packed = PackedTable::Of(EncodeSymbolTable(**table));
  }
}

void SymbolServer::Finish(Reading& reading) {
  reading_ = false;
  MonotonicNs now = clock_.Monotonic();
  Answered& answered = answered_[reading.id];
  answered.at = now;
  ++answered.times;
  if (reading.packed.ok()) {
    sent_.Add();
    sent_bytes_.Add(reading.packed->raw_bytes);
    not_before_.value = now.value + static_cast<int64_t>(reading.packed->raw_bytes) * kNsPerSecond / kBytesPerSecond;
    callbacks_.send(reading.id, *std::move(reading.packed));
  } else {
    unavailable_.Add();
    callbacks_.send_none(reading.id, Message(reading.packed.status()));
  }
  Tick();
}

}  // namespace tributary
