// Measures the join of samples with metadata: 10,000 pods with one container each, two processes in each container.
// Export: one scan of 100,000 samples. An earlier scan had all pods, or a tenth of the pods are new, or all are new.
// Selection: a query over a million samples, including the read of its processes. docs/benchmarks.md lists the expected
// figures.

#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/directory_testing.h"
#include "base/metrics.h"
#include "base/status.h"
#include "reducer/metadata/resource_joiner.h"
#include "reducer/query/selection.h"
#include "reducer/store/fake_store_testing.h"

namespace tributary {
namespace {

constexpr int kPods = 10'000;
constexpr int kProcessesPerPod = 2;
const MetadataSender kCluster = {true, "cluster/bench"};

std::string PodUid(int pod) { return fmt::format("0a1b2c3d-1111-2222-3333-{:012x}", pod); }
std::string ContainerId(int pod) { return fmt::format("{:064x}", pod + 1); }

Entity Pod(int pod) {
  const int workload = pod % 300;
  const std::string name = fmt::format("workload-{}", workload);
  return {.kind = EntityKind::kPod,
          .id = PodUid(pod),
          .attributes = {{"k8s.deployment.name", name},
                         {"k8s.deployment.uid", PodUid(1'000'000 + workload)},
                         {"k8s.namespace.name", fmt::format("namespace-{}", workload % 20)},
                         {"k8s.node.name", fmt::format("node-{}", pod % 300)},
                         {"k8s.pod.hostname", fmt::format("{}-5c9f7d-{}", name, pod)},
                         {"k8s.pod.ip", fmt::format("10.{}.{}.7", pod / 256, pod % 256)},
                         {"k8s.pod.label.app", name},
                         {"k8s.pod.label.app.kubernetes.io/name", name},
                         {"k8s.pod.name", fmt::format("{}-5c9f7d-{}", name, pod)},
                         {"k8s.pod.start_time", "2026-11-01T00:00:00Z"},
                         {"k8s.replicaset.name", name + "-5c9f7d"},
                         {"k8s.replicaset.uid", PodUid(2'000'000 + workload)}}};
}
Entity Container(int pod) {
  return {.kind = EntityKind::kContainer,
          .id = ContainerId(pod),
          .attributes = {{"container.image.name", "registry.example/team/service"},
                         {"container.image.repo_digests", "registry.example/team/service@sha256:" + ContainerId(7)},
                         {"container.image.tag", "1.2.3"},
                         {"container.image.version", "1.2.3"},
                         {"k8s.container.name", "main"},
                         {"k8s.pod.uid", PodUid(pod)}}};
}

struct Cluster {
  Cluster() {
    TRIBUTARY_CHECK(rules.Add(K8sNameRules::Of::kLabel, "app").ok());
    store = std::make_unique<MetadataStore>(MetadataStore::Options{}, rules, names, Clock::Real(), metrics);
    joiner = std::make_unique<ResourceJoiner>(*store, rules, names, Attributes{}, metrics);
    MetadataUpdate update;
    for (int i = 0; i < 300; ++i) {
      update.entities.push_back({.kind = EntityKind::kNamespace, .id = fmt::format("namespace-{}", i)});
      update.entities.push_back({.kind = EntityKind::kK8sNode,
                                 .id = fmt::format("node-{}", i),
                                 .attributes = {{"k8s.node.uid", PodUid(3'000'000 + i)}}});
      store->Take({false, fmt::format("node-{}", i)},
                  {.entities = {{.kind = EntityKind::kHost,
                                 .id = fmt::format("node-{}", i),
                                 .attributes = {{"cloud.region", "eu-1"}, {"host.arch", "amd64"}}}}});
    }
    update.entities.push_back({.kind = EntityKind::kCluster, .attributes = {{"k8s.cluster.uid", PodUid(4'000'000)}}});
    store->Take(kCluster, std::move(update));
    for (int pod = 0; pod < kPods; ++pod) store->Take(kCluster, {.entities = {Pod(pod), Container(pod)}});
    FillShard();
  }

