#include "kernel-collector/processes/code_file_reader.h"

#include <fmt/format.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <cerrno>

#include "base/status.h"
#include "kernel-collector/processes/maps_parser.h"
#include "kernel-collector/processes/proc_files.h"

namespace tributary {
namespace {

absl::Status Mismatch(const std::string& path) {
  return Error(absl::StatusCode::kNotFound, fmt::format("open {}: the file has been replaced", path));
}

absl::StatusOr<OpenedFile> Identify(absl::StatusOr<Fd> fd) {
  if (!fd.ok()) return fd.status();
  OpenedFile opened;
  ASSIGN_OR_RETURN(opened.file, ElfFile::Open(*std::move(fd)));
  ASSIGN_OR_RETURN(opened.id, opened.file->Identity());
  return opened;
}

// `by_path`: the file was reached by name, so the device is compared as well. A mapping's own link needs no such check.
// On overlay and btrfs file systems, stat's device also differs from the device that mappings show.
absl::StatusOr<OpenedFile> Check(absl::StatusOr<Fd> fd, const std::string& path, const FileKey& key, bool by_path) {
  if (!fd.ok()) return fd.status();
  if (!key.build_id.known()) {
    struct stat st{};
    if (fstat(fd->get(), &st) != 0) return ErrnoStatus("stat", path, errno);
    if (st.st_ino != key.inode) return Mismatch(path);
    if (by_path && (major(st.st_dev) != key.device_major || minor(st.st_dev) != key.device_minor)) {
      return Mismatch(path);
    }
  }
  auto opened = Identify(std::move(fd));
  if (opened.ok() && key.build_id.known() && opened->id != key.build_id) return Mismatch(path);
  return opened;
}

// Tries every place in turn, the newest first: the mapping, then the path in the process's root, in the host's root and
// in our own root. `check` decides whether the opened file is accepted.
template <typename CheckOpened>
absl::StatusOr<OpenedFile> Try(const std::string& proc_root, const std::vector<FileLocation>& locations,
                               CheckOpened&& check) {
  absl::Status last = Error(absl::StatusCode::kNotFound, "open: no running process is known that has mapped the file");
  for (auto location = locations.rbegin(); location != locations.rend(); ++location) {
    std::string process = fmt::format("{}/{}", proc_root, location->pid.value);
    std::string link = fmt::format("{}/map_files/{:x}-{:x}", process, location->start, location->end);
    auto opened = check(OpenRegularFile(link), link, /*by_path=*/false);
    if (opened.ok()) return opened;
    last = opened.status();
    if (!location->path.starts_with('/')) continue;
    for (const std::string& root : {process + "/root", proc_root + "/1/root", std::string("/")}) {
      opened = check(OpenRegularFileIn(root, location->path), location->path, /*by_path=*/true);
      if (opened.ok()) return opened;
      last = opened.status();
    }
  }
  return Error(absl::StatusCode::kNotFound, Message(last));
}

}  // namespace

absl::StatusOr<OpenedFile> OpenCodeFile(const std::string& proc_root, const FileKey& key,
                                        const std::vector<FileLocation>& locations) {
  return Try(proc_root, locations, [&](absl::StatusOr<Fd> fd, const std::string& path, bool by_path) {
    return Check(std::move(fd), path, key, by_path);
  });
}

absl::StatusOr<std::unique_ptr<ElfFile>> OpenIdentified(const std::string& proc_root, const ExecutableId& id,
                                                        const std::vector<FileLocation>& locations) {
  auto opened = Try(proc_root, locations, [&](absl::StatusOr<Fd> fd, const std::string& path, bool) {
    auto identified = Identify(std::move(fd));
    if (identified.ok() && identified->id != id) return absl::StatusOr<OpenedFile>(Mismatch(path));
    return identified;
  });
  if (!opened.ok()) return opened.status();
  return std::move(opened->file);
}

absl::StatusOr<OwnVdso> ReadOwnVdso() {
  uint64_t start = getauxval(AT_SYSINFO_EHDR);
  if (start == 0) return Error(absl::StatusCode::kNotFound, "vdso: this kernel provides no vdso");
  ASSIGN_OR_RETURN(std::string maps, ReadSmallFile("/proc/self/maps", 16u << 20));
  OwnVdso vdso;
  ParseMaps(maps, [&](const MapsEntry& entry) {
    if (entry.start == start) vdso.bytes = {reinterpret_cast<const char*>(start), entry.end - entry.start};
  });
  if (vdso.bytes.empty()) return Error(absl::StatusCode::kNotFound, "vdso: not in /proc/self/maps");
  ASSIGN_OR_RETURN(std::unique_ptr<ElfFile> file, ElfFile::FromMemory(vdso.bytes));
  ASSIGN_OR_RETURN(vdso.id, file->Identity());
  vdso.segments = file->segments();
  return vdso;
}

}  // namespace tributary
