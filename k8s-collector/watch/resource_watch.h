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

// Receives the objects of a cluster. Between OnListBegin and OnListEnd, OnObject is called for every object of the
// kind. If an earlier object is not among them, it has been deleted. OnListBegin may be called again before OnListEnd:
// the list then starts again. OnObject may be called twice for the same state of an object.
class WatchEvents {
 public:
  virtual ~WatchEvents() = default;
  virtual void OnListBegin(ResourceKind kind) = 0;
  virtual void OnObject(ResourceKind kind, const KubeObject& object) = 0;
  virtual void OnDeleted(ResourceKind kind, const KubeObject& last) = 0;
  virtual void OnListEnd(ResourceKind kind) = 0;
};

// Follows the changes of all objects of one kind, as Kubernetes recommends ("Efficient detection of changes",
// Kubernetes API concepts). Lists the objects page by page, and then watches their changes. If a watch ends, the next
// watch continues from the last received change. ResourceWatch lists the objects again in these cases: the server no
// longer has this change (410 Gone), an object could not be read, or several answers in a row were unusable. This class
// decides what to request and when, and processes the answers. The caller makes the requests and provides the time. Use
// it on the thread of its owner.
class ResourceWatch {
 public:
  struct Options {
    int64_t page_objects = 500;
    int64_t backoff_min_ns = kNsPerSecond;
    int64_t backoff_max_ns = 30 * kNsPerSecond;
    int64_t refused_retry_ns = kNsPerMinute;        // maximum back-off after kRefusalsMax refusals
    int64_t retry_after_max_ns = 5 * kNsPerMinute;  // maximum of a server's Retry-After
    int64_t list_silence_ns = kNsPerMinute;
    int64_t watch_silence_ns = 150 * kNsPerSecond;  // servers send a bookmark every minute
    int64_t watch_seconds_min = 240;     // a watch lasts this long to twice as long, so that not all end together
    size_t object_bytes_max = 4u << 20;  // etcd accepts 1.5 MiB
    uint64_t seed = 0;                   // of jitter; 0: random
  };
  static constexpr uint32_t kRefusalsMax = 4;

  // `info`, `events` and `metrics` must outlive the watch.
  ResourceWatch(const ResourceInfo& info, Options options, WatchEvents& events, WatchMetrics& metrics);

  struct Request {
    std::string target;       // after the server's address: "/api/v1/pods?limit=500"
    std::string_view accept;  // media types
    int64_t silence_ns = 0;   // if no byte arrives for this long, end the request with DeadlineExceeded
  };
  // The time of the next request. At this time, the caller must call Begin and send the request that it returns. Then
  // the caller must call OnAnswer (unless there is no answer), OnBytes for the bytes of the answer, and always OnEnd.
  MonotonicNs due() const { return due_; }
  Request Begin(MonotonicNs now);
  void OnAnswer(int status, int64_t retry_after_s, MonotonicNs now);
  bool OnBytes(std::string_view bytes, MonotonicNs now);       // false: stop the request and call OnEnd()
  void OnEnd(const absl::Status& transport, MonotonicNs now);  // Unauthenticated: there are no credentials to send

  const ResourceInfo& info() const { return info_; }
  bool listed() const { return listed_; }  // at least once
  // Returns true after kRefusalsMax refusals (403 or 404) in a row: the caller should not wait for this kind. A few
  // refusals do not count, because an API server that has just started refuses requests until it has loaded its rules.
  bool refused() const { return refusals_ >= kRefusalsMax; }
  // A description of the current problem, for logs. "": there is none.
  const std::string& trouble() const { return trouble_; }

 private:
  struct Answer {
    bool is_watch = false;
    int status = 0;  // 0: none yet
    int64_t retry_after_ns = 0;
    MonotonicNs began;
    bool progressed = false;  // a watch sent something
    bool broken = false;      // not the expected answer
    std::string why;          // reason for `broken`
    ApiError error;           // of an ERROR event, or from the body
    bool has_error_event = false;
    std::string body;  // if the status is not 200
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
  std::string version_;  // to watch from; "": list first
  std::string more_;     // token of the list's next page; "": the first page
  bool listed_ = false;
  uint32_t refusals_ = 0;  // in a row
  bool flawed_ = false;    // an object could not be read: list again when the watch ends, after minutes at most
  Backoff backoff_ns_;     // since the last success
  std::string trouble_;
  Answer answer_;
  std::unique_ptr<JsonSplitter> splitter_;
};

}  // namespace tributary
