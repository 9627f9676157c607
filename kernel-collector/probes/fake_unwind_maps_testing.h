#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "base/status.h"
#include "kernel-collector/probes/unwind_maps.h"

namespace tributary {

// Fake UnwindMaps in ordinary memory, for tests. They take 4 MiB, and 8 MiB per chunk.
class FakeUnwindMaps : public UnwindMaps {
 public:
  std::span<uint64_t> rules() override { return rules_; }
  std::span<uint64_t> pages() override { return pages_; }
  std::span<uint64_t> touches() override { return touches_; }
  std::span<trib_mapping> mappings() override { return mappings_; }
  bool Access(std::span<const std::byte> part) override {
    const bool is_rules = part.data() >= std::as_bytes(rules()).data() && part.data() <= &std::as_bytes(rules()).back();
    return has_memory && (has_memory_for_rules || !is_rules);
  }

  void CountWithdrawal() override { ++withdrawals; }
  absl::StatusOr<std::span<uint64_t>> AddChunk() override {
    if (chunks.size() >= chunks_max) return Error(absl::StatusCode::kResourceExhausted, "add a chunk of unwind rows");
    chunks.push_back(std::make_unique<std::vector<uint64_t>>(TRIB_CHUNK_ELEMENTS));
    return std::span<uint64_t>(*chunks.back());
  }
  absl::Status SetProcess(Pid pid, const trib_process& process) override {
    if (processes.size() >= processes_max && !processes.contains(pid.value)) {
      return Error(absl::StatusCode::kResourceExhausted, "add a process to the walk");
    }
    processes[pid.value] = process;
    return absl::OkStatus();
  }
  void DropProcess(Pid pid) override { processes.erase(pid.value); }
  std::span<trib_runtime> runtimes() override { return runtimes_; }
  absl::Status SetInterpreter(const trib_executable_key& executable, uint32_t runtimes) override {
    const std::pair key(executable.inode, executable.device);
    if (interpreters.size() >= interpreters_max && !interpreters.contains(key)) {
      return Error(absl::StatusCode::kResourceExhausted, "add an interpreter to the walk");
    }
    interpreters[key] = runtimes;
    return absl::OkStatus();
  }
  void DropInterpreter(const trib_executable_key& executable) override {
    interpreters.erase({executable.inode, executable.device});
  }
  absl::Status WaitGrace() override {
    ++graces;
    return absl::OkStatus();
  }

  // Returns row number `row`, as the walk in the kernel reads it.
  uint32_t Row(uint32_t row) const {
    uint64_t pair = (*chunks.at(row / TRIB_CHUNK_ROWS))[row % TRIB_CHUNK_ROWS / 2];
    return static_cast<uint32_t>(row % 2 == 0 ? pair : pair >> 32);
  }
  // Returns the rule that the walk in the kernel would use at `offset` of a page with the entry `page`. The page must
  // be loaded.
  uint64_t Rule(uint64_t page, uint32_t offset) const {
    uint32_t first = static_cast<uint32_t>(page);
    auto count = static_cast<uint32_t>(page >> TRIB_PAGE_ROWS_SHIFT & TRIB_PAGE_ROWS_MASK);
    if (count == 0) return rules_.at(first);
    uint32_t row = first;
    while (row + 1 < first + count && Row(row + 1) >> 16 <= offset) ++row;
    return rules_.at(Row(row) & 0xffff);
  }

  size_t chunks_max = TRIB_CHUNKS_MAX, processes_max = TRIB_PROCESSES_MAX;
  size_t interpreters_max = TRIB_INTERPRETERS_MAX;
  std::vector<std::unique_ptr<std::vector<uint64_t>>> chunks;
  std::map<int32_t, trib_process> processes;
  std::map<std::pair<uint64_t, uint32_t>, uint32_t> interpreters;  // by inode and device
  int graces = 0, withdrawals = 0;
  bool has_memory = true, has_memory_for_rules = true;

 private:
  std::vector<uint64_t> rules_ = std::vector<uint64_t>(TRIB_RULES_MAX);
  std::vector<uint64_t> pages_ = std::vector<uint64_t>(TRIB_PAGES_MAX);
  std::vector<uint64_t> touches_ = std::vector<uint64_t>(TRIB_TOUCHES_MAX);
  std::vector<trib_mapping> mappings_ = std::vector<trib_mapping>(TRIB_MAPPINGS_MAX);
  std::vector<trib_runtime> runtimes_ = std::vector<trib_runtime>(TRIB_RUNTIMES_MAX);
};

}  // namespace tributary
