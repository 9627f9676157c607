#include <gtest/gtest.h>

#include <map>
#include <random>

#include "base/status.h"
#include "k8s-collector/watch/resource_watch.h"
#include "k8s-collector/watch/watch_testing.h"

namespace tributary {
namespace {

// A model of an API server: objects, a history of their changes that drops the oldest, and everything that can go wrong
// on the way to a client.
class ModelServer {
 public:
  explicit ModelServer(uint64_t seed) : random_(seed) {}

  void Change() {
    ++version_;
    const std::string name = fmt::format("o{}", random_() % 40);
    const bool exists = objects_.contains(name);
    if (exists && random_() % 3 == 0) {
      objects_.erase(name);
      history_.push_back({version_, EventJson("DELETED", ObjectJson(name, version_))});
    } else {
      objects_[name] = version_;
      history_.push_back({version_, EventJson(exists ? "MODIFIED" : "ADDED", ObjectJson(name, version_))});
    }
    if (history_.size() > 30) history_.erase(history_.begin(), history_.begin() + static_cast<int64_t>(random_() % 20));
  }

  // Answers a request through the watch, with faults when `unreliable`.
  void Serve(ResourceWatch& watch, const std::string& target, MonotonicNs now, bool unreliable) {
    const uint64_t fault = unreliable ? random_() % 12 : 100;
    if (fault == 0) return watch.OnEnd(Error(absl::StatusCode::kUnavailable, "refused"), now);
    if (fault < 5) {
      constexpr int kStatuses[] = {0, 401, 403, 429, 500};
      return Send(watch, kStatuses[fault], StatusJson(kStatuses[fault], "no"), now);
    }
    const bool is_watch = target.find("watch=true") != std::string::npos;
    std::string body = is_watch ? Watch(NumberBehind(target, "resourceVersion=")) : List(target);
    if (body.empty()) return Send(watch, 410, StatusJson(410, "gone"), now);
    if (fault == 5) body.resize(random_() % body.size());
    if (fault == 6) body.insert(random_() % body.size(), "\x01<html>");
    Send(watch, 200, body, now,
         fault == 7 || fault == 5 ? Error(absl::StatusCode::kUnavailable, "reset") : absl::OkStatus());
  }

  std::map<std::string, std::string> objects() const {
    std::map<std::string, std::string> out;
    for (const auto& [name, version] : objects_) out["u-" + name] = std::to_string(version);
    return out;
  }

 private:
  static uint64_t NumberBehind(const std::string& target, const char* key) {
    const size_t at = target.find(key);
    return at == std::string::npos ? 0 : std::stoull(target.substr(at + std::string_view(key).size()));
  }

  // Returns a page of five objects. Its token contains the version and the number of objects before the next page. The
  // token is valid as long as nothing changes.
  std::string List(const std::string& target) {
    const uint64_t token = NumberBehind(target, "continue=");
    if (token != 0 && token / 1000 != version_) return "";
    std::vector<std::string> items;
    size_t at = 0;
    for (const auto& [name, version] : objects_) {
      if (at++ >= token % 1000 && items.size() < 5) items.push_back(ObjectJson(name, version));
    }
    const size_t next = token % 1000 + items.size();
    return ListJson(items, version_, next < objects_.size() ? std::to_string(version_ * 1000 + next) : "");
  }

  std::string Watch(uint64_t from) {
    if (from < version_ && (history_.empty() || history_.front().first > from + 1)) {
      return random_() % 2 == 0 ? "" : EventJson("ERROR", StatusJson(410, "too old resource version"));
    }
    std::string out;
    for (const auto& [version, event] : history_) {
      if (version > from) out += event;
    }
    return out + BookmarkJson(version_);
  }

  void Send(ResourceWatch& watch, int status, const std::string& body, MonotonicNs now,
            absl::Status end = absl::OkStatus()) {
    watch.OnAnswer(status, static_cast<int64_t>(random_() % 3), now);
    bool wanted = true;
    for (size_t i = 0; i < body.size() && wanted;) {
      const size_t piece = 1 + random_() % 200;
      wanted = watch.OnBytes(body.substr(i, piece), now);
      i += piece;
    }
    watch.OnEnd(wanted ? end : Error(absl::StatusCode::kCancelled, "no more data is needed"), now);
  }

  std::mt19937_64 random_;
  uint64_t version_ = 1;
  std::map<std::string, uint64_t> objects_;
  std::vector<std::pair<uint64_t, std::string>> history_;
};

// After any faults, once the server answers, the watch knows all objects.
TEST(ResourceWatchProperty, KnowsAllObjectsAfterFaults) {
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    std::mt19937_64 random(seed);
    ModelServer server(seed);
    Metrics metrics;
    WatchMetrics watch_metrics(metrics);
    WatchLog log;
    ResourceWatch watch(InfoOf(ResourceKind::kPods), {.seed = seed}, log, watch_metrics);
    MonotonicNs now{kNsPerSecond};
    for (int i = 0; i < 200; ++i) {
      for (uint64_t changes = random() % 12; changes > 0; --changes) server.Change();
      now = std::max(now, watch.due());
      server.Serve(watch, watch.Begin(now).target, now, /*unreliable=*/true);
    }
    for (int i = 0; i < 20; ++i) {
      now = std::max(now, watch.due());
      server.Serve(watch, watch.Begin(now).target, now, /*unreliable=*/false);
    }
    ASSERT_EQ(log.objects, server.objects()) << "seed " << seed;
    ASSERT_EQ(watch.trouble(), "");
  }
}

}  // namespace
}  // namespace tributary
