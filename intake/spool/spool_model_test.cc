#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <utility>

#include "intake/spool/spool.h"
#include "intake/testing/fake_spool_storage_testing.h"

// Tests the spool against a model of its promises, with seeded operations and faults. Every appended batch must reach a
// reducer exactly once and in order, or must be reported as dropped, whichever process dies at whatever time. A claim
// must never cover another batch.

namespace tributary::intake {
namespace {

enum class Faults : uint8_t { kKillAnywhere, kFullAndFailing, kPowerLoss, kDamage };

struct Key {
  uint8_t session;
  uint64_t sequence;
  auto operator<=>(const Key&) const = default;
};

class Model {
 public:
  Model(Faults faults, uint64_t seed) : faults_(faults), random_(seed), storage_(seed) {
    options_.segment_bytes = 9'500;
    options_.bytes_max = faults == Faults::kFullAndFailing ? 60'000 : 64u << 20;
    dictionary_->InternNode({NodeRef{}, dictionary_->InternFrame({.address = 1})});
    dictionary_->InternThread({ProcessRef{}, Tid{1}, dictionary_->InternString("t")});
  }

  void Run(int operations) {
    Open();
    for (int i = 0; i < operations && !::testing::Test::HasFailure(); ++i) Step();
    storage_.set_capacity(UINT64_MAX);
    storage_.NoFaults();
    if (storage_.dead()) Reopen();
    Drain();
    Reopen();  // nothing may be left
    Drain();
    Check();
  }

 private:
  uint64_t Below(uint64_t n) { return std::uniform_int_distribution<uint64_t>(0, n - 1)(random_); }

  void Open() {
    ++process_;
    next_sequence_ = 1;
    last_unclaimed_ = 0;
    claimed_here_.clear();
    SessionInfo session;
    session.node_id = std::to_string(process_);
    auto spool =
        Spool::Open(options_, storage_, session, clock_, metrics_,
                    [this](LossReason, const SampleCounts&, const Accounting& lost, bool) { dropped_ += lost.idle; });
    if (spool.ok()) spool_ = *std::move(spool);
    ASSERT_TRUE(spool.ok() || storage_.dead()) << spool.status();
  }
  void Reopen() {
    storage_.Kill();
    spool_.reset();
    if (faults_ == Faults::kPowerLoss && Below(2) == 0) {
      storage_.LosePower();
      ok_ = durable_;  // the spool promises nothing for the other batches
    } else {
      storage_.Restart();
    }
    Open();
  }

  void Step() {
    if (storage_.dead() || !spool_) {
      Reopen();
      return;
    }
    switch (Below(12)) {
      case 0:
        Reopen();
        return;
      case 1:
        clock_.Advance(options_.segment_age_ns);
        spool_->Tick();
        if (!storage_.dead() && faults_ == Faults::kPowerLoss) durable_ = ok_;
        return;
      case 2:
        Disturb();
        return;
      case 3:
      case 4:
      case 5:
        Deliver();
        return;
      case 6:
        AppendInDoubt();
        return;
      default:
        Append(std::nullopt);
    }
  }

  void Disturb() {
    switch (faults_) {
      case Faults::kKillAnywhere:
      case Faults::kPowerLoss:
        storage_.KillAfter(Below(6));
        break;
      case Faults::kFullAndFailing:
        storage_.set_capacity(Below(2) == 0 ? UINT64_MAX : spool_->bytes() + Below(3000));
        if (Below(2) == 0) storage_.FailAfter(Below(6));
        break;
      case Faults::kDamage: {
        const auto names = storage_.names();
        if (names.empty()) break;
        const std::string& name = names[Below(names.size())];
        storage_.Damage(name, Below(storage_.bytes(name).size() + 1), static_cast<uint8_t>(1 + Below(255)));
      }
    }
  }

