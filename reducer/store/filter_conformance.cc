#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "reducer/store/store_conformance_testing.h"

// Scans with a filter, and scans of the ids of processes and threads.

namespace tributary::store {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

}  // namespace

// Commits a CPU sample, an off-CPU sample and an event of a machine, in a minute that is closed and in one that is not.
void FilterConformance::Fill(TestCollector& collector, int pid) {
  const ThreadRef thread = collector.Thread(pid, "worker-" + collector.info().node_id);
  const NodeRef leaf = collector.Stack({1, 2});
  for (const int64_t second : {-300, -299, -2, -1}) collector.Add(At(second), thread, leaf, 10);
  collector.Add(At(-1), collector.Event(ProcessEventKind::kExit, pid, "worker"));
  RowBatch batch = collector.Take(At(0));
  for (size_t i = 1; i < batch.samples.size(); i += 2) batch.samples[i].type = SampleType::kOffCpu;
  Commit(batch);
}

MachineNo FilterConformance::MachineOf(StoreReader& reader, std::string_view node_id) {
  const auto machines = reader.ListMachines().value();
  for (const auto& [no, row] : machines) {
    if (row.node_id == node_id) return no;
  }
  return {};
}

TypeNo FilterConformance::TypeOf(StoreReader& reader, SampleType type) {
  const auto types = reader.SampleTypes().value();
  for (const auto& [no, info] : types) {
    if (info == InfoOf(*FindSampleType(type))) return no;
  }
  return {};
}

// Returns "node type" of all samples, once for each.
std::multiset<std::string> FilterConformance::Samples(StoreReader& reader, const ScanFilter& filter) {
  std::multiset<std::string> found;
  EXPECT_TRUE(reader
                  .ScanSamples(kAlways, filter,
                               [&](const SampleColumns& columns) {
                                 for (size_t i = 0; i < columns.times.size(); ++i) {
                                   found.insert(std::string(columns.node_id) + " " +
                                                std::to_string(columns.type.value));
                                 }
                                 return absl::OkStatus();
                               })
                  .ok());
  return found;
}

std::multiset<std::string> FilterConformance::Sums(StoreReader& reader, const ScanFilter& filter) {
  std::multiset<std::string> found;
  EXPECT_TRUE(reader
                  .ScanSums(kAlways, filter,
                            [&](const SumColumns& columns) {
                              for (const uint64_t count : columns.counts) {
                                for (uint64_t i = 0; i < count; ++i) {
                                  found.insert(std::string(columns.node_id) + " " + std::to_string(columns.type.value));
                                }
                              }
                              return absl::OkStatus();
                            })
                  .ok());
  return found;
}

std::map<ProcessNo, ProcessIds> FilterConformance::Ids(StoreReader& reader, const ScanFilter& filter) {
  std::map<ProcessNo, ProcessIds> found;
  EXPECT_TRUE(reader
                  .ScanProcessIds(kAlways, filter,
                                  [&](std::span<const ProcessIds> rows) {
                                    for (const ProcessIds& row : rows) found.emplace(row.no, row);
                                    return absl::OkStatus();
                                  })
                  .ok());
  return found;
}

// Ranges begin and end within a minute, so the times of these minutes are needed to cut them.
TEST_P(FilterConformance, WeightsOfThreadsAreThoseOfTheirSamples) {
  TestCollector collectors[] = {TestCollector("node-a", 1), TestCollector("node-b", 2)};
  for (TestCollector& collector : collectors) {
    const ThreadRef thread = collector.Thread(1, "worker"), other = collector.Thread(1, "other");
    const NodeRef leaf = collector.Stack({1, 2});
    for (int64_t second = -300; second < 0; second += 7) {
      collector.Add(At(second), second % 2 == 0 ? thread : other, leaf, static_cast<uint64_t>(1000 + second));
    }
    Commit(collector.Take(At(0)));
  }
  Maintain();
  const auto reader = Reader();
  using Weights = std::map<std::pair<ProcessNo, ThreadNo>, std::pair<uint64_t, uint64_t>>;
  const auto add = [](const auto& columns, Weights* weights) {
    for (size_t i = 0; i < columns.processes.size(); ++i) {
      auto& [value, count] = (*weights)[{columns.processes[i], columns.threads[i]}];
      value += columns.values[i];
      count += columns.counts[i];
    }
    return absl::OkStatus();
  };
  for (const auto& [from, to, samples] : {std::tuple(-275, -25, 72u), {-200, -130, 20u}, {-600, 60, 86u}}) {
    for (const bool of_one : {false, true}) {
      const TimeRange range{At(from), At(to)};
      ScanFilter filter;
      if (of_one) filter.machines = {{MachineOf(*reader, "node-b")}};
      Weights expected, found;
      const auto add_samples = [&](const SampleColumns& columns) { return add(columns, &expected); };
      const auto add_weights = [&](const ThreadWeights& weights) { return add(weights, &found); };
      ASSERT_TRUE(reader->ScanSamples(range, filter, add_samples).ok());
      ASSERT_TRUE(reader->ScanThreadWeights(range, filter, add_weights).ok());
      EXPECT_EQ(found, expected) << from;
      uint64_t count = 0;
      for (const auto& [who, weight] : found) count += weight.second;
      EXPECT_EQ(count, of_one ? samples / 2 : samples) << from;
    }
  }
}

