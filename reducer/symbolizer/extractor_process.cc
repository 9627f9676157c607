#include "reducer/symbolizer/extractor_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <utility>

#include "base/fd.h"
#include "base/sandbox.h"
#include "base/status.h"
#include "elf/elf_file.h"
#include "symbols/debug_symbols.h"
#include "symbols/symbol_codec.h"

namespace tributary {
namespace {

constexpr int kNice = 10;
constexpr std::string_view kNoMemory = "it takes more memory than one file may";

bool WriteAll(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(n));
  }
  return true;
}

template <size_t kSize>
uint32_t CopyBytes(std::string_view from, uint8_t (&to)[kSize]) {
  const size_t n = std::min(from.size(), kSize);
  std::memcpy(to, from.data(), n);
  return static_cast<uint32_t>(n);
}

absl::Status Extract(const ExtractorRequest& request, ExtractorAnswer* answer, std::string* encoded) {
  ASSIGN_OR_RETURN(const std::unique_ptr<ElfFile> file, ElfFile::Open(Fd(kExtractorFile)));
  ASSIGN_OR_RETURN(const ExecutableId own, file->Identity());
  const ExecutableId id = request.claimed.known() ? request.claimed : own;
  // A hash of contents is of the file before it was stripped, or after.
  if (own != id && own.kind() != ExecutableIdKind::kContentHash) {
    return Error(absl::StatusCode::kInvalidArgument,
                 fmt::format("it is the file of {}, not of {}", own.ToString(), id.ToString()));
  }
  answer->id_kind = static_cast<uint32_t>(id.kind());
  answer->id_bytes = CopyBytes(id.view(), answer->id);
  if (IsKernelCode(*file)) {
    return Error(absl::StatusCode::kUnimplemented, "a kernel's names come from its nodes; its debug file is not read");
  }
  auto none = [] { return Error(absl::StatusCode::kNotFound, "it was not handed over"); };
  DebugFileSource source;
  source.split = [&](std::string_view, std::string_view) -> DebugFileSource::File { return none(); };
  source.package = [&]() -> DebugFileSource::File {
    if (!request.has_package) return none();
    return ElfFile::Open(Fd(kExtractorPackage));
  };
  source.shared = [&](std::string_view, std::string_view build_id) -> DebugFileSource::File {
    answer->shared_id_bytes = CopyBytes(build_id, answer->shared_id);
    if (!request.has_shared) return none();
    ASSIGN_OR_RETURN(std::unique_ptr<ElfFile> shared, ElfFile::Open(Fd(kExtractorShared)));
    ASSIGN_OR_RETURN(const ExecutableId shared_id, shared->Identity());
    if (shared_id.view() != build_id) return none();
    answer->shared_id_bytes = 0;
    return shared;
  };
  ASSIGN_OR_RETURN(const DebugSymbols symbols, ReadDebugSymbols(*file, id, source, request.memory_bytes_max / 2));
  answer->missing_split = symbols.counts.missing_split;
  answer->malformed = symbols.counts.malformed;
  answer->left_out = symbols.left_out;
  *encoded = EncodeSymbolTable(*symbols.table);
  return absl::OkStatus();
}

// Where the machine runs out of memory, it is not the reducer that goes.
void StepBack() {
  setpriority(PRIO_PROCESS, 0, kNice);
  const Fd score(open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC));
  // Without it the kernel chooses by size, which is most often the same.
  if (score.valid()) WriteAll(score.get(), "1000");
}

}  // namespace

int RunSymbolExtractor(const ExtractorRequest& request) {
  StepBack();
  const SandboxLimits limits = {.memory_bytes_max = request.memory_bytes_max,
                                .file_bytes_max = kEncodedSymbolsMax + sizeof(ExtractorAnswer),
                                .cpu_seconds_max = request.cpu_seconds_max};
  ExtractorAnswer answer;
  std::string encoded;
  absl::Status status = EnterSandbox(limits);
  if (status.ok()) {
    // The reader's memory is bounded by the process's: where that is what ends it, it is said so.
    try {
      status = Extract(request, &answer, &encoded);
    } catch (const std::bad_alloc&) {
      status = Error(absl::StatusCode::kResourceExhausted, kNoMemory);
    }
  }
  answer.code = static_cast<uint32_t>(status.code());
  answer.message_bytes = static_cast<uint32_t>(std::min(status.message().size(), sizeof(answer.message)));
  std::memcpy(answer.message, status.message().data(), answer.message_bytes);
  if (!status.ok()) encoded.clear();
  answer.encoded_bytes = encoded.size();
  const std::string_view header(reinterpret_cast<const char*>(&answer), sizeof(answer));
  return WriteAll(kExtractorOutput, header) && WriteAll(kExtractorOutput, encoded) ? 0 : 1;
}

int RunSymbolExtractor(int argc, const char* const* argv) {
  uint64_t numbers[4] = {};
  if (argc != 5) return 2;
  for (int i = 0; i < 4; ++i) {
    const std::string_view text = argv[i];
    if (std::from_chars(text.data(), text.data() + text.size(), numbers[i]).ec != std::errc()) return 2;
  }
  return RunSymbolExtractor({.memory_bytes_max = numbers[0],
                             .cpu_seconds_max = numbers[1],
                             .has_shared = numbers[2] != 0,
                             .has_package = numbers[3] != 0,
                             .claimed = ExecutableId::FromString(argv[4]).value_or(ExecutableId())});
}

}  // namespace tributary
