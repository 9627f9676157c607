#include "reducer/symbolizer/debug_file_finder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>

#include "base/hex.h"
#include "base/log.h"
#include "base/open_beneath.h"
#include "base/status.h"
#include "elf/elf_file.h"

namespace tributary {
namespace {

Fd OpenDirectory(const std::string& path) { return Fd(open(path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC)); }

// Opens a path that does not come from a node, so symbolic links may lead out of the directory: some distributions have
// only links in .build-id. Does not wait for the other end of a FIFO.
Fd OpenTrusted(int directory, const std::string& path) {
  return Fd(openat(directory, path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
}

std::string BuildIdPath(const ExecutableId& id) {
  const std::string hex = ToHex(id.bytes());
  return fmt::format(".build-id/{}/{}.debug", hex.substr(0, 2), hex.substr(2));
}

// "/usr/bin/program" → "usr/bin/program.debug", "program.debug", "program".
std::vector<std::string> PathsOf(std::string_view program) {
  std::vector<std::string> paths;
  const std::string base(program.substr(program.rfind('/') + 1));
  if (program.starts_with('/')) {
    program.remove_prefix(std::min(program.find_first_not_of('/'), program.size()));
    paths.push_back(fmt::format("{}.debug", program));
  }
  if (!base.empty()) {
    paths.push_back(base + ".debug");
    paths.push_back(base);
  }
  return paths;
}

bool IsThatOf(const Fd& file, const ExecutableId& id) {
  const auto elf = ElfFile::OpenCopy(file.get());
  if (!elf.ok()) return false;
  const auto own = (*elf)->Identity();
  return own.ok() && *own == id;
}

}  // namespace

DebugFileFinder::DebugFileFinder(Options options, SymbolStore& symbols, SymbolImporter& importer,
                                 SymbolNotices& notices, const Clock& clock, Metrics& metrics)
    : options_(std::move(options)),
      symbols_(symbols),
      importer_(importer),
      notices_(notices),
      clock_(clock),
      servers_(
          {.urls = options_.urls,
           .file_bytes_max = options_.file_bytes_max,
           .temporary_directory = options_.temporary_directory},
          [this] { return stopping_.load(); }, clock, metrics),
      found_(metrics.AddCounter(
          "tributary_symbolizer_debug_files_found_total",
          "Debug files that were found in debug directories or at debuginfod servers, and whose symbols were read.")) {
  const bool has_places = !options_.directories.empty() || servers_.enabled();
  if (has_places && options_.period_ms > 0) thread_ = std::thread([this] { Run(); });
}

void DebugFileFinder::Stop() {
  {
    std::lock_guard lock(wake_mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void DebugFileFinder::Run() {
  std::unique_lock lock(wake_mutex_);
  while (!stopping_) {
    lock.unlock();
    LookForAll();
    lock.lock();
    wake_.wait_for(lock, std::chrono::milliseconds(options_.period_ms), [this] { return stopping_.load(); });
  }
}

void DebugFileFinder::CheckDirectories() {
  for (const std::string& directory : options_.directories) {
    if (access(directory.c_str(), R_OK | X_OK) == 0) continue;
    notices_.Add({}, Message(ErrnoStatus("read --debug-dir", directory, errno)));
  }
}

void DebugFileFinder::LookForAll() {
  CheckDirectories();
  const auto executables = options_.executables();
  if (!executables.ok()) {
    LogDebug("cannot list executables: {}", Message(executables.status()));
    return;
  }
  for (const store::ExecutableRow& executable : *executables) {
    if (stopping_) return;
    if (executable.id.kind() != ExecutableIdKind::kGnuBuildId) continue;
    if (tried_.size() >= kRememberedMax && !tried_.contains(executable.id)) tried_.clear();
    LookFor(executable, tried_[executable.id]);
  }
}

void DebugFileFinder::LookFor(const store::ExecutableRow& executable, Tried& tried) {
  const MonotonicNs now = clock_.Monotonic();
  const bool directories = now >= tried.directories_at && !options_.directories.empty();
  const bool servers = now >= tried.servers_at && servers_.enabled();
  if (!directories && !servers) return;
  const auto known = symbols_.Find(executable.id);
  // Does not look for a table that would not be kept: one of a less trusted origin, or one that is no better.
  auto is_useful = [&](SymbolOrigin origin) {
    if (!known.ok()) return true;
    const SymbolSource source = known->header.source;
    const int rank = SymbolOriginRank(origin, SymbolSource::kDwarf);
    const int known_rank = SymbolOriginRank(known->origin(), source);
    return rank > known_rank || (rank == known_rank && source != SymbolSource::kDwarf);
  };
  tried.directories_at.value = now.value + options_.directory_retry_ns;
  if (directories && is_useful(SymbolOrigin::kDebugDirectory) && TryDirectories(executable)) return;
  if (servers && is_useful(SymbolOrigin::kDebuginfod)) TryServers(executable.id, tried);
}

bool DebugFileFinder::TryDirectories(const store::ExecutableRow& executable) {
  for (const std::string& directory : options_.directories) {
    if (TryFile(directory, BuildIdPath(executable.id), OpenTrusted, executable.id)) return true;
    for (const std::string& path : PathsOf(executable.path)) {
      if (TryFile(directory, path, OpenBeneath, executable.id)) return true;
    }
  }
  return false;
}

bool DebugFileFinder::TryFile(const std::string& directory, const std::string& path, Opener open_file,
                              const ExecutableId& id) {
  const Fd root = OpenDirectory(directory);
  if (!root.valid()) return false;  // CheckDirectories has reported it
  const Fd file = open_file(root.get(), path);
  const std::string name = fmt::format("{}/{}", directory, path);
  if (!file.valid()) {
    if (errno == EXDEV) {
      notices_.Add(id,
                   fmt::format("open {}: the path leads out of --debug-dir. An absolute symbolic link does so, even "
                               "if its target is in the directory: make the link relative",
                               name));
    } else if (errno == ELOOP) {
      notices_.Add(id, fmt::format("open {}: the path has a symbolic link. Before Linux 5.6, or under a seccomp filter "
                                   "without openat2, files of --debug-dir are not opened through links",
                                   name));
    } else if (errno != ENOENT && errno != ENOTDIR) {
      notices_.Add(id, Message(ErrnoStatus("open", name, errno)));
    }
    return false;
  }
  if (!IsThatOf(file, id)) return false;
  const Fd package = open_file(root.get(), path + ".dwp");
  const auto imported = importer_.Import({.fd = file.get(),
                                          .package = package.get(),
                                          .claimed = id,
                                          .origin = SymbolOrigin::kDebugDirectory,
                                          .name = name});
  if (imported.ok()) found_.Add();
  return imported.ok() && imported->kept.row.header.source == SymbolSource::kDwarf;
}

void DebugFileFinder::TryServers(const ExecutableId& id, Tried& tried) {
  absl::StatusOr<Fd> file;
  {
    std::lock_guard lock(servers_mutex_);
    file = servers_.FetchDebugFile(id);
  }
  const MonotonicNs now = clock_.Monotonic();
  tried.servers_at.value =
      now.value + (absl::IsUnavailable(file.status()) ? options_.failed_retry_ns : options_.missing_retry_ns);
  if (!file.ok()) {
    // The notice names no executable: a server that is down gives one notice, not one per executable.
    const bool down = absl::IsUnavailable(file.status());
    if (!stopping_ && !absl::IsNotFound(file.status())) {
      const bool large = absl::IsResourceExhausted(file.status());
      notices_.Add(down ? ExecutableId() : id,
                   fmt::format("debuginfod: {}{}", Message(file.status()), large ? " (--symbol-file-max-bytes)" : ""));
    }
    return;
  }
  const auto imported = importer_.Import(
      {.fd = file->get(), .claimed = id, .origin = SymbolOrigin::kDebuginfod, .name = "a file from debuginfod"});
  if (imported.ok()) found_.Add();
}

Fd DebugFileFinder::FindShared(const ExecutableId& build_id) {
  for (const std::string& directory : options_.directories) {
    const Fd root = OpenDirectory(directory);
    if (!root.valid()) continue;
    Fd file = OpenTrusted(root.get(), BuildIdPath(build_id));
    if (file.valid() && IsThatOf(file, build_id)) return file;
  }
  if (!servers_.enabled()) return Fd();
  std::lock_guard lock(servers_mutex_);
  absl::StatusOr<Fd> fetched = servers_.FetchDebugFile(build_id);
  return fetched.ok() ? *std::move(fetched) : Fd();
}

}  // namespace tributary
