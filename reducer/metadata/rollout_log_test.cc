#include "reducer/metadata/rollout_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/directory_testing.h"
#include "reducer/sqlite/sqlite_rollout_store.h"

namespace tributary {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

const MetadataSender kCluster = {true, "cluster/one"}, kNode = {false, "node"};

class RestSink final : public MetadataSink {
 public:
  void Connected(const MetadataSender& sender) override { lines.push_back("+" + sender.id); }
  void Disconnected(const MetadataSender& sender) override { lines.push_back("-" + sender.id); }
  void Take(const MetadataSender&, MetadataUpdate update) override {
    for (const Entity& entity : update.entities) lines.push_back(std::string(EntityKindName(entity.kind)));
    ends += update.ends_snapshot ? 1 : 0;
  }
  std::vector<std::string> lines;
  int ends = 0;
};

class RolloutLogTest : public testing::Test {
 protected:
  RolloutLogTest() { Open(); }
  void Open() {
    log_.reset();
    options_.store = std::unique_ptr<RolloutStore>();
    if (is_kept_) options_.store = SqliteRolloutStore::Open(directory_.path());
    log_.emplace(std::move(options_), rest_, clock_, metrics_);
  }
  UnixNs At(int64_t seconds) const { return UnixNs{clock_.Unix().value + seconds * kNsPerSecond}; }
  Entity Of(const std::string& id, int64_t seconds, Attributes attributes = {}) const {
    return {EntityKind::kRollout, id, At(seconds), false, std::move(attributes)};
  }
  std::vector<std::string> Listed(int64_t from, int64_t to, size_t limit = 100) const {
    std::vector<std::string> out;
    const auto rollouts = log_->List({At(from), At(to)}, limit, [](const Rollout&) { return true; });
    for (const Rollout& r : rollouts) out.push_back(r.kind + " " + r.name_space + " " + r.name);
    return out;
  }
  uint64_t Count(std::string_view name) { return metrics_.AddCounter(name, "").value(); }

