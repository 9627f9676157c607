#include "reducer/symbolizer/extractor_process.h"

#include <fcntl.h>
#include <sys/resource.h>

#include <algorithm>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <utility>

#include "base/fd.h"
#include "base/number.h"
#include "base/sandbox.h"
#include "base/sha256.h"
#include "base/status.h"
#include "base/whole_file.h"
#include "elf/elf_file.h"
#include "symbols/debug_symbols.h"
#include "symbols/symbol_codec.h"

namespace tributary {
namespace {

constexpr int kNice = 10;
constexpr std::string_view kNoMemory = "reading the file takes more memory than --symbol-memory-max-bytes allows";

template <size_t kSize>
uint32_t CopyBytes(std::string_view from, uint8_t (&to)[kSize]) {
  const size_t n = std::min(from.size(), kSize);
  std::copy_n(from.data(), n, to);
  return static_cast<uint32_t>(n);
}

absl::Status Extract(const ExtractorRequest& request, ExtractorAnswer* answer, std::string* encoded) {
  ASSIGN_OR_RETURN(const std::unique_ptr<ElfFile> file, ElfFile::Open(Fd(kExtractorFile)));
  ASSIGN_OR_RETURN(const ExecutableId id, IdentityForSymbols(*file, request.claimed));
  answer->id_kind = static_cast<uint32_t>(id.kind());
  answer->id_bytes = CopyBytes(id.view(), answer->id);
  auto none = [] { return Error(absl::StatusCode::kNotFound, "the process that reads symbols did not get this file"); };
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

// If the machine runs out of memory, the kernel should kill this process, not the reducer.
void StepBack() {
  setpriority(PRIO_PROCESS, 0, kNice);
  const Fd score(open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC));
  // Without this setting the kernel chooses by size, which is most often the same.
  if (score.valid()) (void)WriteToFile(score.get(), "1000", "oom_score_adj");
}

}  // namespace

int RunSymbolExtractor(const ExtractorRequest& request) {
  StepBack();
  LoadSha256();  // for ids that are hashes
  const SandboxLimits limits = {.name = "symbol-reader",
                                .memory_bytes_max = request.memory_bytes_max,
                                .file_bytes_max = kEncodedSymbolsMax + sizeof(ExtractorAnswer),
                                .cpu_seconds_max = request.cpu_seconds_max};
  ExtractorAnswer answer;
  std::string encoded;
  absl::Status status = EnterSandbox(limits);
  if (status.ok()) {
    // The process's memory limit bounds the reader. If the reader reaches the limit, the answer says so.
    try {
      status = Extract(request, &answer, &encoded);
    } catch (const std::bad_alloc&) {
      status = Error(absl::StatusCode::kResourceExhausted, kNoMemory);
    }
  }
  answer.code = static_cast<uint32_t>(status.code());
  answer.message_bytes = static_cast<uint32_t>(std::min(status.message().size(), sizeof(answer.message)));
  std::copy_n(status.message().data(), answer.message_bytes, answer.message);
  if (!status.ok()) encoded.clear();
  answer.encoded_bytes = encoded.size();
  const std::string_view header(reinterpret_cast<const char*>(&answer), sizeof(answer));
  const bool written =
      WriteToFile(kExtractorOutput, header, "answer").ok() && WriteToFile(kExtractorOutput, encoded, "answer").ok();
  return written ? 0 : 1;
}

int RunSymbolExtractor(int argc, const char* const* argv) {
  uint64_t numbers[4] = {};
  if (argc != 5) return 2;
  for (int i = 0; i < 4; ++i) {
    std::string_view text = argv[i];
    const std::optional<uint64_t> number = TakeNumber<uint64_t>(text);
    if (!number) return 2;
    numbers[i] = *number;
  }
  return RunSymbolExtractor({.memory_bytes_max = numbers[0],
                             .cpu_seconds_max = numbers[1],
                             .has_shared = numbers[2] != 0,
                             .has_package = numbers[3] != 0,
                             .claimed = ExecutableId::FromString(argv[4]).value_or(ExecutableId())});
}

}  // namespace tributary
