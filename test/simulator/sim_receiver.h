#pragma once

#include <cstdint>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "otlp/sender.h"
#include "schemas/otlp/profiles_service.pb.h"
#include "test/simulator/world.h"

namespace tributary::sim {

// Thrown where a process is killed. Between the throw and its handler nothing of the process runs but destructors.
struct Killed {};

// A receiver of OTLP profiles that remembers what it accepted. It outlives the exporters that send to it. It can
// refuse, hang, lose answers, be away, ask for waits, and see its sender die during a request. A sample is known by its
// time: no two samples of a store have the same time.
class SimReceiver {
 public:
  // `shards`: of the exporter's store.
  SimReceiver(World& world, uint64_t seed, std::string name, size_t shards)
      : world_(world), random_(seed), name_(std::move(name)), shards_(shards), reads_fail_(random_() % 2 == 0) {}

  // One attempt. Adds the time that it takes to `*takes_ns`. Throws Killed.
  otlp::SendResult Take(const otlp::ProfilesRequest& request, const otlp::RequestIdentity& identity, int64_t timeout_ns,
                        int64_t* takes_ns);

  // A new exporter sends.
  void BeginLife() {
    ++life_;
    sessions_.clear();
  }
  void BeAwayUntil(int64_t ns) { away_until_ns_ = ns; }
  void Heal() {
    healed_ = true;
    away_until_ns_ = 0;
  }
  // In every second run, reads of the store may fail. An exporter does not let one unreadable shard stop the others. So
  // then there may be a request in doubt for each of its shards.
  bool ReadFails() { return reads_fail_ && Chance(10); }
  bool Chance(uint64_t of_thousand) { return !healed_ && random_() % 1000 < of_thousand; }
  uint64_t Below(uint64_t n) { return random_() % n; }

  bool Knows(int64_t time_ns) const { return accepted_.contains(time_ns) || refused_.contains(time_ns); }
  size_t accepted() const { return accepted_.size(); }
  uint64_t duplicates() const { return duplicates_; }  // samples that were accepted once more
  // The duplicates of requests during which the exporter was killed: it could not count them.
  uint64_t uncounted() const { return uncounted_; }
  // At most so many samples may count as repeated: those of attempts that arrived, or may have, of requests in doubt.
  uint64_t repeated_max() const { return repeated_max_; }

 private:
  using Key = std::pair<std::array<uint8_t, 16>, uint64_t>;  // session and first number
  struct Attempts {
    std::string content;    // the samples' times and the profiles' ids
    uint64_t life = 0;      // of the last attempt
    bool answered = false;  // the exporter got the final answer in this life
    bool in_doubt = false;  // the exporter may believe that the receiver has the request
  };

  std::vector<int64_t> Check(const otlp::ProfilesRequest& request, const otlp::RequestIdentity& identity);
  otlp::SendResult Decide(const std::vector<int64_t>& times, const otlp::RequestIdentity& identity, int64_t timeout_ns,
                          int64_t* takes_ns);
  void Accept(const std::vector<int64_t>& times, const Key& key, bool sender_dies);
  otlp::SendResult Fail(absl::StatusCode code, bool in_doubt, int64_t retry_after_ns = 0);

  World& world_;
  std::mt19937_64 random_;
  const std::string name_;
  const size_t shards_;
  const bool reads_fail_;
  uint64_t life_ = 0;
  int64_t away_until_ns_ = 0;
  bool healed_ = false;
  std::map<Key, Attempts> attempts_;
  struct Accepted {
    Key key;
    uint64_t life = 0;
  };
  std::map<int64_t, Accepted> accepted_;        // by the sample's time
  std::map<int64_t, Key> refused_;              // the same
  std::set<std::array<uint8_t, 16>> sessions_;  // of this life's requests
  std::map<uint64_t, std::set<Key>> repeated_;  // requests that an earlier life had sent, by life
  uint64_t duplicates_ = 0, uncounted_ = 0, repeated_max_ = 0;
};

}  // namespace tributary::sim
