// Writes the first files of a set of golden files (schemas/golden/README.md) with the libraries of its own release. The
// output contains nothing of the machine: node, programs and times are made up.
//
//   golden_node --recording FILE      a session of node "golden-1", as a kernel-collector records it
//   golden_node --spool DIR           undelivered batches of node "golden-2": two segments, the first one claimed
//   golden_node --intake-port PORT    sends to the reducer at PORT: node "golden-3" with samples that are three hours
//                                     old, and the pods and rollouts that the watcher of cluster "golden" reports
//
// The first two commands write the same bytes each time.

#include <csignal>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/loop.h"
#include "base/metrics.h"
#include "base/options.h"
#include "base/status.h"
#include "base/tcp.h"
#include "intake/client/client.h"
#include "intake/client/delivery.h"
#include "intake/metadata/metadata_feed.h"
#include "intake/recording/recording.h"
#include "intake/spool/spool.h"
#include "intake/spool/spool_directory.h"
#include "profile/attributes.h"

namespace tributary {
namespace {

constexpr UnixNs kMade{1'790'000'000 * kNsPerSecond};  // the time of creation in recording and spool
constexpr int64_t kOldNs = 3 * 3600 * kNsPerSecond;
constexpr uint64_t kPeriodNs = 10'000'000;
constexpr uint64_t kFunctions = 40;  // per executable, 64 bytes each; `tributary replay --symbols 40` names them
constexpr char kPodUid[] = "11111111-2222-4333-8444-555555555555";
const std::string kContainer(64, 'c');

SessionInfo SessionOf(const std::string& node_id, uint8_t number) {
  SessionInfo session;
  session.session_id.fill(number);
  session.node_id = node_id;
  session.boot_id = "00000000-0000-4000-8000-00000000000" + std::to_string(number % 10);
  session.host_name = node_id;
  session.kernel_release = "6.1.0-40-amd64";
  session.architecture = "amd64";
  session.agent_version = "golden";
  session.cpu_count = 4;
  session.sample_rate_hz = 100;
  return session;
}

constexpr auto kHeap = static_cast<SampleType>(200);

// A machine with a service in a pod, a Go service outside any pod, and a kernel thread. Seeded.
class Machine {
 public:
  explicit Machine(uint64_t seed) : random_(seed) {
    kernel_ = Executable(ExecutableIdKind::kGnuBuildId, 'k', 20, "[kernel]");
    library_ = Executable(ExecutableIdKind::kGnuBuildId, 'l', 20, "/usr/lib/libgolden.so.1");
    const ExecutableRef web = Executable(ExecutableIdKind::kGnuBuildId, 'w', 20, "/usr/bin/web");
    const ExecutableRef worker = Executable(ExecutableIdKind::kGoBuildId, 'g', 16, "/usr/bin/worker");
    programs_[0] = {web, {Thread(web, 101, "web", 101, "shop"), Thread(web, 101, "web", 102, "shop")}};
    programs_[1] = {worker, {Thread(worker, 202, "worker", 202, "jobs")}};
    programs_[2] = {{}, {Thread({}, 7, "kworker/0:1", 7, "")}};
  }

  // The batch covers the second before `clock`. Its accounting is for this batch only: its samples plus `lost` samples.
  Batch Next(ClockPair clock, int samples, uint64_t lost) {
    Batch batch;
    batch.clock = clock;
    for (int i = 0; i < samples; ++i) {
      batch.samples.push_back(NextSample());
      batch.samples.back().time = MonotonicNs{clock.monotonic.value - kNsPerSecond + i * (kNsPerSecond / samples)};
      batch.accounting.captured.Add(batch.samples.back().type, 1);
    }
    AddEvents(batch);
    batch.sample_types = {{kHeap, {"heap_in_use", "bytes", Aggregation::kLast}}};
    batch.accounting.captured += SampleCounts(lost);
    batch.accounting.captured += CountRecords({}, batch.events);
    batch.accounting.idle = 50;
    batch.accounting.lost[static_cast<size_t>(LossReason::kRingFull)] = lost;
    batch.dictionary = dictionary_;
    return batch;
  }

 private:
  struct Program {
    ExecutableRef executable;
    std::vector<ThreadRef> threads;
  };

  uint64_t Below(uint64_t n) { return random_() % n; }

  ExecutableRef Executable(ExecutableIdKind kind, char letter, size_t bytes, std::string_view path) {
    return dictionary_->InternExecutable(*ExecutableId::Make(kind, std::string(bytes, letter)), path);
  }

  ThreadRef Thread(ExecutableRef executable, int32_t pid, const std::string& name, int32_t tid,
                   const std::string& service) {
    Process process;
    process.key = {Pid{pid}, int64_t{pid} * kNsPerSecond, 1};
    process.parent = Pid{pid == 7 ? 2 : 1};
    process.comm = dictionary_->InternString(name);
    process.executable = executable;
    if (executable.value != 0) process.executable_path = dictionary_->InternString("/usr/bin/" + name);
    if (service == "shop") {
      process.container_id = dictionary_->InternString(kContainer);
      process.cgroup_path = dictionary_->InternString(fmt::format("/kubepods/burstable/pod{}/{}", kPodUid, kContainer));
    }
    if (!service.empty()) {
      process.attributes = dictionary_->InternString(
          EncodeAttributes({{"service.name", service}, {"service.version", "1.0"}}, 4096, nullptr));
    }
    return dictionary_->InternThread({dictionary_->InternProcess(process), Tid{tid}, process.comm});
  }

  Sample NextSample() {
    const Program& program = programs_[Below(10) < 6 ? 0 : Below(10) < 8 ? 1 : 2];
    Sample sample;
    sample.thread = program.threads[Below(program.threads.size())];
    NodeRef node;
    const uint64_t depth = program.executable.value == 0 ? 0 : 2 + Below(4);
    for (uint64_t i = 0; i < depth; ++i) {
      node = Push(node, FrameKind::kNative, i < 2 ? program.executable : library_, i * 5 + Below(3), i + 1 < depth);
    }
    if (depth == 0 || Below(4) == 0) {
      node = Push(node, FrameKind::kKernel, kernel_, 1 + Below(2), true);
      node = Push(node, FrameKind::kKernel, kernel_, 10 + Below(5), false);
    }
    if (program.executable.value != 0 && Below(8) == 0) {
      Frame named;  // a frame that its source names, without an address
      named.kind = FrameKind::kGo;
      named.position = 17;
      named.name = dictionary_->InternString("main.handle");
      node = dictionary_->InternNode({node, dictionary_->InternFrame(named)});
    }
    sample.node = node;
    sample.type = Below(20) == 0 ? SampleType::kOffCpu : Below(20) == 0 ? kHeap : SampleType::kCpu;
    sample.value = sample.type == SampleType::kCpu ? kPeriodNs : 1'000'000 * (1 + Below(50));
    sample.ending = depth == 0 ? Ending::kKernelOnly : Below(25) == 0 ? Ending::kTruncatedDepth : Ending::kComplete;
    sample.cpu = static_cast<uint16_t>(Below(4));
    return sample;
  }

  // A shell of the service starts a program that fails. A crash loop is summed up. A process ends that the collector
  // has seen running.
  void AddEvents(Batch& batch) {
    const int64_t begin = batch.clock.monotonic.value - kNsPerSecond;
    ProcessEvent event;
    event.time = MonotonicNs{begin + 100 * kNsPerMs};
    event.pid = Pid{static_cast<int32_t>(1'000 + ++started_)};
    event.parent = Pid{101};
    event.start_time_ns = event.time.value;
    event.uid = 1000;
    event.name = dictionary_->InternString("web");
    event.executable_path = dictionary_->InternString("/usr/bin/web");
    event.container_id = dictionary_->InternString(kContainer);
    event.cgroup_path = dictionary_->InternString(fmt::format("/kubepods/burstable/pod{}/{}", kPodUid, kContainer));
    batch.events.push_back(event);
    event.kind = ProcessEventKind::kExec;
    event.time.value += kNsPerMs;
    event.name = dictionary_->InternString("check");
    event.executable_path = dictionary_->InternString("/usr/bin/check");
    batch.events.push_back(event);
    event.kind = ProcessEventKind::kExit;
    event.time.value += 20 * kNsPerMs;
    event.end = {.exit_code = static_cast<uint8_t>(started_ % 2),
                 .run_ns = 21'000'000,
                 .user_ns = 9'000'000,
                 .system_ns = 2'000'000,
                 .peak_rss_bytes = 3u << 20};
    batch.events.push_back(event);
    ProcessEvent sum = event;
    sum.kind = ProcessEventKind::kSum;
    sum.time.value += 500 * kNsPerMs;
    sum.pid = Pid{};
    sum.start_time_ns = 0;
    sum.processes = 40;
    sum.events = 120;
    sum.end = {.signal = 11, .core_dumped = true, .run_ns = 400'000'000, .user_ns = 80'000'000};
    batch.events.push_back(sum);
    ProcessEvent ended;
    ended.kind = started_ % 2 == 0 ? ProcessEventKind::kEndUnknown : ProcessEventKind::kSeenRunning;
    ended.time = batch.clock.monotonic;
    ended.pid = Pid{202};
    ended.parent = Pid{1};
    ended.start_time_ns = 202 * kNsPerSecond;
    ended.name = dictionary_->InternString("worker");
    ended.executable_path = dictionary_->InternString("/usr/bin/worker");
    batch.events.push_back(ended);
  }

  NodeRef Push(NodeRef parent, FrameKind kind, ExecutableRef executable, uint64_t function, bool is_caller) {
    Frame frame;
    frame.kind = kind;
    frame.is_caller = is_caller;
    frame.executable = executable;
    frame.address = function % kFunctions * 64 + (is_caller ? 9 : 4 + 4 * Below(2));
    return dictionary_->InternNode({parent, dictionary_->InternFrame(frame)});
  }

  std::mt19937_64 random_;
  std::shared_ptr<Dictionary> dictionary_ = std::make_shared<Dictionary>();
  ExecutableRef kernel_, library_;
  Program programs_[3];
  uint64_t started_ = 0;  // processes
};

void Describe(const std::string& node_id, intake::MetadataFeed& feed) {
  feed.Set(
      {EntityKind::kHost, node_id, {}, false, {{"host.id", node_id}, {"host.name", node_id}, {"os.type", "linux"}}});
  feed.Set({EntityKind::kContainer,
            kContainer,
            {},
            false,
            {{"container.id", kContainer}, {"container.image.name", "shop/web"}, {"container.image.tags", "1.0"}}});
  feed.SetComplete();
}

class NullSink : public BatchSink {
 public:
  absl::Status Take(Batch) override { return absl::OkStatus(); }
};

absl::Status WriteRecording(const std::string& path) {
  constexpr int kBatches = 5, kSamples = 120;
  Metrics metrics;
  NullSink nowhere;
  FakeClock clock(MonotonicNs{1'000 * kNsPerSecond}, kMade);
  const SessionInfo session = SessionOf("golden-1", 1);
  intake::MetadataFeed feed({}, clock, metrics);
  Describe(session.node_id, feed);
  ASSIGN_OR_RETURN(const std::unique_ptr<intake::RecordingSink> sink,
                   intake::RecordingSink::Open({.path = path, .metadata = &feed}, session, nowhere, clock, metrics));
  Machine machine(1);
  Accounting totals;
  for (int i = 0; i < kBatches; ++i) {
    clock.Advance(kNsPerSecond);
    Batch batch = machine.Next(clock.Pair(), kSamples, i == 2 ? 7 : 0);
    totals += batch.accounting;
    batch.accounting = totals;
    batch.sequence = static_cast<uint64_t>(i) + 1;
    RETURN_IF_ERROR(sink->Take(std::move(batch)));
  }
  return absl::OkStatus();
}

// Writes four batches, two per segment, each with events. The batches of the first segment were in flight to
// "reducer.golden.invalid" as batches 4 and 5 of a session that had reported 300 samples and 1,000 events before.
absl::Status WriteSpool(const std::string& directory) {
  Metrics metrics;
  FakeClock clock(MonotonicNs{2'000 * kNsPerSecond}, kMade);
  const SessionInfo session = SessionOf("golden-2", 2);
  ASSIGN_OR_RETURN(const std::unique_ptr<intake::SpoolStorage> storage, intake::OpenSpoolDirectory(directory));
  ASSIGN_OR_RETURN(const std::unique_ptr<intake::Spool> spool,
                   intake::Spool::Open({.segment_age_ns = 2 * kNsPerSecond}, *storage, session, clock, metrics,
                                       [](LossReason, const SampleCounts&, const Accounting&, bool) {}));
  Machine machine(2);
  for (int i = 0; i < 4; ++i) {
    RETURN_IF_ERROR(spool->Append(machine.Next(clock.Pair(), 50 + i, i == 3 ? 5 : 0)));
    clock.Advance(kNsPerSecond);
    spool->Tick();
  }
  const std::optional<intake::SpooledBatch> first = spool->Next();
  if (!first) return absl::InternalError("the spool is empty");
  intake::SpoolClaim claim{.host = "reducer.golden.invalid", .port = 8000, .first_sequence = 4};
  claim.session_id.fill(0x22);
  claim.base.captured = 300;
  claim.base.captured.AddEvents(1'000);
  return spool->Claim(first->segment, first->index, claim);
}

// Sends the old samples and the metadata of the cluster's watcher. Ends when the reducer has both.
class Sender {
 public:
  explicit Sender(uint16_t port)
      : tcp_(loop_),
        host_feed_({}, Clock::Real(), metrics_),
        cluster_feed_({}, Clock::Real(), metrics_),
        delivery_(loop_, tcp_, OptionsOf(port), Clock::Real(), metrics_,
                  {.need_symbols = [](const ExecutableId&) {},
                   .need_digest = {},
                   .lost = {},
                   .durable = {},
                   .earlier_reported = {}}),
        watcher_(loop_, tcp_, WatcherOptionsOf(port), Clock::Real(), metrics_,
                 {.next = [](uint64_t) -> std::optional<intake::Outgoing> { return std::nullopt; },
                  .acked = [](const intake::SendWindow::Entry&) {},
                  .rejected = [](const SampleCounts&) {},
                  .not_taken = {},
                  .need_symbols = [](const ExecutableId&) {},
                  .need_digest = {},
                  .changed = [] {}}),
        end_(loop_, [this] { loop_.Stop(); }) {}

  absl::Status Run() {
    Describe("golden-3", host_feed_);
    DescribeCluster();
    Machine machine(3);
    Accounting totals;
    for (int i = 0; i < 3; ++i) {
      Batch batch = machine.Next(now_, 100, i == 1 ? 4 : 0);
      for (Sample& sample : batch.samples) sample.time.value -= kOldNs - i * 60 * kNsPerSecond;
      for (ProcessEvent& event : batch.events) event.time.value -= kOldNs - i * 60 * kNsPerSecond;
      totals += batch.accounting;
      batch.accounting = totals;
      RETURN_IF_ERROR(delivery_.Take(std::move(batch)));
    }
    delivery_.Start();
    watcher_.Start();
    delivery_.Flush(20'000, [this](uint64_t undelivered) {
      undelivered_ = undelivered;
      end_.StartOnce(2'000);  // the watcher gets no acknowledgements
    });
    loop_.Run();
    if (undelivered_ == 0) return absl::OkStatus();
    return Error(absl::StatusCode::kUnavailable, fmt::format("not delivered: {} samples", undelivered_));
  }

 private:
  intake::DeliveryOptions OptionsOf(uint16_t port) {
    intake::DeliveryOptions options;
    options.reducers = {{"127.0.0.1", port}};
    options.client.session = SessionOf("golden-3", 3);
    options.client.metadata = &host_feed_;
    return options;
  }
  intake::ClientOptions WatcherOptionsOf(uint16_t port) {
    intake::ClientOptions options;
    options.port = port;
    options.role = intake::Role::kCluster;
    options.session = SessionOf("cluster/golden", 4);
    options.metadata = &cluster_feed_;
    return options;
  }
  void DescribeCluster() {
    const UnixNs from{now_.unix.value - kOldNs - 600 * kNsPerSecond};
    const auto set = [&](EntityKind kind, const std::string& id, Attributes attributes) {
      cluster_feed_.Set({kind, id, from, false, std::move(attributes)});
    };
    set(EntityKind::kCluster, "", {{"k8s.cluster.name", "golden"}, {"k8s.cluster.uid", "golden"}});
    set(EntityKind::kNamespace, "shop", {{"k8s.namespace.name", "shop"}});
    set(EntityKind::kK8sNode, "golden-3", {{"k8s.node.name", "golden-3"}});
    set(EntityKind::kPod, kPodUid,
        {{"k8s.deployment.name", "web"},
         {"k8s.namespace.name", "shop"},
         {"k8s.node.name", "golden-3"},
         {"k8s.pod.name", "web-1"},
         {"k8s.pod.uid", kPodUid}});
    set(EntityKind::kContainer, kContainer,
        {{"container.id", kContainer}, {"k8s.container.name", "web"}, {"k8s.pod.uid", kPodUid}});
    set(EntityKind::kRollout, "deployment/shop/web/0123abcd",
        {{"rollout.hash", "0123abcd"}, {"rollout.images", "shop/web:1.0"}});
    cluster_feed_.SetComplete();
  }

  const ClockPair now_ = Clock::Real().Pair();
  Loop loop_;
  TcpConnector tcp_;
  Metrics metrics_;
  intake::MetadataFeed host_feed_, cluster_feed_;
  intake::Delivery delivery_;
  intake::Client watcher_;
  Timer end_;
  uint64_t undelivered_ = 0;
};

absl::Status Run(int argc, char** argv) {
  std::string recording, spool;
  int64_t port = 0;
  Options options("golden_node", "Writes what a set of golden files begins with.");
  options.Add({.name = "recording", .help = "recording to write", .value_name = "FILE"}, &recording, "");
  options.Add({.name = "spool", .help = "spool directory to write", .value_name = "DIR"}, &spool, "");
  options.Add({.name = "intake-port", .help = "port of the reducer to send to", .value_name = "PORT"}, &port, 0, 0,
              65'535);
  ASSIGN_OR_RETURN(const Options::Outcome outcome, options.Parse(argc, argv, Options::ProcessEnvironment()));
  if (outcome == Options::Outcome::kExit) return absl::OkStatus();
  if (!recording.empty()) RETURN_IF_ERROR(WriteRecording(recording));
  if (!spool.empty()) RETURN_IF_ERROR(WriteSpool(spool));
  if (port != 0) RETURN_IF_ERROR(Sender(static_cast<uint16_t>(port)).Run());
  return absl::OkStatus();
}

}  // namespace
}  // namespace tributary

int main(int argc, char** argv) {
  signal(SIGPIPE, SIG_IGN);
  if (absl::Status status = tributary::Run(argc, argv); !status.ok()) {
    tributary::LogError("golden_node: {}", tributary::Message(status));
    return 1;
  }
  return 0;
}