  const TestDirectory directory_;
  FakeClock clock_;
  Metrics metrics_;
  RestSink rest_;
  const std::string path_ = directory_.path() + "/rollouts.db";
  bool is_kept_ = true;
  RolloutLog::Options options_{.keep_ns = 1000 * kNsPerSecond};  // `store` is opened again each time
  std::optional<RolloutLog> log_;
};

TEST_F(RolloutLogTest, ListsTheNewestFirstAndPassesTheRest) {
  log_->Connected(kCluster);
  log_->Take(kCluster, {.ends_snapshot = true,
                        .entities = {Of("deployment/shop/web/1", -50),
                                     {EntityKind::kPod, "p", {}, false, {}},
                                     Of("statefulset/shop/db/7", -20)}});
  log_->Disconnected(kCluster);
  EXPECT_THAT(rest_.lines, ElementsAre("+cluster/one", "pod", "-cluster/one"));
  EXPECT_EQ(rest_.ends, 1);
  EXPECT_THAT(Listed(-100, 0), ElementsAre("statefulset shop db", "deployment shop web"));
  EXPECT_THAT(Listed(-100, 0, 1), ElementsAre("statefulset shop db"));
  EXPECT_THAT(Listed(-50, -20), ElementsAre("deployment shop web")) << "[from, to)";
  EXPECT_THAT(Listed(0, -100), IsEmpty());
}

TEST_F(RolloutLogTest, KeepsARepeatedRolloutOnce) {
  for (int i = 0; i < 3; ++i) log_->Take(kCluster, {.entities = {Of("deployment/shop/web/1", -50 + i)}});
  Entity gone = Of("deployment/shop/web/1", -1);
  gone.gone = true;
  log_->Take(kCluster, {.entities = {gone}});
  EXPECT_EQ(Listed(-100, 0).size(), 1u);
  log_->Take({true, "cluster/two"}, {.entities = {Of("deployment/shop/web/1", -50)}});
  EXPECT_EQ(Listed(-100, 0).size(), 2u);
}

TEST_F(RolloutLogTest, RefusesInvalidRollouts) {
  for (const char* id : {"", "deployment", "deployment/shop", "deployment/shop/web", "deployment/shop/web/", "//web/1",
                         "pod/shop/web/1", "service/1"}) {
    log_->Take(kCluster, {.entities = {Of(id, -50)}});
  }
  Entity timeless = Of("deployment/shop/web/1", 0);
  timeless.from = UnixNs{};
  log_->Take(kCluster, {.entities = {timeless}});
  EXPECT_THAT(Listed(-100, 0), IsEmpty());
  EXPECT_EQ(Count("tributary_metadata_rollouts_refused_total"), 9u);
  log_->Take(kNode, {.entities = {Of("deployment/shop/web/1", -50)}});
  EXPECT_THAT(Listed(-100, 0), IsEmpty()) << "a node's word";
  EXPECT_THAT(rest_.lines, ElementsAre("rollout")) << "which the store refuses and counts";
}

TEST_F(RolloutLogTest, OutlivesARestart) {
  log_->Take(kCluster, {.entities = {Of("deployment/shop/web/1", -50, {{"rollout.images", "web:2,side,car"}})}});
  Open();
  const auto rollouts = log_->List({At(-100), At(0)}, 10, [](const Rollout&) { return true; });
  ASSERT_EQ(rollouts.size(), 1u);
  EXPECT_EQ(rollouts[0].cluster, "cluster/one");
  EXPECT_EQ(rollouts[0].at, At(-50));
  EXPECT_EQ(FindAttribute(rollouts[0].attributes, "rollout.images"), "web:2,side,car");
  log_->Take(kCluster, {.entities = {Of("deployment/shop/web/1", -40)}});
  EXPECT_EQ(Listed(-100, 0).size(), 1u);
}

TEST_F(RolloutLogTest, ServicesMayHaveAnyName) {
  const Attributes attributes = {{"service.name", "a/b,c=\n"}, {"service.namespace", "x/y"}};
  EXPECT_TRUE(log_->AddService("1", At(-50), attributes));
  EXPECT_FALSE(log_->AddService("1", At(-50), attributes)) << "it is known";
  EXPECT_FALSE(log_->AddService("2", At(-50), {})) << "of none";
  EXPECT_THAT(Listed(-100, 0), ElementsAre("service x/y a/b,c=\n"));
  Open();
  EXPECT_THAT(Listed(-100, 0), ElementsAre("service x/y a/b,c=\n"));
}

TEST_F(RolloutLogTest, DropsOldRollouts) {
  log_->Take(kCluster, {.entities = {Of("deployment/shop/web/1", -900), Of("deployment/shop/web/2", -1001)}});
  EXPECT_EQ(Listed(-2000, 0).size(), 1u);
  clock_.Advance(200 * kNsPerSecond);
  Open();
  EXPECT_THAT(Listed(-2000, 0), IsEmpty());
}

TEST_F(RolloutLogTest, CutsFutureTimesToNow) {
  log_->Take(kCluster, {.entities = {Of("deployment/shop/web/1", 1'000'000)}});
  EXPECT_EQ(Listed(0, 1).size(), 1u);
  clock_.Advance(1001 * kNsPerSecond);
  Open();
  EXPECT_THAT(Listed(-2000, 2'000'000), IsEmpty()) << "it is as old as its telling";
}

TEST_F(RolloutLogTest, IsBounded) {
  is_kept_ = false;
  Open();
  MetadataUpdate update;
  for (size_t i = 0; i < RolloutLog::kRolloutsMax + 5; ++i) {
    update.entities.push_back(Of("deployment/shop/web/" + std::to_string(i), -500 + static_cast<int64_t>(i / 100)));
  }
  log_->Take(kCluster, std::move(update));
  EXPECT_EQ(Listed(-1000, 0, SIZE_MAX).size(), RolloutLog::kRolloutsMax);
  EXPECT_EQ(Count("tributary_metadata_rollouts_dropped_total"), 5u);
}

TEST_F(RolloutLogTest, OneSourceCannotEvictAnothersRollouts) {
  is_kept_ = false;
  Open();
  MetadataUpdate few, many;
  for (int i = 0; i < 10; ++i) few.entities.push_back(Of("deployment/shop/web/" + std::to_string(i), -900));
  for (size_t i = 0; i < RolloutLog::kRolloutsMax; ++i) {
    many.entities.push_back(Of("deployment/shop/web/" + std::to_string(i), -500));
  }
  log_->Take(kCluster, std::move(few));
  log_->Take({true, "cluster/two"}, std::move(many));
  EXPECT_EQ(Listed(-1000, -600, SIZE_MAX).size(), 10u);
  EXPECT_EQ(Listed(-1000, 0, SIZE_MAX).size(), RolloutLog::kRolloutsMax);
  EXPECT_EQ(Count("tributary_metadata_rollouts_dropped_total"), 10u);
}

TEST_F(RolloutLogTest, ADamagedFileIsSetAside) {
  log_.reset();
  std::ofstream(path_) << std::string(8192, 'x');
  for (const char* suffix : {"-wal", "-shm"}) unlink((path_ + suffix).c_str());
  Open();
  log_->Take(kCluster, {.entities = {Of("deployment/shop/web/1", -50)}});
  EXPECT_TRUE(std::filesystem::exists(path_ + ".broken"));
  Open();
  EXPECT_EQ(Listed(-100, 0).size(), 1u) << "the new file is used";
}

}  // namespace
}  // namespace tributary
