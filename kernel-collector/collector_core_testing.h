#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "kernel-collector/collector_core.h"
#include "kernel-collector/probes/fake_unwind_maps_testing.h"
#include "kernel-collector/processes/cgroup_walk.h"
#include "kernel-collector/processes/fakes_testing.h"

// Runs a CollectorCore with a fake kernel side and a fake sink.
namespace tributary {

using testing::ElementsAre;

// A fake kernel side. It delivers the samples and events that the test adds, and counts the samples.
class FakeProbes : public Probes {
 public:
  absl::Status StartSampling() override { return absl::OkStatus(); }
  void StopSampling() override { stopped = true; }
  size_t DrainSamples(const std::function<void(const SampleRecord&)>& visit) override {
    size_t count = ring.size() + copies.size();
    for (const auto& words : std::exchange(ring, {})) {
      auto record = SampleRecord::FromSample({reinterpret_cast<const uint8_t*>(words.data()), words.size() * 8});
      EXPECT_TRUE(record);
      if (record) visit(*record);
    }
    for (const auto& words : std::exchange(copies, {})) {
      auto record = SampleRecord::FromCopy({reinterpret_cast<const uint8_t*>(words.data()), words.size() * 8});
      EXPECT_TRUE(record);
      if (record) visit(*record);
    }
    return count;
  }
  void DrainSideband(SidebandVisitor& visitor) override {
    for (const auto& event : std::exchange(events, {})) event(visitor);
  }
  void DrainProcessEvents(const std::function<void(const trib_process_event&)>& visit) override {
    for (const trib_process_event& event : std::exchange(process_events, {})) visit(event);
  }
  bool ListProcesses(const std::function<void(const trib_process_event&)>& visit) override {
    for (const trib_process_event& event : running) visit(event);
    process_events.insert(process_events.end(), during_list.begin(), during_list.end());
    return list_is_complete;
  }
  void AddEventsMade(uint64_t made) override { accounting.captured.AddEvents(made); }
  void FollowHotplug() override {}
  Accounting ReadAccounting() override { return accounting; }
  bool has_build_ids() const override { return true; }
  UnwindMaps& unwind_maps() override { return maps; }
  PinnedSession& pinned_session() override { return pins; }
  LiveProcesses& live_processes() override { return live; }
  int wakeup_fd() const override { return -1; }
  absl::Status SetPeriod(uint64_t) override { return absl::OkStatus(); }
  uint64_t ReadRunNs() override { return 0; }

  FakeUnwindMaps maps;
  PinnedSession pins;
  LiveProcesses live;
  std::vector<trib_process_event> process_events, running;
  std::vector<trib_process_event> during_list;  // arrive while the list is read
  bool list_is_complete = true;
  std::vector<std::vector<uint64_t>> ring, copies;
  std::vector<std::function<void(SidebandVisitor&)>> events;
  Accounting accounting;
  bool stopped = false;
};

class FakeSink : public BatchSink {
 public:
  absl::Status Take(Batch batch) override {
    batches.push_back(std::move(batch));
    return absl::OkStatus();
  }
  std::vector<Batch> batches;
};

struct SampleSpec {
  int64_t time = 0;
  uint32_t pid = 0;
  uint64_t start_ns = 1'000'000'000;
  std::vector<uint64_t> user, kernel;
  uint32_t flags = 0;
  uint32_t tid = 0;  // 0 = pid
  std::string comm = "prog";
  uint64_t cgroup = 0;
  trib_stop stop = TRIB_STOP_FRAME_POINTER_END;
  uint64_t exec_id = 1;
  uint32_t table = 0;
  std::vector<uint64_t> chains;  // of language runtimes
};

class CollectorCoreTest : public testing::Test {
 protected:
  CollectorCoreTest() {
    options.proc_root = proc.proc();
    options.cgroup_root = proc.cgroup();
    options.sys_root = proc.sys();
    proc.SetKernel({.text_begin = 0xffffffff81000000,
                    .text_end = 0xffffffff82000000,
                    .module = "ext4",
                    .module_base = 0xffffffffc0000000,
                    .module_size = 0x1000});
    proc.AddProcess(1, {});  // its root is the root of the host
    proc.AddFile("/bin/a", TinyElf("build-a"));
    proc.AddFile("/bin/b", TinyElf("build-b"));
  }

  CollectorCore& core() {
    if (core_ != nullptr) return *core_;
    core_ = std::make_unique<CollectorCore>(probes, sink, executor, clock, metrics, options);
    // ReadNow drains the probes, but it must not drain the records that the test has already added.
    auto ring = std::exchange(probes.ring, {}), copies = std::exchange(probes.copies, {});
    auto events = std::exchange(probes.events, {});
    core_->kernel_code().ReadNow();
    probes.ring = std::move(ring);
    probes.copies = std::move(copies);
    probes.events = std::move(events);
    return *core_;
  }

