#include "kernel-collector/runtimes/process_memory.h"

#include <fmt/format.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string>
#include <utility>

#include "base/status.h"

namespace tributary {

class ProcessMemoryReader::Memory : public ProcessMemory {
 public:
  Memory(ProcessMemoryReader& reader, Pid pid, std::string group)
      : reader_(reader), pid_(pid), group_(std::move(group)) {}

  absl::Status Read(std::span<const Part> parts) override {
    std::array<iovec, kPartsMax> local, remote;
    size_t total = 0;
    if (parts.size() > kPartsMax) return TooMuch();
    for (size_t i = 0; i < parts.size(); ++i) {
      local[i] = {.iov_base = parts[i].to.data(), .iov_len = parts[i].to.size()};
      // The kernel takes the address as a pointer, and never lets it lead outside of the process's own memory.
      remote[i] = {.iov_base = reinterpret_cast<void*>(parts[i].address), .iov_len = parts[i].to.size()};
      if (parts[i].to.size() > kReadBytesMax - total) return TooMuch();
      total += parts[i].to.size();
    }
    if (total == 0) return absl::OkStatus();
    auto running = reader_.Begin(pid_, group_);
    if (!running.ok()) return running.status();
    ssize_t got = process_vm_readv(pid_.value, local.data(), parts.size(), remote.data(), parts.size(), 0);
    int error = errno;
    reader_.reads_.Add();
    bool in_time = reader_.End(*running);
    if (!in_time) return Failed(absl::StatusCode::kDeadlineExceeded, "the read took too long");
    if (got < 0 && error != EFAULT) {
      reader_.failed_.Add();
      return ErrnoStatus("read the memory of process", std::to_string(pid_.value), error);
    }
    if (got < 0 || static_cast<size_t>(got) != total) {
      return Failed(absl::StatusCode::kDataLoss, "not all of the bytes are mapped");
    }
    reader_.bytes_.Add(total);
    return absl::OkStatus();
  }

 private:
  absl::Status TooMuch() { return Failed(absl::StatusCode::kInvalidArgument, "too many parts or bytes"); }
  absl::Status Failed(absl::StatusCode code, std::string_view reason) {
    reader_.failed_.Add();
    return Error(code, fmt::format("read the memory of process {}: {}", pid_.value, reason));
  }

  ProcessMemoryReader& reader_;
  const Pid pid_;
  const std::string group_;
};

ProcessMemoryReader::ProcessMemoryReader(const Clock& clock, Metrics& metrics)
    : clock_(clock),
      reads_(metrics.AddCounter("tributary_collector_runtime_memory_reads_total",
                                "Reads of the memory of profiled processes, for the names of functions of language "
                                "runtimes.")),
      bytes_(metrics.AddCounter("tributary_collector_runtime_memory_read_bytes_total",
                                "Bytes that were read from the memory of profiled processes.")),
      failed_(metrics.AddCounter("tributary_collector_runtime_memory_failed_reads_total",
                                 "Reads of the memory of profiled processes that failed. Some failures are normal, "
                                 "because processes end.")),
      slow_counter_(metrics.AddCounter("tributary_collector_runtime_memory_slow_processes_total",
                                       "Processes whose memory is not read any more, because a read took longer than "
                                       "a second. Their functions of language runtimes have no names.")) {}

std::unique_ptr<ProcessMemory> ProcessMemoryReader::Open(Pid pid, std::string group) {
  return std::make_unique<Memory>(*this, pid, std::move(group));
}

bool ProcessMemoryReader::IsSlow(Pid pid) const {
  std::lock_guard lock(mutex_);
  return IsSlowLocked(pid);
}

bool ProcessMemoryReader::IsSlowLocked(Pid pid) const {
  if (slow_.contains(pid.value)) return true;
  MonotonicNs now = clock_.Monotonic();
  for (const Running& read : running_) {
    if (read.pid == pid && now.value - read.since.value > kDeadlineNs) return true;
  }
  return false;
}

void ProcessMemoryReader::Forget(Pid pid) {
  std::lock_guard lock(mutex_);
  slow_.erase(pid.value);
}

absl::StatusOr<ProcessMemoryReader::RunningReads::iterator> ProcessMemoryReader::Begin(Pid pid,
                                                                                       const std::string& group) {
  std::lock_guard lock(mutex_);
  if (IsSlowLocked(pid)) {
    failed_.Add();
    return Error(absl::StatusCode::kPermissionDenied,
                 fmt::format("read the memory of process {}: an earlier read took too long", pid.value));
  }
  const bool is_occupied = !group.empty() && std::any_of(running_.begin(), running_.end(),
                                                         [&](const Running& read) { return read.group == group; });
  if (is_occupied) {
    failed_.Add();
    return Error(absl::StatusCode::kUnavailable,
                 fmt::format("read the memory of process {}: a read of its container is stuck", pid.value));
  }
  running_.push_back({pid, group, clock_.Monotonic()});
  return std::prev(running_.end());
}

bool ProcessMemoryReader::End(RunningReads::iterator read) {
  std::lock_guard lock(mutex_);
  bool in_time = clock_.Monotonic().value - read->since.value <= kDeadlineNs;
  if (!in_time) AddSlow(read->pid);
  running_.erase(read);
  return in_time;
}

void ProcessMemoryReader::AddSlow(Pid pid) {
  if (!slow_.insert(pid.value).second) return;
  slow_counter_.Add();
  slow_order_.push_back(pid);
  if (slow_order_.size() <= kSlowMax) return;
  slow_.erase(slow_order_.front().value);
  slow_order_.pop_front();
}

}  // namespace tributary
