#include "k8s-collector/watch/resource_watch.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/log.h"
#include "base/percent.h"
#include "base/status.h"

namespace tributary {
namespace {

constexpr std::string_view kAcceptWhole = "application/json";
// The second type is for servers of other groups that do not support the first.
constexpr std::string_view kAcceptMetadataList =
    "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json";
constexpr std::string_view kAcceptMetadata =
    "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json";
constexpr size_t kErrorBodyBytesMax = 8u << 10;
constexpr size_t kShownBytes = 256;
constexpr uint32_t kFailuresBeforeList = 5;  // of a watch, in a row
// A watch that lasted this long worked, even if nothing happened.
constexpr int64_t kWatchWorkedNs = 10 * kNsPerSecond;

}  // namespace

ResourceWatch::ResourceWatch(const ResourceInfo& info, Options options, WatchEvents& events, WatchMetrics& metrics)
    : info_(info),
      options_(options),
      events_(events),
      metrics_(metrics),
      random_(SeedOrRandom(options.seed)),
      backoff_ns_({.min = options.backoff_min_ns, .max = options.backoff_max_ns}) {}

ResourceWatch::Request ResourceWatch::Begin(MonotonicNs now) {
  answer_ = {.is_watch = !version_.empty(), .began = now};
  if (answer_.is_watch) {
    metrics_.watches.Add();
    splitter_ = std::make_unique<JsonSplitter>(JsonSplitter::Shape::kObjects, options_.object_bytes_max);
    const int64_t seconds = options_.watch_seconds_min +
                            static_cast<int64_t>(random_() % static_cast<uint64_t>(options_.watch_seconds_min));
    return {.target = fmt::format("{}?watch=true&allowWatchBookmarks=true&resourceVersion={}&timeoutSeconds={}",
                                  info_.path, PercentEncoded(version_), seconds),
            .accept = info_.whole ? kAcceptWhole : kAcceptMetadata,
            .silence_ns = options_.watch_silence_ns};
  }
  splitter_ = std::make_unique<JsonSplitter>(JsonSplitter::Shape::kItems, options_.object_bytes_max);
  if (more_.empty()) {
    metrics_.lists.Add();
    flawed_ = false;
    events_.OnListBegin(info_.kind);
  }
  return {.target = fmt::format("{}?limit={}{}{}", info_.path, options_.page_objects,
                                more_.empty() ? "" : "&continue=", PercentEncoded(more_)),
          .accept = info_.whole ? kAcceptWhole : kAcceptMetadataList,
          .silence_ns = options_.list_silence_ns};
}

void ResourceWatch::OnAnswer(int status, int64_t retry_after_s, MonotonicNs) {
  answer_.status = status;
  answer_.retry_after_ns =
      std::clamp<int64_t>(retry_after_s, 0, options_.retry_after_max_ns / kNsPerSecond) * kNsPerSecond;
  // A server accepts a watch before it has anything to send.
  if (status == 200 && answer_.is_watch) Settle();
}

bool ResourceWatch::OnBytes(std::string_view bytes, MonotonicNs now) {
  if (answer_.broken || answer_.has_error_event) return false;
  if (answer_.status != 200) {
    answer_.body += bytes.substr(0, kErrorBodyBytesMax - answer_.body.size());
    return answer_.body.size() < kErrorBodyBytesMax;
  }
  const uint64_t too_large = splitter_->too_large();
  const absl::Status status = splitter_->Feed(bytes, [this, now](std::string_view json) {
    if (answer_.is_watch) return TakeEvent(json, now);
    TakeObject(json);
    return true;
  });
  metrics_.too_large_objects.Add(splitter_->too_large() - too_large);
  if (!status.ok()) Break(Message(status));
  return !answer_.broken && !answer_.has_error_event;
}

void ResourceWatch::TakeObject(std::string_view json) {
  absl::StatusOr<KubeObject> object = decoder_.DecodeObject(json);
  if (!object.ok()) {
    metrics_.malformed_objects.Add();
    flawed_ = true;
    return;
  }
  metrics_.left_out.Add(object->left_out);
  events_.OnObject(info_.kind, *object);
}

bool ResourceWatch::TakeEvent(std::string_view json, MonotonicNs) {
  absl::StatusOr<WatchEvent> event = decoder_.DecodeEvent(json);
  if (!event.ok() || event->type == WatchEvent::Type::kUnknown) {
    metrics_.malformed_objects.Add();
    flawed_ = true;
    return true;
  }
  if (event->type == WatchEvent::Type::kError) {
    answer_.has_error_event = true;
    answer_.error = std::move(event->error);
    return false;
  }
  answer_.progressed = true;
  backoff_ns_.Reset();
  if (!event->object.resource_version.empty()) version_ = event->object.resource_version;
  if (event->type == WatchEvent::Type::kBookmark) return true;
  metrics_.events.Add();
  metrics_.left_out.Add(event->object.left_out);
  if (event->type == WatchEvent::Type::kDeleted) {
    events_.OnDeleted(info_.kind, event->object);
  } else {
    events_.OnObject(info_.kind, event->object);
  }
  return true;
}

void ResourceWatch::Break(std::string why) {
  answer_.broken = true;
  answer_.why = std::move(why);
}

void ResourceWatch::OnEnd(const absl::Status& transport, MonotonicNs now) {
  if (answer_.broken) {
    Fail(WatchFailure::kMalformed, fmt::format("{}: {}", verb(), answer_.why), now);
  } else if (answer_.status != 0 && answer_.status != 200) {
    EndRefused(now);
  } else if (answer_.is_watch && (answer_.has_error_event || answer_.status == 200)) {
    EndWatch(transport, now);
  } else if (!transport.ok() || answer_.status == 0) {
    const WatchFailure reason = absl::IsDeadlineExceeded(transport)  ? WatchFailure::kSilent
                                : absl::IsUnauthenticated(transport) ? WatchFailure::kUnauthorized
                                                                     : WatchFailure::kConnection;
    Fail(reason, fmt::format("{}: {}", verb(), transport.ok() ? "no answer" : Message(transport)), now);
  } else {
    EndList(now);
  }
  splitter_.reset();
}

void ResourceWatch::EndList(MonotonicNs now) {
  absl::StatusOr<ListEnd> end = decoder_.DecodeListEnd(splitter_->rest());
  if (!end.ok() || !splitter_->whole()) {
    Fail(WatchFailure::kMalformed, fmt::format("list: {}", end.ok() ? "the answer was cut off" : Message(end.status())),
         now);
    return;
  }
  Settle();
  backoff_ns_.Reset();
  due_ = now;
  more_ = end->more;
  if (!more_.empty()) return;
  version_ = end->resource_version;
  listed_ = true;
  events_.OnListEnd(info_.kind);
}

void ResourceWatch::EndWatch(const absl::Status& transport, MonotonicNs now) {
  if (flawed_) ListAgain();
  if (answer_.has_error_event) {
    const std::string why = fmt::format("watch: the API server ended the watch: {} (code {})",
                                        EscapeForDisplay(answer_.error.message), answer_.error.code);
    if (answer_.error.code == 410) {
      ListAgain();
      Fail(WatchFailure::kExpired, why, now);
    } else {
      Fail(answer_.error.code == 429 ? WatchFailure::kThrottled : WatchFailure::kServer, why, now,
           answer_.retry_after_ns);
    }
    return;
  }
  if (absl::IsDeadlineExceeded(transport)) {
    Fail(WatchFailure::kSilent, "watch: " + Message(transport), now);
  } else if (!transport.ok()) {
    Fail(WatchFailure::kConnection, "watch: " + Message(transport), now);
  } else if (answer_.progressed || now.value - answer_.began.value >= kWatchWorkedNs) {
    backoff_ns_.Reset();
    due_.value = now.value + Jittered(options_.backoff_min_ns / 4, random_);
  } else {
    Fail(WatchFailure::kServer, "watch: the API server ended the watch within 10 s, before any event", now);
  }
}

void ResourceWatch::EndRefused(MonotonicNs now) {
  const ApiError error = decoder_.DecodeError(answer_.body);
  const std::string error_text = EscapeForDisplay(
      !error.message.empty() ? std::string_view(error.message) : std::string_view(answer_.body).substr(0, kShownBytes));
  auto why = [&](std::string_view problem) {
    return fmt::format("{}: HTTP status {}{}{}{}", verb(), answer_.status, problem, error_text.empty() ? "" : ": ",
                       error_text);
  };
  switch (answer_.status) {
    case 401:
      return Fail(WatchFailure::kUnauthorized, why(", the API server does not accept the credentials"), now);
    case 403:
      ++refusals_;
      return Fail(
          WatchFailure::kForbidden,
          why(fmt::format(", not allowed: grant the verb {} on the resource {} of {}", verb(), info_.plural,
                          info_.group.empty() ? "the core API group" : fmt::format("the API group {}", info_.group))),
          now);
    case 404:
      ++refusals_;
      return Fail(WatchFailure::kNotServed, why(", the API server does not serve this kind"), now);
    case 400:  // a resource version, or a page token, that this server does not understand
    case 410:
      ListAgain();
      return Fail(WatchFailure::kExpired, why(""), now);
    case 429:
      return Fail(WatchFailure::kThrottled, why(""), now, answer_.retry_after_ns);
    default:
      return Fail(WatchFailure::kServer, why(""), now, answer_.retry_after_ns);
  }
}

void ResourceWatch::ListAgain() {
  version_.clear();
  more_.clear();
}

void ResourceWatch::Settle() {
  refusals_ = 0;
  trouble_.clear();
}

void ResourceWatch::Fail(WatchFailure reason, std::string why, MonotonicNs now, int64_t at_least_ns) {
  metrics_.failures[static_cast<size_t>(reason)]->Add();
  trouble_ = std::move(why);
  // A refusal ends only after an operator changes something, except on a server that has just started.
  backoff_ns_.SetMax(refused() ? options_.refused_retry_ns : options_.backoff_max_ns);
  const int64_t wait_ns = backoff_ns_.NextJittered(random_);
  due_.value = now.value + std::max(wait_ns, at_least_ns > 0 ? at_least_ns + Jittered(kNsPerSecond, random_) : 0);
  // After repeated answers that cannot be used, list again. If the server is unreachable, only wait.
  const bool got_nowhere =
      reason == WatchFailure::kMalformed || (reason == WatchFailure::kServer && answer_.status == 200);
  if (got_nowhere && backoff_ns_.failures() % kFailuresBeforeList == 0) ListAgain();
}

}  // namespace tributary
