#pragma once

#include <fmt/format.h>

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "k8s-collector/watch/resource_watch.h"

// For tests: a log of WatchEvents calls, and JSON texts as an API server sends them.

namespace tributary {

// Logs the calls that it receives, and keeps the current objects by uid.
class WatchLog : public WatchEvents {
 public:
  void OnListBegin(ResourceKind) override {
    log.push_back("begin");
    seen_.clear();
  }
  void OnObject(ResourceKind, const KubeObject& object) override {
    log.push_back("put " + object.name);
    objects[object.uid] = object.resource_version;
    seen_.insert(object.uid);
  }
  void OnDeleted(ResourceKind, const KubeObject& last) override {
    log.push_back("deleted " + last.name);
    objects.erase(last.uid);
  }
  void OnListEnd(ResourceKind) override {
    log.push_back("end");
    std::erase_if(objects, [this](const auto& object) { return !seen_.contains(object.first); });
  }

  std::vector<std::string> TakeLog() { return std::exchange(log, {}); }

  std::vector<std::string> log;
  std::map<std::string, std::string> objects;  // uid → resource version

 private:
  std::set<std::string> seen_;
};

inline std::string ObjectJson(std::string_view name, uint64_t version) {
  return fmt::format(R"({{"metadata":{{"name":"{0}","uid":"u-{0}","resourceVersion":"{1}"}}}})", name, version);
}

inline std::string ListJson(const std::vector<std::string>& items, uint64_t version, std::string_view more = "") {
  return fmt::format(
      R"({{"kind":"PodList","apiVersion":"v1","metadata":{{"resourceVersion":"{}","continue":"{}"}},"items":[{}]}})",
      version, more, fmt::join(items, ","));
}

inline std::string EventJson(std::string_view type, std::string_view object) {
  return fmt::format("{{\"type\":\"{}\",\"object\":{}}}\n", type, object);
}

inline std::string BookmarkJson(uint64_t version) {
  return EventJson("BOOKMARK", fmt::format(R"({{"kind":"Pod","metadata":{{"resourceVersion":"{}"}}}})", version));
}

inline std::string StatusJson(int code, std::string_view message) {
  return fmt::format(
      R"({{"kind":"Status","apiVersion":"v1","metadata":{{}},"status":"Failure","message":"{}","code":{}}})", message,
      code);
}

}  // namespace tributary
