#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "profile/batch.h"
#include "symbols/packed_table.h"
#include "symbols/symbol_builder.h"
#include "symbols/symbol_codec.h"

// For tests: batches of a small program with functions at 0x1000 and 0x2000, and its symbol table.

namespace tributary {

inline constexpr uint64_t kPeriodNs = 52'631'578;

inline ExecutableId TestId(std::string_view bytes) { return *ExecutableId::Make(ExecutableIdKind::kGnuBuildId, bytes); }

// `padding`: bytes of further names, which make the table larger.
inline PackedTable TableFor(const ExecutableId& id, size_t padding = 0) {
  const std::string long_name(padding, 'x');
  std::vector<SymbolRange> functions = {{.address = 0x1000, .size = 0x100, .name = "_Z4mainv"},
                                        {.address = 0x2000, .size = 0x100, .name = "helper"}};
  if (padding > 0) functions.push_back({.address = 0x3000, .size = 0x100, .name = long_name});
  return PackedTable::Of(EncodeSymbolTable(*BuildSymbolTable(id, SymbolSource::kSymtab, functions)));
}

// Builds batches with one dictionary.
class TestBatches {
 public:
  // Adds a sample at a stack with this leaf, called from 0x1011.
  void Add(std::string_view program, uint64_t leaf_address, int64_t time_ns = 1000) {
    Dictionary& d = *dictionary_;
    const ExecutableRef file = d.InternExecutable(TestId(program), std::string("/bin/").append(program));
    Process process;
    process.key = {Pid{5}, 7, 0};
    process.comm = d.InternString(program);
    process.executable = file;
    process.executable_path = d.InternString(std::string("/bin/").append(program));
    process.attributes = d.InternString(own_attributes);
    process.container_id = d.InternString(container_id);
    process.cgroup_path = d.InternString(cgroup_path);
    Sample sample;
    sample.time = MonotonicNs{time_ns};
    sample.thread = d.InternThread({d.InternProcess(process), Tid{6}, d.InternString("worker")});
    const std::vector<Frame> stack = {
        {.kind = FrameKind::kNative, .is_caller = true, .executable = file, .address = 0x1011},
        {.kind = FrameKind::kNative, .executable = file, .address = leaf_address}};
    sample.node = d.InternStack(stack);
    sample.ending = Ending::kComplete;
    sample.value = kPeriodNs;
    batch_.samples.push_back(sample);
  }
  // Adds an event of a process with the pid and start time that Add uses.
  void AddEvent(ProcessEventKind kind, std::string_view program, int64_t time_ns = 1000, uint32_t events = 1) {
    Dictionary& d = *dictionary_;
    ProcessEvent event;
    event.time = MonotonicNs{time_ns};
    event.kind = kind;
    event.pid = Pid{5};
    event.start_time_ns = 7;
    event.name = d.InternString(program);
    event.executable_path = d.InternString(std::string("/bin/").append(program));
    event.container_id = d.InternString(container_id);
    event.cgroup_path = d.InternString(cgroup_path);
    event.events = events;
    batch_.events.push_back(event);
  }
  Batch Take() {
    Batch batch = std::exchange(batch_, {});
    batch.sequence = ++sequence_;
    batch.clock = {MonotonicNs{2000}, UnixNs{1'700'000'000'000'002'000}};
    batch.dictionary = dictionary_;
    return batch;
  }
  Dictionary& dictionary() { return *dictionary_; }

  std::string own_attributes, container_id, cgroup_path;

 private:
  std::shared_ptr<Dictionary> dictionary_ = std::make_shared<Dictionary>();
  Batch batch_;
  uint64_t sequence_ = 0;
};

}  // namespace tributary
