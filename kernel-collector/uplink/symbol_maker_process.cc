#include "kernel-collector/uplink/symbol_maker_process.h"

#include <unistd.h>

#include <cerrno>
#include <string>
#include <string_view>
#include <utility>

#include "base/heap.h"
#include "base/log.h"
#include "base/resident.h"
#include "base/sandbox.h"
#include "base/sha256.h"
#include "base/socket_message.h"
#include "base/status.h"
#include "base/zstd.h"
#include "kernel-collector/uplink/symbol_maker_protocol.h"
#include "symbols/debug_symbols.h"
#include "symbols/elf_symbols.h"
#include "symbols/kallsyms.h"
#include "symbols/symbol_codec.h"

namespace tributary {
namespace {

constexpr uint64_t kMemoryBytesMax = uint64_t{1} << 30;
constexpr uint64_t kSymbolBytesMax = 256u << 20;
constexpr uint64_t kDebugBytesMax = kMemoryBytesMax / 2;  // the resulting tables take as much memory again
constexpr size_t kKallsymsBytesMax = 256u << 20;
constexpr size_t kReadBytes = 64u << 10;
constexpr int kAnswerTimeoutMs = 60'000;

using Table = absl::StatusOr<std::shared_ptr<const SymbolTable>>;

// Reads to the end of the file: a /proc file has no size.
absl::StatusOr<std::string> ReadText(const Fd& file) {
  std::string text;
  while (true) {
    const size_t size = text.size();
    if (size >= kKallsymsBytesMax) return Error(absl::StatusCode::kResourceExhausted, "kallsyms: the file is too long");
    text.resize(size + kReadBytes);
    const ssize_t n = read(file.get(), text.data() + size, kReadBytes);
    text.resize(size + static_cast<size_t>(n > 0 ? n : 0));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return ErrnoStatus("read", "kallsyms", errno);
    if (n == 0) return text;
  }
}

Table MakeKernelTable(const SymbolMakerRequest& request, const Fd& file) {
  ASSIGN_OR_RETURN(const std::string text, ReadText(file));
  if (request.kind == SymbolMakerRequest::kModule) {
    return ParseModuleSymbols(text, request.module_name, request.module_base, request.module_size, request.id);
  }
  ASSIGN_OR_RETURN(const ParsedKallsyms parsed, ParseKallsyms(text, request.id));
  return parsed.table;
}

Table MakeElfTable(const SymbolMakerRequest& request, Fd file, uint64_t* left_out) {
  ASSIGN_OR_RETURN(const std::unique_ptr<ElfFile> elf, ElfFile::Open(std::move(file)));
  if (request.debug_information != 0) {
    // Debug information in other files cannot be opened in this process.
    ASSIGN_OR_RETURN(DebugSymbols all, ReadDebugSymbols(*elf, request.id, DebugFileSource(), kDebugBytesMax));
    *left_out = all.left_out;
    return std::move(all.table);
  }
  SymbolTableBuilder builder;
  ASSIGN_OR_RETURN(const SymbolSource source, AddOwnSymbols(*elf, builder, kSymbolBytesMax));
  auto table = builder.Build(request.id, source);
  *left_out = builder.left_out();
  return table;
}

struct Made {
  std::string zstd;
  uint64_t raw_bytes = 0;
  uint64_t left_out = 0;
  SymbolDigest digest;
};

absl::StatusOr<Made> Make(const SymbolMakerRequest& request, Fd file) {
  if (!file.valid()) return Error(absl::StatusCode::kInvalidArgument, "the request has no file");
  Made made;
  ASSIGN_OR_RETURN(std::shared_ptr<const SymbolTable> table,
                   request.kind == SymbolMakerRequest::kElf ? MakeElfTable(request, std::move(file), &made.left_out)
                                                            : MakeKernelTable(request, file));
  if (request.flat != 0) {
    made.raw_bytes = table->bytes().size();
    made.zstd = ZstdCompress(table->bytes());
  } else {
    const std::string encoded = EncodeSymbolTable(*table);
    table = nullptr;
    made.raw_bytes = encoded.size();
    made.digest = DigestOf(encoded);
    made.zstd = ZstdCompress(encoded);
  }
  if (made.zstd.size() > kSymbolTableStoredBytesMax || made.raw_bytes > kSymbolTableRawBytesMax) {
    return Error(absl::StatusCode::kResourceExhausted, "symbol table: the table is larger than a reducer accepts");
  }
  return made;
}

// Returns false if the collector is gone.
bool Answer(int socket, const SymbolMakerRequest& request, Fd file) {
  const absl::StatusOr<Made> made = Make(request, std::move(file));
  SymbolMakerAnswer answer;
  if (!made.ok()) {
    const std::string message = Message(made.status()).substr(0, kSymbolMakerMessageMax);
    answer.message_bytes = static_cast<uint32_t>(message.size());
    return WriteAll(socket, &answer, sizeof(answer), kAnswerTimeoutMs) &&
           WriteAll(socket, message.data(), message.size(), kAnswerTimeoutMs);
  }
  answer = {.made = 1,
            .stored_bytes = made->zstd.size(),
            .raw_bytes = made->raw_bytes,
            .left_out = made->left_out,
            .digest = made->digest};
  return WriteAll(socket, &answer, sizeof(answer), kAnswerTimeoutMs) &&
         WriteAll(socket, made->zstd.data(), made->zstd.size(), kAnswerTimeoutMs);
}

}  // namespace

int RunSymbolMaker(int socket) {
  LoadSha256();  // for DigestOf
  if (absl::Status status = EnterSandbox({.name = "symbol-maker", .memory_bytes_max = kMemoryBytesMax}); !status.ok()) {
    LogError("symbol maker: {}", Message(status));
    return 1;
  }
  ReleaseCodePages();  // the loader's pages
  SymbolMakerRequest request;
  while (true) {
    Fd file;
    if (!ReceiveWithFile(socket, &request, sizeof(request), &file, -1)) return 0;
    request.module_name[SymbolMakerRequest::kModuleNameMax - 1] = '\0';
    if (!Answer(socket, request, std::move(file))) return 0;
    TrimHeap();  // the next table may be small, and this one may have been a browser's
  }
}

}  // namespace tributary
