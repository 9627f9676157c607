#include "intake/recording/replay.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <map>

#include "base/status.h"
#include "intake/codec/batch_encoder.h"
#include "intake/recording/recording.h"
#include "intake/testing/reducer_testing.h"

namespace tributary::intake {
namespace {

constexpr double kMax = std::numeric_limits<double>::infinity();
constexpr size_t kBatches = 6, kSamples = 80, kEvents = 12;

class NullSink : public BatchSink {
 public:
  absl::Status Take(Batch) override { return absl::OkStatus(); }
};

// Both ends on one loop, with a reducer that keeps everything that each session sends.
class ReplayTest : public IntakeTest {
 protected:
  ReplayTest() { MakeRecording(); }
  ~ReplayTest() override { std::filesystem::remove(path_); }

  // Makes three dictionary generations. The third batch begins the second, after an eviction. The fifth batch begins
  // the third, with another dictionary.
  void MakeRecording() {
    SessionInfo session;
    session.node_id = "node";
    session.host_name = "host";
    NullSink none;
    MetadataFeed metadata({}, Clock::Real(), metrics_);
    metadata.Set(
        {.kind = EntityKind::kHost, .id = "node", .attributes = {{"host.name", "host"}, {"os.type", "linux"}}});
    metadata.Set({.kind = EntityKind::kContainer, .id = "c0ffee", .attributes = {{"container.name", "web"}}});
    auto sink = RecordingSink::Open({.path = path_, .metadata = &metadata}, session, none, Clock::Real(), metrics_);
    ASSERT_TRUE(sink.ok()) << sink.status();
    for (size_t i = 0; i < kBatches; ++i) {
      if (i == 2) generator_.Evict();
      if (i == 4) generator_.NewDictionary();
      if (i == 3) metadata.Remove(EntityKind::kContainer, "c0ffee", UnixNs{1});
      Batch batch = generator_.Next(kSamples, kEvents);
      for (const Sample& sample : FakeOwner::ResolveIn(*batch.dictionary, batch.samples)) {
        recorded_.push_back(sample);
        recorded_.back().time = MonotonicNs{batch.clock.monotonic.value - RoundToWire(sample.time).value};
      }
      for (const ProcessEvent& event : FakeOwner::ResolveIn(*batch.dictionary, batch.events)) {
        recorded_events_.push_back(event);
      }
      ASSERT_TRUE((*sink)->Take(std::move(batch)).ok());
    }
  }
  void StartReducer() {
    server_ =
        std::make_unique<TestServer>(loop_, server_options_, metrics_, [this](const Hello& hello) -> SessionOwner& {
          FakeOwner& store = stores_[hello.session.session_id];
          store.hello_answer = hello_answer_;
          return store;
        });
    server_options_.port = server_->port();
  }
  void StartReplay(ReplayOptions options, const Clock& clock = Clock::Real()) {
    auto script = ReplayScript::Load(path_);
    ASSERT_TRUE(script.ok()) << script.status();
    options.port = server_options_.port;
    options.backoff_min_ms = 5;
    options.backoff_max_ms = 50;
    options.seed = 1;
    replay_ = std::make_unique<Replay>(loop_, connector_, clock, *std::move(script), options, [this](absl::Status s) {
      over_ = true;
      end_ = std::move(s);
    });
    replay_->Start();
  }
  void AckEverything() {
    for (const auto& session : server_->sessions) {
      if (session->closed()) continue;
      FakeOwner& store = stores_[session->hello().session.session_id];
      if (store.newest > store.durable) session->Ack(store.durable = store.newest);
    }
  }
  void RunToEnd() {
    RunUntil(
        [this] {
          if (server_) AckEverything();
          return over_;
        },
        "the end of the replay");
  }
  size_t stored_batches() const {
    size_t n = 0;
    for (const auto& [id, store] : stores_) n += store.stored.size();
    return n;
  }
  // Each node must have all samples and events of every pass, once, and must report exactly these as captured.
  void ExpectEverythingOnce(size_t nodes, size_t passes = 1) {
    ASSERT_EQ(stores_.size(), nodes);
    for (auto& [id, store] : stores_) {
      ASSERT_EQ(store.stored.size(), passes * kBatches);
      std::vector<Sample> samples;
      std::vector<ProcessEvent> events;
      for (const auto& [sequence, entry] : store.stored) {
        EXPECT_EQ(entry.times, 1);
        samples.insert(samples.end(), entry.samples.begin(), entry.samples.end());
        events.insert(events.end(), entry.events.begin(), entry.events.end());
        EXPECT_EQ(entry.accounting.captured, CountRecords(samples, events));
        EXPECT_EQ(entry.accounting.TotalLost(), 0u);
      }
      ASSERT_EQ(events.size(), server_options_.features != 0 ? passes * recorded_events_.size() : 0);
      for (size_t i = 0; i < events.size(); ++i) {
        EXPECT_EQ(events[i], recorded_events_[i % recorded_events_.size()]) << i;
      }
      ASSERT_EQ(samples.size(), passes * recorded_.size());
      for (size_t i = 0; i < samples.size(); ++i) {
        Sample& sample = samples[i];
        const Sample& expected = recorded_[i % recorded_.size()];
        sample.time = expected.time;
        EXPECT_EQ(sample, expected) << i;
      }
    }
  }

