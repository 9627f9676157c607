#include "symbols/kernel_layout.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/fd.h"
#include "base/number.h"
#include "base/status.h"
#include "base/trim.h"
#include "symbols/kallsyms.h"
#include "symbols/kallsyms_lines.h"

namespace tributary {
namespace {

constexpr size_t kSmallFileBytesMax = 1 << 20;
constexpr size_t kChunkBytes = 256 << 10;
constexpr size_t kModulesMax = 4096;
constexpr size_t kGeneratedMax = 16'384;

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

// Returns "bpf", "ftrace" or "kprobes" for "bpf", "__builtin__ftrace" or "__builtin__kprobes" (kernel/kallsyms.c,
// update_iter_mod). Returns "" for a module's name.
std::string_view GeneratorOf(std::string_view module) {
  constexpr std::string_view kBuiltin = "__builtin__";
  if (module == "bpf") return module;
  return module.starts_with(kBuiltin) ? module.substr(kBuiltin.size()) : std::string_view();
}

// Collects the results of one pass over kallsyms. Never holds megabytes of text.
class KallsymsScan {
 public:
  explicit KallsymsScan(KernelLayout* layout) : layout_(*layout) {}

  // Returns false if nothing more can be found.
  bool Take(std::string_view chunk) {
    carry_ += chunk;
    std::string_view text = carry_, line;
    const size_t whole = text.rfind('\n');
    if (whole == std::string_view::npos) return carry_.size() < kChunkBytes;
    std::string_view lines = text.substr(0, whole);
    while (TakeLine(lines, &line)) {
      if (auto parsed = ParseKallsymsLine(line); parsed && !TakeSymbol(*parsed)) return false;
    }
    carry_.erase(0, whole + 1);
    return true;
  }
  bool hidden() const { return hidden_; }

 private:
  bool TakeSymbol(const KallsymsLine& symbol) {
    if (!symbol.module.empty()) {
      const std::string_view owner = GeneratorOf(symbol.module);
      if (!owner.empty() && symbol.address != 0 && layout_.generated.size() < kGeneratedMax) {
        layout_.generated.push_back(
            {.begin = symbol.address, .owner = std::string(owner), .name = std::string(symbol.name)});
      }
      return true;
    }
    if (symbol.name == "_stext") {
      layout_.text_begin = symbol.address;
      hidden_ = symbol.address == 0;
    }
    if (symbol.name == "_etext") layout_.text_end = symbol.address;
    return !hidden_;
  }

  KernelLayout& layout_;
  std::string carry_;  // the beginning of a line that the last chunk cut
  bool hidden_ = false;
};

absl::Status ReadKallsyms(const std::string& path, KernelLayout* layout) {
  KallsymsScan scan(layout);
  RETURN_IF_ERROR(ReadChunks(path, [&](std::string_view chunk) { return scan.Take(chunk); }));
  if (scan.hidden()) return Error(absl::StatusCode::kPermissionDenied, path + " shows no addresses");
  if (layout->text_begin == 0 || layout->text_end <= layout->text_begin) {
    return Error(absl::StatusCode::kInvalidArgument,
                 fmt::format("{}: _stext or _etext is missing, or _etext is not after _stext", path));
  }
  return absl::OkStatus();
}

// Sets the ends of generated code: each piece reaches to the next piece, or to a module's text.
void BoundGenerated(KernelLayout* layout) {
  std::vector<GeneratedCode>& all = layout->generated;
  std::stable_sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.begin < b.begin; });
  all.erase(std::unique(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.begin == b.begin; }),
            all.end());
  auto module = layout->modules.begin();
  for (size_t i = 0; i < all.size(); ++i) {
    while (module != layout->modules.end() && module->base <= all[i].begin) ++module;
    uint64_t room = all[i].name.starts_with("bpf_prog_") ? kBpfProgramBytesMax : kTrampolineBytesMax;
    if (i + 1 < all.size()) room = std::min(room, all[i + 1].begin - all[i].begin);
    if (module != layout->modules.end()) room = std::min(room, module->base - all[i].begin);
    all[i].end = all[i].begin + std::min(room, UINT64_MAX - all[i].begin);
  }
}

std::string_view TakeWord(std::string_view& line) {
  size_t end = line.find(' ');
  std::string_view word = line.substr(0, end);
  line.remove_prefix(end == std::string_view::npos ? line.size() : end + 1);
  return word;
}

// Returns 0 if `text` is not a number.
uint64_t NumberOf(std::string_view text, int base) {
  text = TrimEnd(text, "\n");
  if (base == 16 && text.starts_with("0x")) text.remove_prefix(2);
  return ParseNumber<uint64_t>(text, base).value_or(0);
}

// "ext4 811008 1 - Live 0xffffffffc0456000" (kernel/module/procfs.c, m_show), then " (OE)" on tainted ones.
std::optional<KernelModule> ParseModule(std::string_view line, const std::string& sys_root) {
  KernelModule module;
  module.name = TakeWord(line);
  module.size = NumberOf(TakeWord(line), 10);
  for (int skipped = 0; skipped < 3; ++skipped) TakeWord(line);
  uint64_t core = NumberOf(TakeWord(line), 16);
  // The name is part of a path below. The kernel writes no slash, whatever a module calls itself.
  if (module.name.empty() || module.name.find('/') != std::string::npos || module.name.starts_with('.')) {
    return std::nullopt;
  }
  if (core == 0 || module.size == 0) return std::nullopt;
  std::string directory = fmt::format("{}/module/{}", sys_root, module.name);
  module.base = core;
  if (auto text = ReadSmallFile(directory + "/sections/.text"); text.ok()) {
    uint64_t address = NumberOf(*text, 16);
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
  RETURN_IF_ERROR(ReadKallsyms(proc_root + "/kallsyms", &layout));

  // A kernel built without modules has no such file.
  const std::string modules = ReadSmallFile(proc_root + "/modules").value_or("");
  std::string_view text = modules, line;
  while (layout.modules.size() < kModulesMax && TakeLine(text, &line)) {
    if (auto module = ParseModule(line, sys_root)) layout.modules.push_back(*std::move(module));
  }
  std::sort(layout.modules.begin(), layout.modules.end(),
            [](const KernelModule& a, const KernelModule& b) { return a.base < b.base; });
  // Since Linux 6.4 a module's size includes data that lies elsewhere. The size must not reach into the next module's
  // code.
  for (size_t i = 0; i + 1 < layout.modules.size(); ++i) {
    KernelModule& module = layout.modules[i];
    module.size = std::min(module.size, layout.modules[i + 1].base - module.base);
  }
  BoundGenerated(&layout);
  return layout;
}

}  // namespace tributary
