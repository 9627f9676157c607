#include "kernel-collector/uplink/symbol_server.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <vector>

#include "base/log.h"
#include "base/memory_file.h"
#include "base/status.h"
#include "kernel-collector/processes/code_file_reader.h"
#include "kernel-collector/processes/proc_files.h"
#include "symbols/symbol_builder.h"
#include "symbols/symbol_codec.h"

namespace tributary {
namespace {

// Kallsyms is opened in this process: the addresses that it shows depend on the process that opened it.
absl::StatusOr<Fd> OpenKallsyms(const std::string& proc_root, const KernelLayout& kernel, const ExecutableId& id,
                                SymbolMakerRequest* request) {
  request->kind = SymbolMakerRequest::kKernel;
  if (id != kernel.id) {
    auto module = std::find_if(kernel.modules.begin(), kernel.modules.end(),
                               [&](const KernelModule& each) { return each.id == id; });
    request->kind = SymbolMakerRequest::kModule;
    request->module_base = module->base;
    request->module_size = module->size;
    module->name.copy(request->module_name, SymbolMakerRequest::kModuleNameMax - 1);
  }
  return OpenRegularFile(proc_root + "/kallsyms");
}

absl::StatusOr<Fd> InMemory(std::string_view bytes) {
  ASSIGN_OR_RETURN(MemoryFile file, MemoryFile::Create("vdso"));
  RETURN_IF_ERROR(file.Append(bytes));
  return std::move(file).TakeDescriptor();
}

absl::StatusOr<Fd> OpenExecutable(const std::string& proc_root, const ExecutableId& id,
                                  const std::vector<FileLocation>& locations) {
  ASSIGN_OR_RETURN(const std::unique_ptr<ElfFile> file, OpenIdentified(proc_root, id, locations));
  Fd fd(fcntl(file->descriptor(), F_DUPFD_CLOEXEC, 0));
  if (!fd.valid()) return ErrnoStatus("dup", "executable", errno);
  return fd;
}

// More than the size of any code with one name. The component that assigns addresses to the code knows the code's end.
constexpr uint64_t kFunctionBytes = uint64_t{1} << 30;

PackedTable TableOf(const ExecutableId& id, std::string_view function) {
  const auto table = BuildSymbolTable(id, SymbolSource::kKallsyms, {{.size = kFunctionBytes, .name = function}});
  return PackedTable::Of(EncodeSymbolTable(*table));
}

bool IsKernel(const KernelLayout& kernel, const ExecutableId& id) {
  return id == kernel.id || std::any_of(kernel.modules.begin(), kernel.modules.end(),
                                        [&](const KernelModule& module) { return module.id == id; });
}

}  // namespace

struct SymbolServer::Reading {
  ExecutableId id;
  Options options;
  std::shared_ptr<const KernelLayout> kernel;
  std::string_view vdso_bytes;  // not "": the request is for the vdso
  std::string only_function;    // not "": the request is for code with only this function
  bool digest_only = false;
  std::vector<FileLocation> locations;
  std::shared_ptr<SymbolMaker> maker;