  void Sample(const SampleSpec& s) {
    std::vector<uint64_t> words(TRIB_SAMPLE_HEADER_BYTES / 8);
    auto* record = reinterpret_cast<trib_sample*>(words.data());
    record->time_ns = static_cast<uint64_t>(s.time);
    record->value = 1000;
    record->type = TRIB_TYPE_CPU;
    record->start_time_ns = s.start_ns;
    record->cgroup_v2_id = s.cgroup;
    record->pid = s.pid;
    record->tid = s.tid == 0 ? s.pid : s.tid;
    record->cpu = 3;
    record->flags = s.flags;
    record->stop = s.user.empty() ? TRIB_STOP_NONE : s.stop;
    record->exec_id = s.exec_id;
    record->table = s.table;
    record->kernel_frames = static_cast<uint16_t>(s.kernel.size());
    record->user_frames = static_cast<uint16_t>(s.user.size());
    record->runtime_words = static_cast<uint16_t>(s.chains.size());
    std::memcpy(record->comm, s.comm.data(), std::min<size_t>(s.comm.size(), TRIB_COMM_BYTES));
    words.insert(words.end(), s.kernel.begin(), s.kernel.end());
    words.insert(words.end(), s.user.begin(), s.user.end());
    words.insert(words.end(), s.chains.begin(), s.chains.end());
    probes.ring.push_back(std::move(words));
    probes.accounting.captured += 1;
  }
  // Adds a sample with a copy of the stack: the registers of the last frame, and the words above its stack pointer.
  void Copy(const SampleSpec& s, uint64_t sp, uint64_t fp, uint64_t start_stack, const std::vector<uint64_t>& stack) {
    Sample(s);
    std::vector<uint64_t> words = std::move(probes.ring.back());
    probes.ring.pop_back();
    words.resize((TRIB_COPY_HEADER_BYTES + TRIB_COPY_BYTES_SMALL) / 8);
    auto* copy = reinterpret_cast<trib_copy*>(words.data());
    copy->sample.stack_bytes = static_cast<uint32_t>(stack.size() * 8);
    copy->resume = {.pc = s.user.back(), .sp = sp, .fp = fp, .second = 0, .start_stack = start_stack};
    std::memcpy(words.data() + TRIB_COPY_HEADER_BYTES / 8, stack.data(), stack.size() * 8);
    probes.copies.push_back(std::move(words));
  }
  void Mmap(int64_t time, int pid, uint64_t start, std::string path, std::string build_id) {
    probes.events.push_back([=](SidebandVisitor& v) {
      MmapEvent event{.time = MonotonicNs{time}, .pid = Pid{pid}, .tid = Tid{pid}, .start = start, .length = 0x1000};
      event.file_offset = 0x1000;
      event.build_id = BuildId(build_id);
      event.executable = true;
      event.path = path;
      v.OnMmap(event);
    });
  }
  void Exec(int64_t time, int pid, std::string comm) {
    probes.events.push_back([=](SidebandVisitor& v) {
      v.OnComm(CommEvent{.time = MonotonicNs{time}, .pid = Pid{pid}, .tid = Tid{pid}, .exec = true, .comm = comm});
    });
  }
  void Fork(int64_t time, int parent, int pid) {
    probes.events.push_back([=](SidebandVisitor& v) {
      v.OnFork(ForkEvent{MonotonicNs{time}, Pid{pid}, Pid{parent}, Tid{pid}, Tid{parent}});
    });
  }
  void Exit(int64_t time, int pid) {
    probes.events.push_back([=](SidebandVisitor& v) { v.OnExit(ExitEvent{MonotonicNs{time}, Pid{pid}, Tid{pid}}); });
  }
  void KernelCode(int64_t time, uint64_t start, std::string name, bool gone = false) {
    probes.events.push_back([=](SidebandVisitor& v) {
      v.OnKernelCode(
          {.time = MonotonicNs{time}, .start = start, .length = 64, .is_bpf = true, .gone = gone, .name = name});
    });
  }
  void Lost() {
    probes.events.push_back([](SidebandVisitor& v) { v.OnLost(LostEvent{7}); });
  }

  uint64_t MakeCgroup(const std::string& path) {
    FakeProc::Write(proc.cgroup() + "/cgroup.controllers", "");
    std::filesystem::create_directories(proc.cgroup() + path);
    return CgroupIdOf(proc.cgroup() + path);
  }

  // Polls and runs all jobs, until a sample no longer has to wait for a job.
  void Settle() {
    core().Poll();
    executor.RunAll();
    core().Poll();
    executor.RunAll();
    core().Poll();
  }

  // Returns "pid/exec_sequence comm: root;…;leaf". A frame that is a caller begins with '<'.
  static std::string Show(const Batch& batch, const tributary::Sample& sample) {
    const Dictionary& d = *batch.dictionary;
    const Thread& thread = d.thread(sample.thread);
    const Process& process = d.process(thread.process);
    std::vector<std::string> frames;
    for (NodeRef node = sample.node; node.value != 0; node = d.node(node).parent) {
      const Frame& f = d.frame(d.node(node).frame);
      std::string_view path = d.string(d.executable(f.executable).path);
      frames.push_back(
          fmt::format("{}{}+{:x}", f.is_caller ? "<" : "", f.executable.value != 0 ? path : "?", f.address));
    }
    std::reverse(frames.begin(), frames.end());
    return fmt::format("{}/{} {}: {}", process.key.pid.value, process.key.exec_sequence, d.string(process.comm),
                       fmt::join(frames, ";"));
  }
  std::vector<std::string> Flushed() {
    core().FlushBatch();
    std::vector<std::string> out;
    for (const auto& sample : sink.batches.back().samples) out.push_back(Show(sink.batches.back(), sample));
    return out;
  }
  const Process& ProcessOf(size_t sample) {
    const Batch& batch = sink.batches.back();
    return batch.dictionary->process(batch.dictionary->thread(batch.samples[sample].thread).process);
  }

  FakeProc proc;
  FakeClock clock{MonotonicNs{100 * kNsPerSecond}};
  Metrics metrics;
  FakeExecutor executor;
  FakeProbes probes;
  FakeSink sink;
  CoreOptions options;
  std::unique_ptr<CollectorCore> core_;
};

inline constexpr int64_t kT = 50 * kNsPerSecond;

}  // namespace tributary
