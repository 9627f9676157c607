#include "intake/recording/recording.h"
#include "intake/codec/batch_encoder.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>

#include "base/clock.h"
#include "intake/metadata/metadata_message.h"
#include "intake/recording/recording_reader.h"
#include "intake/testing/batch_generator_testing.h"

namespace tributary::intake {
namespace {

class KeepingSink : public BatchSink {
 public:
  absl::Status Take(Batch batch) override {
    batches.push_back(std::move(batch));
    return absl::OkStatus();
  }
  std::vector<Batch> batches;
};

class Recording : public testing::Test {
 protected:
  ~Recording() override { std::filesystem::remove_all(directory_); }

  std::unique_ptr<RecordingSink> Open(uint64_t bytes_max = 1u << 30) {
    SessionInfo session;
    session.session_id = {7};
    session.node_id = "node";
    auto sink = RecordingSink::Open({.path = path_, .bytes_max = bytes_max}, session, next_, clock_, metrics_);
    EXPECT_TRUE(sink.ok()) << sink.status();
    return sink.ok() ? *std::move(sink) : nullptr;
  }
  // Returns every batch. Expects that the first frame is Hello and that the recording is consistent.
  std::vector<IncomingBatch> ReadBack() {
    std::vector<IncomingBatch> out;
    auto reader = RecordingReader::Open(path_);
    EXPECT_TRUE(reader.ok());
    RecordedSession session;
    RecordedFrame recorded;
    for (bool first = true; *(*reader)->Next(&recorded); first = false) {
      EXPECT_EQ(first, recorded.frame.type == MessageType::kHello);
      if (first) {
        EXPECT_EQ(DecodeHello(recorded.frame.payload)->session.node_id, "node");
        continue;
      }
      auto batch = session.Take(recorded.frame);
      EXPECT_TRUE(batch.ok()) << batch.status();
      if (recorded.frame.type == MessageType::kBatch) out.push_back(*std::move(batch));
    }
    return out;
  }
  double Metric(const std::string& name) {
    const std::string text = metrics_.PrometheusText();
    const size_t at = text.find("\n" + name + " ");
    return at == std::string::npos ? -1 : std::stod(text.substr(at + name.size() + 2));
  }

