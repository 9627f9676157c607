#pragma once

#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "base/backoff.h"
#include "base/clock.h"
#include "k8s-collector/watch/json_splitter.h"
#include "k8s-collector/watch/kube_object.h"
#include "k8s-collector/watch/object_decoder.h"
#include "k8s-collector/watch/resource_kind.h"
#include "k8s-collector/watch/watch_metrics.h"

namespace tributary {

// Who is told what a cluster consists of. Between OnListBegin and OnListEnd come all objects of a kind: one that was
// known and does not come has gone. A list may begin anew before its end; objects may come twice.
class WatchEvents {
 public:
  virtual ~WatchEvents() = default;
  virtual void OnListBegin(ResourceKind kind) = 0;
  virtual void OnObject(ResourceKind kind, const KubeObject& object) = 0;
  virtual void OnDeleted(ResourceKind kind, const KubeObject& last) = 0;
  virtual void OnListEnd(ResourceKind kind) = 0;
};

// Follows all objects of one kind, by the API's rules ("Efficient detection of changes", Kubernetes API concepts):
// lists them page by page, watches from there on, goes on after an interruption where it stopped, and lists again when
// the server no longer knows what was there (410 Gone). It says what to request and when, and is given the answers;
// time, network and credentials are somebody else's. On its owner's thread.
class ResourceWatch {
 public:
  struct Options {
    int64_t page_objects = 500;
    int64_t backoff_min_ns = kNsPerSecond;
    int64_t backoff_max_ns = 30 * kNsPerSecond;
    int64_t refused_retry_ns = kNsPerMinute;        // at most, after 403 and 404
    int64_t retry_after_max_ns = 5 * kNsPerMinute;  // of what a server may ask for
    int64_t list_silence_ns = kNsPerMinute;
    int64_t watch_silence_ns = 150 * kNsPerSecond;  // servers send a bookmark every minute
    int64_t watch_seconds_min = 240;                // and up to twice that: not all watches end at once
    size_t object_bytes_max = 4u << 20;             // etcd takes 1.5 MiB
    uint64_t seed = 0;                              // of jitter; 0 = random
  };
  static constexpr uint32_t kRefusalsMax = 4;

  // What is lent outlives the watch.
  ResourceWatch(const ResourceInfo& info, Options options, WatchEvents& events, WatchMetrics& metrics);

  struct Request {
    std::string target;       // behind the server's address: "/api/v1/pods?limit=500"
    std::string_view accept;  // media types
    int64_t silence_ns = 0;   // an answer without a byte for so long is to be ended, as DeadlineExceeded
  };
  // When the next request is to be made. Begin makes it, then its answer comes in: OnAnswer once or never, OnBytes, and
  // OnEnd, once, in any case.
  MonotonicNs due() const { return due_; }
  Request Begin(MonotonicNs now);
  void OnAnswer(int status, int64_t retry_after_s, MonotonicNs now);
  bool OnBytes(std::string_view bytes, MonotonicNs now);  // false: nothing more is wanted; OnEnd is due
  void OnEnd(const absl::Status& transport, MonotonicNs now);

  const ResourceInfo& info() const { return info_; }
  bool listed() const { return listed_; }  // once at least
  // Not allowed, or not there, time and again: not to be waited for. Once or twice says nothing: an API server that has
  // just begun does not know its own rules yet.
  bool refused() const { return refusals_ >= kRefusalsMax; }
  // What is wrong at present, for people; "" while all is well.
  const std::string& trouble() const { return trouble_; }

 private:
  struct Answer {
    bool is_watch = false;
    int status = 0;  // 0: none yet
    int64_t retry_after_ns = 0;
    MonotonicNs began;
    bool progressed = false;  // a watch said something
    bool broken = false;      // not what was asked for
    std::string why;          // of broken
    ApiError error;           // of an ERROR event, or what the body says
    bool has_error_event = false;
    std::string body;  // of a status that is not 200
  };

  void TakeObject(std::string_view json);
  bool TakeEvent(std::string_view json, MonotonicNs now);
  void Break(std::string why);
  void EndList(MonotonicNs now);
  void EndWatch(const absl::Status& transport, MonotonicNs now);
  void EndRefused(MonotonicNs now);
  void ListAgain();
  void Settle();
  void Fail(WatchFailure reason, std::string why, MonotonicNs now, int64_t at_least_ns = 0);
  const char* verb() const { return answer_.is_watch ? "watch" : "list"; }

  const ResourceInfo& info_;
  const Options options_;
  WatchEvents& events_;
  WatchMetrics& metrics_;
  std::mt19937_64 random_;
  ObjectDecoder decoder_;

  MonotonicNs due_;
  std::string version_;  // to watch from; "" = to be listed
  std::string more_;     // token of the list's next page; "" = its first
  bool listed_ = false;
  uint32_t refusals_ = 0;  // one behind the other
  bool flawed_ = false;    // an object could not be read: listed again when the watch ends, after minutes at most
  Backoff backoff_ns_;     // since the last success
  std::string trouble_;
  Answer answer_;
  std::unique_ptr<JsonSplitter> splitter_;
};

}  // namespace tributary
