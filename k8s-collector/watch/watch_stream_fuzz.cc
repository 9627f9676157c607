#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "base/status.h"
#include "k8s-collector/watch/resource_watch.h"

// An API server that may answer anything. The input is the body of a list and the body of a watch, cut into pieces. The
// first byte gives the size of the pieces. Checks that objects are bounded, that lists begin before they end, and that
// nothing comes before the first list.

namespace {

using namespace tributary;

class Checker : public WatchEvents {
 public:
  void OnListBegin(ResourceKind) override { in_list_ = begun_ = true; }
  void OnObject(ResourceKind, const KubeObject& object) override {
    if (!begun_ || object.labels.size() > KubeObject::kLabelsMax ||
        object.annotations.size() > KubeObject::kLabelsMax || object.owners.size() > KubeObject::kOwnersMax ||
        object.name.size() > KubeObject::kTextBytesMax) {
      abort();
    }
#ifdef TRIBUTARY_PLANT_CRASH
    if (!object.statuses.empty() && object.statuses[0].restarts == 7) abort();
#endif
  }
  void OnDeleted(ResourceKind, const KubeObject&) override {
    if (!begun_) abort();
  }
  void OnListEnd(ResourceKind) override {
    if (!in_list_) abort();
    in_list_ = false;
  }

 private:
  bool begun_ = false, in_list_ = false;
};

void Answer(ResourceWatch& watch, std::string_view body, size_t piece, MonotonicNs& now) {
  now = std::max(now, watch.due());
  watch.Begin(now);
  watch.OnAnswer(200, 0, now);
  bool wanted = true;
  for (size_t i = 0; i < body.size() && wanted; i += piece) wanted = watch.OnBytes(body.substr(i, piece), now);
  watch.OnEnd(wanted ? absl::OkStatus() : Error(absl::StatusCode::kCancelled, ""), now);
  if (watch.due() < now) abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const size_t piece = data[0] == 0 ? size : data[0];
  std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  const size_t cut = std::min(text.find('\0'), text.size());
  static Metrics metrics;
  static WatchMetrics watch_metrics(metrics);
  Checker checker;
  ResourceWatch watch(InfoOf(ResourceKind::kPods), {.object_bytes_max = 4096, .seed = 1}, checker, watch_metrics);
  MonotonicNs now{kNsPerSecond};
  Answer(watch, text.substr(0, cut), piece, now);
  if (cut == text.size()) return 0;
  Answer(watch, R"({"kind":"PodList","metadata":{"resourceVersion":"1"},"items":[]})", size, now);
  Answer(watch, text.substr(cut + 1), piece, now);
  return 0;
}
