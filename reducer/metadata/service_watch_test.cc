#include "reducer/metadata/service_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "base/directory_testing.h"
#include "reducer/sqlite/sqlite_rollout_store.h"
#include "reducer/sqlite/sqlite_service_state_store.h"
#include "reducer/store/fake_store_testing.h"

namespace tributary {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// Two shards with one node each. Processes are sampled as long as they run.
class ServiceWatchTest : public testing::Test {
 protected:
  ServiceWatchTest() {
    for (int i = 0; i < 2; ++i) {
      store::NodeStatus node;
      node.node_id = "node-" + std::to_string(i);
      node.booted = UnixNs{clock_.Unix().value - kNsPerDay};
      store_.shards[static_cast<size_t>(i)].nodes = {node};
    }
    Open();
  }
  void Open() {
    watch_.reset();
    log_.reset();
    log_.emplace(RolloutLog::Options{.store = SqliteRolloutStore::Open(directory_.path())}, metadata_, clock_,
                 metrics_);
    watch_.emplace(ServiceWatch::Options{.states = SqliteServiceStateStore::Open(directory_.path())}, store_, joiner_,
                   *log_, clock_, metrics_);
  }
  // The process begins now. `build` above 0: an executable with that build-id in a systemd unit; nothing else is known
  // of it.
  uint32_t Run(size_t shard, const std::string& executable, const std::string& attributes, uint8_t build = 0) {
    store::FakeShard& to = store_.shards[shard];
    store::ProcessRow row;
    row.no = store::ProcessNo{++processes_};
    row.node_id = "node-" + std::to_string(shard);
    row.pid = Pid{static_cast<int32_t>(processes_)};
    row.start_time_ns = clock_.Unix().value - to.nodes[0].booted.value;
    row.executable_path = "/usr/bin/" + executable;
    row.attributes = attributes;
    if (build != 0) {
      row.cgroup_path = "/system.slice/unit.service";
      const uint8_t id[] = {build, 0xab};
      row.executable = to.AddExecutable(*ExecutableId::Make(ExecutableIdKind::kGnuBuildId, id), row.executable_path);
    }
    to.processes.push_back(row);
    return processes_;
  }
  // Lets `minutes` pass.
  void Pass(int minutes) {
    for (int i = 0; i < 3 * minutes; ++i) {
      clock_.Advance(ServiceWatch::kPeriodNs);
      for (store::FakeShard& shard : store_.shards) {
        shard.samples.clear();
        for (store::ProcessRow& row : shard.processes) {
          row.as_of = clock_.Unix();
          shard.samples.push_back({.time = clock_.Unix(), .process = row.no});
        }
      }
      watch_->Look();
    }
  }
  std::vector<std::string> Rollouts() const {
    std::vector<std::string> out;
    for (const Rollout& rollout : log_->List({kTimeBegin, kTimeEnd}, 100, [](const Rollout&) { return true; })) {
      const auto get = [&](std::string_view key) { return std::string(FindAttribute(rollout.attributes, key)); };
      out.push_back(rollout.kind + " " + rollout.name_space + "/" + rollout.name + ": " +
                    get("rollout.previous.service.version") + get("rollout.previous.hash") + " " +
                    get("service.version") + get("rollout.hash"));
    }
    return out;
  }