  absl::StatusOr<PackedTable> packed = absl::UnknownError("not read");
  absl::Status without_debug_information;  // why the table was made from symbols only
};

SymbolServer::SymbolServer(Options options, Parts parts, const Clock& clock, Metrics& metrics, Callbacks callbacks)
    : options_(std::move(options)),
      executables_(parts.executables),
      maker_(std::move(parts.maker)),
      executor_(parts.executor),
      clock_(clock),
      callbacks_(std::move(callbacks)),
      refused_(metrics.AddCounter("tributary_collector_symbol_requests_refused_total",
                                  "Requests for symbol tables that were refused, because too many were waiting, the "
                                  "same table was requested too often, or too many tables were requested")),
      sent_(metrics.AddCounter("tributary_collector_symbol_tables_sent_total",
                               "Symbol tables that were made and queued for sending")),
      sent_bytes_(metrics.AddCounter("tributary_collector_symbol_table_bytes_total",
                                     "Uncompressed bytes of the symbol tables that were made and queued for sending")),
      digests_(metrics.AddCounter("tributary_collector_symbol_digests_sent_total",
                                  "Requests for the digest of a symbol table that were answered with the digest")),
      unavailable_(metrics.AddCounter(
          "tributary_collector_symbol_tables_unavailable_total",
          "Requests for symbol tables that the collector answered with the reason why it has no table")) {}

void SymbolServer::SetVdso(const ExecutableId& id, std::string_view bytes) {
  vdso_id_ = id;
  vdso_bytes_ = bytes;
}

void SymbolServer::RequestDigest(const ExecutableId& id) {
  const auto it = answered_.find(id);
  if (it == answered_.end() || !it->second.made || it->second.times >= options_.answers_max) return Enqueue(id, true);
  ++it->second.times;
  digests_.Add();
  callbacks_.send_digest(id, it->second.digest);
}

void SymbolServer::Enqueue(const ExecutableId& id, bool digest_only) {
  const auto waits = [&](const Pending& pending) { return pending.id == id && pending.digest_only == digest_only; };
  if (!id.known() || std::any_of(pending_.begin(), pending_.end(), waits)) return;
  auto it = answered_.find(id);
  const bool over = !options_.for_this_node && (it == answered_.end() ? answered_.size() >= options_.answered_max
                                                                      : it->second.times >= options_.answers_max);
  if (over || pending_.size() >= kPendingMax) return Refuse(id);
  MonotonicNs not_before;
  if (it != answered_.end()) not_before.value = it->second.at.value + kAgainNs;
  pending_.push_back({id, not_before, digest_only});
  Tick();
}

// A reducer gets no answer. It could take a refusal for the answer that there is no table, and not ask other nodes.
void SymbolServer::Refuse(const ExecutableId& id) {
  refused_.Add();
  if (options_.for_this_node) {
    callbacks_.send_none(id, Error(absl::StatusCode::kResourceExhausted, "too many symbol tables are being made"));
  }
}

SymbolServer::Answered& SymbolServer::AnsweredOf(const ExecutableId& id) {
  if (const auto it = answered_.find(id); it != answered_.end()) return it->second;
  if (options_.for_this_node && answered_.size() >= options_.answered_max) {
    answered_.erase(answered_order_.front());
    answered_order_.pop_front();
  }
  answered_order_.push_back(id);
  return answered_[id];
}

void SymbolServer::Tick() {
  const MonotonicNs now = clock_.Monotonic();
  if (busy_) return;
  const auto next =
      std::find_if(pending_.begin(), pending_.end(), [now](const Pending& p) { return !(now < p.not_before); });
  if (next == pending_.end()) return StopIdleMaker();
  if (now < not_before_) return;
  auto reading = std::make_shared<Reading>();
  reading->id = next->id;
  reading->digest_only = next->digest_only;
  reading->options = options_;
  reading->kernel = kernel_;
  if (vdso_id_.known() && reading->id == vdso_id_) reading->vdso_bytes = vdso_bytes_;
  reading->only_function = callbacks_.only_function(reading->id);
  reading->locations = executables_.LocationsOf(reading->id);
  reading->maker = maker_;
  busy_ = executor_.Submit([reading] { reading->packed = Read(*reading); },
                           scope_.Wrap([this, reading] { Finish(*reading); }));
  if (busy_) pending_.erase(next);
}

void SymbolServer::StopIdleMaker() {
  if (!maker_->running() || clock_.Monotonic().value - last_made_.value < kMakerIdleNs) return;
  busy_ = executor_.Submit([maker = maker_] { maker->Stop(); }, scope_.Wrap([this] { busy_ = false; }));
}

absl::StatusOr<PackedTable> SymbolServer::Read(Reading& reading) {
  if (!reading.only_function.empty()) return TableOf(reading.id, reading.only_function);
  SymbolMakerRequest request{.flat = reading.options.for_this_node, .id = reading.id};
  const std::string& proc_root = reading.options.proc_root;
  absl::StatusOr<Fd> file = IsKernel(*reading.kernel, reading.id)
                                ? OpenKallsyms(proc_root, *reading.kernel, reading.id, &request)
                            : !reading.vdso_bytes.empty() ? InMemory(reading.vdso_bytes)
                                                          : OpenExecutable(proc_root, reading.id, reading.locations);
  if (!file.ok()) return file.status();
  request.debug_information = reading.options.debug_information && request.kind == SymbolMakerRequest::kElf;
  absl::StatusOr<PackedTable> made = reading.maker->Make(request, *file);
  if (made.ok() || request.debug_information == 0) return made;
  // The debug information is too large or unreadable. The file's symbols are better than no table.
  reading.without_debug_information = made.status();
  request.debug_information = 0;
  return reading.maker->Make(request, *file);
}

void SymbolServer::Finish(Reading& reading) {
  busy_ = false;
  MonotonicNs now = clock_.Monotonic();
  last_made_ = now;
  Answered& answered = AnsweredOf(reading.id);
  answered.at = now;
  ++answered.times;
  if (reading.packed.ok() && !reading.without_debug_information.ok()) {
    LogWarning("symbol table made without debug information build_id={} cause=\"{}\"", reading.id.ToString(),
               Message(reading.without_debug_information));
  }
  if (reading.packed.ok()) {
    answered.made = true;
    answered.digest = reading.packed->digest();
    // A digest has few bytes, but its table takes as much CPU time to make.
    not_before_.value =
        now.value + static_cast<int64_t>(reading.packed->stored_bytes()) * kNsPerSecond / options_.bytes_per_second;
  }
  Send(reading);
  Tick();
}

void SymbolServer::Send(Reading& reading) {
  if (!reading.packed.ok()) {
    unavailable_.Add();
    if (reading.digest_only) return callbacks_.send_digest(reading.id, reading.packed.status());
    return callbacks_.send_none(reading.id, reading.packed.status());
  }
  if (reading.digest_only) {
    digests_.Add();
    return callbacks_.send_digest(reading.id, reading.packed->digest());
  }
  sent_.Add();
  sent_bytes_.Add(reading.packed->raw_bytes());
  callbacks_.send(reading.id, *std::move(reading.packed));
}

}  // namespace tributary