TEST_P(FilterConformance, VisitsOnlyTheMachinesAndTheTypeOfTheFilter) {
  TestCollector a("node-a"), b("node-b", 2), c("node-c", 3);
  Fill(a, 1);
  Fill(b, 2);
  Fill(c, 3);
  Maintain();
  const auto reader = Reader();
  const std::string cpu = std::to_string(TypeOf(*reader, SampleType::kCpu).value),
                    off_cpu = std::to_string(TypeOf(*reader, SampleType::kOffCpu).value);
  EXPECT_EQ(Samples(*reader, {}).size(), 12u);
  EXPECT_EQ(Sums(*reader, {}).size(), 12u);

  const ScanFilter of_b{.machines = {{MachineOf(*reader, "node-b")}}};
  const auto both_types =
      UnorderedElementsAre("node-b " + cpu, "node-b " + cpu, "node-b " + off_cpu, "node-b " + off_cpu);
  EXPECT_THAT(Samples(*reader, of_b), both_types);
  EXPECT_THAT(Sums(*reader, of_b), both_types);

  ScanFilter one_type = of_b;
  one_type.type = TypeOf(*reader, SampleType::kOffCpu);
  EXPECT_THAT(Samples(*reader, one_type), UnorderedElementsAre("node-b " + off_cpu, "node-b " + off_cpu));
  EXPECT_THAT(Sums(*reader, one_type), UnorderedElementsAre("node-b " + off_cpu, "node-b " + off_cpu));
  EXPECT_EQ(Sums(*reader, {.type = one_type.type}).size(), 6u);

  ScanFilter two{.machines = {{MachineOf(*reader, "node-a"), MachineOf(*reader, "node-c")}}};
  std::ranges::sort(*two.machines);
  EXPECT_EQ(Samples(*reader, two).size(), 8u);
  EXPECT_EQ(Samples(*reader, two).count("node-b " + cpu), 0u);

  const ScanFilter none{.machines = std::vector<MachineNo>()};
  EXPECT_THAT(Samples(*reader, none), IsEmpty());
  EXPECT_THAT(Sums(*reader, none), IsEmpty());
  EXPECT_THAT(Ids(*reader, none), IsEmpty());
}

TEST_P(FilterConformance, VisitsOnlyTheEventsOfTheFiltersMachines) {
  TestCollector a("node-a"), b("node-b", 2);
  Fill(a, 1);
  Fill(b, 2);
  const auto reader = Reader();
  std::vector<std::string> nodes;
  const auto visit = [&](const ProcessEventRow& event) {
    nodes.emplace_back(event.node_id);
    return absl::OkStatus();
  };
  ASSERT_TRUE(reader->ScanEvents(kAlways, {.machines = {{MachineOf(*reader, "node-b")}}}, visit).ok());
  EXPECT_THAT(nodes, ElementsAre("node-b"));
}

TEST_P(FilterConformance, IdsDescribeTheSameProcessesAsRows) {
  TestCollector a("node-a"), b("node-b", 2);
  Fill(a, 1);
  Fill(b, 2);
  const auto reader = Reader();
  const std::vector<ProcessRow> rows = reader->Processes(kAlways, nullptr).value();
  const std::map<ProcessNo, ProcessIds> ids = Ids(*reader, {});
  ASSERT_EQ(rows.size(), 2u);
  ASSERT_EQ(ids.size(), 2u);
  const std::map<MachineNo, MachineRow> machines = reader->ListMachines().value();
  for (const ProcessRow& row : rows) {
    const ProcessIds& of = ids.at(row.no);
    EXPECT_EQ(machines.at(of.machine).node_id, row.node_id);
    EXPECT_EQ(machines.at(of.machine).host_name, row.host_name);
    EXPECT_EQ(of.pid, row.pid);
    EXPECT_EQ(of.parent, row.parent);
    EXPECT_EQ(of.start_time_ns, row.start_time_ns);
    EXPECT_EQ(of.exec_sequence, row.exec_sequence);
    EXPECT_EQ(reader->Text(of.comm).value(), row.comm);
    EXPECT_EQ(reader->Text(of.executable_path).value(), row.executable_path);
    EXPECT_EQ(reader->Text(of.container_id).value(), row.container_id);
    EXPECT_EQ(reader->Text(of.cgroup_path).value(), row.cgroup_path);
    EXPECT_EQ(reader->Text(of.attributes).value(), row.attributes);
  }
  const auto of_b = Ids(*reader, {.machines = {{MachineOf(*reader, "node-b")}}});
  ASSERT_EQ(of_b.size(), 1u);
  EXPECT_EQ(of_b.begin()->second.pid, Pid{2});

  std::set<std::string> threads;  // a scan may visit a thread several times
  const auto visit = [&](std::span<const ProcessIds>, std::span<const ThreadIds> found) {
    for (const ThreadIds& thread : found) {
      if (thread.process == of_b.begin()->first) threads.emplace(reader->Text(thread.name).value());
    }
    return absl::OkStatus();
  };
  ASSERT_TRUE(reader->ScanIds(kAlways, {.machines = {{MachineOf(*reader, "node-b")}}}, visit).ok());
  EXPECT_THAT(threads, ElementsAre("worker-node-b"));
}

TEST_P(FilterConformance, TheLatestDescriptionOfAProcessComesFirst) {
  TestCollector collector("node-a");
  const ThreadRef thread = collector.Thread(1, "worker");
  const NodeRef leaf = collector.Stack({1});
  for (const int64_t minute : {-60, -40, -20}) {
    collector.Add(At(minute * 60), thread, leaf);
    Commit(collector.Take(At(minute * 60)));
  }
  EXPECT_EQ(Ids(*Reader(), {}).size(), 1u);
  const auto refuse = [](std::span<const ProcessIds>) { return absl::CancelledError("enough"); };
  EXPECT_TRUE(absl::IsCancelled(Reader()->ScanProcessIds(kAlways, {}, refuse)));
}

}  // namespace tributary::store