  const TestDirectory directory_;
  std::string path_ = directory_.path() + "/rollouts.db";
  FakeClock clock_;
  Metrics metrics_;
  store::FakeStore store_{2};
  K8sNameRules rules_;
  AttributeNames names_;
  MetadataStore metadata_{{}, rules_, names_, clock_, metrics_};
  ResourceJoiner joiner_{metadata_, rules_, names_, {}, metrics_};
  std::optional<RolloutLog> log_;
  std::optional<ServiceWatch> watch_;
  uint32_t processes_ = 0;
};

TEST_F(ServiceWatchTest, ReportsANewVersionOnceForAllShards) {
  Run(0, "server", "service.name=web,service.namespace=shop,service.version=1");
  Run(1, "server", "service.name=web,service.namespace=shop,service.version=1");
  Pass(1);
  EXPECT_THAT(Rollouts(), IsEmpty());
  const UnixNs at = clock_.Unix();
  Run(1, "server", "service.name=web,service.namespace=shop,service.version=2");
  Pass(1);
  Run(0, "server", "service.name=web,service.namespace=shop,service.version=2");
  Pass(3);
  EXPECT_THAT(Rollouts(), ElementsAre("service shop/web: 1 2"));
  const auto rollouts = log_->List({kTimeBegin, kTimeEnd}, 100, [](const Rollout&) { return true; });
  EXPECT_EQ(rollouts[0].at, at);
  EXPECT_EQ(FindAttribute(rollouts[0].attributes, "process.executable.name"), "server");
}

TEST_F(ServiceWatchTest, OtherProgramsOfTheServiceBelongToTheSameRollout) {
  for (const char* program : {"api", "worker"}) Run(0, program, "service.name=web,service.version=1");
  Pass(1);
  Run(0, "api", "service.name=web,service.version=2");
  Pass(20);
  Run(0, "worker", "service.name=web,service.version=2");
  Pass(1);
  EXPECT_THAT(Rollouts(), ElementsAre("service /web: 1 2"));
  Run(0, "worker", "service.name=web,service.version=3");
  Pass(1);
  EXPECT_THAT(Rollouts(), ElementsAre("service /web: 2 3", "service /web: 1 2"));
}

TEST_F(ServiceWatchTest, BuildIdsOfAServiceThatChangeTogetherAreOneRollout) {
  Run(0, "daemon", "", 1);
  Run(0, "helper", "", 2);
  Pass(10);
  Run(0, "daemon", "", 3);
  Run(0, "helper", "", 4);
  Run(0, "job", "", 5);
  Pass(4);
  EXPECT_THAT(Rollouts(), IsEmpty()) << "what runs for less than five minutes is a job";
  Pass(4);
  ASSERT_EQ(Rollouts().size(), 1u);
  EXPECT_THAT(Rollouts()[0], testing::StartsWith("service /unit: 0"));
  Run(0, "daemon", "", 6);
  Pass(8);
  EXPECT_THAT(Rollouts()[0], "service /unit: 03ab 06ab");
}

TEST_F(ServiceWatchTest, HandlesReusedExecutableNumbers) {
  Run(0, "daemon", "", 1);
  Run(0, "installer", "", 2);
  Pass(16);
  store::FakeShard& shard = store_.shards[0];
  shard.processes.pop_back();
  Pass(1);
  shard.executables.pop_back();
  Run(0, "daemon", "", 3);
  Pass(16);
  EXPECT_THAT(Rollouts(), ElementsAre("service /unit: 01ab 03ab"));
}

TEST_F(ServiceWatchTest, OpensTheFileOfAnEarlierRelease) {
  ASSERT_TRUE(log_->AddService("1", clock_.Unix(), {{"service.name", "old"}}));
  watch_.reset();
  log_.reset();
  {
    absl::StatusOr<store::Database> file = store::Database::Open(path_, store::Database::Mode::kReadWrite);
    ASSERT_TRUE(file.ok() &&
                file->Execute("DROP TABLE program; DROP TABLE rollout_number; ALTER TABLE rollout DROP COLUMN no; "
                              "PRAGMA user_version = 1")
                    .ok());
  }
  Open();
  Run(0, "server", "service.name=web,service.version=1");
  Pass(1);
  Open();
  Run(0, "server", "service.name=web,service.version=2");
  Pass(1);
  EXPECT_THAT(Rollouts(), ElementsAre("service /web: 1 2", "service /old:  "));
}

TEST_F(ServiceWatchTest, ARestartReportsNothingTwiceAndMissesNothing) {
  Run(0, "server", "service.name=web,service.version=1");
  Pass(1);
  Run(0, "server", "service.name=web,service.version=2");
  Pass(1);
  Open();
  Pass(1);
  EXPECT_THAT(Rollouts(), ElementsAre("service /web: 1 2"));
  watch_.reset();
  clock_.Advance(60 * kNsPerMinute);
  Run(0, "server", "service.name=web,service.version=3");
  clock_.Advance(60 * kNsPerMinute);
  Open();
  Pass(1);
  EXPECT_THAT(Rollouts(), ElementsAre("service /web: 2 3", "service /web: 1 2"));
}

class FullRolloutStore final : public RolloutStore {
 public:
  absl::Status Load(absl::FunctionRef<void(const Row&)>) override { return absl::OkStatus(); }
  absl::StatusOr<int64_t> HighestNumber() override { return 0; }
  absl::Status Save(std::span<const Row>, std::span<const Row>) override {
    return absl::ResourceExhaustedError("disk full");
  }
};

TEST_F(ServiceWatchTest, ARolloutThatWasNotWrittenIsFoundAgainAfterARestart) {
  Run(0, "server", "service.name=web,service.version=1");
  Pass(1);
  watch_.reset();
  log_.emplace(RolloutLog::Options{.store = std::make_unique<FullRolloutStore>()}, metadata_, clock_, metrics_);
  watch_.emplace(ServiceWatch::Options{.states = SqliteServiceStateStore::Open(directory_.path())}, store_, joiner_,
                 *log_, clock_, metrics_);
  Run(0, "server", "service.name=web,service.version=2");
  Pass(1);
  EXPECT_THAT(Rollouts(), ElementsAre("service /web: 1 2"));
  Open();
  EXPECT_THAT(Rollouts(), IsEmpty());
  Pass(1);
  EXPECT_THAT(Rollouts(), ElementsAre("service /web: 1 2"));
}

TEST_F(ServiceWatchTest, AShardThatCannotBeReadPostponesAll) {
  Run(0, "server", "service.name=web,service.version=1");
  Pass(1);
  store_.shards[1].error = absl::UnavailableError("locked");
  Run(0, "server", "service.name=web,service.version=2");
  Pass(1);
  EXPECT_THAT(Rollouts(), IsEmpty());
  store_.shards[1].error.reset();
  Pass(1);
  EXPECT_THAT(Rollouts(), ElementsAre("service /web: 1 2"));
}

TEST_F(ServiceWatchTest, ADamagedFileLosesOnlyStoredState) {
  watch_.reset();
  log_.reset();
  for (const char* suffix : {"", "-wal", "-shm"}) unlink((path_ + suffix).c_str());
  std::ofstream(path_) << std::string(8192, 'x');
  Open();
  Run(0, "server", "service.name=web,service.version=1");
  Pass(1);
  Run(0, "server", "service.name=web,service.version=2");
  Pass(1);
  EXPECT_EQ(Rollouts().size(), 1u);
}

TEST_F(ServiceWatchTest, StopInterruptsALook) {
  Run(0, "server", "service.name=web,service.version=1");
  Pass(1);
  Run(0, "server", "service.name=web,service.version=2");
  watch_->Stop();
  Pass(1);
  EXPECT_THAT(Rollouts(), IsEmpty());
}

TEST_F(ServiceWatchTest, StopsTwiceAndRightAfterAStart) {
  Run(0, "server", "service.name=web,service.version=1");
  watch_->Start();
  watch_->Stop();
  watch_->Stop();
  Pass(1);
  EXPECT_THAT(Rollouts(), IsEmpty());
}

}  // namespace
}  // namespace tributary