  const std::string path_ = testing::TempDir() + "replay_test_recording." + std::to_string(getpid());
  TcpConnector connector_{loop_};
  std::map<std::array<uint8_t, 16>, FakeOwner> stores_;
  absl::Status hello_answer_;
  std::vector<Sample> recorded_;
  std::vector<ProcessEvent> recorded_events_;
  std::unique_ptr<Replay> replay_;
  bool over_ = false;
  absl::Status end_;
};

TEST_F(ReplayTest, SendsTheRecordingAsManyNodes) {
  StartReducer();
  StartReplay({.nodes = 3, .speed = kMax});
  RunToEnd();
  EXPECT_TRUE(end_.ok()) << end_;
  ExpectEverythingOnce(3);
  std::set<std::string> nodes;
  for (const auto& [id, store] : stores_) {
    EXPECT_EQ(store.hellos.front().role, Role::kReplay);
    nodes.insert(store.hellos.front().session.node_id);
    EXPECT_EQ(store.generations, 3);
    EXPECT_EQ(store.evictions, 1);
  }
  EXPECT_EQ(nodes, (std::set<std::string>{"node-replay-1", "node-replay-2", "node-replay-3"}));
  const ReplayTotals totals = replay_->totals();
  EXPECT_EQ(totals.samples_sent, 3 * kBatches * kSamples);
  EXPECT_EQ(totals.samples_acked, totals.samples_sent);
  EXPECT_EQ(totals.batches_built, kBatches);  // once for all nodes
  EXPECT_EQ(totals.finished, 3u);
}

TEST_F(ReplayTest, SendsOnlySamplesToAReducerOfAnEarlierRelease) {
  server_options_.features = 0;
  StartReducer();
  StartReplay({.nodes = 2, .speed = kMax});
  RunToEnd();
  EXPECT_TRUE(end_.ok()) << end_;
  ExpectEverythingOnce(2);
}

TEST_F(ReplayTest, SendsRecordedMetadataAsEachNodesOwn) {
  StartReducer();
  StartReplay({.nodes = 2, .speed = kMax});
  RunToEnd();
  EXPECT_TRUE(end_.ok()) << end_;
  std::set<std::string> hosts;
  for (const auto& [id, store] : stores_) {
    ASSERT_EQ(store.metadata.size(), 1u);
    const MetadataUpdate& update = store.metadata[0];
    EXPECT_TRUE(update.begins_snapshot && update.ends_snapshot);
    ASSERT_EQ(update.entities.size(), 2u);
    const Entity& host = update.entities[0];
    EXPECT_EQ(host.kind, EntityKind::kHost);
    EXPECT_EQ(host.id, store.hellos.front().session.node_id);
    EXPECT_EQ(FindAttribute(host.attributes, "host.name"), store.hellos.front().session.host_name);
    EXPECT_EQ(FindAttribute(host.attributes, "os.type"), "linux");
    hosts.insert(host.id);
    // The container had gone before the recording's end, but its samples are in the recording.
    EXPECT_EQ(update.entities[1],
              (Entity{.kind = EntityKind::kContainer, .id = "c0ffee", .attributes = {{"container.name", "web"}}}));
  }
  EXPECT_EQ(hosts, (std::set<std::string>{"node-replay-1", "node-replay-2"}));
}

TEST_F(ReplayTest, RepeatsUnderNewGenerations) {
  StartReducer();
  StartReplay({.nodes = 2, .speed = kMax, .repeat = 3});
  RunToEnd();
  EXPECT_TRUE(end_.ok()) << end_;
  ExpectEverythingOnce(2, 3);
  for (const auto& [id, store] : stores_) EXPECT_EQ(store.generations, 9);
}

TEST_F(ReplayTest, RestartedReducerGetsEverythingOnce) {
  StartReducer();
  StartReplay({.nodes = 3, .speed = kMax, .repeat = 2});
  // Nothing is acknowledged. Then the reducer dies, with half of the accepted batches durable.
  RunUntil([this] { return stored_batches() >= 12; }, "batches");
  server_.reset();
  for (auto& [id, store] : stores_) {
    store.durable = store.newest / 2;
    store.stored.erase(store.stored.upper_bound(store.durable), store.stored.end());
    store.newest = store.durable;
    store.generation = 0;
    store.dictionary.reset();
  }
  StartReducer();
  RunToEnd();
  EXPECT_TRUE(end_.ok()) << end_;
  ExpectEverythingOnce(3, 2);
  EXPECT_GT(replay_->totals().reconnects, 0u);
  EXPECT_EQ(replay_->totals().samples_sent, 3 * 2 * kBatches * kSamples);
}

TEST_F(ReplayTest, StartsOverWhenTheDictionaryIsNeeded) {
  StartReducer();
  bool asked = false;
  StartReplay({.nodes = 1, .speed = kMax});
  RunUntil(
      [&] {
        if (stores_.empty()) return false;
        FakeOwner& store = stores_.begin()->second;
        store.on_batch = [&](const IncomingBatch& batch) {
          if (batch.sequence != 3 || asked) return absl::OkStatus();
          asked = true;
          AckEverything();  // batches that are not durable would come twice
          return absl::FailedPreconditionError("cannot follow");
        };
        return true;
      },
      "a session");
  RunToEnd();
  EXPECT_TRUE(end_.ok()) << end_;
  ExpectEverythingOnce(1);
}

TEST_F(ReplayTest, KeepsTheRecordedPace) {
  StartReducer();
  FakeClock clock;
  StartReplay({.nodes = 1, .speed = 2}, clock);
  RunUntil([this] { return stored_batches() == 1; }, "the first batch");
  const ReplayScript& script = replay_->script();
  EXPECT_LT(replay_->totals().samples_sent, script.samples().total());
  clock.Advance(script.steps().back().at_ns / 2);
  RunToEnd();
  ExpectEverythingOnce(1);
}

TEST_F(ReplayTest, ReportsAMissingReducer) {
  StartReducer();
  server_.reset();  // nothing listens on its port any more
  StartReplay({.nodes = 3, .speed = kMax});
  RunToEnd();
  EXPECT_EQ(end_.code(), absl::StatusCode::kUnavailable) << end_;
}

TEST_F(ReplayTest, GivesUpWhenTheReducerRefuses) {
  StartReducer();
  hello_answer_ = absl::PermissionDeniedError("not you");
  StartReplay({.nodes = 2, .speed = kMax});
  RunToEnd();
  EXPECT_FALSE(end_.ok());
  EXPECT_EQ(replay_->totals().finished, 0u);
}

TEST_F(ReplayTest, ReportsFaultsOfAFile) {
  EXPECT_EQ(ReplayScript::Load(path_ + ".none").status().code(), absl::StatusCode::kNotFound);
  // Its last frame is torn: the batches before it are used.
  const uint64_t bytes = std::filesystem::file_size(path_);
  std::filesystem::resize_file(path_, bytes - 5);
  auto torn = ReplayScript::Load(path_);
  ASSERT_TRUE(torn.ok()) << torn.status();
  EXPECT_EQ(torn->steps().size(), kBatches - 1);
  EXPECT_EQ(torn->torn().code(), absl::StatusCode::kDataLoss);
  // A Hello alone.
  std::filesystem::resize_file(path_, torn->steps().front().offset);
  EXPECT_EQ(ReplayScript::Load(path_).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(ReplayTest, RefusesMoreTypesThanASessionHas) {
  std::filesystem::resize_file(path_, ReplayScript::Load(path_)->steps().front().offset);  // the Hello alone
  std::ofstream recording(path_, std::ios::binary | std::ios::app);
  BatchGenerator generator(3);
  BatchEncoder encoder(1);
  for (size_t first : {100u, 101u}) {
    Batch batch = generator.Next(kSampleTypesMax);
    for (size_t i = 0; i < batch.samples.size(); ++i) {
      const auto type = static_cast<SampleType>(first + i);
      batch.samples[i].type = type;
      batch.sample_types.push_back({type, {"type" + std::to_string(first + i), "things"}});
    }
    for (const std::string& frame : encoder.Encode(batch)) recording << frame;
  }
  recording.close();
  const absl::Status status = ReplayScript::Load(path_).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(Message(status).find("more than 64 sample types"), std::string::npos) << status;
}

}  // namespace
}  // namespace tributary::intake
