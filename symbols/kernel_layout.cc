#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>

#include "base/fd.h"
#include "base/status.h"
#include "symbols/kallsyms.h"
#include "symbols/kallsyms_lines.h"

namespace tributary {
namespace {

constexpr size_t kSmallFileBytesMax = 1 << 20;
constexpr size_t kChunkBytes = 256 << 10;
constexpr size_t kModulesMax = 4096;

// Calls `take` with pieces of the file until it returns false.
template <typename Take>
absl::Status ReadChunks(const std::string& path, Take take) {
  Fd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return ErrnoStatus("open", path, errno);
  std::string chunk(kChunkBytes, '\0');
  while (true) {
    ssize_t n = read(fd.get(), chunk.data(), chunk.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return ErrnoStatus("read", path, errno);
    if (n == 0 || !take(std::string_view(chunk).substr(0, static_cast<size_t>(n)))) return absl::OkStatus();
  }
}

absl::StatusOr<std::string> ReadSmallFile(const std::string& path) {
  std::string bytes;
  RETURN_IF_ERROR(ReadChunks(path, [&](std::string_view chunk) {
    bytes += chunk;
    return bytes.size() < kSmallFileBytesMax;
  }));
  return bytes;
}

// Looks for the two symbols line by line and stops once it has both; megabytes of text are never held.
absl::Status ReadTextBounds(const std::string& path, KernelLayout* layout) {
  std::string carry;  // the beginning of a line that the last chunk cut
  bool any_address = false;
  RETURN_IF_ERROR(ReadChunks(path, [&](std::string_view chunk) {
    carry += chunk;
    std::string_view text = carry, line;
    size_t whole = text.rfind('\n');
    if (whole == std::string_view::npos) return carry.size() < kChunkBytes;
    std::string_view lines = text.substr(0, whole);
    while (TakeLine(lines, &line)) {
      auto parsed = ParseKallsymsLine(line);
      if (!parsed || !parsed->module.empty()) continue;
      any_address |= parsed->address != 0;
      if (parsed->name == "_stext") layout->text_begin = parsed->address;
      if (parsed->name == "_etext") layout->text_end = parsed->address;
    }
    carry.erase(0, whole + 1);
    return layout->text_begin == 0 || layout->text_end == 0;
  }));
  if (!any_address) {
    return Error(
        absl::StatusCode::kPermissionDenied,
        fmt::format("{} shows no addresses: run as root with CAP_SYSLOG, or set kernel.kptr_restrict to 0 or 1", path));
  }
  if (layout->text_begin == 0 || layout->text_end <= layout->text_begin) {
    return Error(absl::StatusCode::kInvalidArgument, fmt::format("{}: no _stext and _etext", path));
  }
  return absl::OkStatus();
}

std::string_view TakeWord(std::string_view& line) {
  size_t end = line.find(' ');
  std::string_view word = line.substr(0, end);
  line.remove_prefix(end == std::string_view::npos ? line.size() : end + 1);
  return word;
}

uint64_t ParseNumber(std::string_view text, int base) {
  while (text.ends_with('\n')) text.remove_suffix(1);
  if (base == 16 && text.starts_with("0x")) text.remove_prefix(2);
  uint64_t value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  return error == std::errc() && end == text.data() + text.size() ? value : 0;
}

// "ext4 811008 1 - Live 0xffffffffc0456000" (kernel/module/procfs.c, m_show), then " (OE)" on tainted ones.
std::optional<KernelModule> ParseModule(std::string_view line, const std::string& sys_root) {
  KernelModule module;
  module.name = TakeWord(line);
  module.size = ParseNumber(TakeWord(line), 10);
  for (int skipped = 0; skipped < 3; ++skipped) TakeWord(line);
  uint64_t core = ParseNumber(TakeWord(line), 16);
  // A name is a file name below; nothing the kernel writes has a slash, whatever a module calls itself.
  if (module.name.empty() || module.name.find('/') != std::string::npos || module.name.starts_with('.')) {
    return std::nullopt;
  }
  if (core == 0 || module.size == 0) return std::nullopt;
  std::string directory = fmt::format("{}/module/{}", sys_root, module.name);
  module.base = core;
  if (auto text = ReadSmallFile(directory + "/sections/.text"); text.ok()) {
    uint64_t address = ParseNumber(*text, 16);
    if (address > core && address - core < module.size) {
      module.size -= address - core;
      module.base = address;
    }
  }
  if (auto notes = ReadSmallFile(directory + "/notes/.note.gnu.build-id"); notes.ok()) {
    if (auto id = BuildIdFromNotes(*notes); id.ok()) module.id = *id;
  }
  return module;
}

}  // namespace

absl::StatusOr<KernelLayout> ReadKernelLayout(const std::string& proc_root, const std::string& sys_root) {
  KernelLayout layout;
  std::string notes_path = sys_root + "/kernel/notes";
  ASSIGN_OR_RETURN(std::string notes, ReadSmallFile(notes_path));
  auto id = BuildIdFromNotes(notes);
  if (!id.ok()) return WithContext(id.status(), notes_path);
  layout.id = *id;
  RETURN_IF_ERROR(ReadTextBounds(proc_root + "/kallsyms", &layout));

  auto modules = ReadSmallFile(proc_root + "/modules");
  if (!modules.ok()) return layout;  // a kernel built without modules has no such file
  std::string_view text = *modules, line;
  while (layout.modules.size() < kModulesMax && TakeLine(text, &line)) {
    if (auto module = ParseModule(line, sys_root)) layout.modules.push_back(*std::move(module));
  }
  std::sort(layout.modules.begin(), layout.modules.end(),
            [](const KernelModule& a, const KernelModule& b) { return a.base < b.base; });
  // Since Linux 6.4 a module's size counts data that lies elsewhere: it must not reach into the next one's code.
  for (size_t i = 0; i + 1 < layout.modules.size(); ++i) {
    KernelModule& module = layout.modules[i];
    module.size = std::min(module.size, layout.modules[i + 1].base - module.base);
  }
  return layout;
}

}  // namespace tributary
