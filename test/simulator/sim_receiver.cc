#include "test/simulator/sim_receiver.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/status.h"

namespace tributary::sim {

otlp::SendResult SimReceiver::Fail(absl::StatusCode code, bool in_doubt, int64_t retry_after_ns) {
  otlp::SendResult result;
  result.status = Error(code, "simulated");
  result.may_retry = code != absl::StatusCode::kInvalidArgument;
  result.in_doubt = in_doubt;
  if (retry_after_ns > 0) result.retry_after_ns = retry_after_ns;
  return result;
}

// Returns the times of the samples. A request that is sent again must be the same in all that identifies it.
std::vector<int64_t> SimReceiver::Check(const otlp::ProfilesRequest& request, const otlp::RequestIdentity& identity) {
  std::vector<int64_t> times;
  std::string content;
  const Key key{identity.session, identity.first};
  uint64_t number = identity.first;
  for (const auto& resource : request.resource_profiles()) {
    for (const auto& scope : resource.scope_profiles()) {
      for (const auto& profile : scope.profiles()) {
        if (profile.profile_id() != otlp::ProfileId(identity, number)) world_.Violate(name_ + ": a wrong profile id");
        content += profile.profile_id();
        for (const auto& sample : profile.samples()) {
          for (const uint64_t time : sample.timestamps_unix_nano()) {
            times.push_back(static_cast<int64_t>(time));
            const auto refused = refused_.find(times.back());
            if (refused != refused_.end() && refused->second != key)
              world_.Violate(name_ + ": a refused sample is sent again with another identity");
            content += fmt::format(" {}", time);
            ++number;
          }
        }
      }
    }
  }
  if (times.empty()) world_.Violate(name_ + ": an empty request");
  Attempts& attempts = attempts_[key];
  // An earlier life may have saved the first request of each session, and was killed before its end.
  if (sessions_.insert(identity.session).second && life_ > 1) attempts.in_doubt = true;
  if (attempts.content.empty()) attempts.content = content;
  if (attempts.content != content) world_.Violate(name_ + ": a request has the identity of another");
  if (attempts.answered && attempts.life == life_) world_.Violate(name_ + ": a request is sent again after its answer");
  attempts.life = life_;
  attempts.answered = false;
  return times;
}

void SimReceiver::Accept(const std::vector<int64_t>& times, const Key& key, bool sender_dies) {
  for (const int64_t time : times) {
    const auto [place, is_new] = accepted_.try_emplace(time, Accepted{key, life_});
    if (is_new) continue;
    Accepted& before = place->second;
    if (before.key != key) return world_.Violate(name_ + ": a sample is sent again with another identity");
    if (before.life != life_) repeated_[life_].insert(key);
    before.life = life_;
    ++(sender_dies ? uncounted_ : duplicates_);
  }
  const size_t requests_max = reads_fail_ ? shards_ : 1;
  if (repeated_[life_].size() > requests_max) world_.Violate(name_ + ": too many requests are sent again after a kill");
}

otlp::SendResult SimReceiver::Take(const otlp::ProfilesRequest& request, const otlp::RequestIdentity& identity,
                                   int64_t timeout_ns, int64_t* takes_ns) {
  const std::vector<int64_t> times = Check(request, identity);
  const auto log = [&](std::string_view end) {
    if (times.empty()) return;
    world_.Log(fmt::format("{}: life {} numbers {}+{}, the first sample is of {}: {}", name_, life_, identity.first,
                           times.size(), times.front(), end));
  };
  try {
    otlp::SendResult result = Decide(times, identity, timeout_ns, takes_ns);
    Attempts& attempts = attempts_[{identity.session, identity.first}];
    if (attempts.in_doubt && (result.status.ok() || result.in_doubt)) repeated_max_ += times.size();
    attempts.in_doubt |= result.in_doubt;
    log(fmt::format("{}{}", result.status.ok() ? "OK" : absl::StatusCodeToString(result.status.code()),
                    result.in_doubt ? ", in doubt" : ""));
    return result;
  } catch (const Killed&) {
    log("the sender is killed");
    throw;
  }
}

otlp::SendResult SimReceiver::Decide(const std::vector<int64_t>& times, const otlp::RequestIdentity& identity,
                                     int64_t timeout_ns, int64_t* takes_ns) {
  const Key key{identity.session, identity.first};
  if (world_.now_ns() < away_until_ns_) {
    if (random_() % 4 != 0) return Fail(absl::StatusCode::kUnavailable, false);
    *takes_ns += timeout_ns;
    return Fail(absl::StatusCode::kDeadlineExceeded, random_() % 2 == 0);
  }
  if (Chance(20)) throw Killed{};  // before the request arrived
  if (Chance(40))
    return Fail(absl::StatusCode::kUnavailable, false, static_cast<int64_t>(random_() % 60) * kNsPerSecond);
  if (Chance(30)) {
    *takes_ns += timeout_ns;
    const bool has_it = random_() % 2 == 0;
    if (has_it) Accept(times, key, false);
    return Fail(absl::StatusCode::kDeadlineExceeded, true);
  }
  if (Chance(30)) {
    for (const int64_t time : times) refused_.emplace(time, key);
    attempts_[key].answered = true;
    return Fail(absl::StatusCode::kInvalidArgument, false);
  }
  const bool sender_dies = Chance(30);
  Accept(times, key, sender_dies);
  if (sender_dies) throw Killed{};
  if (Chance(60)) return Fail(absl::StatusCode::kUnavailable, true);  // the answer is lost
  *takes_ns += static_cast<int64_t>(random_() % 1000) * kNsPerMs;
  attempts_[key].answered = true;
  return {};
}

}  // namespace tributary::sim
