#include <fcntl.h>
#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

#include "base/fd.h"
#include "base/log.h"
#include "base/status.h"
#include "cli/commands.h"
#include "cli/http_client.h"
#include "cli/json_reader.h"
#include "cli/server_client.h"
#include "cli/text.h"
#include "elf/elf_format.h"
#include "symbols/debug_symbols.h"
#include "symbols/local_debug_files.h"
#include "symbols/symbol_codec.h"
#include "symbols/table_file.h"

namespace tributary::cli {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kDebugBytesMax = uint64_t{16} << 30;
constexpr int kZstdLevel = 9;
constexpr std::string_view kPath = "/api/v1/symbols";

class Pusher {
 public:
  Pusher(const PushOptions& options, HttpClient client) : options_(options), client_(std::move(client)) {}

  void PushPath(const std::string& path) {
    std::error_code error;
    if (!fs::is_directory(path, error)) return PushFile(path, /*named=*/true);
    for (fs::recursive_directory_iterator entry(path, fs::directory_options::skip_permission_denied, error), end;
         !error && entry != end && !is_refused_; entry.increment(error)) {
      if (entry->is_regular_file(error) && !entry->is_symlink(error)) PushFile(entry->path().string(), false);
      error.clear();
    }
    if (error) Fail(path, error.message());
  }

  int Finish() const {
    fmt::print("{} stored, {} known already, {} without names, {} failed\n", stored_, known_, nameless_, failed_);
    return failed_ == 0 ? kExitOk : kExitFailure;
  }

 private:
  // `named`: the user named this file. Many files of a directory are not worth a message.
  void PushFile(const std::string& path, bool named) {
    if (is_refused_) return;
    const Fd file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    if (!file.valid()) return Fail(path, Message(ErrnoStatus("open", path, errno)));
    char begin[8] = {};
    const ssize_t n = pread(file.get(), begin, sizeof(begin), 0);
    const std::string_view magic(begin, n > 0 ? static_cast<size_t>(n) : 0);
    const bool is_elf = magic.starts_with(kElfMagic);
    if (!named && !is_elf && magic != kTableFileMagic) return;
    absl::StatusOr<std::string> answer;
    if (is_elf && !options_.whole) {
      const absl::StatusOr<std::string> table = MakeTable(file.get(), path);
      if (absl::IsNotFound(table.status())) {
        ++nameless_;
        if (named) Fail(path, Message(table.status()));
        return;
      }
      if (!table.ok()) return Fail(path, Message(table.status()));
      answer = client_.Put(kPath, {}, *table);
    } else {
      HttpClient::Parameters parameters;
      if (!options_.build_id.empty()) parameters.emplace_back("build-id", options_.build_id);
      answer = client_.PutFile(kPath, parameters, file.get());
    }
    is_refused_ = absl::IsUnavailable(answer.status()) || absl::IsUnauthenticated(answer.status()) ||
                  absl::IsPermissionDenied(answer.status());
    if (!answer.ok()) return Fail(path, Message(answer.status()));
    const absl::StatusOr<UploadAnswer> upload = ParseUpload(*answer);
    if (!upload.ok()) return Fail(path, Message(upload.status()));
    Report(path, *upload);
  }

  absl::StatusOr<std::string> MakeTable(int file, const std::string& path) {
    ASSIGN_OR_RETURN(const std::unique_ptr<ElfFile> elf, ElfFile::OpenCopy(file));
    std::optional<ExecutableId> claimed = ExecutableId();
    if (!options_.build_id.empty()) claimed = ExecutableId::FromString(options_.build_id);
    if (!claimed || (!options_.build_id.empty() && !claimed->known())) {
      return Error(absl::StatusCode::kInvalidArgument,
                   "--build-id must be hexadecimal, in the form that file(1) prints");
    }
    ASSIGN_OR_RETURN(const ExecutableId id, IdentityForSymbols(*elf, *claimed));
    ASSIGN_OR_RETURN(const DebugSymbols symbols, ReadDebugSymbols(*elf, id, LocalDebugFiles(path), kDebugBytesMax));
    if (symbols.counts.missing_split > 0) {
      fmt::print(
          stderr,
          "{}: the .dwo files of {} compilation units are neither at their recorded paths nor next to this file\n",
          path, symbols.counts.missing_split);
    }
    const std::string encoded = EncodeSymbolTable(*symbols.table);
    return PackTableFile(DescribeTable(*symbols.table, encoded), encoded, kZstdLevel);
  }

  void Report(const std::string& path, const UploadAnswer& upload) {
    ++(upload.stored ? stored_ : known_);
    fmt::print("{}  {:10} {:>9} functions  {}  {}\n", EscapeForDisplay(upload.build_id),
               EscapeForDisplay(upload.symbols.source), FormatCount(upload.symbols.functions),
               upload.stored ? "stored       " : "known already", path);
    for (const std::string& remark : upload.remarks) fmt::print("  {}\n", EscapeForDisplay(remark));
  }
  void Fail(const std::string& path, std::string_view why) {
    ++failed_;
    fmt::print(stderr, "{}: {}\n", path, why);
  }

  const PushOptions& options_;
  const HttpClient client_;
  uint64_t stored_ = 0, known_ = 0, nameless_ = 0, failed_ = 0;
  bool is_refused_ = false;  // no file can be sent: the server does not answer, or the caller may not upload
};

}  // namespace

absl::StatusOr<int> RunPush(const PushOptions& options) {
  if (!options.build_id.empty() && options.paths.size() != 1) {
    return Error(absl::StatusCode::kInvalidArgument, "--build-id is for one file: give exactly one PATH");
  }
  ASSIGN_OR_RETURN(HttpClient client, MakeClient(options.server));
  Pusher pusher(options, std::move(client));
  for (const std::string& path : options.paths) pusher.PushPath(path);
  return pusher.Finish();
}

}  // namespace tributary::cli
