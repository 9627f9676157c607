#pragma once

#include <memory>
#include <random>
#include <string>

#include "intake/codec/batch_decoder.h"
#include "intake/codec/batch_encoder.h"
#include "intake/wire/messages.h"
#include "profile/batch.h"
#include "profile/dictionary.h"

// For tests: generates batches of a simulated machine with a few programs, from a random seed. Stacks repeat, grow and
// branch as on a real machine.

namespace tributary::intake {

class BatchGenerator {
 public:
  explicit BatchGenerator(uint64_t seed) : random_(seed), dictionary_(std::make_shared<Dictionary>()) {}

  // Starts a new, empty dictionary.
  void NewDictionary() {
    dictionary_ = std::make_shared<Dictionary>();
    running_.clear();
  }
  // Evicts the newest quarter of the nodes.
  void Evict() { dictionary_ = WithoutNewestNodes(dictionary_); }
  static std::shared_ptr<Dictionary> WithoutNewestNodes(const std::shared_ptr<const Dictionary>& from) {
    auto all = [](uint32_t count, uint32_t kept) {
      std::vector<bool> marks(count);
      for (uint32_t i = 0; i < kept; ++i) marks[i] = true;
      return KeptIds::FromMarks(marks);
    };
    const Dictionary& d = *from;
    return std::make_shared<Dictionary>(
        from, Eviction{all(d.string_count(), d.string_count()), all(d.executable_count(), d.executable_count()),
                       all(d.frame_count(), d.frame_count()), all(d.node_count(), d.node_count() - d.node_count() / 4),
                       all(d.process_count(), d.process_count()), all(d.thread_count(), d.thread_count())});
  }
  const std::shared_ptr<Dictionary>& dictionary() const { return dictionary_; }