  void FillShard() {
    for (int i = 0; i < kPods * kProcessesPerPod; ++i) {
      store::ProcessRow row;
      row.no = store::ProcessNo{static_cast<uint32_t>(i + 1)};
      row.pid = Pid{i + 1};
      row.comm = "service";
      row.executable_path = "/usr/bin/service";
      rows.push_back(std::move(row));
    }
    for (int pod = 0; pod < kPods; ++pod) Run(pod);
  }

  // Starts the pod's processes. They replace the processes of the pod that it replaces.
  void Run(int pod) {
    for (int i = pod % kPods; i < kPods * kProcessesPerPod; i += kPods) {
      store::ProcessRow& row = rows[static_cast<size_t>(i)];
      row.node_id = row.host_name = fmt::format("node-{}", pod % 300);
      row.container_id = ContainerId(pod);
      row.cgroup_path = fmt::format("/kubepods/burstable/pod{}/{}", PodUid(pod), ContainerId(pod));
    }
  }

  // Replaces the oldest `count` pods with new ones.
  void Replace(int count) {
    for (const int end = next + count; next < end; ++next) {
      Entity gone = Pod(next - kPods);
      gone.gone = true;
      store->Take(kCluster, {.entities = {std::move(gone), Pod(next), Container(next)}});
    }
  }

  Metrics metrics;
  K8sNameRules rules;
  AttributeNames names;
  std::unique_ptr<MetadataStore> store;
  std::unique_ptr<ResourceJoiner> joiner;
  std::vector<store::ProcessRow> rows;
  int next = kPods;  // number of the next new pod
};

Cluster& TheCluster() {
  static Cluster cluster;
  return cluster;
}

// Processes as a store keeps them.
struct Ids {
  explicit Ids(const std::vector<store::ProcessRow>& processes) {
    std::map<std::string, store::MachineNo> machine_of;
    std::map<std::string, store::StringId> id_of;
    const auto id = [&](const std::string& text) {
      const auto [found, added] = id_of.try_emplace(text, store::StringId{static_cast<uint32_t>(texts.size())});
      if (added) texts.push_back(text);
      return found->second;
    };
    id("");
    for (const store::ProcessRow& row : processes) {
      const auto next = store::MachineNo{static_cast<int64_t>(machine_of.size()) + 1};
      const store::MachineNo machine = machine_of.try_emplace(row.node_id, next).first->second;
      machines[machine] = {row.node_id, row.host_name};
      rows.push_back({.no = row.no,
                      .machine = machine,
                      .pid = row.pid,
                      .comm = id(row.comm),
                      .executable_path = id(row.executable_path),
                      .container_id = id(row.container_id),
                      .cgroup_path = id(row.cgroup_path)});
    }
  }

  std::map<store::MachineNo, store::MachineRow> machines;
  std::vector<store::ProcessIds> rows;
  std::vector<std::string> texts;  // by id; 0: ""
};

// A reader that has only these processes.
class IdsReader : public store::FakeReader {
 public:
  IdsReader(store::FakeShard& shard, const Ids& ids) : store::FakeReader(shard), ids_(ids) {}
  absl::StatusOr<std::map<store::MachineNo, store::MachineRow>> ListMachines() override { return ids_.machines; }
  absl::Status ScanProcessIds(store::TimeRange, const store::ScanFilter&,
                              const store::ProcessIdsVisitor& visit) override {
    return visit(ids_.rows);
  }
  absl::StatusOr<std::string_view> Text(store::StringId id) override { return ids_.texts.at(id.value); }

