#include "reducer/query/selection.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "base/status.h"
#include "reducer/query/peak_testing.h"
#include "reducer/query/resource_query_testing.h"

namespace tributary {
namespace {

// Evaluates every matcher for every process, as its row describes it.
class NaiveSelection {
 public:
  NaiveSelection(const Selector& selector, const ResourceJoiner* joiner, store::TimeRange range)
      : selector_(selector), joiner_(joiner), range_(range) {}

  bool Has(const store::ProcessRow& process, const store::ThreadRow& thread, UnixNs at) const {
    for (const Selector::Matcher& matcher : selector_.matchers()) {
      if (!matcher.Holds(Value(matcher, process, thread, at))) return false;
    }
    return true;
  }

 private:
  std::string Value(const Selector::Matcher& matcher, const store::ProcessRow& process, const store::ThreadRow& thread,
                    UnixNs at) const {
    const std::optional<Label> label = FindLabel(matcher.label);
    if (label && IsThreadLabel(*label)) return LabelValue(*label, thread);
    if (label && (joiner_ == nullptr || !IsHostLabel(*label))) return LabelValue(*label, process);
    if (joiner_ == nullptr) return "";
    const ResourceStates states = joiner_->Join(process, range_);
    for (const Attribute& attribute : ResourceAt(states, at)->attributes) {
      if (IsNormalizedAs(attribute.key, matcher.label)) return attribute.value;
    }
    return "";
  }

  const Selector& selector_;
  const ResourceJoiner* const joiner_;
  const store::TimeRange range_;
};

class SelectionTest : public ResourceQueryTest {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(ResourceQueryTest::SetUp());
    store_.shards[0].processes.clear();
    store_.shards[0].threads.clear();
  }

  template <typename T>
  const T& Pick(const std::vector<T>& from) {
    return from[random_() % from.size()];
  }

  void AddRandomProcesses(int count) {
    store::FakeShard& shard = store_.shards[0];
    for (int i = 0; i < count; ++i) {
      store::ProcessRow row;
      no_ += 1 + static_cast<uint32_t>(random_() % 3 == 0 ? random_() % 1'000'000 : 0);
      row.no = store::ProcessNo{no_};
      const int node = static_cast<int>(random_() % 4);
      row.node_id = fmt::format("node-{}", node);
      row.host_name = fmt::format("host-{}", node / 2);
      row.pid = Pid{static_cast<int32_t>(random_() % 5)};
      row.parent = Pid{static_cast<int32_t>(1 + random_() % 2)};
      row.comm = Pick<std::string>({"", "web", "kworker/3:1", "kworker/u9:0", "s\xff"});
      row.executable_path = Pick<std::string>({"", "/usr/bin/web", "/opt/web", "/opt/", "/usr/bin/db"});
      row.container_id = Pick<std::string>({"", "", "c0ffee", kContainer});
      if (row.container_id == kContainer) row.cgroup_path = std::string("/kubepods/pod") + kPodUid + "/" + kContainer;
      row.attributes = Pick<std::string>({"", "tier=gold", "service.name=pay,tier=silver", "host.name=liar"});
      row.as_of = kStart;
      shard.processes.push_back(row);
      shard.threads.push_back({store::ThreadNo{no_}, row.no, Tid{i}, Pick<std::string>({"main", "worker", "gc"})});
      for (int s = 0; s < 2; ++s) {
        shard.samples.push_back({.time = At(static_cast<int64_t>(random_() % 60) * kNsPerSecond),
                                 .process = row.no,
                                 .thread = store::ThreadNo{no_},
                                 .node = work_,
                                 .value = 1 + random_() % 1000,
                                 .node_id = row.node_id});
      }
    }
    // The store lost the descriptions of these.
    shard.samples.push_back({At(5), store::ProcessNo{no_ + 7}, store::ThreadNo{no_ + 7}, work_, 3, 1});
  }

