#include "reducer/symbolizer/symbol_extractor.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <string_view>

#include "base/clock.h"
#include "base/memory_file.h"
#include "base/status.h"
#include "symbols/symbol_codec.h"

namespace tributary {
namespace {

absl::Status ReadAll(int fd, uint64_t offset, void* to, size_t bytes) {
  auto* at = static_cast<char*>(to);
  while (bytes > 0) {
    const ssize_t n = pread(fd, at, bytes, static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return Error(absl::StatusCode::kInternal, "the process that reads the file gave no answer");
    at += n;
    offset += static_cast<uint64_t>(n);
    bytes -= static_cast<size_t>(n);
  }
  return absl::OkStatus();
}

absl::StatusOr<SymbolExtractor::Extracted> ReadAnswer(int fd) {
  ExtractorAnswer answer;
  RETURN_IF_ERROR(ReadAll(fd, 0, &answer, sizeof(answer)));
  if (answer.code != 0) {
    const size_t bytes = std::min<size_t>(answer.message_bytes, sizeof(answer.message));
    // A process that was taken over may give any code. Callers distinguish no more codes than these.
    const auto code = static_cast<absl::StatusCode>(answer.code);
    const bool known = code == absl::StatusCode::kInvalidArgument || code == absl::StatusCode::kNotFound ||
                       code == absl::StatusCode::kResourceExhausted;
    return Error(known ? code : absl::StatusCode::kInternal, std::string_view(answer.message, bytes));
  }
  SymbolExtractor::Extracted out;
  const std::span<const uint8_t> id(answer.id, std::min<size_t>(answer.id_bytes, sizeof(answer.id)));
  const auto made = ExecutableId::Make(static_cast<ExecutableIdKind>(answer.id_kind & 0xff), id);
  struct stat info{};
  if (!made || !made->known() || fstat(fd, &info) != 0 || answer.encoded_bytes > kEncodedSymbolsMax ||
      static_cast<uint64_t>(info.st_size) != sizeof(answer) + answer.encoded_bytes) {
    return Error(absl::StatusCode::kInternal, "the process that reads the file gave an invalid answer");
  }
  out.id = *made;
  const size_t shared_bytes = std::min<size_t>(answer.shared_id_bytes, sizeof(answer.shared_id));
  out.shared_id.assign(reinterpret_cast<const char*>(answer.shared_id), shared_bytes);
  out.missing_split = answer.missing_split;
  out.malformed = answer.malformed;
  out.left_out = answer.left_out;
  out.encoded.resize(answer.encoded_bytes);
  RETURN_IF_ERROR(ReadAll(fd, sizeof(answer), out.encoded.data(), out.encoded.size()));
  return out;
}

}  // namespace

absl::StatusOr<ChildProcess> SymbolExtractor::SpawnSelf(const Files& files, int output,
                                                        const ExtractorRequest& request) {
  return ChildProcess::SpawnSelf({.description = "the process that reads symbols",
                                  .arguments = {"reducer", kExtractorArgument, std::to_string(request.memory_bytes_max),
                                                std::to_string(request.cpu_seconds_max), request.has_shared ? "1" : "0",
                                                request.has_package ? "1" : "0", request.claimed.ToString()},
                                  .descriptors = {{files.file, kExtractorFile},
                                                  {output, kExtractorOutput},
                                                  {files.shared, kExtractorShared},
                                                  {files.package, kExtractorPackage}}});
}

SymbolExtractor::SymbolExtractor(Options options, Spawn spawn, Metrics& metrics)
    : options_(options),
      spawn_(std::move(spawn)),
      extracted_(
          metrics.AddCounter("tributary_symbolizer_extractions_total", "Files from which a symbol table was made.")),
      failed_(metrics.AddCounter("tributary_symbolizer_extractions_failed_total",
                                 "Files from which no symbol table could be made.")),
      deaths_(metrics.AddCounter("tributary_symbolizer_extractor_deaths_total",
                                 "Processes that died or took too long while they read a file with symbols.")),
      stop_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  TRIBUTARY_CHECK(stop_.valid());
}

void SymbolExtractor::Stop() {
  {
    std::lock_guard lock(mutex_);
    if (std::exchange(stopping_, true)) return;
  }
  const uint64_t one = 1;
  TRIBUTARY_CHECK(write(stop_.get(), &one, sizeof(one)) == sizeof(one));
  free_.notify_all();
  std::unique_lock lock(mutex_);
  free_.wait(lock, [this] { return running_ == 0; });
}

absl::StatusOr<SymbolExtractor::Extracted> SymbolExtractor::Extract(const Files& files, const ExecutableId& claimed) {
  {
    std::unique_lock lock(mutex_);
    free_.wait(lock, [this] { return stopping_ || running_ < options_.at_once; });
    if (stopping_) return Error(absl::StatusCode::kUnavailable, "the reducer is stopping");
    ++running_;
  }
  absl::StatusOr<Extracted> extracted = RunAndRead(files, claimed);
  (extracted.ok() ? extracted_ : failed_).Add();
  {
    std::lock_guard lock(mutex_);
    --running_;
  }
  free_.notify_all();
  return extracted;
}

absl::StatusOr<SymbolExtractor::Extracted> SymbolExtractor::RunAndRead(const Files& files,
                                                                       const ExecutableId& claimed) {
  ASSIGN_OR_RETURN(MemoryFile memory, MemoryFile::Create("symbols"));
  const Fd output = std::move(memory).TakeDescriptor();
  RETURN_IF_ERROR(Run(files, output.get(),
                      {.memory_bytes_max = options_.memory_bytes_max,
                       .cpu_seconds_max = options_.cpu_seconds_max,
                       .has_shared = files.shared >= 0,
                       .has_package = files.package >= 0,
                       .claimed = claimed}));
  return ReadAnswer(output.get());
}

absl::Status SymbolExtractor::Run(const Files& files, int output, const ExtractorRequest& request) {
  ASSIGN_OR_RETURN(ChildProcess child, spawn_(files, output, request));
  // Needs a kernel from 5.3 on. On older kernels the process is killed at once, as if it had taken too long.
  const Fd process(static_cast<int>(syscall(SYS_pidfd_open, child.pid(), 0)));
  const int64_t deadline = Clock::Real().Monotonic().value / kNsPerMs + options_.timeout_ms;
  bool ended = false, stopped = false;
  while (process.valid() && !ended && !stopped) {
    const int64_t left = deadline - Clock::Real().Monotonic().value / kNsPerMs;
    if (left <= 0) break;
    pollfd fds[] = {{process.get(), POLLIN, 0}, {stop_.get(), POLLIN, 0}};
    if (poll(fds, 2, static_cast<int>(left)) < 0 && errno != EINTR) break;
    ended = fds[0].revents != 0;
    stopped = fds[1].revents != 0;
  }
  const int status = child.End();
  if (ended && WIFEXITED(status) && WEXITSTATUS(status) == 0) return absl::OkStatus();
  if (stopped) return Error(absl::StatusCode::kUnavailable, "the reducer is stopping");
  deaths_.Add();
  if (!ended || (WIFSIGNALED(status) && (WTERMSIG(status) == SIGXCPU || WTERMSIG(status) == SIGKILL))) {
    return Error(absl::StatusCode::kResourceExhausted,
                 fmt::format("reading the file took too long (the limit is {} s of CPU time), or needed more memory "
                             "than the machine has",
                             options_.cpu_seconds_max));
  }
  return Error(absl::StatusCode::kInternal, fmt::format("the process that reads the file ended with {} {}",
                                                        WIFSIGNALED(status) ? "signal" : "exit code",
                                                        WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status)));
}

}  // namespace tributary
