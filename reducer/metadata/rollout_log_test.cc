#include "reducer/metadata/rollout_log.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <future>
#include <thread>

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
  std::vector<std::string> Numbered(int64_t no, size_t limit = 100) const {
    std::vector<std::string> names;
    for (const Rollout& rollout : log_->ListBehind(no, limit).rollouts) names.push_back(rollout.name);
    return names;
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

TEST_F(RolloutLogTest, NumbersRolloutsInTheOrderOfTheirArrival) {
  log_->Take(kCluster, {.entities = {Of("deployment/shop/web/1", -50)}});
  log_->Take(kCluster, {.entities = {Of("deployment/shop/db/1", -60)}});
  EXPECT_THAT(Numbered(0), IsEmpty()) << "they are not in the store yet";
  ASSERT_TRUE(log_->Flush().ok());
  EXPECT_THAT(Numbered(0, 1), ElementsAre("web"));
  const int64_t first = log_->ListBehind(0, 1).next;
  EXPECT_THAT(Numbered(first), ElementsAre("db"));
  const int64_t last = log_->ListBehind(0, 10).next;
  EXPECT_EQ(log_->ListBehind(last, 10).next, last);
  Open();
  EXPECT_THAT(Numbered(first), ElementsAre("db")) << "numbers survive a restart";
  clock_.Advance(2000 * kNsPerSecond);
  Open();
  EXPECT_THAT(Numbered(0), IsEmpty()) << "they are too old";
  log_->Take(kCluster, {.entities = {Of("deployment/shop/web/2", -1)}});
  ASSERT_TRUE(log_->Flush().ok());
  EXPECT_THAT(Numbered(last), ElementsAre("web")) << "a new number is higher than all earlier ones";
}

TEST_F(RolloutLogTest, ANumberThatWasGivenTwiceMovesNoOtherRollout) {
  for (const char* id : {"a", "b", "c"}) {
    log_->Take(kCluster, {.entities = {Of(fmt::format("deployment/shop/{}/1", id), -50)}});
  }
  log_.reset();
  {
    store::Database file = store::Database::Open(path_, store::Database::Mode::kReadWrite).value();
    ASSERT_TRUE(file.Execute("UPDATE rollout SET no = 5 + (CAST(id AS TEXT) LIKE '%/c/1')").ok());
  }
  Open();
  EXPECT_THAT(Numbered(0), ElementsAre("a", "c", "b"));
  EXPECT_THAT(Numbered(5), ElementsAre("c", "b"));
}

// Otherwise, an exporter's position would be behind all rollouts, and it would send them again.
TEST_F(RolloutLogTest, TheHighestNumberOutlivesItsRollout) {
  log_->Take(kCluster, {.entities = {Of("deployment/shop/web/1", -50)}});
  log_->Take(kCluster, {.entities = {Of("deployment/shop/db/1", -900)}});
  ASSERT_TRUE(log_->Flush().ok());
  const int64_t last = log_->ListBehind(0, 10).next;
  clock_.Advance(200 * kNsPerSecond);
  for (int start = 0; start < 3; ++start) {
    Open();
    EXPECT_THAT(Numbered(0), ElementsAre("web"));
    EXPECT_THAT(Numbered(last), IsEmpty());
  }
}

// An exporter's position may be from another store.
TEST_F(RolloutLogTest, AHigherNumberThanTheLastOneStartsOver) {
  log_->Take(kCluster, {.entities = {Of("deployment/shop/web/1", -50)}});
  ASSERT_TRUE(log_->Flush().ok());
  EXPECT_THAT(Numbered(INT64_MAX), ElementsAre("web"));
}

TEST_F(RolloutLogTest, ListsAboutFourMebibytesAtOnce) {
  is_kept_ = false;
  Open();
  for (int i = 0; i < 10; ++i) {
    log_->Take(kCluster, {.entities = {Of(fmt::format("deployment/shop/web{}/1", i), -50,
                                          {{"rollout.images", std::string(1u << 20, 'x')}})}});
  }
  const RolloutLog::Numbered first = log_->ListBehind(0, 100);
  EXPECT_EQ(first.rollouts.size(), 4u);
  EXPECT_TRUE(first.is_cut);
  const RolloutLog::Numbered rest = log_->ListBehind(log_->ListBehind(first.next, 100).next, 100);
  EXPECT_EQ(rest.rollouts.size(), 2u);
  EXPECT_FALSE(rest.is_cut);
}

TEST_F(RolloutLogTest, WithoutAStoreRolloutsHaveNumbersAtOnce) {
  is_kept_ = false;
  Open();
  log_->Take(kCluster, {.entities = {Of("deployment/shop/web/1", -50)}});
  EXPECT_THAT(Numbered(0), ElementsAre("web"));
}

// The file of an earlier release has no numbers. A damaged one may have any.
TEST_F(RolloutLogTest, StoredRolloutsGetNumbersOfTheirOwn) {
  log_->Take(kCluster, {.entities = {Of("deployment/shop/web/1", -50), Of("deployment/shop/db/1", -60)}});
  ASSERT_TRUE(log_->Flush().ok());
  log_.reset();
  for (const std::string no : {"0", "-5", "9223372036854775807"}) {
    {
      store::Database old = store::Database::Open(path_, store::Database::Mode::kReadWrite).value();
      ASSERT_TRUE(old.Execute("UPDATE rollout SET no = " + no).ok());
    }
    Open();
    EXPECT_EQ(Numbered(0).size(), 2u) << no;
    log_->Take(kCluster, {.entities = {Of("deployment/shop/web/2", -50)}});
    ASSERT_TRUE(log_->Flush().ok());
    log_.reset();
    store::Database file = store::Database::Open(path_, store::Database::Mode::kReadWrite).value();
    ASSERT_TRUE(file.Execute("DELETE FROM rollout WHERE id = CAST('deployment/shop/web/2' AS BLOB)").ok());
  }
  {
    store::Database old = store::Database::Open(path_, store::Database::Mode::kReadWrite).value();
    ASSERT_TRUE(
        old.Execute("ALTER TABLE rollout DROP COLUMN no; DROP TABLE rollout_number; PRAGMA user_version = 2").ok());
  }
  Open();
  EXPECT_THAT(Numbered(0), ElementsAre("db", "web")) << "in the order of their times";
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

// A store whose writes wait until `release` is set, and then return `result`.
struct TestStore final : RolloutStore {
  struct State {
    std::promise<void> writing, release;
    std::atomic<bool> waits{false};
    absl::Status result;
    std::vector<std::string> lines;
  };
  explicit TestStore(State& of) : state(of) {}
  absl::Status Load(absl::FunctionRef<void(const Row&)>) override { return absl::OkStatus(); }
  absl::StatusOr<int64_t> HighestNumber() override { return 0; }
  absl::Status Save(std::span<const Row> added, std::span<const Row> removed) override {
    if (state.waits.exchange(false)) {
      state.writing.set_value();
      state.release.get_future().wait();
    }
    for (const Row& row : removed) state.lines.push_back("-" + row.id);
    for (const Row& row : added) state.lines.push_back("+" + row.id);
    return state.result;
  }
  State& state;
};

class RolloutWriteTest : public RolloutLogTest {
 protected:
  RolloutWriteTest() {
    log_.reset();
    options_.store = std::make_unique<TestStore>(state_);
    log_.emplace(std::move(options_), rest_, clock_, metrics_);
  }
  void Report(int number) {
    log_->Take(kCluster, {.entities = {Of("deployment/shop/web/" + std::to_string(number), -50)}});
  }
  TestStore::State state_;
};

TEST_F(RolloutWriteTest, NeitherTakeNorListWaitForAWrite) {
  Report(1);
  state_.waits = true;
  std::thread writer([this] { EXPECT_TRUE(log_->Flush().ok()); });
  state_.writing.get_future().wait();
  Report(2);  // a deadlock if it waited
  EXPECT_EQ(Listed(-100, 0).size(), 2u);
  EXPECT_THAT(state_.lines, IsEmpty());
  state_.release.set_value();
  writer.join();
  EXPECT_TRUE(log_->Flush().ok());
  EXPECT_THAT(state_.lines, ElementsAre("+deployment/shop/web/1", "+deployment/shop/web/2"));
}

TEST_F(RolloutWriteTest, ChangesWaitWhileTheDiskIsFull) {
  Gauge& failing = metrics_.AddGauge("tributary_metadata_writes_failing", "", {{"data", "rollouts"}});
  state_.result = absl::ResourceExhaustedError("disk full");
  Report(1);
  EXPECT_TRUE(absl::IsResourceExhausted(log_->Flush()));
  EXPECT_EQ(failing.value(), 1);
  Report(2);
  EXPECT_TRUE(absl::IsUnavailable(log_->Flush())) << "during the pause";
  EXPECT_EQ(state_.lines.size(), 1u);
  clock_.Advance(kNsPerSecond);
  EXPECT_TRUE(absl::IsResourceExhausted(log_->Flush()));
  clock_.Advance(kNsPerSecond);
  EXPECT_TRUE(absl::IsUnavailable(log_->Flush())) << "the pause is longer now";
  EXPECT_EQ(Count("tributary_metadata_rollouts_failures_total"), 2u);
  clock_.Advance(kNsPerSecond);
  state_.result = absl::OkStatus();
  state_.lines.clear();
  EXPECT_TRUE(log_->Flush().ok());
  EXPECT_THAT(state_.lines, ElementsAre("+deployment/shop/web/1", "+deployment/shop/web/2"));
  EXPECT_EQ(failing.value(), 0);
}

TEST_F(RolloutWriteTest, ARolloutThatIsDroppedBeforeItsWriteIsNotWritten) {
  Report(1);
  EXPECT_TRUE(log_->Flush().ok());
  Report(2);
  clock_.Advance(2'000 * kNsPerSecond);
  log_->Take(kCluster, {.entities = {}});
  Report(1);
  state_.lines.clear();
  EXPECT_TRUE(log_->Flush().ok());
  EXPECT_THAT(state_.lines, ElementsAre("-deployment/shop/web/1", "+deployment/shop/web/1"));
}

TEST_F(RolloutWriteTest, ADroppedRolloutIsRemovedAfterItsWrite) {
  Report(1);
  state_.waits = true;
  std::thread writer([this] { EXPECT_TRUE(log_->Flush().ok()); });
  state_.writing.get_future().wait();
  clock_.Advance(2'000 * kNsPerSecond);
  log_->Take(kCluster, {.entities = {}});
  state_.release.set_value();
  writer.join();
  EXPECT_THAT(state_.lines, ElementsAre("+deployment/shop/web/1", "-deployment/shop/web/1"));
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