  Batch Next(size_t samples, size_t events = 0) {
    Batch batch;
    batch.sequence = next_sequence_++;
    batch.samples.reserve(samples);
    for (size_t i = 0; i < samples; ++i) batch.samples.push_back(NextSample());
    for (size_t i = 0; i < events; ++i) batch.events.push_back(NextEvent());
    batch.clock = {now_, UnixNs{now_.value + 1'700'000'000 * kNsPerSecond}};
    accounting_.captured += CountRecords(batch);
    accounting_.idle += Below(10);
    batch.accounting = accounting_;
    batch.dictionary = dictionary_;
    return batch;
  }
  Accounting& accounting() { return accounting_; }

  // Returns an event of a process that starts, or that an earlier event named. Every eighth event is a sum. Its time is
  // a multiple of the wire's unit.
  ProcessEvent NextEvent() {
    now_.value += static_cast<int64_t>(Below(2'000'000));
    ProcessEvent event;
    if (running_.empty() || (running_.size() < 64 && Below(2) == 0)) {
      event.pid = Pid{static_cast<int32_t>(2000 + Below(30'000))};
      event.start_time_ns = now_.value;
      event.parent = Pid{running_.empty() || Below(2) == 0 ? 1 : running_[Below(running_.size())].pid.value};
      event.uid = Below(3) == 0 ? 0 : static_cast<uint32_t>(1000 + Below(2));
      Name(&event);
      running_.push_back(event);
    } else {
      const size_t at = Below(running_.size());
      event = running_[at];
      event.kind = static_cast<ProcessEventKind>(2 + Below(4));  // exec, exit, seen_running, end_unknown
      if (event.kind == ProcessEventKind::kExec) Name(&event);
      running_[at] = event;
      if (event.kind == ProcessEventKind::kExit) running_.erase(running_.begin() + static_cast<ptrdiff_t>(at));
    }
    event.time = now_;
    if (Below(8) == 0) {
      event.kind = ProcessEventKind::kSum;
      event.pid = Pid{};
      event.start_time_ns = 0;
      event.processes = static_cast<uint32_t>(1 + Below(1000));
      event.events = event.processes * 3;
    }
    if (event.has_end()) SetEnd(&event);
    return RoundedToWire(event);
  }

 private:
  static ProcessEvent RoundedToWire(ProcessEvent event) {
    event.time = RoundToWire(event.time);
    return event;
  }
  void Name(ProcessEvent* event) {
    const std::string name = "tool" + std::to_string(Below(20));
    event->name = dictionary_->InternString(name);
    event->executable_path = dictionary_->InternString("/usr/bin/" + name);
    event->container_id = Below(3) == 0 ? dictionary_->InternString(std::string(64, 'e')) : StringRef{};
    event->cgroup_path = dictionary_->InternString("/user.slice/" + std::to_string(Below(4)));
  }
  void SetEnd(ProcessEvent* event) {
    ProcessEnd& end = event->end;
    end.exit_code = static_cast<uint8_t>(Below(3));
    end.signal = Below(4) == 0 ? 9 : 0;
    end.core_dumped = Below(9) == 0;
    end.oom_killed = Below(9) == 0;
    end.run_ns = static_cast<uint64_t>(event->time.value - event->start_time_ns);
    end.user_ns = Below(100'000'000);
    end.system_ns = Below(100'000'000);
    end.peak_rss_bytes = Below(100'000) * 4096;
  }

  uint64_t Below(uint64_t n) { return std::uniform_int_distribution<uint64_t>(0, n - 1)(random_); }

  ProcessRef NextProcess(uint64_t n) {
    const std::string name = "program" + std::to_string(n);
    Process process;
    process.key = {Pid{static_cast<int32_t>(1000 + n)}, static_cast<int64_t>(n) * kNsPerSecond, 1};
    process.parent = Pid{1};
    process.comm = dictionary_->InternString(name);
    process.executable_path = dictionary_->InternString("/usr/bin/" + name);
    process.executable = Executable(n);
    process.container_id = n % 3 == 0 ? dictionary_->InternString(std::string(64, 'c')) : StringRef{};
    process.cgroup_path = dictionary_->InternString("/system.slice/" + name + ".service");
    process.attributes = n % 5 == 0 ? dictionary_->InternString("service.name=" + name) : StringRef{};
    return dictionary_->InternProcess(process);
  }
  ExecutableRef Executable(uint64_t n) {
    std::string id(20, static_cast<char>(n));
    return dictionary_->InternExecutable(*ExecutableId::Make(ExecutableIdKind::kGnuBuildId, id),
                                         "/usr/bin/program" + std::to_string(n));
  }

  Sample NextSample() {
    now_.value += static_cast<int64_t>(Below(2 * 5'000'000));
    const uint64_t program = Below(8);
    const ProcessRef process = NextProcess(program);
    Sample sample;
    sample.time = now_;
    sample.thread = dictionary_->InternThread(
        Thread{process, Tid{static_cast<int32_t>(1000 + program + Below(3) * 100)}, StringRef{}});
    NodeRef node;
    // Outer frames vary little, and the leaf varies much.
    const uint64_t depth = 3 + Below(20);
    uint64_t function = program;
    for (uint64_t i = 0; i < depth; ++i) {
      const bool leaf = i + 1 == depth;
      function = function * 7 + (leaf ? Below(40) : Below(20) == 0 ? 1 : 0);
      node = dictionary_->InternNode(Node{node, dictionary_->InternFrame(Frame(program, function % 5000, leaf))});
    }
    sample.node = node;
    sample.type = Below(50) == 0 ? SampleType::kOffCpu : SampleType::kCpu;
    sample.ending = static_cast<Ending>(Below(20) == 0 ? Below(kEndingCount) : 1);
    sample.cpu = static_cast<uint16_t>(Below(2));
    sample.value = sample.type == SampleType::kCpu ? 52'631'578 : Below(kNsPerSecond);
    return sample;
  }
  tributary::Frame Frame(uint64_t program, uint64_t function, bool leaf) {
    tributary::Frame frame;
    frame.kind = function % 11 == 0 ? FrameKind::kKernel : FrameKind::kNative;
    frame.is_caller = !leaf;
    frame.executable = Executable(frame.kind == FrameKind::kKernel ? 100 : program);
    frame.address = 0x1000 + function * 64 + (leaf ? function % 13 : 0);
    return frame;
  }

  std::mt19937_64 random_;
  std::shared_ptr<Dictionary> dictionary_;
  uint64_t next_sequence_ = 1;
  MonotonicNs now_{1'000 * kNsPerSecond};
  Accounting accounting_;
  std::vector<ProcessEvent> running_;
};

// Returns a decoder in the state after it has received all definitions of `dictionary`.
inline BatchDecoder DecoderOf(uint32_t generation, const Dictionary& dictionary, DictionaryLimits limits = {}) {
  HeldNodes nodes;
  for (uint32_t i = 1; i < dictionary.frame_count(); ++i) {
    const tributary::Frame& frame = dictionary.frame(FrameRef{i});
    nodes.AppendFrame(frame, static_cast<uint8_t>(frame.kind));
  }
  for (uint32_t i = 1; i < dictionary.node_count(); ++i) nodes.Append(dictionary.node(NodeRef{i}));
  return {generation, dictionary.counts(), std::move(nodes), limits};
}

}  // namespace tributary::intake