  std::string RandomSelector() {
    static const std::vector<std::pair<std::string, std::vector<std::string>>> kLabels = {
        {"node_id", {"node-1", "node-.*", ""}},
        {"host_name", {"host-1", "host-0", "liar", ""}},
        {"host_id", {"node-2", ".*"}},
        {"process_pid", {"3", "[12]", ""}},
        {"process_command", {"web", "k.*", "s.", ""}},
        {"process_executable_name", {"web", "", "d.*"}},
        {"process_executable_path", {"/opt/.*", ""}},
        {"container_id", {"c0ffee", "", "4.*"}},
        {"service_name", {"pay", "web", "kworker.*", ""}},
        {"tier", {"gold", "", ".*l.*"}},
        {"k8s_pod_label_version", {"1", "2", ""}},
        {"k8s_namespace_name", {"shop", ""}},
        {"thread_name", {"main", "w.*"}},
        {"thread_id", {"[0-9]", "3"}}};
    std::string text = "{";
    for (size_t i = 0, most = 1 + random_() % 3; i < most; ++i) {
      const auto& [label, values] = Pick(kLabels);
      text += fmt::format("{}{}{}\"{}\"", i == 0 ? "" : ",", label, Pick<std::string>({"=", "!=", "=~", "!~"}),
                          Pick(values));
    }
    return text + "}";
  }

  uint64_t NaiveTotal(const QueryRequest& request, const ResourceJoiner* joiner) {
    const store::FakeShard& shard = store_.shards[0];
    const NaiveSelection selection(request.selector, joiner, request.range);
    const bool uses_threads = request.selector.Uses("thread_name") || request.selector.Uses("thread_id");
    uint64_t total = 0;
    for (const store::FakeShard::Sample& sample : shard.samples) {
      store::ProcessRow process;
      store::ThreadRow thread;
      for (const store::ProcessRow& row : shard.processes) {
        if (row.no == sample.process) process = row;
      }
      for (const store::ThreadRow& row : shard.threads) {
        if (row.no == sample.thread) thread = row;
      }
      const UnixNs at = uses_threads ? sample.time : MiddleOf(kStart);
      // The samples of a process without a description have no resource.
      if (selection.Has(process, thread, at)) total += sample.value;
    }
    return total;
  }

  std::mt19937_64 random_{23};
  uint32_t no_ = 0;
};

TEST_F(SelectionTest, SelectsTheSameAsTheNaiveSelection) {
  ReportPod("1", kStart);
  ReportPod("2", At(20 * kNsPerSecond));
  AddRandomProcesses(80);
  // A process without a description has no attributes, not even those of an empty place.
  store_.shards[0].samples.pop_back();
  int selected = 0;
  for (int i = 0; i < 300; ++i) {
    const std::string text = RandomSelector();
    const QueryRequest request = Request(text);
    for (const bool has_metadata : {false, true}) {
      QueryEngine engine(store_, *symbols_, {}, has_metadata ? joiner_.get() : nullptr);
      const absl::StatusOr<FlameGraph> graph = engine.QueryFlameGraph(request, 100);
      if (absl::IsInvalidArgument(graph.status())) continue;  // without metadata, some labels are unknown
      ASSERT_TRUE(graph.ok()) << text << graph.status();
      const uint64_t expected = NaiveTotal(request, has_metadata ? joiner_.get() : nullptr);
      ASSERT_EQ(graph->total_values.at(0), expected) << text << (has_metadata ? " with metadata" : "");
      selected += expected != 0 ? 1 : 0;
    }
  }
  EXPECT_GT(selected, 100);
}

TEST_F(SelectionTest, ProcessesWithoutADescriptionHaveEmptyLabels) {
  AddRandomProcesses(1);
  store_.shards[0].samples.back().value = 1'000'000;
  EXPECT_GE(Total(R"({process_command!="none"})"), 1'000'000u);
  EXPECT_GE(Total(R"({node_id!="node-9"})"), 1'000'000u);
  EXPECT_LT(Total(R"({node_id=~".+"})"), 1'000'000u);
}

// A number late in the life of a store.
TEST_F(SelectionTest, OneProcessWithALargeNumberTakesLittleMemory) {
  AddProcess(store_.shards[0], 1'000'000'000, 300, "late", "");
  AddSample(1, 1'000'000'000, 1, work_, 7);
  const int64_t before = StartPeak();
  EXPECT_EQ(Total(R"({process_command="late"})"), 7u);
  EXPECT_LT(PeakMib() - before, 64) << "MiB";
}

}  // namespace
}  // namespace tributary