  std::string directory_ = [] {
    std::string name = testing::TempDir() + "recording-XXXXXX";
    return std::string(mkdtemp(name.data()));
  }();
  const std::string path_ = directory_ + "/recording";
  FakeClock clock_;
  Metrics metrics_;
  KeepingSink next_;
  BatchGenerator generator_{1};
};

TEST_F(Recording, HoldsMetadata) {
  MetadataFeed feed({}, clock_, metrics_);
  feed.Set({.kind = EntityKind::kHost, .id = "node", .attributes = {{"host.name", "h"}}});
  auto sink = RecordingSink::Open({.path = path_, .metadata = &feed}, {}, next_, clock_, metrics_);
  ASSERT_TRUE(sink.ok()) << sink.status();
  ASSERT_TRUE((*sink)->Take(generator_.Next(10)).ok());
  feed.Set({.kind = EntityKind::kContainer, .id = "c", .attributes = {{"container.name", "web"}}});
  ASSERT_TRUE((*sink)->Take(generator_.Next(10)).ok());
  ASSERT_TRUE((*sink)->Take(generator_.Next(10)).ok());

  std::vector<std::string> contents;
  auto reader = RecordingReader::Open(path_);
  ASSERT_TRUE(reader.ok());
  for (RecordedFrame recorded; *(*reader)->Next(&recorded);) {
    if (recorded.frame.type == MessageType::kBatch) contents.push_back("batch");
    if (recorded.frame.type != MessageType::kMetadata) continue;
    uint32_t unknown_values = 0;
    auto update = DecodeMetadata(recorded.frame.payload, &unknown_values);
    ASSERT_TRUE(update.ok()) << update.status();
    for (const Entity& entity : update->entities) contents.push_back(entity.id);
  }
  EXPECT_EQ(contents, (std::vector<std::string>{"node", "batch", "c", "batch", "batch"}));
}

TEST_F(Recording, HoldsTheBatchesItPassedOn) {
  auto sink = Open();
  for (int i = 0; i < 5; ++i) {
    Batch batch = generator_.Next(100);
    batch.sequence = 40 + static_cast<uint64_t>(i);  // the sender has its own numbers
    ASSERT_TRUE(sink->Take(std::move(batch)).ok());
    if (i == 2) generator_.NewDictionary();
  }
  const std::vector<IncomingBatch> read = ReadBack();
  ASSERT_EQ(read.size(), 5u);
  ASSERT_EQ(next_.batches.size(), 5u);
  for (size_t i = 0; i < 5; ++i) {
    EXPECT_EQ(read[i].sequence, i + 1);
    EXPECT_EQ(read[i].generation, i < 3 ? 1u : 2u);
    EXPECT_EQ(next_.batches[i].sequence, 40 + i);
    EXPECT_EQ(read[i].accounting, next_.batches[i].accounting);
    ASSERT_EQ(read[i].samples.size(), 100u);
    EXPECT_EQ(read[i].samples[9].node, next_.batches[i].samples[9].node);
    EXPECT_EQ(read[i].samples[9].time, RoundToWire(next_.batches[i].samples[9].time));
  }
  EXPECT_EQ(Metric("tributary_intake_recorded_samples_total"), 500);
  EXPECT_EQ(Metric("tributary_intake_unrecorded_samples_total"), 0);
  EXPECT_EQ(Metric("tributary_intake_recorded_bytes_total"), std::filesystem::file_size(path_));
}

TEST_F(Recording, HoldsProcessEvents) {
  auto sink = Open();
  ASSERT_TRUE(sink->Take(generator_.Next(10, 20)).ok());
  ASSERT_TRUE(sink->Take(generator_.Next(0, 5)).ok());
  Batch too_large = generator_.Next(10);
  too_large.events.resize(kProcessEventsPerBatchMax + 1);
  ASSERT_TRUE(sink->Take(std::move(too_large)).ok());
  const std::vector<IncomingBatch> read = ReadBack();
  ASSERT_EQ(read.size(), 2u);
  double events = 0;
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(read[i].events, next_.batches[i].events);
    events += static_cast<double>(CountRecords(read[i]).events());
  }
  EXPECT_EQ(Metric("tributary_intake_recorded_process_events_total"), events);
  EXPECT_EQ(Metric("tributary_intake_unrecorded_process_events_total"), kProcessEventsPerBatchMax + 1);
  EXPECT_EQ(Metric("tributary_intake_unrecorded_samples_total"), 10);
}

TEST_F(Recording, IsReadableByItsOwnerOnlyAndReplacesAnOlderFile) {
  for (int i = 0; i < 2; ++i) {
    auto sink = Open();
    ASSERT_TRUE(sink->Take(generator_.Next(10)).ok());
    struct stat about = {};
    ASSERT_EQ(stat(path_.c_str(), &about), 0);
    EXPECT_EQ(about.st_mode & 0777, 0600u);
    generator_.NewDictionary();
  }
  EXPECT_EQ(ReadBack().size(), 1u);
}

TEST_F(Recording, EndsAtItsCapAndPassesBatchesOn) {
  auto sink = Open(20'000);
  for (int i = 0; i < 50; ++i) ASSERT_TRUE(sink->Take(generator_.Next(100)).ok());
  EXPECT_FALSE(sink->recording());
  EXPECT_EQ(next_.batches.size(), 50u);
  EXPECT_LE(std::filesystem::file_size(path_), 20'000u);
  const size_t whole = ReadBack().size();
  EXPECT_GT(whole, 0u);
  EXPECT_LT(whole, 50u);
  EXPECT_EQ(Metric("tributary_intake_recorded_samples_total"), 100.0 * static_cast<double>(whole));
  EXPECT_EQ(Metric("tributary_intake_unrecorded_samples_total"), 100.0 * static_cast<double>(50 - whole));
}

// A write that the system cuts short simulates a full disk: the file ends at a whole frame, and sending continues.
TEST_F(Recording, EndsWhenTheDiskIsFullAndPassesBatchesOn) {
  auto sink = Open();
  ASSERT_TRUE(sink->Take(generator_.Next(100)).ok());
  const uint64_t before = std::filesystem::file_size(path_);
  struct rlimit old = {};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &old), 0);
  signal(SIGXFSZ, SIG_IGN);
  const struct rlimit cut = {before + 100, old.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &cut), 0);
  EXPECT_TRUE(sink->Take(generator_.Next(100)).ok());
  EXPECT_TRUE(sink->Take(generator_.Next(100)).ok());
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &old), 0);
  EXPECT_FALSE(sink->recording());
  EXPECT_EQ(next_.batches.size(), 3u);
  EXPECT_EQ(std::filesystem::file_size(path_), before);
  EXPECT_EQ(ReadBack().size(), 1u);
  EXPECT_EQ(Metric("tributary_intake_unrecorded_samples_total"), 200);
}

TEST_F(Recording, RefusesPathsThatAreNotFiles) {
  SessionInfo session;
  std::filesystem::create_symlink("/etc/passwd", path_);
  for (const std::string& path : {path_, directory_, std::string("/dev/null"), directory_ + "/none/x"}) {
    EXPECT_FALSE(RecordingSink::Open({.path = path}, session, next_, clock_, metrics_).ok()) << path;
  }
}

TEST_F(Recording, ReaderReportsWhereATornFileEnds) {
  auto sink = Open();
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(sink->Take(generator_.Next(100)).ok());
  sink.reset();
  const uint64_t bytes = std::filesystem::file_size(path_);
  std::filesystem::resize_file(path_, bytes - 1);
  auto reader = RecordingReader::Open(path_);
  RecordedFrame frame;
  absl::StatusOr<bool> got = true;
  int frames = -1;
  for (; got.ok() && *got; ++frames) got = (*reader)->Next(&frame);
  EXPECT_EQ(frames, 3);
  EXPECT_EQ(got.status().code(), absl::StatusCode::kDataLoss);
  EXPECT_NE(got.status().message().find("offset " + std::to_string((*reader)->offset())), absl::string_view::npos);
}

}  // namespace
}  // namespace tributary::intake
