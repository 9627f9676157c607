#include "kernel-collector/uplink/symbol_maker.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>

#include "base/memory_file.h"
#include "base/socket_message.h"
#include "base/status.h"
#include "kernel-collector/uplink/symbol_maker_process.h"

namespace tributary {
namespace {

constexpr size_t kPieceBytes = 64u << 10;

// The remaining time for a table.
class Countdown {
 public:
  explicit Countdown(int ms) : end_(std::chrono::steady_clock::now() + std::chrono::milliseconds(ms)) {}
  int left_ms() const {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(end_ - std::chrono::steady_clock::now());
    return static_cast<int>(std::max<int64_t>(left.count(), 0));
  }

 private:
  const std::chrono::steady_clock::time_point end_;
};

absl::StatusOr<PackedTable> InMemory(int socket, const SymbolMakerAnswer& answer, const Countdown& time) {
  std::string zstd(answer.stored_bytes, '\0');
  if (!ReadAll(socket, zstd.data(), zstd.size(), time.left_ms())) return absl::CancelledError();
  return PackedTable(std::move(zstd), answer.raw_bytes, answer.digest);
}

absl::StatusOr<PackedTable> InFile(int socket, const SymbolMakerAnswer& answer, const Countdown& time) {
  ASSIGN_OR_RETURN(MemoryFile file, MemoryFile::Create("symbols"));
  std::string piece(kPieceBytes, '\0');
  for (uint64_t left = answer.stored_bytes; left > 0; left -= piece.size()) {
    piece.resize(std::min<uint64_t>(left, kPieceBytes));
    if (!ReadAll(socket, piece.data(), piece.size(), time.left_ms())) return absl::CancelledError();
    RETURN_IF_ERROR(file.Append(piece));
  }
  return PackedTable(std::move(file), answer.raw_bytes, answer.digest);
}

bool IsWithinBounds(const SymbolMakerAnswer& answer) {
  return answer.message_bytes <= kSymbolMakerMessageMax && answer.stored_bytes <= kSymbolTableStoredBytesMax &&
         answer.raw_bytes <= kSymbolTableRawBytesMax;
}

// Returns the table, or the reason for its absence. Cancelled: the process is no longer usable.
absl::StatusOr<PackedTable> Ask(int socket, const SymbolMakerRequest& request, const Fd& file, const Countdown& time,
                                uint64_t* left_out) {
  SymbolMakerAnswer answer;
  if (!SendWithFile(socket, &request, sizeof(request), file.get(), time.left_ms()) ||
      !ReadAll(socket, &answer, sizeof(answer), time.left_ms()) || !IsWithinBounds(answer)) {
    return absl::CancelledError();
  }
  if (answer.made == 0) {
    std::string message(answer.message_bytes, '\0');
    if (!ReadAll(socket, message.data(), message.size(), time.left_ms())) return absl::CancelledError();
    return Error(absl::StatusCode::kInvalidArgument, message);
  }
  *left_out = answer.left_out;
  return answer.stored_bytes <= kPieceBytes ? InMemory(socket, answer, time) : InFile(socket, answer, time);
}

}  // namespace

absl::StatusOr<ChildProcess> SymbolMaker::SpawnSelf() { return ChildProcess::SpawnSelf(kSymbolMakerArgument); }

SymbolMaker::SymbolMaker(Spawn spawn, Metrics& metrics, int timeout_ms)
    : spawn_(std::move(spawn)),
      timeout_ms_(timeout_ms),
      deaths_(metrics.AddCounter("tributary_collector_symbol_maker_deaths_total",
                                 "Processes for making symbol tables that failed while they made a table or were idle, "
                                 "or were killed because a table took over a minute or an answer was malformed")),
      left_out_(metrics.AddCounter("tributary_collector_symbol_entries_left_out_total",
                                   "Symbols and function bounds that were left out of symbol tables, because they "
                                   "exceeded a limit or were unreadable")) {}

absl::StatusOr<PackedTable> SymbolMaker::Make(const SymbolMakerRequest& request, const Fd& file) {
  // A process that died while it was idle did not die because of this file.
  if (child_.Reap() == false) deaths_.Add();
  if (!child_.running()) {
    ASSIGN_OR_RETURN(child_, spawn_());
  }
  uint64_t left_out = 0;
  absl::StatusOr<PackedTable> made = Ask(child_.socket(), request, file, Countdown(timeout_ms_), &left_out);
  if (made.ok()) left_out_.Add(left_out);
  if (made.ok() || absl::IsInvalidArgument(made.status())) return made;
  // The process's answer, or the rest of it, is lost with the process.
  child_.Stop();
  if (!absl::IsCancelled(made.status())) return made;
  deaths_.Add();
  return Error(absl::StatusCode::kInternal,
               "the process that makes symbol tables died while it read this file, took too long, or sent an invalid "
               "answer");
}

}  // namespace tributary