 private:
  const Ids& ids_;
};

constexpr int kExportedSamples = 100'000;

// Joins all samples with their attributes. Returns the number of attributes.
uint64_t Scan(const Cluster& cluster, const ResourceJoiner& joiner) {
  ResourceCache resources(joiner, {UnixNs{0}, UnixNs{kNsPerMinute}});
  absl::flat_hash_map<store::ProcessNo, std::shared_ptr<const ResourceStates>> of_process;
  uint64_t attribute_count = 0;
  for (int i = 0; i < kExportedSamples; ++i) {
    const store::ProcessRow& row = cluster.rows[static_cast<size_t>(i) * 7919 % cluster.rows.size()];
    auto [it, added] = of_process.try_emplace(row.no);
    if (added) it->second = resources.Of(row);
    attribute_count += ResourceAt(*it->second, UnixNs{i})->attributes.size();
  }
  return attribute_count;
}

void Export(benchmark::State& state) {
  const Cluster& cluster = TheCluster();
  uint64_t attribute_count = 0;
  for (auto _ : state) attribute_count += Scan(cluster, *cluster.joiner);
  benchmark::DoNotOptimize(attribute_count);
  state.SetItemsProcessed(state.iterations() * kExportedSamples);
}
BENCHMARK(Export)->Unit(benchmark::kMillisecond);

// Measures the same scan after 10 s in which 100 pods a second were replaced.
void ExportChurn(benchmark::State& state) {
  Cluster& cluster = TheCluster();
  constexpr int kReplaced = 1'000;
  uint64_t attribute_count = 0;
  for (auto _ : state) {
    state.PauseTiming();
    cluster.Replace(kReplaced);
    for (int pod = cluster.next - kReplaced; pod < cluster.next; ++pod) cluster.Run(pod);
    state.ResumeTiming();
    attribute_count += Scan(cluster, *cluster.joiner);
  }
  benchmark::DoNotOptimize(attribute_count);
  state.SetItemsProcessed(state.iterations() * kExportedSamples);
}
BENCHMARK(ExportChurn)->Unit(benchmark::kMillisecond);

// Measures the same scan with a joiner that has not seen any of the pods before.
void ExportNew(benchmark::State& state) {
  Cluster& cluster = TheCluster();
  uint64_t attribute_count = 0;
  for (auto _ : state) {
    Metrics metrics;
    const ResourceJoiner joiner(*cluster.store, cluster.rules, cluster.names, Attributes{}, metrics);
    attribute_count += Scan(cluster, joiner);
  }
  benchmark::DoNotOptimize(attribute_count);
  state.SetItemsProcessed(state.iterations() * kExportedSamples);
}
BENCHMARK(ExportNew)->Unit(benchmark::kMillisecond);

void Select(benchmark::State& state) {
  Cluster& cluster = TheCluster();
  constexpr int kSamples = 1'000'000;
  const QueryRequest request{.selector = *Selector::Parse(R"({k8s_namespace_name="namespace-3",service_name=~"w.*"})"),
                             .range = {UnixNs{0}, UnixNs{kNsPerMinute}}};
  store::FakeStore store;
  FakeClock clock;
  Metrics metrics;
  const TestDirectory directory;
  const std::unique_ptr<SymbolStore> symbols = *SymbolStore::Open({.directory = directory.path()}, clock, metrics);
  DemangleCache demangled;
  const QueryLimits limits;
  const Ids ids(cluster.rows);
  uint64_t selected = 0;
  for (auto _ : state) {
    IdsReader reader(store.shards[0], ids);
    const QueryContext context{.store = store,
                               .symbols = *symbols,
                               .demangled = demangled,
                               .request = request,
                               .limits = limits,
                               .resources = std::make_unique<ResourceCache>(*cluster.joiner, request.range),
                               .type = {"cpu", "nanoseconds"}};
    const absl::StatusOr<Selection> selection = Selection::Make(reader, context);
    TRIBUTARY_CHECK(selection.ok());
    for (int i = 0; i < kSamples; ++i) {
      const store::ProcessRow& row = cluster.rows[static_cast<size_t>(i) * 7919 % cluster.rows.size()];
      selected += selection->Has(row.no, UnixNs{i}) ? 1 : 0;
    }
  }
  TRIBUTARY_CHECK(selected > 0);
  state.SetItemsProcessed(state.iterations() * kSamples);
}
BENCHMARK(Select)->Unit(benchmark::kMillisecond);

// Measures the cost of one second in which 100 of 10,000 pods are replaced.
void Churn(benchmark::State& state) {
  Cluster& cluster = TheCluster();
  for (auto _ : state) cluster.Replace(100);
  state.SetItemsProcessed(state.iterations() * 100);
}
BENCHMARK(Churn)->Unit(benchmark::kMicrosecond)->Iterations(100);

}  // namespace
}  // namespace tributary

BENCHMARK_MAIN();