  // Every sample of a batch has the batch's number, and each batch adds one to `idle`.
  uint64_t Append(const std::optional<SpoolClaim>& claim) {
    const uint64_t number = ++last_number_;
    Batch batch{.dictionary = dictionary_};
    const size_t samples = 1 + Below(60);
    for (size_t i = 0; i < samples; ++i) {
      batch.samples.push_back({.thread = ThreadRef{1},
                               .node = NodeRef{1},
                               .cpu = static_cast<uint16_t>(Below(60'000)),
                               .count = static_cast<uint32_t>(Below(1'000'000)),
                               .value = number});
    }
    batch.accounting.captured = samples;
    batch.accounting.idle = 1;
    if (spool_->Append(batch, claim).ok()) ok_.insert(number);
    return number;
  }

  // The batch was sent from memory, and its arrival is unknown.
  void AppendInDoubt() {
    const uint64_t sequence = next_sequence_++;
    const uint64_t number = Append(ClaimOf(sequence));
    if (Below(2) == 0) Store({process_, sequence}, number);
  }

  SpoolClaim ClaimOf(uint64_t sequence) const {
    SpoolClaim claim{.host = "reducer", .port = 1, .first_sequence = sequence};
    claim.session_id.fill(process_);
    claim.base.idle = sequence;
    return claim;
  }

  bool Deliver() {
    auto next = spool_->Next();
    if (!next || storage_.dead()) return false;
    if (!next->damaged_samples.empty()) return DeliverDamaged(*next);
    EXPECT_FALSE(next->batch.samples.empty());
    const uint64_t number = next->batch.samples.front().value;
    for (const Sample& sample : next->batch.samples) EXPECT_EQ(sample.value, number);
    EXPECT_EQ(next->batch.accounting.captured, next->batch.samples.size());
    EXPECT_TRUE(number != 0 && number <= last_number_) << "never appended";
    if (next->claim) {
      const SpoolClaim& claim = *next->claim;
      EXPECT_EQ(claim.base.idle, claim.first_sequence);
      Store({claim.session_id[0], claim.first_sequence}, number);
    } else {
      EXPECT_GT(number, last_unclaimed_) << "out of order";
      last_unclaimed_ = number;
      if (!Claim(*next)) return false;
      auto [first, sequence] = claimed_here_.at(next->segment);
      Store({process_, sequence + next->index - first}, number);
    }
    if (next->last_of_segment) spool_->Release(next->segment);
    return true;
  }

  // Reports the batch as lost, unless the reducer has it.
  bool DeliverDamaged(const SpooledBatch& next) {
    EXPECT_LE(next.claim->base.idle, next.claim->first_sequence);
    const Key key{next.claim->session_id[0], next.claim->first_sequence};
    if (reducer_.try_emplace(key, kReportedLost).second) ++dropped_;
    if (next.last_of_segment) spool_->Release(next.segment);
    return true;
  }

  // Claims once for each segment; sometimes another session takes over in the middle of a segment.
  bool Claim(const SpooledBatch& next) {
    auto it = claimed_here_.find(next.segment);
    if (it != claimed_here_.end() && Below(4) != 0) return true;
    for (int attempt = 0; attempt < 3 && !storage_.dead(); ++attempt) {
      const uint64_t sequence = std::exchange(next_sequence_, next_sequence_ + 1000);  // more than a segment's batches
      if (spool_->Claim(next.segment, next.index, ClaimOf(sequence)).ok()) {
        claimed_here_[next.segment] = {next.index, sequence};
        return true;
      }
      // The number goes to another batch, unless the process died during the claim.
      if (!storage_.dead()) Store({process_, sequence}, ++last_number_);
    }
    EXPECT_TRUE(storage_.dead());
    return false;
  }

  // Acts as a reducer: a batch that comes again under its number changes nothing.
  void Store(Key key, uint64_t number) {
    auto [it, is_new] = reducer_.try_emplace(key, number);
    EXPECT_TRUE(it->second == number || it->second == kReportedLost)
        << "a claim lied: session " << int{key.session} << " sequence " << key.sequence;
    if (is_new) {
      EXPECT_TRUE(stored_.insert(number).second) << "batch " << number << " was stored twice";
    }
  }

  void Drain() {
    while (Deliver()) continue;
    if (!spool_->empty()) Deliver();
    spool_->Tick();
    EXPECT_TRUE(spool_->empty());
    EXPECT_EQ(spool_->segments(), 0u);
    EXPECT_EQ(spool_->bytes(), 0u);
    EXPECT_EQ(spool_->samples(), 0u);
    EXPECT_TRUE(storage_.names().empty());
  }

  void Check() {
    uint64_t missing = 0;
    for (uint64_t number : ok_) missing += stored_.contains(number) ? 0 : 1;
    switch (faults_) {
      case Faults::kKillAnywhere:
        EXPECT_EQ(missing, 0u);
        break;
      case Faults::kFullAndFailing:
        // A dropped batch may have been in doubt, and stored after all.
        EXPECT_LE(missing, dropped_);
        break;
      case Faults::kPowerLoss:
        for (uint64_t number : durable_) EXPECT_TRUE(stored_.contains(number)) << number << " was durable";
        break;
      case Faults::kDamage:
        break;
    }
  }

  static constexpr uint64_t kReportedLost = 0;
  const Faults faults_;
  std::mt19937_64 random_;
  FakeSpoolStorage storage_;
  FakeClock clock_;
  Metrics metrics_;
  SpoolOptions options_;
  std::shared_ptr<Dictionary> dictionary_ = std::make_shared<Dictionary>();
  std::unique_ptr<Spool> spool_;

  uint8_t process_ = 0;
  uint64_t next_sequence_ = 1;
  std::map<SegmentId, std::pair<uint32_t, uint64_t>> claimed_here_;  // index and sequence of the newest claim
  uint64_t last_unclaimed_ = 0;
  uint64_t last_number_ = 0;
  std::set<uint64_t> ok_, durable_, stored_;
  uint64_t dropped_ = 0;
  std::map<Key, uint64_t> reducer_;
};

class SpoolModel : public ::testing::TestWithParam<Faults> {};

TEST_P(SpoolModel, KeepsItsPromises) {
  for (uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Model(GetParam(), seed).Run(200);
    if (HasFailure()) break;
  }
}

INSTANTIATE_TEST_SUITE_P(Faults, SpoolModel,
                         ::testing::Values(Faults::kKillAnywhere, Faults::kFullAndFailing, Faults::kPowerLoss,
                                           Faults::kDamage));

}  // namespace
}  // namespace tributary::intake
