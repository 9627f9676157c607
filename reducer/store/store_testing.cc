#include "reducer/store/store_testing.h"

namespace tributary::store {

TestCollector::TestCollector(std::string node_id, uint8_t session) : info_(std::make_shared<SessionInfo>()) {
  info_->session_id.fill(session);
  info_->host_name = "host-of-" + node_id;
  info_->node_id = std::move(node_id);
  info_->boot_id = "0b00";
  info_->kernel_release = "6.1.0";
  info_->architecture = "amd64";
  info_->agent_version = "0.1.0";
  info_->cpu_count = 2;
  info_->sample_rate_hz = 19;
}

ThreadRef TestCollector::Thread(int pid, std::string_view name) {
  Process process;
  process.key = ProcessKey{Pid{pid}, pid * 1000, 1};
  process.parent = Pid{1};
  process.comm = dictionary_->InternString(name);
  process.executable =
      dictionary_->InternExecutable(*ExecutableId::Make(ExecutableIdKind::kGnuBuildId, "main-exe"), "/usr/bin/main");
  process.executable_path = dictionary_->InternString("/usr/bin/main");
  process.container_id = dictionary_->InternString("c0ffee");
  process.cgroup_path = dictionary_->InternString("/docker/c0ffee");
  return dictionary_->InternThread({dictionary_->InternProcess(process), Tid{pid}, dictionary_->InternString(name)});
}

NodeRef TestCollector::Stack(const std::vector<uint64_t>& addresses) {
  ExecutableRef executable =
      dictionary_->InternExecutable(*ExecutableId::Make(ExecutableIdKind::kGnuBuildId, "lib"), "/lib/libc.so");
  NodeRef node;
  for (uint64_t address : addresses) {
    FrameRef frame = dictionary_->InternFrame({FrameKind::kNative, address != addresses.back(), executable, address});
    node = dictionary_->InternNode({node, frame});
  }
  return node;
}

void TestCollector::Add(UnixNs time, ThreadRef thread, NodeRef node, uint64_t value, Ending ending) {
  Sample sample;
  sample.time = Monotonic(time);
  sample.thread = thread;
  sample.node = node;
  sample.value = value;
  sample.ending = ending;
  samples_.push_back(sample);
  ++accounting_.captured;
}

void TestCollector::Lose(LossReason reason, uint64_t samples) {
  accounting_.captured += samples;
  accounting_.lost[static_cast<size_t>(reason)] += samples;
}

intake::DictionaryCounts TestCollector::Counts() const {
  intake::DictionaryCounts counts;
  counts.strings = dictionary_->string_count();
  counts.executables = dictionary_->executable_count();
  counts.frames = dictionary_->frame_count();
  counts.nodes = dictionary_->node_count();
  counts.processes = dictionary_->process_count();
  counts.threads = dictionary_->thread_count();
  return counts;
}

intake::Definitions TestCollector::Since(const intake::DictionaryCounts& before) const {
  intake::Definitions made;
  for (uint32_t i = before.strings; i < dictionary_->string_count(); ++i) {
    made.strings.emplace_back(dictionary_->string(StringRef{i}));
  }
  for (uint32_t i = before.executables; i < dictionary_->executable_count(); ++i) {
    made.executables.push_back(dictionary_->executable(ExecutableRef{i}));
  }
  for (uint32_t i = before.frames; i < dictionary_->frame_count(); ++i) {
    made.frames.push_back(dictionary_->frame(FrameRef{i}));
  }
  for (uint32_t i = before.nodes; i < dictionary_->node_count(); ++i)
    made.nodes.push_back(dictionary_->node(NodeRef{i}));
  for (uint32_t i = before.processes; i < dictionary_->process_count(); ++i) {
    made.processes.push_back(dictionary_->process(ProcessRef{i}));
  }
  for (uint32_t i = before.threads; i < dictionary_->thread_count(); ++i) {
    made.threads.push_back(dictionary_->thread(ThreadRef{i}));
  }
  return made;
}

PendingBatch TestCollector::Take(UnixNs closed) {
  PendingBatch pending;
  pending.session = info_;
  pending.batch.sequence = ++sequence_;
  pending.batch.generation = generation_;
  pending.batch.derived = std::exchange(derived_, std::nullopt);
  pending.batch.before = sent_;
  pending.batch.definitions = Since(sent_);
  pending.batch.clock = {Monotonic(closed), closed};
  pending.batch.accounting = accounting_;
  pending.batch.samples = std::exchange(samples_, {});
  sent_ = Counts();
  return pending;
}

void TestCollector::Evict(Eviction eviction) {
  derived_ = intake::DerivedFrom{generation_, eviction};
  dictionary_ = std::make_shared<Dictionary>(dictionary_, std::move(eviction));
  ++generation_;
  sent_ = Counts();
}

void TestCollector::StartGeneration() {
  ++generation_;
  derived_.reset();
  sent_ = {};
}

PendingBatch TestCollector::Resend(const PendingBatch& pending) {
  PendingBatch again = pending;
  again.batch.generation = generation_;
  again.batch.before = sent_;
  again.batch.definitions = Since(sent_);
  sent_ = Counts();
  return again;
}

Totals TotalsOf(StoreReader& reader) {
  Totals totals;
  absl::StatusOr<std::vector<NodeStatus>> nodes = reader.Nodes();
  TRIBUTARY_CHECK(nodes.ok());
  for (const NodeStatus& node : *nodes) {
    totals.captured += node.accounting.captured;
    totals.lost += node.accounting.TotalLost();
    totals.stored += node.stored;
    for (uint64_t n : node.endings) totals.endings += n;
  }
  return totals;
}

}  // namespace tributary::store
