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
  accounting_.captured += 1;
}

void TestCollector::Add(UnixNs time, ProcessEvent event) {
  event.time = Monotonic(time);
  events_.push_back(event);
  accounting_.captured.AddEvents(event.events);
}

void TestCollector::Lose(LossReason reason, const SampleCounts& records) {
  accounting_.captured += records;
  accounting_.LostFor(reason) += records;
}

ProcessEvent TestCollector::Event(ProcessEventKind kind, int pid, std::string_view name) {
  return {.kind = kind,
          .pid = Pid{pid},
          .parent = Pid{1},
          .start_time_ns = pid * 1000,
          .name = dictionary_->InternString(name),
          .executable_path = dictionary_->InternString("/bin/" + std::string(name)),
          .container_id = dictionary_->InternString("c0ffee"),
          .cgroup_path = dictionary_->InternString("/docker/c0ffee")};
}

RowBatch TestCollector::Take(UnixNs closed) {
  RowBatch pending;
  pending.SetSession(info_);
  pending.sequence = ++sequence_;
  pending.generation = generation_;
  pending.derived = std::exchange(derived_, std::nullopt);
  pending.before = sent_;
  pending.definitions = dictionary_->DefinedSince(sent_);
  pending.clock = {Monotonic(closed), closed};
  pending.accounting = accounting_;
  pending.samples = std::exchange(samples_, {});
  pending.events = std::exchange(events_, {});
  sent_ = dictionary_->counts();
  return pending;
}

void TestCollector::Evict(Eviction eviction) {
  derived_ = DerivedFrom{generation_, eviction};
  dictionary_ = std::make_shared<Dictionary>(dictionary_, std::move(eviction));
  ++generation_;
  sent_ = dictionary_->counts();
}

void TestCollector::StartGeneration() {
  ++generation_;
  derived_.reset();
  sent_ = {};
}

RowBatch TestCollector::Resend(const RowBatch& pending) {
  RowBatch again = pending;
  again.generation = generation_;
  again.before = sent_;
  again.definitions = dictionary_->DefinedSince(sent_);
  sent_ = dictionary_->counts();
  return again;
}

Totals TotalsOf(StoreReader& reader) {
  Totals totals;
  absl::StatusOr<std::vector<NodeStatus>> nodes = reader.Nodes();
  TRIBUTARY_CHECK(nodes.ok());
  for (const NodeStatus& node : *nodes) {
    totals.captured += node.accounting.captured.total();
    totals.lost += node.accounting.TotalLost().total();
    totals.stored += node.stored.total();
    for (uint64_t n : node.endings) totals.endings += n;
  }
  return totals;
}

}  // namespace tributary::store
