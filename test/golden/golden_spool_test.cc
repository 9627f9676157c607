#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/directory_testing.h"
#include "base/loop_testing.h"
#include "base/tcp.h"
#include "intake/client/delivery.h"
#include "intake/spool/spool.h"
#include "intake/spool/spool_directory.h"
#include "intake/testing/reducer_testing.h"

// Tests that the spools of the golden sets (schemas/golden/README.md) are delivered: the claimed batches to the session
// that claimed them, the others to a new session. The numbers are those of golden_node.cc.

namespace tributary::intake {
namespace {

const std::filesystem::path kSets = TRIBUTARY_SOURCE_DIR "/schemas/golden";
constexpr uint8_t kClaimedSession = 0x22, kNewSession = 0x33;
constexpr uint64_t kSamples[] = {50, 51, 52, 53};
constexpr uint64_t kClaimedBase = 300, kLost = 5;
// In sets of releases with process events: of each batch, and in the totals of the claim.
constexpr uint64_t kEvents = 124, kClaimedEvents = 1'000;

const std::set<std::string> kSetsWithoutEvents = {"ac2ef0a", "open_types"};

std::vector<std::string> SetsWithSpool() {
  std::vector<std::string> sets;
  for (const auto& set : std::filesystem::directory_iterator(kSets)) {
    if (std::filesystem::exists(set.path() / "spool")) sets.push_back(set.path().filename().string());
  }
  std::sort(sets.begin(), sets.end());
  return sets;
}

// Connects to the reducer in this process instead of the reducer that the spools name.
class LocalConnector : public Connector {
 public:
  LocalConnector(Loop& loop, uint16_t port) : loop_(loop), port_(port) {}
  std::unique_ptr<Stream> Connect(const std::string& host, uint16_t port,
                                  std::function<void(absl::Status)> done) override {
    EXPECT_EQ(host, "reducer.golden.invalid");
    EXPECT_EQ(port, 8000);
    return TcpStream::Connect(loop_, "127.0.0.1", port_, std::move(done));
  }

 private:
  Loop& loop_;
  const uint16_t port_;
};

class GoldenSpool : public testing::TestWithParam<std::string> {
 protected:
  GoldenSpool() {
    claimed_.durable = 3;  // the batches before the claimed ones
    std::filesystem::copy(kSets / GetParam() / "spool", path_, std::filesystem::copy_options::recursive);
    options_.reducers = {{"reducer.golden.invalid", 8000}};
    options_.client = {.backoff_min_ms = 5, .backoff_max_ms = 20, .seed = 1};
    options_.client.session.node_id = "golden-2";
    options_.client.session.session_id.fill(kNewSession);
  }

  FakeOwner& StoreOf(const Hello& hello) { return hello.session.session_id[0] == kClaimedSession ? claimed_ : new_; }
  void AckAll() {
    for (const auto& session : server_.sessions) {
      FakeOwner& store = StoreOf(session->hello());
      store.durable = std::max(store.durable, store.newest);
      if (!session->closed()) session->Ack(store.durable);
    }
  }
  size_t Segments() const {
    const auto names = std::filesystem::directory_iterator(path_);
    return static_cast<size_t>(
        std::count_if(begin(names), end(names), [](const auto& file) { return file.path().extension() == ".trs"; }));
  }

  const TestDirectory directory_;
  const std::string path_ = directory_.path() + "/spool";
  Metrics metrics_;
  Loop loop_;
  FakeOwner claimed_, new_;
  TestServer server_{loop_, ServerOptions{.port = 0, .linger_ms = 50}, metrics_,
                     [this](const Hello& hello) -> SessionOwner& { return StoreOf(hello); }};
  LocalConnector connector_{loop_, server_.port()};
  DeliveryOptions options_;
};

TEST(GoldenSpools, Exist) { EXPECT_FALSE(SetsWithSpool().empty()); }

TEST_P(GoldenSpool, IsDelivered) {
  std::filesystem::permissions(path_, std::filesystem::perms::owner_all);
  auto storage = OpenSpoolDirectory(path_);
  ASSERT_TRUE(storage.ok()) << storage.status();
  auto spool = Spool::Open(
      {}, **storage, options_.client.session, Clock::Real(), metrics_,
      [](LossReason, const SampleCounts&, const Accounting&, bool) { ADD_FAILURE() << "nothing is dropped"; });
  ASSERT_TRUE(spool.ok()) << spool.status();
  EXPECT_EQ((*spool)->samples(), kSamples[0] + kSamples[1] + kSamples[2] + kSamples[3]);
  options_.spool = spool->get();
  Delivery delivery(
      loop_, connector_, options_, Clock::Real(), metrics_,
      Delivery::Callbacks{.need_symbols = {},
                          .need_digest = {},
                          .lost = [](LossReason, const SampleCounts&) { ADD_FAILURE() << "nothing is lost"; },
                          .durable = {},
                          .earlier_reported = {}});
  delivery.Start();
  const auto delivered = [&] {
    AckAll();
    return delivery.waiting_samples() == 0 && Segments() == 0;
  };
  ASSERT_TRUE(RunLoopUntil(loop_, delivered, 20'000));

  ASSERT_EQ(claimed_.stored.size(), 2u);
  EXPECT_EQ(claimed_.stored.at(4).samples.size(), kSamples[0]);
  EXPECT_EQ(claimed_.stored.at(5).samples.size(), kSamples[1]);
  EXPECT_EQ(claimed_.stored.at(5).accounting.captured.total(), kClaimedBase + kSamples[0] + kSamples[1]);
  EXPECT_EQ(claimed_.stored.at(5).accounting.TotalLost(), 0u);
  EXPECT_EQ(claimed_.hellos.front().session.node_id, "golden-2");
  EXPECT_EQ(new_.stored_samples(), kSamples[2] + kSamples[3]);
  const Accounting& accounting = new_.stored.rbegin()->second.accounting;
  EXPECT_EQ(accounting.captured.total(), kSamples[2] + kSamples[3] + kLost);
  EXPECT_EQ(accounting.LostFor(LossReason::kRingFull).total(), kLost);
  EXPECT_EQ(accounting.TotalLost().total(), kLost);

  const bool has_events = !claimed_.stored.at(4).events.empty();
  EXPECT_EQ(has_events, !kSetsWithoutEvents.contains(GetParam()));
  EXPECT_EQ(claimed_.stored_counts().events(), has_events ? 2 * kEvents : 0);
  EXPECT_EQ(claimed_.stored.at(5).accounting.captured.events(), has_events ? kClaimedEvents + 2 * kEvents : 0);
  EXPECT_EQ(new_.stored_counts().events(), has_events ? 2 * kEvents : 0);
  EXPECT_EQ(accounting.captured.events(), new_.stored_counts().events());
}

INSTANTIATE_TEST_SUITE_P(Sets, GoldenSpool, testing::ValuesIn(SetsWithSpool()),
                         [](const auto& set) { return set.param; });

}  // namespace
}  // namespace tributary::intake
