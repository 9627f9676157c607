#include "reducer/ingest/metadata_worker.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <string>
#include <vector>

namespace tributary::ingest {
namespace {

using testing::ElementsAre;

// Waits in its first call until the test lets it go, as a sink whose lock a slow thread holds.
class SlowSink final : public MetadataSink {
 public:
  void Connected(const MetadataSender& sender) override { Add("+" + sender.id); }
  void Disconnected(const MetadataSender& sender) override { Add("-" + sender.id); }
  void Take(const MetadataSender& sender, MetadataUpdate update) override {
    Add(sender.id + " " + update.entities.at(0).id);
  }
  void Add(std::string line) {
    if (lines.empty()) {
      entered.set_value();
      release.get_future().wait();
    }
    lines.push_back(std::move(line));
  }
  std::promise<void> entered, release;
  std::vector<std::string> lines;  // read it after Stop
};

MetadataUpdate UpdateOf(std::string id, size_t bytes = 1) {
  return {.entities = {{EntityKind::kContainer, std::move(id), {}, false, {{"text", std::string(bytes, 'x')}}}}};
}

class MetadataWorkerTest : public testing::Test {
 protected:
  // The thread waits in the sink.
  void Block() {
    EXPECT_TRUE(worker_.TryConnect(kFirst));
    sink_.entered.get_future().wait();
  }
  void Finish() {
    sink_.release.set_value();
    worker_.Stop();
  }
  uint64_t HeldBack() { return metrics_.AddCounter("tributary_metadata_held_back_total", "").value(); }

  const MetadataSender kFirst = {false, "first"}, kOther = {false, "other"};
  Metrics metrics_;
  SlowSink sink_;
  MetadataWorker worker_{{.queue_bytes_max = 1u << 20, .queue_updates_max = 64}, sink_, metrics_};
};

TEST_F(MetadataWorkerTest, NoCallWaitsForTheSinkAndCallsKeepTheirOrder) {
  Block();
  EXPECT_TRUE(worker_.TryTake(kFirst, UpdateOf("a")));
  EXPECT_TRUE(worker_.TryConnect(kOther));
  EXPECT_TRUE(worker_.TryTake(kOther, UpdateOf("b")));
  EXPECT_TRUE(worker_.TryTake(kFirst, UpdateOf("c")));
  worker_.Disconnect(kFirst);
  Finish();
  EXPECT_THAT(sink_.lines, ElementsAre("+first", "first a", "+other", "other b", "first c", "-first"));
  EXPECT_EQ(HeldBack(), 0u);
}

TEST_F(MetadataWorkerTest, OneSenderCannotFillTheQueue) {
  Block();
  int taken = 0;
  while (taken < 1'000 && worker_.TryTake(kFirst, UpdateOf("a", 10'000))) ++taken;
  EXPECT_GT(taken, 1);
  EXPECT_LT(taken, 27) << "a quarter of the queue";
  EXPECT_EQ(HeldBack(), 1u);
  EXPECT_TRUE(worker_.TryTake(kOther, UpdateOf("b", 10'000)));
  worker_.Disconnect(kFirst);
  Finish();
  EXPECT_EQ(sink_.lines.back(), "-first");
}

TEST_F(MetadataWorkerTest, ManySendersCannotExceedTheQueue) {
  Block();
  int taken = 0;
  while (taken < 1'000 && worker_.TryTake({false, std::to_string(taken)}, UpdateOf("a"))) ++taken;
  EXPECT_EQ(taken, 64);
  int connected = 0;
  while (connected < 1'000 && worker_.TryConnect(kOther)) ++connected;
  EXPECT_EQ(connected, 64);
  Finish();
  EXPECT_EQ(sink_.lines.size(), 129u);
}

TEST_F(MetadataWorkerTest, TakesAnUpdateAboveTheLimitAlone) {
  Block();
  EXPECT_TRUE(worker_.TryTake(kFirst, UpdateOf("a", 4u << 20)));
  EXPECT_FALSE(worker_.TryTake(kOther, UpdateOf("b")));
  Finish();
  EXPECT_FALSE(worker_.TryTake(kOther, UpdateOf("b"))) << "after Stop";
  EXPECT_THAT(sink_.lines, ElementsAre("+first", "first a"));
}

}  // namespace
}  // namespace tributary::ingest
