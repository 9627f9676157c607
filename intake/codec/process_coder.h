#pragma once

#include <cstdint>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "base/varint.h"
#include "intake/codec/columns.h"
#include "profile/model.h"

namespace tributary::intake {

// Encodes and decodes the process definitions of one message, as differences from the previous process and from the
// last process with the same comm. Each end creates one ProcessCoder per message.
class ProcessCoder {
 public:
  static constexpr unsigned kFields = 10;

  void Write(const Process& process, std::string& to) {
    const int64_t start_units = process.key.start_time_ns / kWireTimeUnitNs;
    AppendSignedVarint(to, int64_t{process.key.pid.value} - last_.key.pid.value);
    AppendSignedVarint(to, start_units - last_.key.start_time_ns / kWireTimeUnitNs);
    AppendSignedVarint(to, process.key.start_time_ns - start_units * kWireTimeUnitNs);
    AppendVarint(to, process.key.exec_sequence);
    AppendVarint(
        to, process.parent == last_.parent ? 0 : ZigZag(int64_t{process.key.pid.value} - process.parent.value) + 1);
    AppendVarint(to, process.comm.value);
    const Process& like = Like(process.comm);
    AppendDifference(process.executable.value, like.executable.value, to);
    AppendDifference(process.executable_path.value, like.executable_path.value, to);
    AppendDifference(process.container_id.value, like.container_id.value, to);
    AppendDifference(process.cgroup_path.value, like.cgroup_path.value, to);
    Learn(process);
  }

  // Reads one process. Checks that each number fits its type. Does not check that references are defined. Returns false
  // if the input is malformed.
  bool Read(VarintReader& from, Process* out) {
    int64_t pid = 0, units = 0, rest = 0;
    uint64_t exec = 0, parent = 0, comm = 0;
    if (!from.ReadSigned(&pid) || !from.ReadSigned(&units) || !from.ReadSigned(&rest) || !from.Read(&exec) ||
        !from.Read(&parent) || !from.Read(&comm)) {
      return false;
    }
    const __int128 start = (__int128{last_.key.start_time_ns / kWireTimeUnitNs} + units) * kWireTimeUnitNs + rest;
    const __int128 pid_now = __int128{last_.key.pid.value} + pid;
    if (start > INT64_MAX || start < INT64_MIN || !IsInt32(pid_now) || exec > UINT32_MAX || comm > UINT32_MAX)
      return false;
    out->key = {Pid{static_cast<int32_t>(pid_now)}, static_cast<int64_t>(start), static_cast<uint32_t>(exec)};
    const __int128 parent_now = parent == 0 ? __int128{last_.parent.value} : pid_now - UnZigZag(parent - 1);
    if (!IsInt32(parent_now)) return false;
    out->parent = Pid{static_cast<int32_t>(parent_now)};
    out->comm = StringRef{static_cast<uint32_t>(comm)};
    const Process& like = Like(out->comm);
    const bool ok = ReadDifference(from, like.executable.value, &out->executable.value) &&
                    ReadDifference(from, like.executable_path.value, &out->executable_path.value) &&
                    ReadDifference(from, like.container_id.value, &out->container_id.value) &&
                    ReadDifference(from, like.cgroup_path.value, &out->cgroup_path.value);
    if (ok) Learn(*out);
    return ok;
  }

 private:
  static bool IsInt32(__int128 value) { return value >= INT32_MIN && value <= INT32_MAX; }
  static void AppendDifference(uint32_t value, uint32_t like, std::string& to) {
    AppendVarint(to, value == like ? 0 : uint64_t{value} + 1);
  }
  static bool ReadDifference(VarintReader& from, uint32_t like, uint32_t* out) {
    uint64_t code = 0;
    if (!from.Read(&code) || code > uint64_t{UINT32_MAX} + 1) return false;
    *out = code == 0 ? like : static_cast<uint32_t>(code - 1);
    return true;
  }

  const Process& Like(StringRef comm) const {
    const auto it = by_comm_.find(comm.value);
    return it != by_comm_.end() ? it->second : last_;
  }
  void Learn(const Process& process) { by_comm_[process.comm.value] = last_ = process; }

  Process last_;
  absl::flat_hash_map<uint32_t, Process> by_comm_;
};

// Encodes and decodes the thread definitions of one message. They need little space: the tid of a process's first
// thread is mostly the pid, and its name is mostly the comm.
class ThreadCoder {
 public:
  explicit ThreadCoder(uint32_t processes_before) : last_process_(processes_before - 1) {}

  // `of`: the thread's process if this message defines that process, else null.
  void Write(const Thread& thread, const Process* of, std::string& to) {
    AppendSignedVarint(to, int64_t{thread.process.value} - last_process_ - 1);
    last_process_ = thread.process.value;
    AppendSignedVarint(to, int64_t{thread.tid.value} - Base(of));
    last_tid_ = thread.tid.value;
    AppendVarint(to, of != nullptr && thread.name == of->comm ? 0 : uint64_t{thread.name.value} + 1);
  }
  // Reads the reference to the thread's process. The caller then calls ReadRest with the process if this message
  // defines it, else with null. Returns false if the input is malformed.
  bool ReadProcess(VarintReader& from, uint32_t processes, ProcessRef* out) {
    int64_t step = 0;
    if (!from.ReadSigned(&step)) return false;
    const __int128 process = __int128{last_process_} + 1 + step;
    if (process < 0 || process >= processes) return false;
    last_process_ = static_cast<uint32_t>(process);
    *out = ProcessRef{last_process_};
    return true;
  }
  bool ReadRest(VarintReader& from, const Process* of, Thread* out) {
    int64_t step = 0;
    uint64_t name = 0;
    if (!from.ReadSigned(&step) || !from.Read(&name) || name > uint64_t{UINT32_MAX} + 1) return false;
    const __int128 tid = __int128{Base(of)} + step;
    if (tid < INT32_MIN || tid > INT32_MAX || (name == 0 && of == nullptr)) return false;
    last_tid_ = static_cast<int64_t>(tid);
    out->tid = Tid{static_cast<int32_t>(tid)};
    out->name = name == 0 ? of->comm : StringRef{static_cast<uint32_t>(name - 1)};
    return true;
  }

 private:
  int64_t Base(const Process* of) const { return of != nullptr ? of->key.pid.value : last_tid_; }

  uint32_t last_process_;
  int64_t last_tid_ = 0;
};

}  // namespace tributary::intake
